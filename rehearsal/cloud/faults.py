"""The faults that are on in a running cloud: they are counted, waited for, and come and go."""

from __future__ import annotations

import hashlib
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.fault_rules import Effect, Fault, Rule
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rehearsal.cloud.wire import Request

CONTROL: Final = "/rehearsal/faults"
"""Where faults are told of (GET), begun (POST of {"fault": TEXT}) and ended (DELETE .../ID)."""


@dataclass(eq=False)
class Armed:
    """A fault that is on."""

    rule: Rule
    met: int = 0  # requests so far that it concerns
    struck: int = 0  # to how many it has happened
    ended: threading.Event = field(default_factory=threading.Event)  # releases those that it holds
    _first: float | None = None

    def strikes(self, request: Request, seed: int) -> bool:
        """Count a request; whether it happens to this one."""
        rule = self.rule
        if not rule.concerns(request):
            return False
        self.met += 1
        now = time.monotonic()
        is_over = self.struck == rule.times or (
            rule.duration is not None
            and self._first is not None
            and now - self._first > rule.duration
        )
        if is_over or self.met <= rule.after or _draw(seed, rule.text, self.met) >= rule.chance:
            return False
        self._first = self._first or now
        self.struck += 1
        return True


def _draw(seed: int, text: str, number: int) -> float:
    digest = hashlib.sha256(f"{seed} {text} {number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


class Faults:
    """The faults of a running cloud, which come and go while it serves.

    Raises:
        ValueError: One of the texts is no fault.
    """

    def __init__(self, texts: Iterable[str] = (), *, seed: int = 0) -> None:
        self._seed = seed
        self._changed = threading.Condition()
        self._armed: dict[int, Armed] = {}
        self._last = 0
        self._is_closed = False
        for text in texts:
            self.add(text)

    def add(self, text: str) -> int:
        """Begin a fault; returns its ID.

        Raises:
            ValueError: It is none.
        """
        rule = Rule.parse(text)
        with self._changed:
            self._last += 1
            self._armed[self._last] = Armed(rule)
            return self._last

    def end(self, number: int | None = None) -> bool:
        """End a fault, or all; what it holds goes on. Returns whether there was one."""
        with self._changed:
            ending = [number] if number is not None else list(self._armed)
            ended = [self._armed.pop(one) for one in ending if one in self._armed]
        for armed in ended:
            armed.ended.set()
        return bool(ended)

    def close(self) -> None:
        """End all faults with the cloud: what they hold is not served any more."""
        self._is_closed = True
        self.end()

    def strike(self, request: Request) -> list[Fault]:
        """Count a request and wait for what delays it; what else happens to it, if anything."""
        with self._changed:
            striking = [it for it in self._armed.values() if it.strikes(request, self._seed)]
            self._changed.notify_all()
        for armed in striking:
            if armed.rule.fault.effect is Effect.HOLD:
                armed.ended.wait()
            elif armed.rule.fault.effect is Effect.DELAY:
                armed.ended.wait(armed.rule.fault.number)
        if striking and self._is_closed:
            return [Fault(Effect.REFUSE)]
        faults = (armed.rule.fault for armed in striking)
        return [it for it in faults if it.effect not in (Effect.HOLD, Effect.DELAY)]

    def wait(self, number: int, times: int = 1, timeout: float = 60) -> None:
        """Wait until a fault has happened so often.

        Raises:
            TimeoutError: It has not, within so many seconds.
        """
        with self._changed:
            armed = self._armed[number]
            if not self._changed.wait_for(lambda: armed.struck >= times, timeout):
                raise TimeoutError(f"{armed.rule.text}: {armed.struck} of {armed.met} requests")

    def answer(self, request: Request) -> Reply:
        """Answer a request to `CONTROL`."""
        rest = request.path.removeprefix(CONTROL).strip("/")
        try:
            return Reply(body=self._answered(request, int(rest) if rest else None))
        except GoogleError as error:
            return error.reply()
        except (ValueError, LookupError) as error:
            return GoogleError(400, str(error)).reply()

    def _answered(self, request: Request, number: int | None) -> dict[str, Any]:
        match request.method:
            case "POST" if number is None:
                number = self.add(str(request.json()["fault"]))
            case "DELETE":
                if not self.end(number) and number is not None:
                    raise GoogleError(404, f"there is no fault {number}")
            case "GET":
                pass
            case _:
                raise GoogleError(404, "Not Found")
        with self._changed:
            told = [
                {"id": one, "fault": it.rule.text, "met": it.met, "struck": it.struck}
                for one, it in self._armed.items()
                if number in (None, one)
            ]
        return {"faults": told}
