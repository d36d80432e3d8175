"""The last line of `--output ndjson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from provision.documents.events import EventKind
from provision.documents.run import Run


@dataclass(frozen=True, kw_only=True)
class ResultEvent(Run):
    """The last line of a run: its whole document."""

    event: Literal[EventKind.RESULT] = EventKind.RESULT  # its kind
    time: str  # when, as ISO 8601 in UTC
