"""How fast the time of the simulated cloud runs.

One variable of the environment says how many seconds of ours a second of Google Cloud takes; 0
means that everything is done at once. Whoever waits for the cloud reads it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLE: Final = "CLOUD_CLOCK_RATE"


def rate(environ: Mapping[str, str]) -> float:
    """Seconds of wall time per second of cloud time; 1 when unset, never below 0."""
    return max(0.0, float(environ.get(VARIABLE) or "1"))
