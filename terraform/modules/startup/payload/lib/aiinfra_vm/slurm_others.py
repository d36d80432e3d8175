"""What Slurm's head tells the tool: how its VMs are, and what others have in its queue.

Beside its lease, as Ray's head does (`ray_others`). How a job was begun is left out: a command may
have a secret in it.
"""

from __future__ import annotations

import socket
import time
from typing import TYPE_CHECKING, Any, Sequence

from aiinfra_vm import report, slurm_course, slurm_queue

if TYPE_CHECKING:
    from types import ModuleType

    from aiinfra_vm.slurm_queue import Entry
    from aiinfra_vm.storage import Folder

_EVERY = 10.0  # seconds between looks
_ANYWAY = 60.0  # seconds until what has not changed is written again: it says that the head lives
_MOST = 100


class SlurmOthers:
    """The VMs and the jobs of others, as they were last written by this life of a head.

    `folder`: that of the lease. `queue`: what speaks to Slurm.
    """

    def __init__(self, folder: Folder, queue: ModuleType = slurm_queue) -> None:
        self._folder = folder
        self._queue = queue
        self._looked = float("-inf")
        self._written: dict[str, tuple[Any, float]] = {}

    def tell(self) -> None:
        """Write what is due.

        Raises:
            OSError: Slurm or Cloud Storage does not answer, or refuses.
        """
        now = time.monotonic()
        if now < self._looked + _EVERY:
            return
        self._looked = now
        nodes = [it._asdict() for it in self._queue.nodes()]
        head = socket.gethostname().partition(".")[0]
        self._write("nodes.json", {"head": head, "nodes": nodes}, now, every=_ANYWAY)
        queue = self._queue.jobs()
        alive = [it for it in queue if not it.job and not it.is_over]
        listed = [_document(it, queue) for it in alive[:_MOST]]
        self._write("jobs.json", {"jobs": listed}, now, every=float("inf"))

    def _write(self, name: str, document: dict[str, Any], now: float, every: float) -> None:
        before, moment = self._written.get(name, (None, 0.0))
        if document == before and now < moment + every:
            return
        about = {"at": time.time()} if name == "nodes.json" else {}
        self._folder.write(name, {**about, **document})
        self._written[name] = document, now


def _document(entry: Entry, queue: Sequence[Entry]) -> dict[str, Any]:
    return {
        "name": entry.number,
        "user": entry.user,
        "title": entry.name,
        "state": "PENDING" if entry.is_pending else "RUNNING",
        "why": slurm_course.waits_for(entry, queue) if entry.is_pending else "",
        "since": report.moment(entry.since),
        "nodes": entry.wants,
        "gpus": entry.gpus,
    }
