"""The faults that are on in a running cloud: they are counted, waited for, and come and go.

Faults between a client and the simulated cloud: what networks, proxies and tired services do.

A fault is one line of text, given to `aiinfra-rehearsal serve --faults` or sent to a cloud that
runs (`faults.CONTROL`):

    METHODS PATH: EFFECT [NUMBER] [after=N] [times=N] [for=SECONDS] [chance=P]

    DELETE **: delay 3
    POST|PUT /upload/storage/**/default.tfstate: forget after=1 times=1
    * /compute/**: refuse 503 for=5
    GET **: portal chance=0.02

`*` in a path stands for anything but a slash, `**` for anything. The path of an upload ends with
the object's name, which the request has elsewhere. `after` lets the first such requests pass,
`times` and `for` (seconds of wall time since the first) end a fault, and `chance` draws: the same
requests in the same order meet the same with the same seed.
"""

from __future__ import annotations

import enum
import hashlib
import json
import re
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import unquote

from rehearsal.cloud.wire import GoogleError, Reply, Request

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
    """The faults of a running cloud, which come and go while it serves."""

    def __init__(self, texts: Iterable[str] = (), *, seed: int = 0) -> None:
        self._seed = seed
        self._changed = threading.Condition()
        self._armed: dict[int, Armed] = {}
        self._last = 0
        self._is_closed = False
        for text in texts:
            self.add(text)

    def add(self, text: str) -> int:
        """Begin a fault; its ID, or a ValueError if it is none."""
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
        """Wait until a fault has happened so often; TimeoutError after so many seconds."""
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


class Effect(enum.StrEnum):
    """What happens to a request; `EFFECTS` has the words."""

    DELAY = "delay"
    HOLD = "hold"
    DOWN = "down"
    REFUSE = "refuse"
    LOSE = "lose"
    FORGET = "forget"
    REPEAT = "repeat"
    CUT = "cut"
    NULL = "null"
    RETYPE = "retype"
    PORTAL = "portal"


EFFECTS: Final = {
    Effect.DELAY: "it reaches the cloud NUMBER seconds later",
    Effect.HOLD: "it reaches the cloud when this fault is ended",
    Effect.DOWN: "nothing listens for NUMBER seconds, so that connections are refused",
    Effect.REFUSE: "the error NUMBER is answered, or else the connection reset; nothing is done",
    Effect.LOSE: "it is done; the error NUMBER is answered, or else the connection reset",
    Effect.FORGET: "it is answered as if it were done, and is not",
    Effect.REPEAT: "it is done twice, and the second answer given",
    Effect.CUT: "the second half of the answer is missing",
    Effect.NULL: "the answer is null",
    Effect.RETYPE: "every value of the answer is of another type",
    Effect.PORTAL: "the answer is a page of HTML that wants a login, with status 200",
}

