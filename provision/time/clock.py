"""The clock of Google Cloud: real time, except in a rehearsal, whose time can run faster.

A rehearsal's stands still while nobody waits for the cloud: a file says by how much it is behind
ours, and since when it stands, 0 if it goes. The cloud lets it go on at the next request.
"""

from __future__ import annotations

import math
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from provision import endpoints
from provision.codes import Code
from provision.errors import SettingsError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "CLOUD_CLOCK_RATE"
FILE_VARIABLE: Final = "CLOUD_CLOCK_FILE"
_SHORTEST_PAUSE: Final = 0.05


@dataclass(frozen=True)
class Clock:
    """The clock of Google Cloud."""

    # seconds of wall time per second of cloud time; 0 means that nothing takes any time
    rate: float = 1.0
    file: Path | None = None  # what says by how much it is behind ours; None for nothing

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> Self:
        """The clock for an environment: CLOUD_CLOCK_... count in a rehearsal, and nowhere else."""
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
        file = environ.get(FILE_VARIABLE)
        return cls(rate, Path(file) if file else None)

    def wall(self, seconds: float) -> float:
        """Convert seconds of cloud time to seconds of wall time."""
        return seconds * self.rate

    def cloud(self, seconds: float) -> float:
        """Convert seconds of wall time to seconds of cloud time; unchanged if the rate is 0."""
        return seconds / (self.rate or 1.0)

    def now(self) -> float:
        """The moment that it is in the cloud, as a Unix timestamp."""
        behind, since = self._stood()
        return (since or time.time()) - behind

    def stand(self) -> None:
        """Let a simulated cloud's time stand still until it is asked again."""
        behind, since = self._stood()
        if self.file is not None and not since:
            new = self.file.with_name(f"{self.file.name}.{os.getpid()}")
            new.write_text(f"{behind} {time.time()}\n", "ascii")
            new.replace(self.file)

    def _stood(self) -> tuple[float, float]:
        """By how many seconds it is behind, and since when it stands still; 0 for neither."""
        if self.file is None or not self.file.exists():
            return 0.0, 0.0
        behind, since = map(float, self.file.read_text("ascii").split())
        return behind, since

    def since(self, moment: float) -> float:
        """Seconds of cloud time since a Unix timestamp of its own; 0 for one in the future."""
        return self.cloud(max(0.0, self.now() - moment))

    def until(self, moment: float) -> float:
        """Seconds of cloud time until a Unix timestamp of its own; 0 for one in the past."""
        return self.cloud(max(0.0, moment - self.now()))

    def pause(self, seconds: float) -> None:
        """Sleep for this many seconds of cloud time, and at least for 0.05 s of wall time."""
        time.sleep(max(self.wall(seconds), _SHORTEST_PAUSE))
