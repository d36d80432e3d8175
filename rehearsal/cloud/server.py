"""The simulated cloud as an HTTP server on loopback.

One port serves every API; the beginning of the path says which. Each request is one transaction
of the database.
"""

import contextlib
import importlib
import json
import logging
import os
import socket
import struct
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final, Self, cast
from urllib.parse import parse_qsl

from rehearsal import clock
from rehearsal.cloud import partial, real_programs, scenarios
from rehearsal.cloud.faults import CONTROL, Effect, Fault, Faults
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class Mount:
    """Where a service is found."""

    prefix: str  # how the paths begin that it serves; a path is served by the first that fits
    service: str  # "module:callable" within this package, imported when the first request comes
    credentials: bool = True  # whether a request without an Authorization header is refused
    faults: bool = True  # whether the `flaky` scenario and faults touch it


# Cloud Storage takes requests without credentials, because Google's clients send none to the host
# that STORAGE_EMULATOR_HOST names. Nothing works without a metadata server and its tokens, and no
# client of Google's is made for one that fails: faults spare it.
MOUNTS: Final = (
    Mount("/compute/v1/", "vm_agents:compute_service"),
    Mount("/storage/v1/", "storage.service:json_api", credentials=False),
    Mount("/upload/storage/v1/", "storage.service:upload", credentials=False),
    Mount("/download/storage/v1/", "storage.service:media", credentials=False),
    Mount("/iam/v1/", "iam:service"),
    Mount("/iamcredentials/v1/", "iam:tokens"),
    Mount("/crm/v1/", "projects:service_v1"),
    Mount("/crm/v3/", "projects:service_v3"),
    Mount("/orgpolicy/v2/", "org_policies:service"),
    Mount("/cloudquotas/v1/", "quota_limits:shares"),
    Mount("/serviceusage/v1/", "services:service"),
    Mount("/serviceusage/v1beta1/", "quota_limits:metrics"),
    Mount("/cloudbilling/v1/", "billing:service"),
    Mount("/container/v1/", "container:service"),
    Mount("/kubernetes/", "kubernetes:service"),
    Mount("/file/v1/", "filestore:service"),
    Mount("/secretmanager/v1/", "secrets:service"),
    Mount("/cloudkms/v1/", "keys:service"),
    Mount("/monitoring/v1/", "dashboards:service"),
    Mount("/computeMetadata/", "metadata:service", credentials=False, faults=False),
    Mount("/token", "metadata:service", credentials=False, faults=False),
)
PAGE: Final = "/rehearsal"  # where a browser finds what this cloud knows

_METADATA = Mount("/", "metadata:service", credentials=False, faults=False)
_MEDIA = Mount("/", "storage.service:media", credentials=False)


def mount(path: str) -> Mount:
    """The mount that serves a path; Cloud Storage's media reads have no prefix of their own."""
    for candidate in MOUNTS:
        if path.startswith(candidate.prefix):
            return candidate
    return _METADATA if path == "/" else _MEDIA


def served(target: str) -> Service:
    """The callable that a mount's `service` names."""
    module, _, name = target.partition(":")
    found = getattr(importlib.import_module(f"{__package__}.{module}"), name)
    return cast("Service", found)


def _relative(where: Mount, path: str) -> str:
    """The path as the service sees it: without its prefix, but the metadata server's as it is."""
    if where.service == _METADATA.service:
        return path.removeprefix("/")
    return path.removeprefix(where.prefix)


def _unauthenticated(trouble: str, reason: str, detail: str) -> GoogleError:
    return GoogleError(
        401,
        f"Request {trouble}. Expected OAuth 2 access token, login cookie or other valid "
        "authentication credential. See "
        "https://developers.google.com/identity/sign-in/web/devconsole-project.",
        reason=reason,
        status=None,
        details=[
            {
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": detail,
                "domain": "googleapis.com",
            }
        ],
    )


_MISSING = _unauthenticated(
    "is missing required authentication credential", "required", "CREDENTIALS_MISSING"
)
_EXPIRED = _unauthenticated(
    "had invalid authentication credentials", "authError", "ACCESS_TOKEN_EXPIRED"
)


_FORBIDDEN = GoogleError(403, "Permission denied: the caller may only look.", reason="forbidden")


