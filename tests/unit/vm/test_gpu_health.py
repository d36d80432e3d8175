"""What a VM's agent tells of its GPUs while they work."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING, Any

import pytest
from aiinfra_vm import gpu_health, members
from aiinfra_vm.members import Member
from aiinfra_vm.storage import Version
from aiinfra_vm.tasks import check

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = {"gpus": {"count": 2}}
GPU = {"ecc_volatile": 0}
OFF_THE_BUS = "NVRM: Xid (PCI:0000:04:00): 79, pid=4711, GPU has fallen off the bus."
A_PROGRAMS = "NVRM: Xid (PCI:0000:04:00): 31, pid=4711, name=python3, MMU Fault"
DCGM = """\
| Overall Health | Warning |
| GPU ID 0       | Warning - PCIe replay rate |
| GPU ID 1       | Healthy |
"""


@pytest.fixture
def vm(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A folder of programs that answer as told: files journalctl, nvidia-smi, dcgmi."""
    (tmp_path / "sys/class/net").mkdir(parents=True)
    monkeypatch.setattr(check, "SYSTEM", tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    _program(tmp_path, "nvidia-smi", _gpu(0) + _gpu(0))
    return tmp_path


def _gpu(errors: int) -> str:
    return f"GPU-1, NVIDIA H100 80GB HBM3, 580, {errors}, 0, [N/A]\n"


def _program(folder: Path, name: str, said: str) -> None:
    (folder / f"{name}.said").write_text(said)
    case = f'case $* in *remapped*) exit 2;; "health -s a") ;; *) cat {folder}/{name}.said;; esac'
    (folder / name).write_text(f"#!/bin/sh\n{case}\n")
    (folder / name).chmod(stat.S_IRWXU)


def test_gpus_in_order_complain_of_nothing(vm: Path) -> None:
    _program(vm, "journalctl", f"something\n{A_PROGRAMS}\n")
    assert gpu_health.faults(CONFIG) == ()
    assert gpu_health.faults({"gpus": None}) == ()


def test_what_is_broken_is_told_in_a_few_words_each(vm: Path) -> None:
    _program(vm, "journalctl", f"{OFF_THE_BUS}\n{A_PROGRAMS}\n{OFF_THE_BUS}\n")
    _program(vm, "nvidia-smi", _gpu(3))
    _program(vm, "dcgmi", DCGM)
    interface = vm / "sys/class/net/ens9"
    (interface / "device").mkdir(parents=True)
    (interface / "carrier").write_text("0")

    assert gpu_health.faults(CONFIG) == (
        OFF_THE_BUS,
        "1 GPUs instead of 2",
        "3 uncorrected memory (ECC) errors since its boot",
        "no link on ens9",
    )
    (interface / "carrier").write_text("1")
    assert gpu_health.faults(CONFIG)[-1] == (
        "DCGM: Overall Health Warning; GPU ID 0 Warning - PCIe replay rate"
    )


def test_a_member_object_is_written_anew_when_its_health_changes() -> None:
    written: list[Any] = []

    class Folder:
        def write(self, name: str, document: Any) -> Version:
            written.append(document["faults"])
            return Version(name, len(written), 1)

        def touch(self, version: Version) -> Version:
            return version

    heart = members.Heartbeat(Folder(), Member("a", "1", "10.0.0.2", "5a"))  # type: ignore[arg-type]
    for faults in ((), (), (OFF_THE_BUS,), (OFF_THE_BUS,)):
        heart.beat(faults)

    assert written == [[], [OFF_THE_BUS]]
    with pytest.raises(ValueError, match="not as it must be"):
        Member.of({"name": "a", "instance_id": "1", "address": "10.0.0.2", "boot": "",
                   "faults": ["a\nline"]})  # fmt: skip
