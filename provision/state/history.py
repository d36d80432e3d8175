"""What was done to a deployment, by whom and with which version: `history.json`, beside its state.

Each run that holds the deployment's lock adds a line before it releases that. What Google has done
to machines is not in it: that Google tells itself. A line that can't be read is left out: no Status
fails by it.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from provision import __version__
from provision.documents import json_object
from provision.documents.status import Done, InAll
from provision.errors import ProvisionError
from provision.state import objects
from provision.state.objects import Stored, Writer
from provision.terraform import lock as locks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.state.folder import StateFolder

_MOST: Final = 200
"""Lines that are kept; the first stays, as it says since when there is something to pay."""
_WORD: Final = re.compile(r"[A-Za-z0-9._@+:-]{1,100}")
_WORDS: Final = ("action", "version", "who", "ended")
_MONEY: Final = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


@dataclass(frozen=True, kw_only=True)
class Line:
    """What one run did."""

    done: Done
    # what everything costs at most from then on, in USD per hour; None if not known
    hourly: str | None = None
    # when it began, or a run before it that was killed: from then on there may have been what it
    # has made; "" if not known
    began: str = ""


def _parsed(content: bytes) -> tuple[Line, ...]:
    return tuple(_lines(json_object.objects(objects.said(content).get("lines"))))


def _lines(documents: list[dict[str, Any]]) -> Iterator[Line]:
    for it in documents[-_MOST:]:
        own = {name: json_object.text(it.get(name)) for name in _WORDS}
        at, hourly, began = (json_object.text(it.get(key)) for key in ("at", "hourly", "began"))
        is_sound = all(map(_WORD.fullmatch, own.values())) and _moment(at) is not None
        if is_sound:
            yield Line(
                done=Done(at=at, **own),
                hourly=hourly if _MONEY.fullmatch(hourly) else None,
                began=began if _moment(began) is not None else "",
            )


_HISTORY: Final = Stored("history.json", Writer.PROGRAM, _parsed)


def of(folder: StateFolder) -> tuple[Line, ...]:
    """What was done, the first first."""
    return folder.read(_HISTORY) or ()


def add(  # noqa: PLR0913 - a line has so many parts
    folder: StateFolder,
    action: str,
    *,
    now: float,
    ended: str,
    hourly: str | None,
    began: float | None = None,
    is_first: bool = False,
) -> None:
    """Add what a run has done; `is_first`: whether there was nothing before it.

    `ended`: "done", or the code of what it ended with. `now`, `began`: moments in the cloud.
    """
    at, since = map(_said, (now, now if began is None else min(began, now)))
    who = "".join(re.findall(r"[A-Za-z0-9._@+:-]", locks.holder())) or "unknown"
    done = Done(at=at, action=action, version=__version__, who=who[:100], ended=ended)
    # It says what was; what can't be said any more is no reason for a run to fail.
    with contextlib.suppress(ProvisionError):
        before = () if is_first else of(folder)
        lines = [*before, Line(done=done, hourly=hourly, began=since)]
        kept = [lines[0], *lines[1:][-(_MOST - 1) :]]
        folder.write(
            _HISTORY.name,
            json.dumps(
                {
                    "lines": [
                        asdict(it.done) | {"hourly": it.hourly, "began": it.began} for it in kept
                    ]
                }
            ),
            "application/json",
        )


def in_all(
    lines: tuple[Line, ...], now: float, cloud: Callable[[float], float] = float
) -> InAll | None:
    """What it has cost at most since the first run; None if that is not known.

    `cloud`: how long it was by the cloud's clock.
    """
    if not lines or lines[0].hourly is None:
        return None
    usd, rate, then = Decimal(0), Decimal(0), 0.0
    for it in lines:
        ended = _moment(it.done.at) or then
        began, own = max(then, _moment(it.began) or ended), Decimal(it.hourly or rate)
        # While it ran there may have been what was before it, or what it has made.
        for price, since, until in ((rate, then, began), (max(rate, own), began, ended)):
            usd += price * Decimal(cloud(max(0.0, until - since))) / 3600
        rate, then = own, ended
    usd += rate * Decimal(cloud(max(0.0, now - then))) / 3600
    return InAll(usd=usd.quantize(Decimal("0.01")), since=lines[0].began or lines[0].done.at)


def _said(moment: float) -> str:
    return dt.datetime.fromtimestamp(moment, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _moment(text: str) -> float | None:
    with contextlib.suppress(ValueError, OverflowError):
        return dt.datetime.fromisoformat(text).timestamp()
    return None
