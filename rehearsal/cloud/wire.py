"""What travels between the HTTP server and the simulated services."""

import datetime as dt
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Protocol, Self

from rehearsal.cloud.store import Store


@dataclass(frozen=True, kw_only=True)
class Request:
    """One request to one simulated service."""

    method: str  # GET, POST, PUT, PATCH or DELETE
    # the path behind the service's prefix ("projects/p/global/networks"), still percent-encoded,
    # without a leading slash
    path: str
    # the query's parameters, decoded; of a repeated one, the last
    query: Mapping[str, str] = field(default_factory=dict)
    parameters: Sequence[tuple[str, str]] = ()  # the query's parameters as they came, for `values`
    # the header fields, names in lower case
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""  # the bytes received
    base_url: str = ""  # "http://host:port" of this cloud, for links that a client follows
    # when the request came, in seconds of the Unix epoch; services ask no other clock
    now: float = field(default_factory=time.time)
    # seconds of wall time per second of cloud time; 0: everything is done at once
    rate: float = 0.0
    scenarios: frozenset[str] = frozenset()
    place: Path | None = None  # the folder that keeps this cloud
    arranged: bool = False  # whether it is no client's: it is done at once, and no VM goes on by it

    def asking(self, method: str, path: str, body: Any = None, **query: str) -> Self:
        """What a service asks of another one because of it."""
        text = b"" if body is None else json.dumps(body).encode()
        return replace(self, method=method, path=path, query=query, parameters=(), body=text)

    def after(self, seconds: float) -> float:
        """When so many seconds of cloud time, counted from now, are over (Unix epoch)."""
        return self.now + seconds * self.rate

    def values(self, name: str) -> list[str]:
        """Every value of a parameter that may be repeated."""
        parameters = self.parameters or self.query.items()
        return [value for key, value in parameters if key == name]

    def json(self) -> dict[str, Any]:
        """The body as a JSON object; {} when there is none."""
        if not self.body:
            return {}
        try:
            document = json.loads(self.body)
        except ValueError as error:
            raise GoogleError(400, "Parse Error", reason="parseError") from error
        if not isinstance(document, dict):
            raise GoogleError(400, "Invalid JSON payload received.", reason="badRequest")
        return document


@dataclass(frozen=True, kw_only=True)
class Reply:
    """An answer: JSON for a dict, raw bytes otherwise, nothing for None."""

    status: int = 200
    body: dict[str, Any] | bytes | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


_STATUS = {
    400: ("invalid", "INVALID_ARGUMENT"),
    401: ("authError", "UNAUTHENTICATED"),
    403: ("forbidden", "PERMISSION_DENIED"),
    404: ("notFound", "NOT_FOUND"),
    409: ("alreadyExists", "ALREADY_EXISTS"),
    412: ("conditionNotMet", "FAILED_PRECONDITION"),
    429: ("rateLimitExceeded", "RESOURCE_EXHAUSTED"),
    500: ("backendError", "INTERNAL"),
    501: ("notImplemented", "UNIMPLEMENTED"),
    503: ("backendError", "UNAVAILABLE"),
}


class GoogleError(Exception):
    """An error as Google's APIs answer it.

    `status`: the canonical status that newer services add ("NOT_FOUND"); "" leaves it out, as
    Compute Engine and Cloud Storage do.
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        reason: str | None = None,
        status: str | None = "",
        details: list[dict[str, Any]] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        usual_reason, usual_status = _STATUS.get(code, ("invalid", "UNKNOWN"))
        self.reason = usual_reason if reason is None else reason
        self.status = usual_status if status is None else status
        self.details = details or []

    def reply(self) -> Reply:
        """The error's document."""
        error: dict[str, Any] = {
            "code": self.code,
            "message": self.message,
            "errors": [{"message": self.message, "domain": "global", "reason": self.reason}],
        }
        if self.status:
            error["status"] = self.status
        if self.details:
            error["details"] = self.details
        return Reply(status=self.code, body={"error": error})


class Service(Protocol):
    """A simulated API behind one prefix of the path."""

    def __call__(self, request: Request, store: Store) -> Reply:
        """Answer a request; everything it changes is one transaction."""


def rfc3339(seconds: float) -> str:
    """A moment of the Unix epoch in UTC with milliseconds, as in "2026-01-31T09:00:00.000Z"."""
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def moment(text: str) -> float:
    """The moment (Unix epoch) that such a text says, in whatever time zone it is written."""
    return dt.datetime.fromisoformat(text).timestamp()
