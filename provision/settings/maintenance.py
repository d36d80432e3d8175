"""When GKE may upgrade a cluster and its nodes: the value of GKE_MAINTENANCE."""

from __future__ import annotations

import enum
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Final

from pydantic import BeforeValidator

from provision.settings.parsing import InvalidValueError

if TYPE_CHECKING:
    from typing import Self

HOLD: Final = "hold"
"""The word for no window: nodes are upgraded when the user says so."""

_FORM: Final = re.compile(
    r"(?P<days>[a-z]{3}(?: ?, ?[a-z]{3})*) +(?P<from>\d\d?:\d\d) ?- ?(?P<to>\d\d?:\d\d)",
    re.IGNORECASE,
)
_EXAMPLE: Final = "Sat,Sun 02:00-08:00"
_DAY: Final = 24 * 60  # minutes
_SHORTEST: Final = 4 * 60
"""Minutes that Google counts as a window (GKE, "Configure maintenance windows and
exclusions", read 2026-11-23)."""
_IN_A_WEEK: Final = 12 * 60
"""Minutes of windows in a week: Google wants 48 hours in any 32 days, which have at least four of
each weekday (same page)."""


class Weekday(enum.StrEnum):
    """A day of the week, by its name in a recurrence rule (RFC 5545)."""

    MON = "MO"
    TUE = "TU"
    WED = "WE"
    THU = "TH"
    FRI = "FR"
    SAT = "SA"
    SUN = "SU"


@dataclass(frozen=True, kw_only=True)
class Window:
    """A window of some hours on some days of each week, in UTC."""

    days: tuple[Weekday, ...]  # the days on which it begins, in the order of the week
    start: int  # minutes from midnight to its beginning
    minutes: int  # how long it is

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The window of a text such as "Sat,Sun 02:00-08:00"; None for `hold`.

        Raises:
            InvalidValueError: The text is neither, or Google would refuse the window.
        """
        if text.lower() == HOLD:
            return None
        found = _FORM.fullmatch(text)
        if not found:
            raise InvalidValueError(
                "is neither hold nor a weekly window",
                f"hold, or days and hours in UTC, such as {_EXAMPLE}",
                fix=HOLD,
            )
        start, end = _minutes(found["from"]), _minutes(found["to"])
        window = cls(days=_days(found["days"]), start=start, minutes=(end - start) % _DAY or _DAY)
        window._require_enough()
        return window

    def _require_enough(self) -> None:
        if self.minutes < _SHORTEST:
            raise InvalidValueError(
                f"has windows of {self.minutes} minutes",
                "Google counts windows of 4 hours and more",
                fix=_EXAMPLE,
            )
        if self.minutes * len(self.days) < _IN_A_WEEK:
            raise InvalidValueError(
                f"has {self.minutes * len(self.days) / 60:g} hours a week",
                "Google wants 48 hours in any 32 days, so 12 a week",
                fix=_EXAMPLE,
            )


def _minutes(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if hours > 24 or minutes > 59 or hours * 60 + minutes > _DAY:  # noqa: PLR2004 - a day has 24
        raise InvalidValueError(
            f"has {text}, which is no time of day", "00:00 to 24:00", fix=_EXAMPLE
        )
    return hours * 60 + minutes


def _days(text: str) -> tuple[Weekday, ...]:
    named = {part.strip().upper() for part in text.split(",")}
    unknown = sorted(named - set(Weekday.__members__))
    if unknown:
        raise InvalidValueError(
            f"has {unknown[0].capitalize()}, which is no day of the week",
            f"the days are {', '.join(name.capitalize() for name in Weekday.__members__)}",
            fix=_EXAMPLE,
        )
    return tuple(day for day in Weekday if day.name in named)


Maintenance = Annotated[Window | None, BeforeValidator(Window.parse)]
