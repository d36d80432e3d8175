import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from provision.kinds import diagnosis as search
from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes import all_gather, nodes
from provision.kinds.gke.kubernetes.all_gather import Measurement
from provision.kinds.gke.kubernetes.facts import GpuPool
from provision.kinds.gke.kubernetes.trials import Ran
from tests.kubernetes import samples
from tests.running import ran
from tests.table import cases

# The published result of two A3 Ultra nodes, among lines of other programs.
LOG = (Path(__file__).parent / "a3-ultra-all-gather.log").read_text(encoding="utf-8")


def test_the_published_table_is_read_and_shown_without_the_lines_around_it() -> None:
    measured = all_gather.parse(LOG)
    assert measured.average == 120.248
    assert measured.out_of_bounds == 0
    assert (measured.peak_out_of_place, measured.peak_in_place) == (328.85, 335.67)
    assert [row.size for row in measured.rows] == [1024 << step for step in range(24)]
    assert measured.networks == ("gIB",)
    assert measured.used == {"w-0-0": ("gIB",)}
    lines = all_gather.parse(LOG).table.splitlines()
    assert len(lines) == 2 + 24 + 2
    assert lines[0].split()[:2] == ["#", "size"]
    assert lines[-1] == "# Avg bus bandwidth    : 120.248"


@pytest.mark.parametrize("average", ["120.248", "108.3"], ids=["published", "nine_tenths"])
def test_the_published_table_passes_on_its_machine(average: str) -> None:
    measured = all_gather.parse(LOG.replace(": 120.248", f": {average}"))
    assert all_gather.why_bad(measured, samples.ULTRA, 2) == ""


def test_one_node_or_machines_without_a_reference_have_no_bar() -> None:
    measured = all_gather.parse(LOG.replace(": 120.248", ": 80.0"))
    assert all_gather.why_bad(measured, samples.ULTRA, 4) == ""
    assert "average" in all_gather.why_bad(measured, samples.ULTRA, 2)
    slow = _slowed(all_gather.parse(LOG.replace("gIB", "Socket")), 0.01)
    assert all_gather.why_bad(slow, samples.T4, 2) == ""
    assert all_gather.bars(samples.T4, 2) == (0, 0, 0)
    slow = all_gather.parse(LOG.replace(": 120.248", ": 12").replace("gIB", "Socket"))
    assert all_gather.why_bad(slow, samples.ULTRA, 1) == ""


@cases(
    """
pool   | out_of_place | in_place | average
@HIGH  | 63.81        | 64.215   | 27.864
@MEGA  | 169.857      | 170.01   | 62.649
@ULTRA | 295.965      | 302.103  | 108.2232
@A4    | 338.148      | 338.355  | 0
""",
    **{name: getattr(samples, name) for name in ("HIGH", "MEGA", "ULTRA", "A4")},
)
def test_each_machine_with_a_published_figure_has_its_bars_by_the_number_of_nodes(
    pool: GpuPool, out_of_place: float, in_place: float, average: float
) -> None:
    two, more = all_gather.bars(pool, 2), all_gather.bars(pool, 3)
    assert two == pytest.approx((out_of_place, in_place, average))
    assert more == (*two[:2], 0)
    assert all_gather.bars(pool, 1) == (0, 0, 0)


@cases("""
published     | other             | words
: 120.248     | : 100.0           | average bus bandwidth is 100.0 GB/s, 83%
values : 0 OK | values : 7 FAILED | 7 wrong values
335.67      0 | 335.67      3     | 3 wrong values
"# Avg"       | "# nothing"       | did not end
network gIB   | network Socket    | NCCL used plain sockets instead
""")
def test_a_bad_result_says_what_is_wrong(published: str, other: str, words: str) -> None:
    assert published in LOG
    measured = all_gather.parse(LOG.replace(published, other))
    assert words in all_gather.why_bad(measured, samples.ULTRA, 2)


@pytest.mark.parametrize(("column", "name"), [(7, "out of place"), (11, "in place")])
def test_a_peak_that_is_too_low_is_named(column: int, name: str) -> None:
    lines = [_halved(line, column) for line in LOG.splitlines()]
    why = all_gather.why_bad(all_gather.parse("\n".join(lines)), samples.ULTRA, 2)
    assert f"its peak bus bandwidth {name} is 16" in why


