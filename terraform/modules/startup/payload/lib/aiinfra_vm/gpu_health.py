"""What this VM's GPUs complain of while it runs, as its agent tells it: a few words each.

Which Xids mean a broken GPU, link or memory, and not a program's mistake, is NVIDIA's page on XID
errors; the rest is what the task `check` looks at, but for DCGM's tests, which need free GPUs.
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from typing import Any, Iterable

from aiinfra_vm import programs, report
from aiinfra_vm.tasks import check

_EVERY = 120.0  # seconds
_STUCK = 3 * _EVERY  # that a look may take, with the pause after it
_SECONDS = 20
_MOST = 4
_LONGEST = 160
_XID = re.compile(r"NVRM: (Xid \(.*?\): (\d+),.*)")
# Memory that can't be corrected, a link, the bus, the GPU's own processor.
_BROKEN = frozenset({48, 62, 64, 74, 79, 95, 119, 120, 140})


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
    return [(int(match[2]), match[0].strip()) for match in found if match]


def logged() -> tuple[str, ...]:
    """What the driver has logged since the boot that means something broken."""
    return _few(dict.fromkeys(line for number, line in xids("--boot") if number in _BROKEN))


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
        f"{len(gpus)} GPUs instead of {wanted}" if is_less else "",
        f"{errors} uncorrected memory (ECC) errors since its boot" if errors else "",
        f"no link on {', '.join(down)}" if down else "",
        check.dcgm_health(),
    ]
    return _few(found)


def _few(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(re.sub(r"[^ -~]+", " ", it)[:_LONGEST] for it in texts if it)[:_MOST]


class Watch:
    """Looks again and again in a thread of its own: a GPU off its bus can make a look hang."""

    def __init__(self, config: dict[str, Any]) -> None:
        self._config = config
        self._found: tuple[str, ...] = ()
        self._began, self._since = float("inf"), ""
        if config.get("gpus"):
            threading.Thread(target=self._look, daemon=True).start()

    @property
    def faults(self) -> tuple[str, ...]:
        """What the last look has found, and whether one does not come back."""
        if time.monotonic() - self._began < _STUCK:
            return self._found
        return (*self._found[: _MOST - 1], f"the driver does not answer since {self._since}")

    def _look(self) -> None:
        while True:
            self._began, self._since = time.monotonic(), report.now()
            told = logged()
            # At once: whether the driver answers to the rest is not known.
            self._found = _few(dict.fromkeys([*told, *self._found]))
            self._found = faults(self._config, told)
            time.sleep(_EVERY)