class Cloud:
    """A simulated Google Cloud that serves from `with` until its end.

    `faults`: What goes wrong between clients and this cloud; nothing at first. `page`: What `PAGE`
    answers, HTML; "" for nothing. `scenarios` and `rate` may be changed while it serves.

    Raises:
        ValueError: A scenario is not known.
    """

    def __init__(
        self,
        *,
        database: Path,
        environ: Mapping[str, str] = os.environ,
        scenario: str = "",
        port: int = 0,
        log: Path | None = None,
    ) -> None:
        self.faults = Faults()
        self.page = ""
        self.scenarios = scenarios.parse(scenario)
        self.rate = scenarios.rate(self.scenarios, clock.rate(environ))
        self._clock = database.with_name(clock.FILE)
        self._is_slow = False
        self._log = None if log is None else RequestLog(log)
        self._database = Database(database)
        with self._database.transaction() as store:
            scenarios.renew(store)
        self._server = _Server(("127.0.0.1", port), self)
        self.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True
        )

    def __enter__(self) -> Self:
        self._note_scenarios()
        clock.go(self._clock)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self.faults.close()
        self._server.server_close()
        self._server.drop_connections()
        real_programs.end()
        self._database.close()
        clock.stand(self._clock)

    def _note_scenarios(self) -> None:
        """Keep the names of the scenarios: what is made now may be there because of one."""
        with self._database.transaction() as store:
            for name in self.scenarios:
                store.put(scenarios.REHEARSED, name, {})

    def answer(self, request: Request) -> Reply | None:
        """Answer a request whose path is the whole one; None: by dropping the connection."""
        if request.path.startswith(CONTROL):
            return self.faults.answer(request)
        if request.path == PAGE and self.page:
            html = {"Content-Type": "text/html; charset=UTF-8"}
            return Reply(headers=html, body=self.page.encode())
        request = replace(
            request,
            base_url=self.base_url,
            rate=self.rate,
            scenarios=self.scenarios,
            place=self._clock.parent,
        )
        reply = self._disturbed(request)
        if self._log is not None:
            self._log.append(request, reply)
        return reply

    def arrange(self, request: Request) -> Reply:
        """Answer a whole path at once, whatever is practised: for what is there before all."""
        request = replace(request, base_url=self.base_url, arranged=True)
        return self._served(mount(request.path), request)

    def _now(self) -> float:
        """The moment of a request; time goes as fast as ours while programs are really run."""
        now = clock.go(self._clock, min(1.0, self.rate or 1.0) if self._is_slow else 0.0)
        self._is_slow = real_programs.are_running()
        if self._is_slow:
            clock.stand(self._clock)
        return now

    def _disturbed(self, request: Request) -> Reply | None:
        """Serve a request with the fault that happens to it, if one does."""
        where = mount(request.path)
        fault = self._fault(request) if where.faults else None
        match fault.effect if fault else None:
            case Effect.DOWN | Effect.REFUSE:
                reply = None
            case Effect.REPEAT:
                self._served(where, request)
                reply = self._served(where, request)
            case effect:
                reply = self._served(where, request, kept=effect is not Effect.FORGET)
        if fault and fault.effect is Effect.DOWN:
            self._server.go_down(fault.number or 0)
        return fault.arriving(reply) if fault else reply

    def _fault(self, request: Request) -> Fault | None:
        """The first fault that happens to a request, once what delays it is over."""
        found = self.faults.strike(request)
        if found or not self.scenarios:
            return found[0] if found else None
        with self._database.transaction() as store:
            return scenarios.fault(request, store)

    def _served(self, where: Mount, request: Request, *, kept: bool = True) -> Reply:
        has_token = "authorization" in request.headers
        if where.credentials and not has_token:
            return _MISSING.reply()
        if has_token and "expired" in request.scenarios:
            return _EXPIRED.reply()
        if scenarios.is_forbidden(request):
            return _FORBIDDEN.reply()
        try:
            service = served(where.service)
            with self._database.transaction(kept=kept) as store:
                # Transactions wait for each other: the moment that counts is when this one begins.
                now = self._now()
                began = replace(request, path=_relative(where, request.path), now=now)
                return partial.of(service(began, store), request.query)
        except GoogleError as error:
            return error.reply()
        except Exception:  # noqa: BLE001 - a bug in one service must not end the server
            _LOG.exception("%s %s failed", request.method, request.path)
            return GoogleError(500, "Internal error encountered.", status=None).reply()