def test_the_log_of_a_search_has_a_table_for_each_pair_and_the_nodes_that_did_not_answer() -> None:
    pair = "\n".join(_halved(line, 7) for line in LOG.splitlines())
    log = f"aiinfra-silent 3\n{LOG}\naiinfra-pair 0 1\n{pair}\naiinfra-pair 1 2\n{LOG}"
    told = all_gather.read(log)
    assert (told.silent, told.whole) == ((3,), all_gather.parse(LOG))
    peaks = {pair: it.peak_out_of_place for pair, it in told.pairs.items()}
    assert peaks == {(0, 1): 164.425, (1, 2): 328.85}


def _slowed(measured: Measurement, part: float) -> Measurement:
    rows = tuple(
        dataclasses.replace(row, out_of_place=row.out_of_place * part, in_place=row.in_place * part)
        for row in measured.rows
    )
    return dataclasses.replace(measured, rows=rows)


def _halved(line: str, column: int) -> str:
    words = line.split()
    if len(words) != 13 or not words[0].isdigit():
        return line
    words[column] = str(float(words[column]) / 2)
    return " ".join(words)


H200 = "NVIDIA H200, 580.95.05, 0"
GOOD = ["aiinfra-interfaces w-0-1 10", *(f"aiinfra-gpu {H200}" for _ in range(8))]


def _log(*lines: str) -> str:
    return "\n".join(["something else", *lines, ""])


def test_a_node_that_is_as_its_machine_promises_has_no_faults() -> None:
    check = all_gather.of_log(_log(*GOOD), samples.ULTRA)
    assert check.faults == ()
    assert (check.gpus, check.driver, check.ecc_errors, check.interfaces) == (8, "580.95.05", 0, 10)
    assert check.names == ("NVIDIA H200",) * 8
    log = _log("aiinfra-interfaces w-0-0 1", "aiinfra-gpu Tesla T4, 580.95.05, [N/A]")
    check = all_gather.of_log(log, samples.T4)
    assert (check.faults, check.ecc_errors) == ((), None)


@pytest.mark.parametrize(
    ("lines", "fault"),
    [
        (GOOD[:-1], "7 GPUs instead of 8"),
        ([*GOOD[:-1], "aiinfra-gpu NVIDIA H200, 580.95.05, 3"], "3 uncorrected memory"),
        ([*GOOD[:-1], "aiinfra-gpu NVIDIA H100 80GB HBM3, 580.95.05, 0"], "instead of H200"),
        (["aiinfra-interfaces w-0-1 9", *GOOD[1:]], "its pod has 9 of 10 network interfaces"),
        (
            [GOOD[0], "aiinfra-gpu Unable to determine the device handle for GPU0000:04:00.0"],
            "nvidia-smi failed: Unable to determine the device handle",
        ),
        ([], "it has told nothing of its GPUs"),
    ],
)
def test_each_fault_of_a_node_is_told(lines: list[str], fault: str) -> None:
    found = all_gather.of_log(_log(*lines), samples.ULTRA).faults
    assert any(fault in it for it in found), found


def _node(*, offered: str | None = "8", ready: str = "True", xid: str = "") -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": ready}]
    if xid:
        conditions.append({"type": "XidCriticalError", "status": "True", "reason": xid})
    gpus = {} if offered is None else {"nvidia.com/gpu": offered}
    metadata = {"name": "n", "labels": {"cloud.google.com/gke-nodepool": "p"}}
    return {"metadata": metadata, "status": {"conditions": conditions, "allocatable": gpus}}


@pytest.mark.parametrize(
    ("node", "faults"),
    [
        (_node(), ()),
        # The driver has not told of its GPUs yet.
        (_node(offered="0"), ()),
        (_node(offered=None, ready="False"), ()),
        (_node(offered="7"), ("it offers 7 GPUs instead of 8",)),
        (_node(xid='{"48":1,"79":2}'), ("a GPU has failed: XID 48, 79 (XidCriticalError)",)),
        (_node(xid="Unknown"), ("a GPU has failed: XID Unknown (XidCriticalError)",)),
    ],
)
def test_a_node_that_kubernetes_calls_broken_is_not_fit_for_a_test(
    node: dict[str, Any], faults: tuple[str, ...]
) -> None:
    ((read,),) = (it.each for it in nodes.read([node]))
    assert all_gather.of_node(read, samples.ULTRA) == faults


PUBLISHED = Path(__file__).parent / "a3-ultra-all-gather.log"
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
        good = PUBLISHED.read_text()
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
        ended = ran(["/bin/bash", "-c", self._program], env=environ, timeout=60)
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
