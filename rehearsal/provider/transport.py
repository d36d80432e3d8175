"""HTTP as the provider speaks it: connections that are kept, answers, the pace of retries."""

import http.client
import json
import os
import select
import threading
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from urllib.parse import urlsplit
from urllib.request import proxy_bypass

from rehearsal.provider.failures import GoogleApiError

_TIMEOUT = 120.0
"""Seconds that one exchange may take, retries within it included: request_timeout's default."""

_LIMIT = 330.0  # seconds after which a lasting error is final: five minutes and half a one of grace


@dataclass(frozen=True)
class Response:
    """An answer that is no error."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any]:
        """The answer's object; {} when there is none."""
        # 0.7 must be equal to the configuration's 0.7, which is exact.
        document = json.loads(self.body, parse_float=Decimal) if self.body else {}
        return document if isinstance(document, dict) else {}


def retry_waits() -> Iterator[float]:
    """Seconds of cloud time between the tries of a request that meets a passing error.

    Fibonacci's pace from half a second; after `_TIMEOUT` it begins again, and no wait goes past
    `_LIMIT`. A read that always meets 503 is thus tried 32 times in 313 s, as recorded; the real
    provider says so only after 331 s.
    """
    passed = 0.0
    outer, next_outer = 0.5, 0.5
    while True:
        began = passed
        wait, following = 0.5, 0.5
        while passed + wait - began < _TIMEOUT:
            if passed + wait > _LIMIT:
                return
            passed += wait
            yield wait
            wait, following = wait + following, wait
        yield began + _TIMEOUT + outer - passed
        passed = began + _TIMEOUT + outer
        outer, next_outer = outer + next_outer, outer


class Transport:
    """Connections by host, kept open between exchanges; may be used by many threads."""

    def __init__(self) -> None:
        self._idle: defaultdict[tuple[str, str], list[http.client.HTTPConnection]]
        self._idle = defaultdict(list)
        self._guard = threading.Lock()

    def exchange(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Response:
        """One request and its answer; GoogleApiError, or OSError without a connection."""
        parts = urlsplit(url)
        place = (parts.scheme, parts.netloc)
        connection = self._take(place)
        target = f"{parts.path}?{parts.query}" if parts.query else parts.path
        try:
            connection.request(method, target, body=body, headers=dict(headers))
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            if isinstance(error, OSError):
                raise
            raise ConnectionError(str(error)) from error
        self._give_back(place, connection)
        # 308 is how an upload asks for its next part.
        if answer.status >= 300 and answer.status != 308:  # noqa: PLR2004 - HTTP's ranges
            raise GoogleApiError(answer.status, content)
        return Response(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)

    def close(self) -> None:
        """Close the connections that wait for another exchange."""
        with self._guard:
            for connection in (it for kept in self._idle.values() for it in kept):
                connection.close()
            self._idle.clear()

    def _take(self, place: tuple[str, str]) -> http.client.HTTPConnection:
        """A kept connection that the server has not closed meanwhile, else a new one."""
        with self._guard:
            while self._idle[place]:
                connection = self._idle[place].pop()
                # An idle connection that can be read has only its end to tell.
                if connection.sock and not select.select([connection.sock], [], [], 0)[0]:
                    return connection
                connection.close()
        scheme, netloc = place
        if scheme != "https":
            return http.client.HTTPConnection(netloc, timeout=_TIMEOUT)
        # As Go's: HTTPS_PROXY first, then in lower case, but for what NO_PROXY names.
        proxy = os.environ.get("HTTPS_PROXY") or os.environ.get("https_proxy")
        if not proxy or proxy_bypass(netloc):
            return http.client.HTTPSConnection(netloc, timeout=_TIMEOUT)
        connection = http.client.HTTPSConnection(urlsplit(proxy).netloc, timeout=_TIMEOUT)
        connection.set_tunnel(netloc)
        return connection

    def _give_back(self, place: tuple[str, str], connection: http.client.HTTPConnection) -> None:
        if connection.sock:
            with self._guard:
                self._idle[place].append(connection)
