from __future__ import annotations

import signal
import stat
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from aiinfra_vm import gpu_health, idle, looks, members, programs
from aiinfra_vm.members import Member
from aiinfra_vm.storage import Version
from aiinfra_vm.tasks import check

from provision.catalogue import xids
from tests import waiting

CONFIG = {"gpus": {"count": 2}}
GPU = {"ecc_volatile": 0}
VM = {"name": "a", "instance_id": "1", "address": "10.0.0.2", "boot": ""}
OFF_THE_BUS = "NVRM: Xid (PCI:0000:04:00): 79, pid=4711, GPU has fallen off the bus."
A_PROGRAMS = "NVRM: Xid (PCI:0000:04:00): 31, pid=4711, name=python3, MMU Fault"
RECOVERY = "NVRM: Xid (PCI:0000:04:00): 154, GPU recovery action changed"
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


def _found() -> tuple[str, ...]:
    return gpu_health.faults(CONFIG, gpu_health.logged())


class Held(subprocess.Popen[bytes]):
    """A program that the kernel holds if it is nvidia-smi: no signal ends it, nobody reaps it."""

    begun: ClassVar[list[Held]] = []

    def __init__(self, args: list[str], **how: Any) -> None:
        self._is_held = args[0] == "nvidia-smi"
        super().__init__(["sleep", "1000"] if self._is_held else args, **how)
        if self._is_held:
            self.begun.append(self)

    def kill(self) -> None:
        if not self._is_held:
            super().kill()

    def poll(self) -> int | None:
        return None if self._is_held else super().poll()

    def wait(self, timeout: float | None = None) -> int:
        assert timeout is not None or not self._is_held, "it is waited for without a limit"
        return super().wait(timeout)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Held]]:
    """All that was begun of an nvidia-smi that hangs in the kernel."""
    monkeypatch.setattr(subprocess, "Popen", Held)
    monkeypatch.setattr(programs, "_hung", {})
    monkeypatch.setattr(check, "_SECONDS", 0.2)
    monkeypatch.setattr(idle, "_SECONDS", 0.2)
    Held.begun.clear()
    yield Held.begun
    for process in Held.begun:
        process.send_signal(signal.SIGKILL)
        process.wait(waiting.SECONDS)


def test_a_driver_that_hangs_keeps_nobody_from_what_it_has_logged_nor_from_an_end(
    vm: Path, held: list[Held], monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(vm, "journalctl", f"{OFF_THE_BUS}\n")
    for _ in range(2):
        assert _found() == (OFF_THE_BUS, "nvidia-smi did not end within 0 s")
    assert len(held) == 1, "no second one hangs beside the first"

    # A test and a look for work end, too.
    _program(vm, "systemctl", "dead")
    _program(vm, "loginctl", "")
    monkeypatch.setattr(programs, "_hung", {})
    assert "timed out" in idle.work(has_gpus=True)
    monkeypatch.setattr(programs, "_hung", {})
    assert check.gpus() == {"error": "nvidia-smi did not end within 0 s", "gpus": []}
    assert len(held) == 3


def test_what_is_logged_is_told_before_the_driver_is_asked_and_a_look_that_hangs_is_a_fault(
    vm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _program(vm, "journalctl", f"{OFF_THE_BUS}\n")
    asked, goes_on = threading.Event(), threading.Event()

    def hang() -> dict[str, Any]:
        asked.set()
        goes_on.wait(waiting.SECONDS)
        return {"error": "", "gpus": [GPU, GPU]}

    monkeypatch.setattr(check, "gpus", hang)
    (watch,) = gpu_health.watch(CONFIG)
    try:
        assert asked.wait(waiting.SECONDS)
        assert list(watch.found) == [OFF_THE_BUS]
        monkeypatch.setattr(looks, "_STUCK", 0.0)
        assert watch.found[0] == OFF_THE_BUS
        assert watch.found[1].startswith("the driver does not answer since 20")
        assert members.Member.of({**VM, "faults": list(watch.found)}).faults == watch.found
    finally:
        goes_on.set()


def test_gpus_in_order_complain_of_nothing(vm: Path) -> None:
    _program(vm, "journalctl", f"something\n{A_PROGRAMS}\n")
    assert _found() == ()
    assert gpu_health.watch({"gpus": None}) == []


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("NVRM: Xid (PCI:0000:04:00): 149, NETIR_LINK_EVT Fatal XC0 i0 Link 00 (0x025001c6)", 1),
        ("NVRM: Xid (PCI:0000:04:00): 145, RLW_RSPCOL Nonfatal XC0 i0 Link 03 (0x1)", 0),
        ("NVRM: Xid (PCI:0000:04:00): 145, RLW_RSPCOL Non-Fatal XC0 i0 Link 03 (0x1)", 0),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 23001, Fatal, Link 12 Always Fatal", 1),
        ("nvidia-nvswitch3: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 32 egress", 0),
        (
            f"{RECOVERY} from 0x0 (None) to 0x2 (Node Reboot Required)",
            1,
        ),
        (
            f"{RECOVERY} from 0x1 (GPU Reset Required) to 0x0 (None)",
            0,
        ),
        ("NVRM: Xid (PCI:0000:04:00): 63, Row Remapper: New row marked for remapping", 0),
        ("NVRM: Xid (PCI:0000:04:00): 143, GPU initialization error", 1),
    ],
)
def test_links_and_switches_are_told_of_where_the_driver_calls_it_fatal(
    vm: Path, line: str, told: int
) -> None:
    _program(vm, "journalctl", f"{line}\n")
    assert _found() == (line,) * told


