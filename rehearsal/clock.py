"""The time of the simulated cloud: how fast it runs, and when it stands still.

One variable of the environment says how many seconds of ours a second of Google Cloud takes; 0
means that everything is done at once. Another names a file beside the cloud's memory, which says by
how much its time is behind ours, and since when it stands still, if it does: while no cloud is
served, and while the program waits for an answer of a person, until the next request of anybody;
`serve` lets it go on in any case. While programs of jobs are really run, it goes as fast as ours:
it stands from one request to the next, and as much of that counts as makes it so. Whoever waits for
the cloud reads both, too.
"""

import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Final

VARIABLE: Final = "CLOUD_CLOCK_RATE"
FILE_VARIABLE: Final = "CLOUD_CLOCK_FILE"
FILE: Final = "clock"


def rate(environ: Mapping[str, str]) -> float:
    """Seconds of wall time per second of cloud time; 1 when unset, never below 0."""
    return max(0.0, float(environ.get(VARIABLE) or "1"))


def now(file: Path) -> float:
    """The moment that it is in the cloud, in seconds of the Unix epoch."""
    behind, since = _read(file)
    return (since or time.time()) - behind


def stand(file: Path) -> None:
    """Let time stand still."""
    behind, since = _read(file)
    if not since:
        _write(file, behind, time.time())


def go(file: Path, share: float = 0.0) -> float:
    """Let time go on where it stands still, which counts by a share; the moment that it is."""
    behind, since = _read(file)
    if since:
        _write(file, behind + (time.time() - since) * (1 - share), 0.0)
    return now(file)


def skip(file: Path, seconds: float) -> None:
    """Let so many seconds of it pass at once."""
    behind, since = _read(file)
    _write(file, behind - seconds, since)


def _read(file: Path) -> tuple[float, float]:
    """By how many seconds it is behind, and since when it stands still; 0 for neither."""
    try:
        behind, since = map(float, file.read_text("ascii").split())
    except FileNotFoundError:
        return 0.0, 0.0
    return behind, since


def _write(file: Path, behind: float, since: float) -> None:
    """Write it whole, as others read it at any moment."""
    new = file.with_name(f"{file.name}.{uuid.uuid4().hex}")
    new.write_text(f"{behind} {since}\n", "ascii")
    new.replace(file)
