"""How fast the time of the simulated Google Cloud runs.

One variable says how many seconds of ours a second of Google Cloud takes. The simulated cloud, the
stand-in provider and the program's own waits all read it; 0 means that everything is done at once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE = "CLOUD_CLOCK_RATE"


def rate(environ: Mapping[str, str]) -> float:
    """Seconds of wall time per second of cloud time; 1 when unset, never below 0."""
    return max(0.0, float(environ.get(VARIABLE, "1") or "1"))


def cloud_seconds(wall: float, environ: Mapping[str, str]) -> float:
    """What a span of wall time is in Google Cloud's; the same where everything is done at once."""
    return wall / (rate(environ) or 1.0)
