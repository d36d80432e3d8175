"""What every wait needs: the clock of Google Cloud, and a place to report progress."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from provision.documents.timeline import OnInterrupt
from provision.time.deadline import Deadline
from provision.time.stages import Sentences, Stages

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from provision.documents.timeline import StageName
    from provision.time.clock import Clock
    from provision.time.stages import OpenStage


@dataclass(frozen=True)
class Progress:
    """The clock and the progress output of a run."""

    clock: Clock  # the clock of Google Cloud
    # gets one sentence about what happens once; what goes on is a stage's
    tell: Callable[[str], None]
    # the stages of the run; None for stages that are heard of by `tell` alone
    given: Stages | None = field(default=None, repr=False)

    @functools.cached_property
    def stages(self) -> Stages:
        """The stages of the run."""
        return self.given or Stages(self.clock, Sentences(self.tell))

    def stage(
        self, name: StageName, on_interrupt: OnInterrupt = OnInterrupt.KEEPS
    ) -> AbstractContextManager[OpenStage]:
        """A stage of the run, which ends as its block does."""
        return self.stages.stage(name, on_interrupt)

    def waits(self, words: str) -> AbstractContextManager[None]:
        """Name what is waited for, in signs of life.

        `words`: what it is, such as "an answer about my-cluster-mig".
        """
        return self.stages.waits(words)

    def deadline(self, seconds: float, poll: float) -> Deadline:
        """Make a deadline for what is no stage of its own.

        `poll`: poll interval in seconds of cloud time.
        """
        return Deadline(seconds, poll, self.clock, self.waits)
