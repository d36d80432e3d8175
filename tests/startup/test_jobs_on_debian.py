"""Jobs on three VMs with real systems: the unit, its user, and a real training by torchrun."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.startup.test_jobs import packed
from tests.startup.test_ranks import NAMES, _wait, group

if TYPE_CHECKING:
    from tests.startup.debian_vm import DebianVM
    from tests.startup.group import Group

__all__ = ["group"]  # the fixture

# The first of them makes a root with PyTorch, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

# The options that PyTorch 1.13 on Python 3.11 needs (see test_ranks); none is about nodes or ranks.
TORCHRUN = ("torchrun", "--redirects", "1", "--tee", "1", "train.py", "--steps", "7")
TRAIN = """\
import json, os, pathlib, sys
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
weight = torch.zeros(1)
for _ in range(int(sys.argv[2])):
    gradient = torch.tensor([float(rank + 1)])
    dist.all_reduce(gradient)
    weight += gradient / size
pathlib.Path("result").write_text(json.dumps({"uid": os.getuid(), "weight": weight.item()}))
if rank == 0:
    print(f"{size} processes came to {weight.item()}", flush=True)
"""
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
    found = []
    for name in NAMES:
        vm = group.vm(name)
        vm.configure("", gpus=None)
        vm.turn_on()
        found.append(vm)
    return found


def _send(group: Group, files: dict[str, str]) -> str:
    archive, sha256 = packed(files)
    group.write(f"jobs/files/{sha256}.tar.gz", archive)
    return sha256


def _run(group: Group, vms: list[DebianVM], name: str, *command: str, **more: Any) -> Any:
    job = {"name": name, "command": list(command), "env": {"LD_PRELOAD": "/nowhere.so"}, **more}
    group.write(f"jobs/{name}.json", json.dumps(job).encode())
    group.write("jobs/index.json", json.dumps({"jobs": [{"name": name}]}).encode())
    _wait(lambda: group.read(f"vms/jobs/{name}/course.json"), vms)
    return json.loads(group.read(f"vms/jobs/{name}/course.json") or "")


def test_the_same_torchrun_trains_on_three_vms_and_on_one(
    group: Group, vms: list[DebianVM]
) -> None:
    sha256 = _send(group, {"train.py": TRAIN})
    course = _run(group, vms, "train-1", *TORCHRUN, files=sha256)
    assert course["state"] == "succeeded", course
    assert "3 processes came to 14.0" in group.log("train-1")
    (own,) = {vm.run("id --user aiinfra-job").strip() for vm in vms}
    for vm in vms:
        result = json.loads(vm.read("var/lib/aiinfra-job/train-1/result"))
        assert result == {"uid": int(own), "weight": 14.0}

    course = _run(group, vms, "train-2", *TORCHRUN, files=sha256, nodes=1)
    assert course["state"] == "succeeded", course
    assert "1 processes came to 7.0" in group.log("train-2")


def test_a_program_is_nobodys_administrator_and_none_of_its_lines_is_lost(
    group: Group, vms: list[DebianVM]
) -> None:
    course = _run(group, vms, "sly-1", "bash", "-c", INTRUDER)
    assert course["state"] == "failed"
    assert course["failure"]["code"] == 4
    lines = [it for it in group.log("sly-1").splitlines() if "LD_PRELOAD" not in it]
    assert lines == ["aiinfra-job", *(f"line {it}" for it in range(1, 100_001))]
