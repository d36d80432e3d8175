"""The last line of `--output ndjson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.documents.events import EventKind
from provision.documents.run import Run


@dataclass(frozen=True, kw_only=True)
class ResultEvent(Run):
    """The last line of a run: its whole document.

    Attributes:
        event: Its kind.
        time: When, as ISO 8601 in UTC.
    """

    event: Literal[EventKind.RESULT] = EventKind.RESULT
    time: str
