"""The clock of Google Cloud: real time, except in a rehearsal, which can make time run faster."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from provision import endpoints
from provision.codes import Code
from provision.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "CLOUD_CLOCK_RATE"
_SHORTEST_PAUSE: Final = 0.05


@dataclass(frozen=True)
class Clock:
    """The clock of Google Cloud.

    Attributes:
        rate: Seconds of wall time per second of cloud time; 0 means that nothing takes any time.
    """

    rate: float = 1.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """The clock for an environment: CLOUD_CLOCK_RATE counts in a rehearsal, and nowhere else.

        Raises:
            SettingsError: The rate is not a number of at least 0.
        """
        text = environ.get(VARIABLE)
        if not text or not endpoints.is_rehearsal(environ):
            return cls()
        try:
            rate = float(text)
        except ValueError:
            rate = math.nan
        if not 0 <= rate < math.inf:
            raise SettingsError(
                f"{VARIABLE} is {text!r}",
                code=Code.INVALID_VALUE,
                why="it must be a number of at least 0: the real seconds that one second of the"
                " simulated cloud takes",
                fix=f"{VARIABLE}=0.02, or leave it out",
                setting=VARIABLE,
            )
        return cls(rate)

    def wall(self, seconds: float) -> float:
        """Convert seconds of cloud time to seconds of wall time."""
        return seconds * self.rate

    def cloud(self, seconds: float) -> float:
        """Convert seconds of wall time to seconds of cloud time; unchanged if the rate is 0."""
        return seconds / (self.rate or 1.0)

    def since(self, moment: float) -> float:
        """Seconds of cloud time since a Unix timestamp; 0 for one in the future."""
        return self.cloud(max(0.0, time.time() - moment))

    def until(self, moment: float) -> float:
        """Seconds of cloud time until a Unix timestamp; 0 for one in the past."""
        return self.cloud(max(0.0, moment - time.time()))

    def pause(self, seconds: float) -> None:
        """Sleep for this many seconds of cloud time, and at least for 0.05 s of wall time."""
        time.sleep(max(self.wall(seconds), _SHORTEST_PAUSE))
