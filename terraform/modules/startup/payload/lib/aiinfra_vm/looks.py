"""Looks at what may hang: each is made again and again in a thread of its own.

A GPU off its bus, an NFS server that is gone, a gcsfuse that is stuck make a look hang in the
kernel. That one does not come back is itself what is told then.
"""

from __future__ import annotations

import re
import threading
import time
from typing import Callable, Iterable, Iterator

from aiinfra_vm import report

_EVERY = 120.0  # seconds
_STUCK = 3 * _EVERY  # that a look may take, with the pause after it
MOST = 4
_LONGEST = 160


class Look:
    """One thing that is looked at: what was found last.

    `look` gets what was found before it, and yields what is known by then, as the next step of it
    may hang. `what`: what does not answer where it does.
    """

    def __init__(
        self, look: Callable[[tuple[str, ...]], Iterator[Iterable[str]]], what: str
    ) -> None:
        self._look, self._what = look, what
        self._found: tuple[str, ...] = ()
        self._began, self._since = float("inf"), ""
        threading.Thread(target=self._go_on, daemon=True).start()

    @property
    def found(self) -> tuple[str, ...]:
        """What the last look has found, and since when one does not come back."""
        if time.monotonic() - self._began < _STUCK:
            return self._found
        return (*self._found[: MOST - 1], f"{self._what} does not answer since {self._since}")

    def _go_on(self) -> None:
        while True:
            self._began, self._since = time.monotonic(), report.now()
            for found in self._look(self._found):
                self._found = few(found)
            time.sleep(_EVERY)


def few(texts: Iterable[str]) -> tuple[str, ...]:
    """Those that say something, as a member's document has them."""
    plain = dict.fromkeys(re.sub(r"[^ -~]+", " ", it)[:_LONGEST] for it in texts if it)
    return tuple(plain)[:MOST]
