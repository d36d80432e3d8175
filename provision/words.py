"""Numbers and lists for messages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

_NAMED: Final = 20


def duration(seconds: float) -> str:
    """A duration in its two largest units, such as "3 h 20 min"."""
    minutes, hours, days = int(seconds // 60), int(seconds // 3600), int(seconds // 86400)
    if days:
        return f"{days} d {hours % 24} h"
    if hours:
        return f"{hours} h {minutes % 60} min"
    return f"{minutes} min" if minutes else f"{int(seconds)} s"


def listed(names: Collection[str]) -> str:
    """Sorted names, separated by commas; only the first ones if there are many."""
    named = sorted(names)[:_NAMED]
    more = f" and {len(names) - len(named)} more" if len(names) > len(named) else ""
    return ", ".join(named) + more
