"""A Google on loopback that answers as told, and records what it was asked."""

import json
import re
import threading
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlsplit

import pytest

from rehearsal.provider.api import Api, variable

State = dict[str, Any]

# Where each service is below the server's root; the last element is what some clients replace.
PLACES = {
    "compute": "/compute/v1/",
    "container": "/container/v1/",
    "file": "/file/v1/",
    "storage": "/storage/v1/",
    "iam": "/iam/v1/",
    "cloudresourcemanager": "/crm/v1/",
    "monitoring": "/monitoring/",
    "cloudbilling": "/cloudbilling/v1/",
}


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: dict[str, str]
    body: Any
    headers: dict[str, str]
    connection: int

    @property
    def line(self) -> str:
        return f"{self.method} {self.path}"


def refusal(code: int, message: str, reason: str = "") -> tuple[int, State]:
    errors = [{"message": message, "domain": "global", "reason": reason or "x"}]
    return code, {"error": {"code": code, "message": message, "errors": errors}}


@dataclass
class Google:
    """Answers by the first rule that fits; a rule's last answer stands for ever."""

    base_url: str = ""
    asked: list[Asked] = field(default_factory=list)
    rules: list[tuple[str, deque[Any]]] = field(default_factory=list)
    guard: threading.Lock = field(default_factory=threading.Lock)

    def on(self, pattern: str, *answers: Any) -> Self:
        """Answer requests whose "METHOD path" matches; a dict is a 200, a tuple a status too."""
        self.rules.append((pattern, deque(answers)))
        return self

    def answer(self, asked: Asked) -> Any:
        with self.guard:
            self.asked.append(asked)
            for pattern, answers in self.rules:
                if re.fullmatch(pattern, asked.line):
                    return answers.popleft() if len(answers) > 1 else answers[0]
        return refusal(404, f"nothing at {asked.line}", "notFound")

    @property
    def lines(self) -> list[str]:
        return [asked.line for asked in self.asked]

    def body(self, line: str) -> Any:
        """The body of the only request of that method and path."""
        (found,) = [asked.body for asked in self.asked if asked.line == line]
        return found


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    google: Google

    def _handle(self) -> None:
        raw = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = urlsplit(self.path)
        headers = {name.lower(): value for name, value in self.headers.items()}
        is_json = headers.get("content-type", "").startswith("application/json")
        asked = Asked(
            self.command,
            parts.path,
            dict(parse_qsl(parts.query, keep_blank_values=True)),
            json.loads(raw) if raw and is_json else raw or None,
            headers,
            self.client_address[1],
        )
        answer = self.google.answer(asked)
        if answer is ConnectionResetError:
            self.close_connection = True
            return
        status, body, more = (
            answer
            if isinstance(answer, tuple) and len(answer) == 3
            else ((*answer, {}) if isinstance(answer, tuple) else (200, answer, {}))
        )
        content = b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        for name, value in more.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _handle  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Keep the test's output quiet."""


@pytest.fixture
def google() -> Iterator[Google]:
    it = Google()
    handler = type("Handler", (_Handler,), {"google": it})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    it.base_url = f"http://127.0.0.1:{server.server_address[1]}"
    yield it
    server.shutdown()
    server.server_close()


@pytest.fixture
def environ(google: Google) -> dict[str, str]:
    """An environment that leads to `google`, where no time passes."""
    places = {variable(name): google.base_url + place for name, place in PLACES.items()}
    return {**places, "GOOGLE_OAUTH_ACCESS_TOKEN": "token", "CLOUD_CLOCK_RATE": "0"}


@pytest.fixture
def connect(environ: dict[str, str]) -> Iterator[Callable[..., Api]]:
    """Makes an Api of a provider block's arguments, in `environ` as it is then."""
    made = []

    def make(**block: Any) -> Api:
        place = {"project": "p", "region": "us-central1", "zone": "us-central1-a"}
        made.append(Api({**place, **block}, environ))
        return made[-1]

    yield make
    for api in made:
        api.close()


@pytest.fixture
def api(connect: Callable[..., Api]) -> Api:
    return connect()


@pytest.fixture
def refuse() -> Callable[..., tuple[int, State]]:
    """Makes an error in Google's form of a code, a message and a reason."""
    return refusal
