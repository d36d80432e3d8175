"""Moments as Google's APIs write them."""

from __future__ import annotations

import datetime as dt


def rfc3339(seconds: float) -> str:
    """A moment of the Unix epoch in UTC with milliseconds, as in "2026-01-31T09:00:00.000Z"."""
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> float:
    """The moment (Unix epoch) that such a text says, in whatever time zone it is written."""
    return dt.datetime.fromisoformat(text).timestamp()
