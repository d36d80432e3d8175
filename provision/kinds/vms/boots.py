"""Which boot of a VM a report is of: after a reset, the last one is there until the next one is.

`lastStartTimestamp` of a VM tells of starts, not of resets: a VM that is reset goes on running for
Compute Engine (API reference, instances.reset; gotchas.md, "Believed"). The zone's operations tell
of resets.
"""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.api import GoogleApi

_RESET: Final = "reset"


def moment(text: str | None) -> float | None:
    """An RFC 3339 moment as Unix epoch; None where there is none, or it can't be read."""
    try:
        return dt.datetime.fromisoformat(text).timestamp() if text else None
    except (ValueError, OverflowError):
        return None


def begun(api: GoogleApi, zone: str, started: Mapping[str, str | None]) -> dict[str, float]:
    """When each VM was last started or reset from outside, as Unix epoch, as far as that is known.

    `started`: name of a VM -> when Google says that it was last started, in RFC 3339 format.
    """
    _, project, _, name = zone.split("/")
    found = [
        (one["targetLink"].rpartition("/")[2], moment(one["insertTime"]))
        for one in api.operations_of(project, name, [_RESET])
    ]
    latest: dict[str, float] = {}
    for vm, at in [*((vm, moment(at)) for vm, at in started.items()), *found]:
        if at is not None:
            latest[vm] = max(at, latest.get(vm, at))
    return latest
