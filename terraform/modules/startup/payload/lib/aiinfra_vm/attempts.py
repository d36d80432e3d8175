"""The attempts at the user's command: what is known of them, and when the next one is due."""

from __future__ import annotations

import contextlib
import enum
import errno
import json
import math
import os
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

_FIRST_PAUSE = 10.0  # seconds
_DOUBLED = 5  # times at most: 320 s
_ROOM = 4096  # bytes of the file: a block of a disk
_FULL = (errno.ENOSPC, errno.EDQUOT)
_QUICK = 600.0  # seconds: an attempt that ends before was no start of anything


class Restart(enum.Enum):
    """When the command is begun again: STARTUP_RESTART."""

    NEVER = "never"
    ON_FAILURE = "on-failure"
    ALWAYS = "always"


class State(enum.Enum):
    """What became of the last attempt."""

    NONE = "none"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # it was told to end, since the VM ends


@dataclass(frozen=True)
class History:
    """The attempts so far. It outlives boots, as a file."""

    state: State = State.NONE  # what became of the last attempt
    boot: str = ""
    attempt: int = 0  # its number; 0 for none yet
    failures: int = 0  # how many attempts failed, one after the other, without one that lasted
    quick: int = 0  # how many attempts ended soon, one after the other
    code: int | None = None  # the last exit code, as a shell has it; None for none
    began: float = 0.0  # when the last attempt began (Unix epoch)
    ended: float = 0.0
    why: str = ""

    @property
    def pause(self) -> float:
        """Seconds between this attempt and the next, about: each quick end doubles them."""
        return _FIRST_PAUSE * 2.0 ** min(max(self.quick - 1, 0), _DOUBLED)

    @property
    def due(self) -> float:
        """When the next attempt begins (Unix epoch): at a whole number of pauses.

        It is half a pause away, or more. So the VMs of a group, whose attempts ended at different
        times, begin together: a program that waits for its peers for less than a pause would never
        meet them else.
        """
        over = max(self.began, self.ended)
        return self.pause * math.ceil(over / self.pause + 0.5)

    def begun(self, boot: str, now: float) -> History:
        """A new attempt begins; a boot begins without failures."""
        before = self if boot == self.boot else replace(self, failures=0, quick=0)
        number = self.attempt + 1
        return replace(
            before, state=State.RUNNING, boot=boot, attempt=number, code=None, began=now, why=""
        )

    def ended_with(self, code: int, now: float) -> History:
        """The attempt ended with an exit code, as a shell has it."""
        quick = self.quick + 1 if now - self.began < _QUICK else 0
        state = State.DONE if code == 0 else State.FAILED
        failures = 0 if code == 0 else 1 if quick == 0 else self.failures + 1
        return replace(self, state=state, code=code, ended=now, quick=quick, failures=failures)

    def not_begun(self, now: float) -> History:
        """An attempt could not be begun."""
        return replace(self, ended=now, quick=self.quick + 1, failures=self.failures + 1)

    def stopped(self, code: int, why: str, now: float) -> History:
        """The attempt ended after it was told to."""
        return replace(self, state=State.STOPPED, code=code, ended=now, why=why, quick=0)

    def goes_on(self, restart: Restart) -> bool:
        """Whether another attempt follows the one that ended, within the same boot."""
        if restart is Restart.NEVER or self.state is State.STOPPED:
            return False
        return self.state is not State.DONE or restart is Restart.ALWAYS

    def refusal(self, restart: Restart, boot: str) -> str:
        """Why the command is not begun at a boot; "" where it is, or where it runs already."""
        begins = self.state is State.NONE or (self.state is State.RUNNING and self.boot == boot)
        if begins or restart is Restart.ALWAYS:
            return ""
        if self.state is State.DONE:
            return "it ran before"
        if restart is Restart.ON_FAILURE:
            return ""
        what = {
            State.RUNNING: "it was cut off when the VM went down",
            State.STOPPED: f"it was stopped: {self.why}",
            State.FAILED: f"it ended with exit code {self.code} before",
        }[self.state]
        return (
            f"{what}, and is not begun again: STARTUP_RESTART is never (on-failure would begin it)"
        )


def load(file: Path) -> History:
    """What is known; that nothing was begun where there is no file."""
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
    except FileNotFoundError:
        return History()
    return History(**{**found, "state": State(found["state"])})


def save(file: Path, history: History) -> None:
    """Keep it, whole or not at all, and on the disk itself: the VM may be about to go down.

    On a full disk it goes over what is there, in the block that the file has since its first save.
    """
    document = json.dumps({**asdict(history), "state": history.state.value}).ljust(_ROOM)
    part = file.with_suffix(".part")
    try:
        _write(part, document, os.O_CREAT | os.O_TRUNC)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink()
        if error.errno not in _FULL:
            raise
        _write(file, document, 0)
    else:
        part.replace(file)


def _write(file: Path, document: str, how: int) -> None:
    descriptor = os.open(str(file), os.O_WRONLY | how, 0o644)
    try:
        if os.write(descriptor, document.encode()) < _ROOM:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
