"""Plays a recorded story: real Terraform, the stand-in provider, a proxy that records, a cloud."""

from __future__ import annotations

import email
import json
import os
import subprocess
import sys
import threading
import urllib.request
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

import pytest

from provision import terraform
from provision.rehearsal.cloud.server import Cloud
from provision.rehearsal.provider import mirror

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType

STORIES = Path(__file__).parent / "stories"

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

PROVIDER_BLOCK = """\
terraform {
  required_providers {
    google = { source = "hashicorp/google", version = "7.45.0" }
  }
}
provider "google" {
  project = "proj-a1"
  region  = "us-central1"
  zone    = "us-central1-a"
}
"""

# How fast the provider's time runs: batches need some room to gather, all else is waiting.
PROVIDER_RATE = "0.05"
# The recording's cloud was done with everything at once.
CLOUD_RATE = "0"

Row = dict[str, Any]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    upstream: str
    base_url: str
    rows: list[Row]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def _forward(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.server.rows.append(_row(self.command, self.path, dict(self.headers), body))
        connection = HTTPConnection(urlsplit(self.server.upstream).netloc, timeout=60)
        headers = {k: v for k, v in self.headers.items() if k.lower() != "connection"}
        connection.request(self.command, self.path, body=body, headers=headers)
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {"connection", "transfer-encoding", "content-length", "date"}:
                # The next part of an upload comes this way again.
                self.send_header(name, value.replace(self.server.upstream, self.server.base_url))
        if answer.status != 204:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = _forward  # noqa: N815 - http.server's names

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - http.server's name
        """Keep the test's output quiet."""


class Proxy:
    """Records what passes, on its way to a cloud."""

    def __init__(self, upstream: str) -> None:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.upstream = upstream
        self._server.rows = self.rows = []
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


class Player:
    """A folder in which Terraform runs a story against a cloud."""

    def __init__(self, folder: Path, proxy: Proxy) -> None:
        self._folder = folder
        self._proxy = proxy
        config = mirror.install(folder / "plugin", sys.executable)
        self._work = folder / "work"
        self._work.mkdir()
        endpoints = {
            variable: f"{proxy.base_url}{prefix}{version}"
            for prefix, variable, version in SERVICES.values()
        }
        self._environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TF_CLI_CONFIG_FILE": str(config),
            "TF_IN_AUTOMATION": "1",
            "CHECKPOINT_DISABLE": "1",
            "GOOGLE_OAUTH_ACCESS_TOKEN": "token",
            "CLOUD_CLOCK_RATE": PROVIDER_RATE,
            **endpoints,
        }

    def play(self, story: Row) -> dict[str, list[Row]]:
        """All phases of a story; a plan after each change is empty.

        Returns:
            What was sent, by phase.
        """
        for name, text in story.get("files", {}).items():
            (self._work / name).write_text(text)
        for name, size in story.get("zeros", {}).items():
            (self._work / name).write_bytes(bytes(size))
        self._write(story["hcl"])
        self._terraform("init", "-input=false")
        sent = {}
        sent["plan"] = self._terraform("plan", "-out=first", "-input=false")
        sent["apply"] = self._terraform("apply", "-input=false", "first")
        sent["refresh"] = self._terraform("plan", "-detailed-exitcode", "-input=false")
        if "hcl_update" in story:
            self._write(story["hcl_update"])
            sent["update"] = self._terraform("apply", "-auto-approve", "-input=false")
            self._terraform("plan", "-detailed-exitcode", "-input=false")
        sent["destroy"] = self._terraform("destroy", "-auto-approve", "-input=false")
        return sent

    def _write(self, lines: list[str]) -> None:
        text = "\n".join(lines)
        (self._work / "main.tf").write_text(f"{PROVIDER_BLOCK}{text}\n")

    def _terraform(self, *arguments: str) -> list[Row]:
        done = subprocess.run(
            [*terraform.find(os.environ).argv, *arguments, "-no-color"],
            cwd=self._work,
            env=self._environ,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{arguments}: {done.stdout}\n{done.stderr}"
        return self._proxy.take()


def _call(method: str, url: str) -> Row:
    request = urllib.request.Request(  # noqa: S310 - loopback
        url,
        data=b"{}" if method == "POST" else None,
        method=method,
        headers={"Authorization": "Bearer token", "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - loopback
        document: Row = json.load(answer)
    return document


def only_compute(base_url: str) -> None:
    """The project of the recording had Compute Engine switched on, and nothing else."""
    services = f"{base_url}/serviceusage/v1/projects/proj-a1/services"
    listed = _call("GET", f"{services}?filter=state:ENABLED")
    for name in (it["name"].rpartition("/")[2] for it in listed.get("services", [])):
        if name != "compute.googleapis.com":
            _call("POST", f"{services}/{name}:disable")
    _call("POST", f"{services}/compute.googleapis.com:enable")


@pytest.fixture
def player(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Player]:
    """Plays stories against the simulated cloud."""
    monkeypatch.setenv("CLOUD_CLOCK_RATE", CLOUD_RATE)
    with Cloud(database=tmp_path / "cloud.db") as cloud, Proxy(cloud.base_url) as proxy:
        only_compute(cloud.base_url)
        yield Player(tmp_path, proxy)


@pytest.fixture
def story() -> Callable[[str], Row]:
    """Reads a recorded story by its name."""

    def read(name: str) -> Row:
        document: Row = json.loads((STORIES / f"{name}.json").read_text())
        return document

    return read
