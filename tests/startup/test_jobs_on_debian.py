"""Jobs on three VMs with real systems: the unit, its user, and the recipes of torchrun and JAX."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest

from provision.actions import fetch
from provision.files import archive
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group
from tests.startup.test_jobs import packed
from tests.startup.test_ranks import NAMES, _wait, group

__all__ = ["group"]  # the fixture

# The first of them makes a root with PyTorch, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

RECIPES = Path(__file__).parents[2] / "examples" / "recipes"
# /srv/shared is in place of a bucket's mount.
TUNE = ("torchrun", "train.py", "--checkpoints", "/srv/shared/tuned", "--every", "20")
INFER = ("torchrun", "infer.py", "--input", "/srv/shared/asked", "--output", "/srv/shared/told")
# What a program of a job may not do, a line each that is empty if it could not.
INTRUDER = """\
id -un
touch /opt/aiinfra/mine 2>/dev/null && echo wrote the programs
cat /etc/shadow 2>/dev/null
sudo -n true 2>/dev/null && echo is an administrator
cat /proc/1/environ 2>/dev/null
for number in $(seq 100000); do echo line $number; done
exit 4
"""


@pytest.fixture(scope="module")
def vms(group: Group) -> list[DebianVM]:
    """Three VMs that have agreed on their ranks."""
    group.set_size(3)
    group.shared.chmod(0o777)
    found = []
    for name in NAMES:
        vm = group.vm(name)
        vm.configure("", gpus=None)
        vm.turn_on()
        found.append(vm)
    return found


def _send(group: Group, recipe: str) -> str:
    """Send the program of a recipe, as its folder."""
    files = {it.name: it.read_text() for it in (RECIPES / recipe).glob("*.py")}
    archive, sha256 = packed(files)
    group.write(f"jobs/files/{sha256}.tar.gz", archive)
    return sha256


def _ask(group: Group, name: str, *command: str, **more: Any) -> None:
    env = {"LD_PRELOAD": "/nowhere.so", "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": "1"}
    env |= more.pop("env", {})
    job = {"name": name, "command": list(command), "env": env, **more}
    group.write(f"jobs/{name}.json", json.dumps(job).encode())
    group.write("jobs/index.json", json.dumps({"jobs": [{"name": name}]}).encode())


def _run(group: Group, vms: list[DebianVM], name: str, *command: str, **more: Any) -> Any:
    _ask(group, name, *command, **more)
    return _over(group, vms, name)


def _over(group: Group, vms: list[DebianVM], name: str) -> Any:
    _wait(lambda: group.read(f"vms/jobs/{name}/course.json"), vms)
    return json.loads(group.read(f"vms/jobs/{name}/course.json") or "")


def _now(group: Group) -> tuple[int, str]:
    """The attempt of the job that is under way, and how far it is."""
    course = json.loads(group.read("vms/job.json") or "{}")
    return course.get("attempt", 0), course.get("state", "")


def _begins(log: str) -> list[tuple[int, int]]:
    """The step and the number of processes of each begin of the fine-tuning."""
    found = re.findall(r"begins at step (\d+) with (\d+) processes", log)
    return [(int(step), int(ranks)) for step, ranks in found]


def test_a_fine_tuning_that_is_killed_goes_on_from_its_checkpoint_and_saves_when_told_to_end(
    group: Group, vms: list[DebianVM]
) -> None:
    sha256 = _send(group, "fine-tune")
    tuned = group.shared / "tuned"

    def kept() -> list[str]:
        return sorted(it.name for it in tuned.glob("checkpoint-*.pt"))

    # More steps than it has time for.
    more = {"restarts": 1, "restart_on": "any"}
    _ask(group, "tune-1", *TUNE, "--steps", "1000000", files=sha256, **more)
    _wait(lambda: len(kept()) == 2, vms)
    vms[1].run("pkill -KILL -f '[-]u train.py'")  # the worker, not torchrun
    _wait(lambda: _now(group) == (2, "running"), vms)
    before = kept()
    _wait(lambda: kept() > before, vms)
    cancelled = {"jobs": [{"name": "tune-1", "cancelled": True}]}
    group.write("jobs/index.json", json.dumps(cancelled).encode())
    assert _over(group, vms, "tune-1")["state"] == "cancelled"

    assert _begins(group.log("tune-1")) == [(0, 3)]
    log = group.log("tune-1", attempt=2)
    ((step, ranks),) = _begins(log)
    assert (ranks, f"checkpoint-{step:09}.pt") == (3, before[-1])
    (last,) = map(int, re.findall(r"stopped at step (\d+)", log))
    assert kept()[-1] == f"checkpoint-{last:09}.pt"
    (own,) = {vm.run("id --user aiinfra-job").strip() for vm in vms}
    assert {str(it.stat().st_uid) for it in tuned.iterdir()} == {own}

    course = _run(group, vms, "tune-2", *TUNE, "--steps", str(last + 10), files=sha256, nodes=1)
    assert course["state"] == "succeeded", course
    assert _begins(group.log("tune-2")) == [(last, 1)]
    assert f"through at step {last + 10}" in group.log("tune-2")


def test_jax_of_three_vms_meets_by_the_variables_of_a_job(
    group: Group, vms: list[DebianVM]
) -> None:
    course = _run(
        group, vms, "jax-1", "python3", "train.py", "--steps", "100",
        files=_send(group, "jax"), env={"PYTHONPATH": "/opt/launchers"},
    )  # fmt: skip
    assert course["state"] == "succeeded", course
    (loss,) = re.findall(r"3 hosts with 3 devices came to a loss of ([\d.]+)", group.log("jax-1"))
    assert float(loss) < 0.1


def test_a_batch_is_shared_out_and_what_has_answers_is_left_alone(
    group: Group, vms: list[DebianVM]
) -> None:
    asked, told = group.shared / "asked", group.shared / "told"
    for folder in (asked, told):
        folder.mkdir()
        folder.chmod(0o777)
    for number in range(7):
        lines = (json.dumps({"id": it, "text": f"{number} {it}"}) + "\n" for it in range(100))
        (asked / f"{number}.jsonl").write_text("".join(lines))
    (told / "2.jsonl").write_text("there before\n")

    course = _run(group, vms, "infer-1", *INFER, files=_send(group, "batch-inference"))

    assert course["state"] == "succeeded", course
    # Of 0, 3 and 6; the third process has 5 alone, as 2 has answers.
    assert "rank 0: 3 files done" in group.log("infer-1")
    assert {it.name for it in told.iterdir()} == {it.name for it in asked.iterdir()}
    assert (told / "2.jsonl").read_text() == "there before\n"
    answers = [json.loads(line) for line in (told / "5.jsonl").read_text().splitlines()]
    assert [it["text"] for it in answers] == [f"5 {it}" for it in range(100)]
    assert {"id", "text", "label", "share"} == set(answers[0])


def test_a_program_is_nobodys_administrator_and_none_of_its_lines_is_lost(
    group: Group, vms: list[DebianVM]
) -> None:
    course = _run(group, vms, "sly-1", "bash", "-c", INTRUDER)
    assert course["state"] == "failed"
    assert course["failure"]["code"] == 4
    lines = [it for it in group.log("sly-1").splitlines() if "LD_PRELOAD" not in it]
    assert lines == ["aiinfra-job", *(f"line {it}" for it in range(1, 100_001))]


def test_what_a_program_wrote_is_packed_for_whoever_logs_in(
    group: Group, vms: list[DebianVM], tmp_path: Path
) -> None:
    wrote = "mkdir out; echo weights >out/model.pt; umask 077; echo mine >out/private"
    course = _run(group, vms, "wrote-1", "bash", "-c", wrote)
    assert course["state"] == "succeeded"
    line = fetch._LINE.format(folder="/var/lib/aiinfra-job/wrote-1", path="./out")
    # Who may become root gets all of it, and who may not is told what is missing.
    sent = vms[0].run(line).encode()
    came = archive.unpack(io.BytesIO(sent), tmp_path, lambda _: None)
    assert came.files == ("out/model.pt", "out/private")
    assert (tmp_path / "out" / "private").read_text() == "mine\n"
    vms[0].run("useradd --create-home --shell /bin/bash caller")
    with pytest.raises(RuntimeError, match=r"exit code 2\n(.|\n)*out/private: Cannot open"):
        vms[0].run(line, user="caller")
    nowhere = line.replace("./out", "./nowhere")
    with pytest.raises(RuntimeError, match=f"exit code {fetch._NO_PATH}\nout\n"):
        vms[0].run(nowhere, user="caller")
    with pytest.raises(RuntimeError, match=f"exit code {fetch._NO_FOLDER}\n"):
        vms[0].run(line.replace("wrote-1", "wrote-2"), user="caller")
