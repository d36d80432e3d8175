"""The protocol of what runs jobs on a cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from decimal import Decimal

    from provision.documents.job import Job
    from provision.files.archive import Archive
    from provision.spec.job import JobSpec


@dataclass(frozen=True, kw_only=True)
class Needs:
    """What a job takes, in one sentence; `more` are USD an hour for machines that come for it."""

    words: str
    more: Decimal


class Jobs(Protocol):
    """The jobs of one cluster; a kind makes it."""

    def needs(self, spec: JobSpec) -> Needs | None:
        """What a job takes; None where no machine ever comes for one."""

    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Ask for a job, and send its folder unless it is there; returns its name."""

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last."""

    def unfinished(self) -> Sequence[str]:
        """The names of the jobs that run or wait for their turn, in their order.

        Those whose Run destroys the cluster are not among them: who submitted one has agreed to its
        end.
        """

    def find(self, name: str) -> Job | None:
        """How far a job is; None if there is none of this name."""

    def log(self, job: Job, attempt: int, after: int) -> Iterator[tuple[int, bytes]]:
        """What rank 0 has said in an attempt: where in the log a piece begins, and the piece."""

    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; nothing if it is over."""
