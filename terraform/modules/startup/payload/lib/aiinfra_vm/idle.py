"""Whether the VMs of a group are idle; after IDLE_TIMEOUT of that, this one powers itself off.

A VM that works says so in an object that all share, whatever its content. So a VM ends only when it
and all others have been idle for the whole time, by its own clock: no program that writes there can
end a VM, it can only keep VMs. What can't be found out counts as work.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any, Callable

from aiinfra_vm import programs, storage

ACTIVE = "active.json"
"""Written by VMs that work."""
ENDED = "idle.json"
"""Written by a VM that powers itself off for lack of work: when (Unix epoch)."""

_OFTEN = 60.0  # seconds between looks, at most
_LOOKS = 10  # a timeout has at least so many
_LOAD = 0.5  # of a VM without GPUs: its processors work (five minutes' load average)
_SECONDS = 60  # that a program may take to answer


def _said(*command: str) -> str:
    done = programs.ask(list(command), _SECONDS)
    done.check_returncode()
    return done.stdout.decode("utf-8", "replace").strip()


def _has_queue() -> bool:
    """Whether Slurm has something to do; not for what waits until somebody does something."""
    from aiinfra_vm import slurm_queue  # noqa: PLC0415 - only VMs with Slurm have it

    return any(not (it.is_over or it.is_hopeless) for it in slurm_queue.jobs())


def work(has_gpus: bool, has_slurm: bool = False) -> str:  # noqa: FBT001, FBT002 - facts
    """What this VM does, or is wanted for, in a few words; "" for nothing."""
    try:
        if has_slurm and _has_queue():
            return "a job runs or waits in Slurm's queue"
        unit = "aiinfra-command.service"
        if _said("systemctl", "show", "--property=SubState", "--value", unit) == "running":
            return "STARTUP_COMMAND runs"
        # From systemd 256 on, a user's own manager is a session of this class beside the real one.
        sessions = _said("loginctl", "list-sessions", "--no-legend").splitlines()
        if any("manager" not in line.split() for line in sessions):
            return "somebody is logged in"
        if not has_gpus:
            return "its processors work" if os.getloadavg()[1] >= _LOAD else ""
        asked = ("--query-gpu=utilization.gpu", "--format=csv,noheader,nounits")
        used = _said("nvidia-smi", *asked).splitlines()
    except (OSError, subprocess.SubprocessError) as error:
        return f"it can't be told: {error}"
    # A GPU that does not say ("[N/A]") may work.
    return "a GPU works" if any(it.strip() != "0" for it in used) else ""


class Idle:
    """Watches for work."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that it stands on
        self,
        folder: storage.Folder,
        name: str,
        seconds: float,
        work: Callable[[], str],
        end: Callable[[], None],
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._folder = folder
        self._name = name
        self._seconds = seconds
        self._work = work
        self._end = end
        self._now = now
        self._others = storage.Watched(folder, ACTIVE)
        self._last = now()  # a boot is work
        self._written = float("-inf")
        self._told = ""

    def look(self, *, has_job: bool) -> float:
        """Look once; seconds until the next time.

        Raises:
            OSError: Cloud Storage or systemd refuses, or does not answer.
        """
        what = "a job is under way" if has_job else self._work()
        if what != self._told:
            sys.stdout.write(f"aiinfra: {what or 'this VM is idle'}\n")
            sys.stdout.flush()
            self._told = what
        # First of all, as an answer that does not come must not count as silence of the others.
        if self._others.look() or what:
            self._last = self._now()
        if what:
            # Each is one more version that the bucket keeps, so there are few.
            if self._now() - self._written >= self._seconds / _LOOKS:
                self._folder.write(ACTIVE, {"vm": self._name, "work": what, "at": time.time()})
                self._written = self._now()
        # The last work of another is told a tenth late at most.
        elif self._now() - self._last >= self._seconds * (1 + 1 / _LOOKS):
            self._folder.write(ENDED, {"vm": self._name, "at": time.time()})
            self._end()
        return min(_OFTEN, self._seconds / _LOOKS)


def _power_off() -> None:
    sys.stdout.write("aiinfra: all VMs were idle for IDLE_TIMEOUT: this one powers itself off\n")
    sys.stdout.flush()
    subprocess.run(["systemctl", "poweroff"], check=True)  # noqa: S607 - the system's own


def of(folder: storage.Folder, name: str, config: dict[str, Any]) -> Idle | None:
    """What watches this VM; None where IDLE_TIMEOUT is not set."""
    seconds = config.get("idle_seconds")
    if not seconds:
        return None
    has_gpus, has_slurm = bool(config.get("gpus")), bool(config.get("slurm"))
    return Idle(folder, name, float(seconds), lambda: work(has_gpus, has_slurm), _power_off)
