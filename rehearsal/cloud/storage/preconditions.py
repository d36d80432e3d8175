"""Conditions under which a request to Cloud Storage takes effect."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.wire import Request


class ConditionNotMet(GoogleError):  # noqa: N818 - Google's own name of it
    """412: the object is not as the caller thinks."""

    def __init__(self) -> None:
        super().__init__(412, "At least one of the pre-conditions you specified did not hold.")


class NotModified(Exception):  # noqa: N818 - an answer (304), not a failure
    """The object is the one that the caller has already."""


_PARAMETERS = ("Generation", "Metageneration")


def check(
    query: Mapping[str, str], current: Mapping[str, Any] | None, *, source: bool = False
) -> None:
    """Compare the conditions of a change with what is there.

    `current`: the bucket, or the live object; None when there is none (generation 0).

    Raises:
        ConditionNotMet: One doesn't hold.
    """
    prefix = "ifSource" if source else "if"
    for parameter in _PARAMETERS:
        actual = "0" if current is None else current[parameter.lower()]
        wanted = _number(query, f"{prefix}{parameter}Match")
        unwanted = _number(query, f"{prefix}{parameter}NotMatch")
        if (wanted is not None and wanted != int(actual)) or unwanted == int(actual):
            raise ConditionNotMet


def check_read(request: Request, current: Mapping[str, Any]) -> None:
    """Compare the conditions of a read with what is there.

    Raises:
        ConditionNotMet: It is not what was asked for.
        NotModified: It is what the caller said not to want again.
    """
    for parameter in _PARAMETERS:
        unwanted = _number(request.query, f"if{parameter}NotMatch")
        if unwanted == int(current[parameter.lower()]):
            raise NotModified
    check(request.query, current)


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not value.isdecimal():
        raise GoogleError(400, f"Invalid value for {name}: {value}")
    return int(value)
