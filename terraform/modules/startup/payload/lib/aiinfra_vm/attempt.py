"""One attempt at a program of the user's, while it runs."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
import time
from dataclasses import dataclass, field
from typing import Any, Callable

from aiinfra_vm import processes

_SECONDS_BETWEEN = 0.5  # looks at what is left of a program that is to end
_MARKED = 10.0  # seconds within which the log says why, but where nobody takes what is written


@dataclass
class Attempt:
    """One attempt, while it runs."""

    mark: Callable[[str], None]  # writes a line of the tool's own into the log
    usual: str  # what a SIGTERM means that nobody gave a reason for
    why: str = ""  # what it was stopped for; "" if it was not
    _ending: processes.Ending | None = None
    # Taken by the first reason, or by the program's own end: what comes later changes nothing.
    _end: Any = field(default_factory=threading.Lock)
    _is_marked: threading.Event = field(default_factory=threading.Event)

    def notice(self, why: str) -> None:
        """Stop it, from any thread, for a reason.

        By no signal: one that comes just before the wait for the program is heard after it.
        """
        if self._end.acquire(blocking=False):  # a handler may come in the midst of this
            self.why = why
            threading.Thread(target=self._keep_telling, daemon=True).start()

    def stop(self, *_: object) -> None:
        """Tell the user's programs to end, until they have; the handler of SIGTERM."""
        self.notice(self.usual)

    def kill(self) -> None:
        """End at once what was told to, and has not; what has left its session ends with the unit.

        On a busy machine that may have been told late.
        """
        self._is_marked.wait(_MARKED)
        if self._ending is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._ending.root, signal.SIGKILL)

    def _keep_telling(self) -> None:
        self.mark(f"SIGTERM: {self.why}")
        self._is_marked.set()
        while True:
            if self._ending is not None:
                self._ending.go_on()
            time.sleep(_SECONDS_BETWEEN)

    def run(self, shell: list[str], environment: dict[bytes, bytes], sink: int, **how: Any) -> int:
        """Run a program in a shell of its own; its exit code, as a shell has it."""
        with subprocess.Popen(  # noqa: S603 - the user's own
            shell,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=sink,
            start_new_session=True,
            **how,
        ) as child:
            os.close(sink)
            self._ending = processes.Ending(child.pid)
            code = child.wait()
        if not self._end.acquire(blocking=False):
            self._is_marked.wait(_MARKED)
        return code if code >= 0 else 128 - code