_RULE: Final = re.compile(r"(?P<methods>[A-Z|]+|\*) (?P<path>\S+): (?P<effect>[a-z]+)(?P<rest>.*)")
_STATUSES: Final = range(400, 600)
_EMPTY: Final = (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
_NAME: Final = re.compile(rb'"name"\s*:\s*"([^"]*)"')
_HEAD: Final = 1000  # bytes of an upload in which its metadata are
_WORDS: Final = {
    429: "Rate Limit Exceeded",
    500: "Internal error encountered.",
    503: "The service is currently unavailable.",
}
_PORTAL: Final = (
    b"<!DOCTYPE html><html><body><form>Accept the terms to go online</form></body></html>"
)


@dataclass(frozen=True)
class Fault:
    """What happens to one request."""

    effect: Effect
    # seconds of a delay or of an outage, or the status that is answered; None: the connection is
    # reset
    number: float | None = None

    def arriving(self, reply: Reply | None) -> Reply | None:
        """What arrives of an answer; None: the connection is reset."""
        match self.effect:
            case Effect.REFUSE | Effect.LOSE:
                return self._error()
            case Effect.PORTAL:
                return Reply(body=_PORTAL, headers={"content-type": "text/html"})
            case Effect.CUT | Effect.NULL | Effect.RETYPE if reply and reply.status not in _EMPTY:
                body = reply.body
                text = json.dumps(body).encode() if isinstance(body, dict) else body or b""
                headers = {"content-type": "application/json; charset=UTF-8", **reply.headers}
                return replace(reply, body=self._damaged(text), headers=headers)
            case _:
                return reply

    def _error(self) -> Reply | None:
        if self.number is None:
            return None
        code = int(self.number)
        words = _WORDS.get(code) or HTTPStatus(code).phrase
        return GoogleError(code, words, status=None).reply()

    def _damaged(self, text: bytes) -> bytes:
        match self.effect:
            case Effect.CUT:
                return text[: len(text) // 2]
            case Effect.NULL:
                return b"null"
            case Effect.RETYPE:
                try:
                    return json.dumps(_retyped(json.loads(text))).encode()
                except ValueError:
                    return text  # no JSON, so it has no types
            case _:
                return text


def _retyped(value: Any) -> Any:
    match value:
        case dict():
            return {name: _retyped(one) for name, one in value.items()}
        case list():
            return "a list"
        case str():
            return [value]
        case _:
            return {"value": value}


@dataclass(frozen=True, kw_only=True)
class Rule:
    """Which requests a fault happens to."""

    text: str
    methods: frozenset[str]  # of these requests; empty: of all
    path: re.Pattern[str]  # the pattern of their subjects
    fault: Fault
    after: int = 0  # so many such requests pass before
    times: int | None = None  # it ends after so many; None: never
    duration: float | None = None  # it ends so many seconds after it first happened; None: never
    chance: float = 1.0  # to how many of the requests, from 0 to 1

    @classmethod
    def parse(cls, text: str) -> Rule:
        """Read a fault's line; a ValueError says what is wrong with it."""
        match = _RULE.fullmatch(text.strip())
        if match is None:
            raise ValueError(f"{text!r} is no fault, as 'METHODS PATH: EFFECT' is")
        if match["effect"] not in list(Effect):
            raise ValueError(
                f"there is no effect {match['effect']!r}; there are {', '.join(Effect)}"
            )
        numbers = [word for word in match["rest"].split() if "=" not in word]
        options = dict(word.split("=", 1) for word in match["rest"].split() if "=" in word)
        try:
            return cls(
                text=text.strip(),
                methods=frozenset(() if match["methods"] == "*" else match["methods"].split("|")),
                path=_pattern(match["path"]),
                fault=_fault(Effect(match["effect"]), *map(float, numbers)),
                after=int(options.pop("after", 0)),
                times=int(options.pop("times")) if "times" in options else None,
                duration=float(options.pop("for")) if "for" in options else None,
                chance=float(options.pop("chance", 1)),
                **options,
            )
        except (ValueError, TypeError) as error:
            raise ValueError(f"{text!r} is no fault: {error}") from error

    def concerns(self, request: Request) -> bool:
        """Whether a request is of those that this may happen to."""
        if self.methods and request.method not in self.methods:
            return False
        return self.path.fullmatch(subject(request)) is not None


def _pattern(glob: str) -> re.Pattern[str]:
    parts = re.split(r"(\*\*|\*)", glob)
    return re.compile("".join({"**": ".*", "*": "[^/]*"}.get(it, re.escape(it)) for it in parts))


def _fault(effect: Effect, *numbers: float) -> Fault:
    match effect, numbers:
        case ((Effect.DELAY | Effect.DOWN), (seconds,)) if seconds >= 0:
            return Fault(effect, seconds)
        case ((Effect.REFUSE | Effect.LOSE), (status,)) if status in _STATUSES:
            return Fault(effect, HTTPStatus(int(status)))
        case ((Effect.DELAY | Effect.DOWN), _) | (_, (_, *_)):
            raise ValueError("delay and down have seconds; refuse and lose a status from 400 on")
        case _:
            return Fault(effect)


def subject(request: Request) -> str:
    """What a request is about: its path, decoded, and the name of the object that it uploads."""
    path = unquote(request.path)
    if not path.startswith("/upload/"):
        return path
    named = _NAME.search(request.body[:_HEAD])
    return f"{path}/{request.query.get('name') or (named and named[1].decode()) or ''}"
