"""A VM's metadata server on loopback, with what start-up reads and writes."""

import base64
import hashlib
import json
import socketserver
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.parse import parse_qsl, unquote

_ROOT = "/computeMetadata/v1/instance/"
_WRITTEN = "guest-attributes/aiinfra"
_A_MINUTE = 6  # and four of those who look
_A_SECOND = 3


@dataclass
class MetadataServer:
    """Answers as Google's does, and keeps what is written to it."""

    # path under instance/ -> value; those under attributes/ are the VM's metadata
    values: dict[str, str]
    address: str = "127.0.0.1"
    port: int = 0
    # each guest attribute that was written, in order: its name and its text
    written: list[tuple[str, str]] = field(default_factory=list)
    refuse: int = 0  # answer 503 to so many requests first
    # version -> value, as Secret Manager has them, which answers here too
    secrets: dict[str, bytes] = field(default_factory=dict)
    # name -> content of objects of any bucket, as Cloud Storage has them, likewise
    objects: dict[str, bytes] = field(default_factory=dict)
    deny: int = 0  # answer 403 to so many requests for a secret first
    drop: int = 0  # take so many guest attributes first, and lose them
    limited: bool = False  # whether to lose guest attributes above Google's rate
    # seconds since the VM's boot, by which its rate is measured
    uptime: Callable[[], float] = time.monotonic
    # the guest attributes that were lost as there were too many
    lost: list[str] = field(default_factory=list)
    _queries: list[float] = field(default_factory=list)
    over: bool = False  # nobody waits for a change any more

    def __enter__(self) -> Self:
        self._server = _Server((self.address, self.port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over = True
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def host(self) -> str:
        """What GCE_METADATA_HOST is set to."""
        return f"{self.address}:{self._server.server_address[1]}"

    @property
    def attributes(self) -> dict[str, Any]:
        """The guest attributes of the namespace `aiinfra` as they are now."""
        return {name: json.loads(text) for name, text in self.written}

    def is_above_rate(self) -> bool:
        """Count a query of guest attributes; whether Google may drop it.

        10 a minute for a VM and 3 a second ("Setting and querying guest attributes"), of which a
        Create that looks every 15 seconds has 4.
        """
        now = self.uptime()
        self._queries = [at for at in self._queries if now - 60 < at <= now]
        of_this_second = sum(at > now - 1 for at in self._queries)
        self._queries.append(now)
        is_above = len(self._queries) > _A_MINUTE or of_this_second >= _A_SECOND
        return self.limited and is_above

    def set_metadata(self, metadata: Mapping[str, str]) -> None:
        """Give the VM other metadata."""
        kept = {k: v for k, v in self.values.items() if not k.startswith("attributes/")}
        self.values = kept | {f"attributes/{key}": value for key, value in metadata.items()}


class Nameless(ThreadingHTTPServer):
    """A server at an address that has no name, for which HTTPServer asks."""

    def server_bind(self) -> None:
        """Bind to it, or say what is bound in this thread's network."""
        try:
            socketserver.TCPServer.server_bind(self)
        except OSError as error:
            there = Path("/proc/thread-self/net/tcp").read_text()
            raise OSError(f"{error}: {self.server_address}\n{there}") from error
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]


class _Server(Nameless):
    def __init__(self, address: tuple[str, int], owner: MetadataServer) -> None:
        super().__init__(address, _Connection)
        self.owner = owner


class _Connection(BaseHTTPRequestHandler):
    server: _Server

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        if self.path.endswith(":access"):
            self._answer_secret()
            return
        if self.path.startswith("/storage/v1/b/"):
            found = self.server.owner.objects.get(unquote(self.path[:-10].rpartition("/o/")[2]))
            self._answer(404 if found is None else 200, found or b"")
            return
        if self._refused():
            return
        path, _, query = self.path.removeprefix(_ROOT).partition("?")
        asked = dict(parse_qsl(query))
        deadline = time.monotonic() + float(asked.get("timeout_sec", 0))
        while asked.get("wait_for_change") and self._etag(path) == asked["last_etag"]:
            if time.monotonic() > deadline or self.server.owner.over:
                break
            time.sleep(0.02)
        written = {f"{_WRITTEN}/{name}": text for name, text in self.server.owner.written}
        value = (self.server.owner.values | written).get(path)
        self._answer(404 if value is None else 200, (value or "").encode(), self._etag(path))

    def _etag(self, path: str) -> str:
        return hashlib.sha256(self.server.owner.values.get(path, "").encode()).hexdigest()[:16]

    def do_PUT(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        if self._refused():
            return
        folder, _, name = self.path.removeprefix(_ROOT).rpartition("/")
        if folder != _WRITTEN:
            self._answer(404, b"")
            return
        if self.server.owner.is_above_rate():
            self.server.owner.lost.append(name)
        elif self.server.owner.drop > 0:
            self.server.owner.drop -= 1
        else:
            self.server.owner.written.append((name, text))
        self._answer(200, b"")

    def _answer_secret(self) -> None:
        owner = self.server.owner
        resource = self.path.removeprefix("/v1/").removesuffix(":access")
        token = json.loads(owner.values["service-accounts/default/token"])["access_token"]
        if self.headers.get("Authorization") != f"Bearer {token}":
            self._answer(401, b"")
        elif owner.deny > 0:
            owner.deny -= 1
            self._answer(403, b'{"error": {"message": "Permission denied on it"}}')
        elif resource not in owner.secrets:
            self._answer(404, b'{"error": {"message": "Secret not found"}}')
        else:
            data = base64.b64encode(owner.secrets[resource]).decode()
            self._answer(200, json.dumps({"payload": {"data": data}}).encode())

    def _refused(self) -> bool:
        owner = self.server.owner
        if self.headers.get("Metadata-Flavor") != "Google":
            self._answer(403, b"Missing Metadata-Flavor:Google header.")
            return True
        if owner.refuse > 0:
            owner.refuse -= 1
            self._answer(503, b"")
            return True
        return False

    def _answer(self, status: int, body: bytes, etag: str = "0") -> None:
        self.send_response(status)
        self.send_header("ETag", etag)
        self.send_header("Metadata-Flavor", "Google")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
