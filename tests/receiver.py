"""Somebody whom NOTIFY names: a server on loopback that keeps what it is sent."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

PATH = "T0AB12CD3/B0EF45GH6/zyxwvutsrqponmlk"
"""What of its URL is a secret."""


class Receiver(ThreadingHTTPServer):
    """Keeps what it is sent, and answers with `status`; one that sleeps does not."""

    def __init__(self, status: int = 200, sleeps: float = 0.0) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.status, self.sleeps = status, sleeps
        self.got: list[tuple[str, dict[str, Any]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook/{PATH}?token=1"


class _Handler(BaseHTTPRequestHandler):
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.server.got.append((self.path, json.loads(body)))
        time.sleep(self.server.sleeps)
        self.send_response(self.server.status)
        self.send_header("Location", "/elsewhere")
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing is printed."""


@contextmanager
def receiver(status: int = 200, sleeps: float = 0.0) -> Iterator[Receiver]:
    with Receiver(status, sleeps) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield server
        server.shutdown()
