"""The program of the bandwidth test, run by bash with stand-ins for ssh, MPI and nvidia-smi."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from provision.kinds import diagnosis as search
from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes import all_gather
from provision.kinds.gke.kubernetes.trials import Ran
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool

LOG = Path(__file__).parent / "a3-ultra-all-gather.log"
HALVED = re.compile(r"(?<= )(\d+\.\d\d)(?= +(0|N/A)( |$))")

# What a pod finds on its node, by its number.
SMI = """\
#!/bin/sh
[ "$1" = --query-gpu=name,driver_version,ecc.errors.uncorrected.volatile.total ] || exit 3
for gpu in 0 1 2 3 4 5 6 7; do echo "NVIDIA H200, 580.95.05, $((gpu == 0 ? errors : 0))"; done
"""
SSH = """\
#!/bin/sh
# ssh OPTIONS HOST COMMAND: only hosts that are up answer.
for word; do case "$word" in *-w-0-*) host="$word" ;; esac; done
[ "${host#*-w-0-}" != "$silent.test" ]
"""
MPI = """\
#!/bin/sh
while [ "$1" != --hostfile ]; do shift; done
numbers="$(sed 's/.*-w-0-\\([0-9]*\\)\\..*/\\1/' "$2")"
echo $numbers >>"$STUBS/asked"
if grep -q -- "-w-0-$slow\\." "$2"; then cat "$STUBS/slow"; else cat "$STUBS/good"; fi
"""


class Node:
    """A machine that runs the program of the first pod."""

    def __init__(self, folder: Path, pool: GpuPool, nodes: int) -> None:
        self._folder = folder
        program = all_gather.program(pool, nodes)
        for name, text in (("nvidia-smi", SMI), ("ssh", SSH), ("mpirun", MPI), ("quiet", "")):
            (folder / name).write_text(text or "#!/bin/sh\n")
            (folder / name).chmod(0o755)
        quiet = str(folder / "quiet")
        program = program.replace("/tmp/", f"{folder}/")  # noqa: S108 - not of this machine
        program = program.replace("/sbin/ldconfig", quiet)
        program = program.replace("/scripts/container_entry.sh", quiet)
        self._program = program.replace("-lt 600", "-lt 1").replace("sleep 5", "sleep 0.3")
        good = LOG.read_text()
        (folder / "good").write_text(good)
        (folder / "slow").write_text(HALVED.sub(lambda it: f"{float(it[1]) / 2:.2f}", good))

    def run(self, *, index: int = 0, slow: str = "-", silent: str = "-", errors: int = 0) -> str:
        """What the program writes, which has to end well."""
        environ = {
            "PATH": f"{self._folder}:/usr/bin:/bin",
            "HOSTNAME": f"test-w-0-{index}",
            "JOB_SET": "test",
            "JOB_COMPLETION_INDEX": str(index),
            "STUBS": str(self._folder),
            "errors": str(errors),
            "slow": slow,
            "silent": silent,
        }
        ended = subprocess.run(
            ["/bin/bash", "-c", self._program],
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    @property
    def asked(self) -> list[list[int]]:
        """The nodes of each measurement."""
        lines = (self._folder / "asked").read_text().splitlines()
        return [[int(word) for word in line.split()] for line in lines]


def test_good_nodes_are_measured_once_and_the_first_pod_tells_of_its_own(tmp_path: Path) -> None:
    node = Node(tmp_path, samples.ULTRA, 4)
    log = node.run()
    assert node.asked == [[0, 1, 2, 3]]
    told = all_gather.read(log)
    assert (told.silent, told.pairs) == ((), {})
    assert told.whole.peak == 335.67


def test_where_all_are_too_slow_each_node_is_measured_with_two_others(tmp_path: Path) -> None:
    node = Node(tmp_path, samples.ULTRA, 4)
    log = node.run(slow="2")
    assert node.asked[0] == [0, 1, 2, 3]
    pairs = [list(pair) for one in search.pairs(4) for pair in one]
    assert sorted(node.asked[1:]) == sorted(pairs)
    names = ("a", "b", "c", "d")
    tested = testing.of(samples.ULTRA, Ran(nodes=names, logs=(log, "", "", ""), waited=0), {})
    assert tested.finding.faulty == ("c",)
    assert [it.passed for it in tested.tried] == [False, True, False, False, True]


def test_a_node_that_does_not_answer_is_named_and_left_out(tmp_path: Path) -> None:
    node = Node(tmp_path, samples.ULTRA, 3)
    log = node.run(silent="1", slow="2")
    assert node.asked == [[0, 2], [2, 0]]
    tested = testing.of(samples.ULTRA, Ran(nodes=("a", "b", "c"), logs=(log, "", ""), waited=0), {})
    assert "did not answer" in "; ".join(tested.checked["b"].faults)
    assert "did not answer" not in "; ".join(tested.checked["c"].faults)
    assert tested.tried[0].members == ("a", "c")


@pytest.mark.parametrize(
    ("errors", "faults"), [(0, []), (17, ["17 uncorrected memory (ECC) errors"])]
)
def test_a_pod_tells_what_nvidia_smi_says_of_its_node(
    tmp_path: Path, errors: int, faults: list[str]
) -> None:
    node = Node(tmp_path, samples.ULTRA, 2)
    (tmp_path / "all-gather-is-done").touch()
    log = node.run(index=1, errors=errors)
    tested = testing.of(samples.ULTRA, Ran(nodes=("a", "b"), logs=("", log), waited=0), {})
    check = tested.checked["b"]
    assert (check.gpus, check.driver, check.ecc_errors) == (8, "580.95.05", errors)
    assert [it.partition(" since")[0] for it in check.faults if "ECC" in it] == faults
