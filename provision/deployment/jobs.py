"""What runs jobs on a cluster is asked for these."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

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


class Jobs(ABC):
    """The jobs of one cluster; a kind makes it."""

    def needs(self, spec: JobSpec) -> Needs | None:
        """What a job takes; None where no machine ever comes for one."""
        del spec
        return None

    @abstractmethod
    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Ask for a job, and send its folder unless it is there; returns its name."""

    @abstractmethod
    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last."""

    @abstractmethod
    def unfinished(self) -> Sequence[str]:
        """The names of the jobs that run or wait for their turn, in their order.

        Those whose Run destroys the cluster are not among them: who submitted one has agreed to its
        end.
        """

    @abstractmethod
    def find(self, name: str) -> Job | None:
        """How far a job is; None if there is none of this name."""

    @abstractmethod
    def log(self, job: Job, attempt: int, after: int) -> Iterator[tuple[int, bytes]]:
        """What rank 0 has said in an attempt: where in the log a piece begins, and the piece."""

    @abstractmethod
    def cancel(self, job: Job) -> None:
        """Ask for the end of a job; nothing if it is over."""
