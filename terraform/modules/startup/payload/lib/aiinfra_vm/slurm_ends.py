"""Keeps Slurm from beginning on this VM what would not be over before the VM is.

Slurm takes the word of any VM's root, so each speaks for itself: a reservation from the moment when
Google ends it (MAX_RUN_DURATION, flex start), and no new job once Google has given notice.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiinfra_vm import notices, slurm_conf, slurm_queue

if TYPE_CHECKING:
    from types import ModuleType

_EVERY = 60.0  # seconds until Slurm is told again: a head that lost its state knows of none


class Ends:
    """What this VM says of its end.

    `ends`: when Google ends it (Unix epoch); None for never. `queue`: what speaks to Slurm.
    """

    def __init__(self, vm: str, ends: float | None, queue: ModuleType = slurm_queue) -> None:
        self._vm = vm
        self._ends = ends
        self._queue = queue
        self._why = ""
        self._told = ""
        self._due = 0.0

    def watch(self) -> None:
        """Look out for Google's notices, in threads."""
        notices.watch(self.notice, self._ends)

    def notice(self, why: str) -> None:
        """Google ends this VM in a moment."""
        self._why = why

    def tend(self) -> None:
        """Tell Slurm what it does not know.

        Raises:
            OSError: Slurm does not answer, or refuses.
        """
        if self._why != self._told or (self._why and time.monotonic() >= self._due):
            why = self._why
            self._queue.drain(self._vm, f"{slurm_conf.OURS}{why}")
            self._told = why
        if time.monotonic() >= self._due:
            if self._ends is not None:
                self._queue.reserve(self._vm, self._ends)
            self._due = time.monotonic() + _EVERY
