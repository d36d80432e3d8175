"""A proxy on this machine that hands requests on to Google, and records what passes.

It serves the paths of the simulated cloud, so that the same variables lead the program and
Terraform to it. The caller's token is handed on and kept nowhere; a recording has no header fields.
"""

from __future__ import annotations

import gzip
import json
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import parse_qsl, urlsplit

import requests

from smoke import exchange, places
from smoke.exchange import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

_HOPS: Final = frozenset(
    {"connection", "host", "keep-alive", "transfer-encoding", "content-length", "expect"}
)
_TIMEOUT: Final = (30.0, 600.0)
"""Seconds to connect, and without a byte of an answer."""


class Recorder:
    """The proxy, from `with` to its end.

    `upstream`: the base URL of a simulated cloud in Google's place; "" for Google. `amiss`: may
    change an answer on its way, as a test does; None for no change.
    """

    def __init__(
        self,
        recording: Path,
        upstream: str = "",
        amiss: Callable[[str, str, int, bytes], tuple[int, bytes]] | None = None,
    ) -> None:
        self.exchanges: list[Exchange] = []
        self.upstream = upstream
        self.amiss = amiss
        self._recording = recording
        self._secrets: frozenset[str] = frozenset()
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._server = _Server(self)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True)
        self._sessions = threading.local()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def where(self, path: str) -> str:
        """The address that serves a path; "" when nobody may be asked for it."""
        if self.upstream:
            return self.upstream + path
        if found := places.CONTROL_PLANE.fullmatch(path):
            return f"https://{found['host']}{found['path']}"
        if path.startswith("/kubernetes/"):
            return ""
        for prefix, base in places.GOOGLE.items():
            if path.startswith(prefix):
                return base + path.removeprefix(prefix)
        return places.MEDIA + path.removeprefix("/")

    def here(self, address: str) -> str:
        """The address at which this proxy serves one of Google's."""
        if self.upstream:
            return address.replace(self.upstream, self.base_url)
        for prefix, base in places.GOOGLE.items():
            if address.startswith(base):
                return self.base_url + prefix + address.removeprefix(base)
        return address

    def add(self, exchange: Exchange, token: str) -> None:
        """Keep an exchange, and write it down without the token, wherever it stands."""
        with self._guard:
            if token:
                self._secrets |= {token}
            self.exchanges.append(exchange)
            with self._recording.open("a", encoding="utf-8") as file:
                file.write(json.dumps(exchange.row(self._secrets)) + "\n")

    def elapsed(self) -> float:
        """Seconds since the recording began."""
        return time.monotonic() - self._began

    def session(self) -> requests.Session:
        """This thread's connections."""
        found: requests.Session | None = getattr(self._sessions, "kept", None)
        if found is None:
            found = self._sessions.kept = requests.Session()
            # Else a password of ~/.netrc would take the place of the token.
            found.auth = _as_it_is
        return found


def _as_it_is(request: requests.PreparedRequest) -> requests.PreparedRequest:
    return request


class _Server(ThreadingHTTPServer):
    """Knows the recorder for its handlers."""

    daemon_threads = True

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.recorder = recorder


class _Handler(BaseHTTPRequestHandler):
    """Hands a request on, and the answer back."""

    server: _Server
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def _forward(self) -> None:
        began = self.server.recorder.elapsed()
        body = self._body()
        path, _, query = self.path.partition("?")
        address = self.server.recorder.where(path)
        fields: list[tuple[str, str]] = []
        status, content, plain = 403, b"", b""
        if address:
            status, fields, content, plain = self._ask(address, query, body)
        kind = next((it for name, it in fields if name.lower() == "content-type"), "")
        upload = next((it for name, it in fields if name.lower() == "location"), "")
        parameters = tuple(parse_qsl(query, keep_blank_values=True))
        of_object = places.is_object(path, parameters)
        self.server.recorder.add(
            Exchange(
                method="GET" if self.command == "HEAD" else self.command,
                path=path,
                query=parameters,
                body=body,
                content_type=self.headers.get("Content-Type", ""),
                status=status,
                answer=exchange.document(plain, kind, status, is_object=of_object),
                size=len(plain),
                upload=upload,
                began=began,
                at=self.server.recorder.elapsed(),
            ),
            self.headers.get("Authorization", "").partition(" ")[2],
        )
        self._answer(status, fields, content)

    def _ask(
        self, address: str, query: str, body: bytes
    ) -> tuple[int, list[tuple[str, str]], bytes, bytes]:
        """What Google answers: status, header fields, the content as it came and decoded."""
        headers = {k: v for k, v in self.headers.items() if k.lower() not in _HOPS}
        headers.setdefault("Accept-Encoding", "identity")
        try:
            answer = self.server.recorder.session().request(
                self.command,
                f"{address}?{query}" if query else address,
                data=body or None,
                headers=headers,
                allow_redirects=False,
                stream=True,
                timeout=_TIMEOUT,
            )
            content = answer.raw.read(decode_content=False)
        except (requests.RequestException, OSError) as error:
            said = {"error": {"code": 503, "message": f"The proxy got no answer: {error}"}}
            content = json.dumps(said).encode()
            return 503, [("Content-Type", "application/json")], content, content
        plain = _decoded(content, answer.headers.get("Content-Encoding", ""))
        status = answer.status_code
        if self.server.recorder.amiss is not None:
            path = urlsplit(address).path
            changed, new = self.server.recorder.amiss(self.command, path, status, plain)
            if (changed, new) != (status, plain):
                status, content, plain = changed, new, new
        fields = [
            (name, self.server.recorder.here(value) if name.lower() == "location" else value)
            for name, value in answer.headers.items()
            if name.lower() not in _HOPS
            or (name.lower() == "content-length" and self.command == "HEAD")
        ]
        return status, fields, content, plain

    def _answer(self, status: int, fields: list[tuple[str, str]], content: bytes) -> None:
        self.send_response_only(status)
        for name, value in fields:
            self.send_header(name, value)
        if status not in (204, 304) and self.command != "HEAD":
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """Trailers say nothing that is needed here."""
        return b"".join(chunks)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Say nothing: the recording is the record."""


def _decoded(content: bytes, encoding: str) -> bytes:
    try:
        if encoding == "gzip":
            return gzip.decompress(content)
        if encoding == "deflate":
            return zlib.decompress(content)
    except (OSError, zlib.error):
        return content
    return content
