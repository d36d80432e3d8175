"""The last line of `--output ndjson`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from provision.documents.events import EventKind
from provision.documents.run import Run


@dataclass(frozen=True, kw_only=True)
class ResultEvent(Run):
    """The last line of a run: its whole document."""

    event: Annotated[Literal[EventKind.RESULT], "its kind"] = EventKind.RESULT
    time: Annotated[str, "when, as ISO 8601 in UTC"]
