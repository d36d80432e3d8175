"""What every wait needs: the clock of Google Cloud, and a place to report progress."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision.time.deadline import Deadline

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.time.clock import Clock


@dataclass(frozen=True)
class Progress:
    """The clock and the progress output of a run.

    Attributes:
        clock: The clock of Google Cloud.
        tell: Gets one sentence whenever there is something new to report.
    """

    clock: Clock
    tell: Callable[[str], None]

    def deadline(self, seconds: float, poll: float) -> Deadline:
        """Make a deadline.

        Args:
            seconds: Seconds of cloud time from now.
            poll: Poll interval in seconds of cloud time.
        """
        return Deadline(seconds, poll, self.clock)