def test_each_error_that_is_told_of_has_a_meaning_that_status_says() -> None:
    for number in (it for it in range(1, 1000) if gpu_health._is_broken(it, "Fatal")):
        assert xids.meanings([f"NVRM: Xid (PCI:0000:04:00): {number}, Fatal"]), number


def test_what_is_broken_is_told_in_a_few_words_each(vm: Path) -> None:
    _program(vm, "journalctl", f"{OFF_THE_BUS}\n{A_PROGRAMS}\n{OFF_THE_BUS}\n")
    _program(vm, "nvidia-smi", _gpu(3))
    _program(vm, "dcgmi", DCGM)
    interface = vm / "sys/class/net/ens9"
    (interface / "device").mkdir(parents=True)
    (interface / "carrier").write_text("0")

    assert _found() == (
        OFF_THE_BUS,
        "1 GPUs instead of 2",
        "3 uncorrected memory (ECC) errors since its boot",
        "no link on ens9",
    )
    (interface / "carrier").write_text("1")
    assert _found()[-1] == ("DCGM: Overall Health Warning; GPU ID 0 Warning - PCIe replay rate")


def test_a_member_object_is_written_anew_when_its_health_changes_and_says_of_its_start_up() -> None:
    written: list[Any] = []
    said: list[str | None] = []
    noted: list[dict[str, str | None]] = []

    class Folder:
        def write(self, name: str, document: Any) -> Version:
            written.append((document["faults"], document["disks"]))
            return Version(name, len(written), 1)

        def touch(self, version: Version, notes: dict[str, str | None]) -> Version:
            said.append(notes["startup"])
            noted.append(notes)
            return version

    heart = members.Heartbeat(Folder(), Member("a", "1", "10.0.0.2", "5a"))  # type: ignore[arg-type]
    full = "the boot disk is 97 % full"
    for faults, disks in (((), ()), ((), ()), ((OFF_THE_BUS,), ()), ((OFF_THE_BUS,), (full,))):
        heart.beat(members.Health(faults, disks))

    assert written == [([], []), ([OFF_THE_BUS], []), ([OFF_THE_BUS], [full])]
    heart.beat(members.Health((OFF_THE_BUS,), (full,)), "done")
    heart.beat(members.Health((), ()), "done")
    # With the object that is written anew as well, which has lost what it said.
    assert said == [None, "done", "done"]
    always = members.Heartbeat(Folder(), Member("a", "1", "10.0.0.2", "5a"), {"knows": "image"})  # type: ignore[arg-type]
    always.beat()
    assert noted[-1] == {"knows": "image", "startup": None}
    with pytest.raises(ValueError, match="not as it must be"):
        Member.of({**VM, "faults": ["a\nline"]})
