"""How fast the time of Google Cloud runs: as ours, and as a rehearsal wants in a rehearsal."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from provision import endpoints
from provision.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "CLOUD_CLOCK_RATE"
_SHORTEST_PAUSE: Final = 0.05


@dataclass(frozen=True)
class Clock:
    """The time of Google Cloud.

    Attributes:
        rate: Seconds of wall time that one second of Google Cloud takes; 0: everything is done at
            once.
    """

    rate: float = 1.0

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """The clock that an environment asks for; Google's own runs as ours, whatever is asked.

        Raises:
            SettingsError: The rate is not a number from 0 on.
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
                why="it is the number of seconds that one second of the simulated cloud takes",
                fix=f"{VARIABLE}=0.02, or leave it out",
                setting=VARIABLE,
            )
        return cls(rate)

    def wall(self, seconds: float) -> float:
        """Seconds of wall time that so many seconds of Google Cloud take."""
        return seconds * self.rate

    def cloud(self, seconds: float) -> float:
        """Google Cloud's seconds in so many of wall time; as many where all is done at once."""
        return seconds / (self.rate or 1.0)

    def since(self, moment: float) -> float:
        """Google Cloud's seconds since a moment (Unix epoch); 0 for one that is still to come."""
        return self.cloud(max(0.0, time.time() - moment))

    def pause(self, seconds: float) -> None:
        """Let so many seconds of Google Cloud pass, and a short moment at least."""
        time.sleep(max(self.wall(seconds), _SHORTEST_PAUSE))
