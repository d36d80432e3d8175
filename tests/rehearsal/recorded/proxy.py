"""A proxy between a provider and a cloud: it records requests, and can answer with failures."""

import copy
import email
import json
import re
import threading
import time
from http import HTTPStatus
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

# Where the proxy serves what the recording calls by these names, and the variables that say so.
SERVICES = {
    "compute": ("/compute/", "GOOGLE_COMPUTE_CUSTOM_ENDPOINT", "v1/"),
    "container": ("/container/", "GOOGLE_CONTAINER_CUSTOM_ENDPOINT", "v1/"),
    "storage": ("/storage/", "GOOGLE_STORAGE_CUSTOM_ENDPOINT", "v1/"),
    "iam": ("/iam/", "GOOGLE_IAM_BETA_CUSTOM_ENDPOINT", "v1/"),
    "cloudresourcemanager": ("/crm/", "GOOGLE_RESOURCE_MANAGER_CUSTOM_ENDPOINT", "v1/"),
    "serviceusage": ("/serviceusage/", "GOOGLE_SERVICE_USAGE_CUSTOM_ENDPOINT", "v1/"),
    "file": ("/file/", "GOOGLE_FILESTORE_CUSTOM_ENDPOINT", "v1/"),
    "monitoring": ("/monitoring/", "GOOGLE_MONITORING_CUSTOM_ENDPOINT", ""),
    "cloudbilling": ("/cloudbilling/", "GOOGLE_CLOUD_BILLING_CUSTOM_ENDPOINT", "v1/"),
}

Row = dict[str, Any]


class _Server(ThreadingHTTPServer):
    """Knows what the handlers share."""

    daemon_threads = True
    upstream: str
    base_url: str
    rows: list[Row]
    faults: list[Row]  # what to answer instead of the cloud, or how long to keep an answer back
    polls: int  # how often an operation is said to be running still
    held: dict[str, int]  # the operations that are, and how often more


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.rows.append(_row(self.command, self.path, dict(self.headers), body))
        fault = self._fault()
        if "status" in fault:
            self._answer(fault["status"], [], json.dumps(fault["body"]).encode())
            return
        time.sleep(fault.get("delay", 0))
        connection = HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=600)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
        connection.request(self.command, self.path, body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        # The next part of an upload comes this way again.
        kept = [
            (name, value.replace(self.server.upstream, self.server.base_url))
            for name, value in answer.getheaders()
            if name.lower() not in {"connection", "transfer-encoding", "content-length", "date"}
        ]
        self._answer(answer.status, kept, self._held_back(content))

    def _fault(self) -> Row:
        """What is to go wrong with this request; {} for nothing."""
        for fault in self.server.faults:
            fits = fault["method"] == self.command and re.search(fault["matching"], self.path)
            if fits and fault["times"]:
                fault["times"] -= 1
                return fault
        return {}

    def _held_back(self, content: bytes) -> bytes:
        """An answer in which an operation that the cloud has ended may still be running."""
        answer = json.loads(content) if content[:1] == b"{" else {}
        name = str(answer.get("name"))
        if not (name.startswith("operations/") or {"operationType", "done"} & answer.keys()):
            return content
        held = self.server.held
        if self.command == "GET":
            held[name] = max(0, held.get(name, 0) - 1)
        else:
            held[name] = self.server.polls
        if not held[name]:
            return content
        for said_at_the_end in ("done", "response", "endTime", "error"):
            answer.pop(said_at_the_end, None)
        if "status" in answer:
            answer["status"] = "RUNNING"
        return json.dumps(answer).encode()

    def _answer(self, status: int, headers: list[tuple[str, str]], content: bytes) -> None:
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        if status != HTTPStatus.NO_CONTENT:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Keep the test's output quiet."""


class Proxy:
    """Records what passes on its way to a cloud, and disturbs it when asked to."""

    def __init__(self, upstream: str) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.upstream = upstream
        self._server.rows = self.rows = []
        self._server.faults, self._server.polls, self._server.held = [], 0, {}
        self.base_url = self._server.base_url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.01,), daemon=True
        )

    rows: list[Row]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()

    def disturb(self, faults: list[Row] | None, polls: int | None) -> None:
        """Let things go wrong from here on; None leaves what was said before.

        `faults`: `times` requests of a `method` to a path `matching` a pattern are answered with
        `status` and `body`, or `delay` seconds later. `polls`: how often an operation that begins
        from here on is said to be running still.
        """
        if faults is not None:
            self._server.faults = copy.deepcopy(faults)
        if polls is not None:
            self._server.polls = polls

    def take(self) -> list[Row]:
        """What passed since the last time."""
        taken, self.rows[:] = list(self.rows), []
        return taken


def _row(method: str, target: str, headers: dict[str, str], body: bytes) -> Row:
    parts = urlsplit(target)
    service, path = _service(parts.path)
    content_type = {k.lower(): v for k, v in headers.items()}.get("content-type", "")
    row: Row = {
        "request": f"{method} {service} {path}",
        "query": dict(parse_qsl(parts.query, keep_blank_values=True)),
        "content_type": content_type.partition(";")[0],
    }
    if body:
        row["body"] = _body(content_type, body)
    return row


def _service(path: str) -> tuple[str, str]:
    if path.startswith("/upload/storage/"):
        return "storage", path[1:]
    return next(
        (name, path.removeprefix(prefix))
        for name, (prefix, _, _) in SERVICES.items()
        if path.startswith(prefix)
    )


def _body(content_type: str, body: bytes) -> Any:
    if content_type.startswith("multipart/related"):
        message = email.message_from_bytes(f"Content-Type: {content_type}\n\n".encode() + body)
        return {"multipart": [_part(part) for part in message.get_payload()]}  # type: ignore[arg-type]  # a multipart's payload is messages
    if content_type.startswith("application/json"):
        return json.loads(body)
    return {"bytes": len(body)}


def _part(part: email.message.Message) -> Row:
    kind, text = part["Content-Type"], str(part.get_payload())
    if kind == "application/json":
        return {"contentType": kind, "json": json.loads(text)}
    return {"contentType": kind, "text": text}
