"""What this VM's GPUs complain of while it runs, as its agent tells it: a few words each.

Which Xids mean a broken GPU, link or memory, and not a program's mistake, is NVIDIA's catalogue of
them ("Analyzing Xid Errors with the Xid Catalog", read 2026-11-28); the rest is what the task
`check` looks at, but for DCGM's tests, which need free GPUs.
"""

from __future__ import annotations

import re
import subprocess
from typing import Any, Iterator

from aiinfra_vm import counted, looks, programs
from aiinfra_vm.tasks import check

_SECONDS = 20
_XID = re.compile(r"(?:NVRM: Xid|nvidia-nvswitch\d+: SXid) \(.*?\): (\d+),.*")
# Memory that can't be corrected, a link, the bus, the GPU's own processor; those that NVIDIA's
# catalogue answers with a reset, a restart or another machine. It says to ignore 63, which is a row
# that was replaced, though GKE's device plugin counts it; 94 ends one program alone.
_BROKEN = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140, 143, 158})
# NVLink of Blackwell. Their lines, and those of switches (SXid), say which are fatal.
_NVLINK = range(144, 151)
_FATAL = re.compile(r"(?<![A-Za-z-])Fatal\b")
# What the driver asks for after another Xid: "changed from 0x0 (None) to 0x1 (GPU Reset Required)"
_RECOVERY = 154


def _is_broken(number: int, line: str) -> bool:
    if number == _RECOVERY:
        return not line.rstrip().endswith("(None)")
    says_so = number in _NVLINK or "SXid" in line
    return _FATAL.search(line) is not None if says_so else number in _BROKEN


def xids(since: str) -> list[tuple[int, str]]:
    """What the driver has said of GPUs: the number of each Xid, and its line.

    `since`: an option of journalctl, such as "--boot".
    """
    command = ["journalctl", "--dmesg", since, "--output=cat", "--no-pager"]
    try:
        done = programs.ask(command, _SECONDS)
    except (OSError, subprocess.SubprocessError):
        return []
    found = map(_XID.search, done.stdout.decode("utf-8", "replace").splitlines())
    return [(int(match[1]), match[0].strip()) for match in found if match]


def broke(since: float) -> bool:
    """Whether the driver has logged since a moment (Unix epoch) that something is broken."""
    return any(_is_broken(number, line) for number, line in xids(f"--since=@{since:.0f}"))


def logged() -> tuple[str, ...]:
    """What the driver has logged since the boot that means something broken."""
    return looks.few(line for number, line in xids("--boot") if _is_broken(number, line))


def faults(config: dict[str, Any], told: tuple[str, ...]) -> tuple[str, ...]:
    """What is wrong with this VM's GPUs since its boot: what is logged, and what else is found."""
    looked = check.gpus()
    gpus, wanted = looked["gpus"], config["gpus"]["count"]
    is_less = not looked["error"] and len(gpus) != wanted
    errors = sum(gpu["ecc_volatile"] or 0 for gpu in gpus)
    down = [it["name"] for it in check.interfaces() if not it["up"]]
    found = [
        *told,
        looked["error"],
        f"{counted(len(gpus), 'GPU')} instead of {wanted}" if is_less else "",
        f"{counted(errors, 'uncorrected memory (ECC) error')} since its boot" if errors else "",
        f"no link on {', '.join(down)}" if down else "",
        check.dcgm_health(),
    ]
    return looks.few(found)


def watch(config: dict[str, Any]) -> list[looks.Look]:
    """A look at this VM's GPUs, where it has some."""

    def look(before: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        told = logged()
        # At once: whether the driver answers to the rest is not known.
        yield (*told, *before)
        yield faults(config, told)

    return [looks.Look(look, "the driver")] if config.get("gpus") else []
