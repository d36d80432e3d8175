"""Faults between a client and the simulated cloud: what networks, proxies and tired services do.

A fault is one line of text, given to `python -m rehearsal serve --faults` or sent to a cloud that
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
import json
import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.wire import Request


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
_HEAD: Final = 1000
"""Bytes of an upload in which its metadata are."""
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
        """Read a fault's line.

        Raises:
            ValueError: It is none; the error says what is wrong with it.
        """
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