class _Server(ThreadingHTTPServer):
    """One thread a connection; the connections are known, so that an end ends them too."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], cloud: Cloud) -> None:
        super().__init__(address, _Connection)
        self.cloud = cloud
        self._open: set[socket.socket] = set()
        self._down = 0.0

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def go_down(self, seconds: float) -> None:
        """Let nothing listen for a while."""
        self._down = seconds

    def service_actions(self) -> None:
        """Between two connections: be down, if that is wanted."""
        if self._down:
            self.socket.shutdown(socket.SHUT_RDWR)
            self.drop_connections()
            time.sleep(self._down)
            self._down = 0.0
            # Under the descriptor of before, which is what serve_forever waits for.
            with socket.create_server(self.server_address[:2], backlog=128) as again:
                os.dup2(again.fileno(), self.socket.fileno(), inheritable=False)

    def drop_connections(self) -> None:
        """End the connections that clients keep alive."""
        for connection in list(self._open):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


class _Connection(BaseHTTPRequestHandler):
    """Reads requests off one connection and writes each reply in one piece."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server: _Server

    def handle(self) -> None:
        # A client may go away at any moment, and drop_connections ends what is kept alive.
        with contextlib.suppress(ConnectionError):
            super().handle()

    def log_message(self, *_: Any) -> None:
        """Say nothing: the request log is the record."""

    def _exchange(self) -> None:
        path, _, query = self.path.partition("?")
        try:
            body = self._body()
        except ValueError:
            self.close_connection = True
            self._send(GoogleError(400, "Bad Request").reply())
            return
        parameters = parse_qsl(query, keep_blank_values=True)
        request = Request(
            method="GET" if self.command == "HEAD" else self.command,
            path=path,
            query=dict(parameters),
            parameters=parameters,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
        )
        reply = self.server.cloud.answer(request)
        if reply is None:
            self._drop()
        else:
            self._send(reply)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _exchange  # noqa: N815 - http.server's names

    def _body(self) -> bytes:
        """The request's body; ValueError if its framing is broken."""
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", "0")))
        chunks = []
        while size := int(self.rfile.readline().partition(b";")[0], 16):
            chunks.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            """Trailers say nothing that is needed here."""
        return b"".join(chunks)

    def _send(self, reply: Reply) -> None:
        headers = {name.title(): value for name, value in reply.headers.items()}
        content = reply.body if isinstance(reply.body, bytes) else b""
        if isinstance(reply.body, dict):
            content = json.dumps(reply.body).encode()
            headers.setdefault("Content-Type", "application/json; charset=UTF-8")
        if reply.status not in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
            headers.setdefault("Content-Length", str(len(content)))
        if self.close_connection:
            headers["Connection"] = "close"
        status = (
            f"{self.protocol_version} {reply.status} {self.responses.get(reply.status, ('',))[0]}"
        )
        lines = [status, *(f"{name}: {value}" for name, value in headers.items()), "", ""]
        head = "\r\n".join(lines).encode("latin-1")
        # One write for all: two small ones would wait for each other's acknowledgement.
        self.wfile.write(head if self.command == "HEAD" else head + content)

    def _drop(self) -> None:
        """Reset the connection, so that the client can't take it for an orderly end."""
        self.close_connection = True
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()


class RequestLog:
    """Appends to a file; several processes may share it. Header fields, hence tokens, stay out."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()

    def append(self, request: Request, reply: Reply | None) -> None:
        """Record an exchange; a reply of None is a dropped connection."""
        entry = {
            "time": request.now,
            "client": request.headers.get("user-agent", ""),
            "method": request.method,
            "path": request.path,
            "query": dict(request.query),
            "body": _readable(request.body),
            "status": None if reply is None else reply.status,
            "response": None if reply is None else _readable(reply.body),
        }
        with self._lock, self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(entry) + "\n")


def _readable(body: dict[str, Any] | bytes | None) -> Any:
    """JSON as such, text as a string, anything else by its length."""
    if not isinstance(body, bytes):
        return body
    if not body:
        return None
    try:
        return json.loads(body)
    except ValueError:
        pass
    try:
        return {"text": body.decode()}
    except UnicodeDecodeError:
        return {"bytes": len(body)}
