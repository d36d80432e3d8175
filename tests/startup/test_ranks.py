"""A real training of three VMs by torchrun, as STARTUP_COMMAND has it; one VM is made again."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.startup import environments
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site

# The first of them makes a root with PyTorch, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

NAMES = ("train-vm-a", "train-vm-b", "train-vm-c")
# An attempt that begins while rank 0 is still away has its old address: it must not wait for that
# as long as it does by default, some ten minutes.
COMMAND = """\
torchrun --rdzv_conf timeout=30 /srv/shared/train.py
"""
# Each step is an average over all ranks. The checkpoint is written whole or not at all.
TRAIN = """\
import json, os, pathlib, time
import torch
import torch.distributed as dist

dist.init_process_group("gloo")
rank, size = dist.get_rank(), dist.get_world_size()
shared = pathlib.Path("/srv/shared")
kept = shared / "checkpoint"
step, weight = 0, torch.zeros(1)
if kept.exists():
    step, weight = torch.load(kept)
begun = {"rank": rank, "size": size, "from": step, "host": os.uname().nodename}
with (shared / "begun").open("a") as told:
    told.write(json.dumps(begun) + "\\n")
while step < 40:
    gradient = torch.tensor([float(rank + 1)])
    dist.all_reduce(gradient)
    weight += gradient / size
    step += 1
    if rank == 0:
        torch.save((step, weight), shared / "draft")
        (shared / "draft").rename(kept)
        (shared / "step").write_text(str(step))
    time.sleep(0.2)
if rank == 0:
    (shared / "result").write_text(json.dumps({"step": step, "weight": weight.item()}))
"""


@pytest.fixture(scope="module")
def group(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Group]:
    root = environments.launchers()
    with (
        Site(tmp_path_factory.mktemp("site"), root) as site,
        Group(site, tmp_path_factory.mktemp("group"), root) as made,
    ):
        yield made


def _started(group: Group, name: str) -> DebianVM:
    vm = group.vm(name)
    vm.configure(COMMAND, gpus=None, restart="on-failure")
    vm.turn_on()
    return vm


def _wait(what: Callable[[], Any], vms: list[DebianVM], seconds: float = 240) -> None:
    deadline = time.monotonic() + seconds
    while not what():
        if time.monotonic() > deadline:
            units = "journalctl --boot --no-pager --output cat --lines 60"
            raise AssertionError("\n".join(f"{vm.name}:\n{vm.run(units)}" for vm in vms))
        time.sleep(0.2)


def _begun(shared: Path) -> list[dict[str, Any]]:
    if not (shared / "begun").exists():
        return []
    return [json.loads(line) for line in (shared / "begun").read_text().splitlines()]


def _step(shared: Path) -> int:
    text = (shared / "step").read_text() if (shared / "step").exists() else ""
    return int(text or 0)  # it may just be written


def test_a_training_goes_on_from_its_checkpoint_when_the_vm_of_rank_0_is_made_again(
    group: Group,
) -> None:
    (group.shared / "train.py").write_text(TRAIN)
    group.set_size(3)
    vms = {name: _started(group, name) for name in NAMES}
    _wait(lambda: len(_begun(group.shared)) == 3, list(vms.values()))
    first = _begun(group.shared)
    _wait(lambda: _step(group.shared) >= 5, list(vms.values()))
    lost = next(it["host"] for it in first if it["rank"] == 0)

    vms[lost].kill()
    vms[lost] = _started(group, lost)
    _wait((group.shared / "result").exists, list(vms.values()), seconds=420)

    again = _begun(group.shared)[3:]
    assert {it["host"]: it["rank"] for it in again} == {it["host"]: it["rank"] for it in first}
    assert sorted(it["rank"] for it in again) == [0, 1, 2]
    (begun_from,) = {it["from"] for it in again}
    assert 5 <= begun_from < 40
    result = json.loads((group.shared / "result").read_text())
    assert result == {"step": 40, "weight": pytest.approx(40 * 2.0)}
