"""Jobs on three VMs with real systems: the unit, its user, and a real training by torchrun."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.startup import roots
from tests.startup.group import Group, Site

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.startup.debian_vm import DebianVM

# The first of them makes a root with PyTorch, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

NAMES = ("train-vm-a", "train-vm-b", "train-vm-c")
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
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    root = roots.with_packages(roots.root(roots.Release.DEBIAN_12), "python3-torch")
    with (
        Site(tmp_path_factory.mktemp("site"), root) as site,
        Group(site, tmp_path_factory.mktemp("group"), root) as made,
    ):
        yield made


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
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(text.encode()), 0o755
            archive.addfile(about, io.BytesIO(text.encode()))
    sha256 = hashlib.sha256(packed.getvalue()).hexdigest()
    group.write(f"jobs/files/{sha256}.tar.gz", packed.getvalue())
    return sha256


def _run(group: Group, vms: list[DebianVM], name: str, *command: str, **more: Any) -> Any:
    job = {"name": name, "command": list(command), "env": {"LD_PRELOAD": "/nowhere.so"}, **more}
    group.write(f"jobs/{name}.json", json.dumps(job).encode())
    group.write("jobs/index.json", json.dumps({"jobs": [{"name": name}]}).encode())
    _wait(lambda: group.read(f"vms/jobs/{name}/course.json"), vms)
    return json.loads(group.read(f"vms/jobs/{name}/course.json") or "")


def _wait(what: Callable[[], Any], vms: list[DebianVM], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            units = "journalctl --boot --no-pager --output cat --lines 60"
            raise AssertionError("\n".join(f"{vm.name}:\n{vm.run(units)}" for vm in vms))
        time.sleep(0.2)


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
