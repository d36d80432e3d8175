"""Who is the head of a Ray cluster while Cloud Storage, VMs and the lease come and go.

The nodes are threads here, and Ray is a socket that listens; leases last a fraction of a second.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from rehearsal.cloud.server import Cloud
from tests import waiting
from tests.startup.metadata_server import MetadataServer
from tests.startup.room import Wire
from tests.startup.sandbox import PAYLOAD
from tests.waiting import until

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import ray_node, ray_process
from aiinfra_vm.heads import Identity, Pace
from aiinfra_vm.lease import Lease
from aiinfra_vm.ray_dashboard import Relay
from aiinfra_vm.ray_node import Node
from aiinfra_vm.ray_others import Others
from aiinfra_vm.ray_token import Token
from aiinfra_vm.storage import Folder

BUCKET, FOLDER = "my-bucket", "train-deployment/ray"
EXPIRY = 0.6
PACE = Pace(renew=0.1, expiry=EXPIRY)


class Ray:
    """Ray as far as other VMs notice it: a head answers at its port."""

    started: list[Ray]
    port: int

    def __init__(self, arguments: list[str], address: str) -> None:
        self.is_head = "--head" in arguments
        self.of = address if self.is_head else arguments[0].partition("=")[2].partition(":")[0]
        self.address = address
        self._lives = True
        self._listener = socket.create_server((address, self.port)) if self.is_head else None
        self.started.append(self)

    def wait_ready(self, seconds: float) -> bool:
        """It is ready at once."""
        return seconds > 0

    def alive(self) -> bool:
        """Until it is stopped."""
        return self._lives

    def stop(self) -> None:
        """End it."""
        self._lives = False
        self.fall_silent()

    def fall_silent(self) -> None:
        """Answer nobody any more, as when its VM is frozen."""
        if self._listener is not None:
            self._listener.close()
            self._listener = None


@dataclass
class VM:
    """One node, with a way of its own to Cloud Storage."""

    wire: Wire
    node: Node
    token: Path
    thread: threading.Thread = field(init=False)

    def start(self) -> None:
        """Begin."""
        self.thread = threading.Thread(target=self.node.run, daemon=True)
        self.thread.start()


class World:
    """Cloud Storage, and the VMs of one cluster."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = patch
        self._stack = ExitStack()
        self.vms: list[VM] = []

    def __enter__(self) -> Self:
        cloud = self._stack.enter_context(Cloud(database=self._folder / "cloud.sqlite"))
        self.url = cloud.base_url
        path = "computeMetadata/v1/instance/service-accounts/default/token"
        about = Request(f"{self.url}/{path}", headers={"Metadata-Flavor": "Google"})  # noqa: S310 - loopback
        with urlopen(about) as answer:  # noqa: S310 - loopback
            token = answer.read().decode()
        self._bearer = json.loads(token)["access_token"]
        server = MetadataServer({"service-accounts/default/token": token})
        host = self._stack.enter_context(server).host
        self._patch.setenv("GCE_METADATA_HOST", host)
        self.ask("storage/v1/b?project=rehearsal-host", "POST", {"name": BUCKET})
        return self

    def __exit__(self, *_: object) -> None:
        for vm in self.vms:
            vm.wire.is_down = False
            vm.node.stop()
        for vm in self.vms:
            vm.thread.join(waiting.SECONDS)
            vm.wire.close()
        self._stack.close()

    def ask(self, path: str, method: str = "GET", document: object = None) -> bytes:
        """A request to Cloud Storage, which no wire cuts off."""
        body = None if document is None else json.dumps(document).encode()
        headers = {"Authorization": f"Bearer {self._bearer}", "Content-Type": "application/json"}
        request = Request(f"{self.url}/{path}", body, headers, method=method)  # noqa: S310 - loopback
        with urlopen(request) as answer:  # noqa: S310 - loopback
            return bytes(answer.read())

    def object(self, name: str, method: str = "GET") -> bytes:
        """Read or delete an object."""
        path = f"storage/v1/b/{BUCKET}/o/{quote(f'{FOLDER}/{name}', safe='')}"
        return self.ask(path + ("?alt=media" if method == "GET" else ""), method)

    def add(self, pace: Pace = PACE) -> VM:
        """Another VM, which begins at once."""
        number = len(self.vms) + 1
        wire = Wire(int(self.url.rpartition(":")[2]), "127.0.0.1")
        self._patch.setenv("STORAGE_EMULATOR_HOST", f"http://127.0.0.1:{wire.port}")
        folder = Folder(BUCKET, FOLDER)
        token = self._folder / f"token-{number}"
        identity = Identity(f"vm-{number}", f"127.0.0.{10 + number}", f"id-{number}")
        others = Others(folder, token)
        node = Node(
            identity, Lease(folder), Token(folder, token), Relay(1), others=others, pace=pace
        )
        vm = VM(wire, node, token)
        self.vms.append(vm)
        vm.start()
        return vm


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    """Cloud Storage without VMs."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    ports = dict.fromkeys(ray_process.ports(), port)
    Ray.started, Ray.port = [], port
    monkeypatch.setattr(ray_process, "ports", lambda: ports)
    monkeypatch.setattr(ray_node, "Ray", Ray)
    with World(tmp_path, monkeypatch) as made:
        yield made


def _wait(what: Callable[[], Any]) -> None:
    until(what, lambda: [vars(it) for it in Ray.started], pace=0.01)


def _alive() -> set[tuple[str, str]]:
    """Where Ray runs, and of which head."""
    return {(ray.address[-1], ray.of[-1]) for ray in Ray.started if ray.alive()}


def _cluster(world: World, vms: int) -> None:
    """A cluster whose first VM is the head."""
    wanted = set()
    for number in range(1, vms + 1):
        world.add()
        wanted.add((str(number), "1"))
        _wait(lambda: _alive() == wanted)


def test_no_job_ends_while_cloud_storage_is_away(world: World) -> None:
    _cluster(world, 3)
    before = list(Ray.started)

    for vm in world.vms:
        vm.wire.is_down = True
    time.sleep(4 * EXPIRY)
    for vm in world.vms:
        vm.wire.is_down = False
    time.sleep(2 * EXPIRY)

    assert Ray.started == before
    assert all(ray.alive() for ray in before)


def test_a_head_that_alone_does_not_reach_cloud_storage_stays_the_head(world: World) -> None:
    _cluster(world, 2)

    world.vms[0].wire.is_down = True
    time.sleep(4 * EXPIRY)

    assert _alive() == {("1", "1"), ("2", "1")}
    assert len(Ray.started) == 2


def test_a_head_that_is_silent_is_followed_by_another_and_ends_when_it_sees_that(
    world: World,
) -> None:
    _cluster(world, 2)

    # Frozen: it neither renews nor answers, and does not know.
    world.vms[0].wire.is_down = True
    Ray.started[0].fall_silent()
    _wait(lambda: ("2", "2") in _alive())
    assert Ray.started[0].alive()

    world.vms[0].wire.is_down = False
    _wait(lambda: _alive() == {("2", "2"), ("1", "2")})
    assert not Ray.started[0].alive()


def test_a_worker_that_only_does_not_reach_its_head_does_not_take_the_lease(world: World) -> None:
    _cluster(world, 2)

    Ray.started[0].fall_silent()
    time.sleep(3 * EXPIRY)

    assert _alive() == {("1", "1"), ("2", "1")}
    assert json.loads(world.object("head.json"))["vm"] == "vm-1"


def test_a_lease_that_somebody_deletes_is_taken_again_by_its_head(world: World) -> None:
    _cluster(world, 2)
    before = json.loads(world.object("head.json"))

    world.object("head.json", "DELETE")
    time.sleep(2 * EXPIRY)

    assert len(Ray.started) == 2
    after = json.loads(world.object("head.json"))
    assert (after["vm"], after["life"]) == (before["vm"], before["life"])


def test_a_head_that_is_stopped_is_followed_by_another_without_waiting(world: World) -> None:
    slow = Pace(renew=0.1, expiry=3600)
    for _ in range(2):
        world.add(slow)
        _wait(lambda: len(Ray.started) == len(world.vms))

    world.vms[0].node.stop()

    _wait(lambda: _alive() == {("2", "2")})


def test_vms_that_begin_at_once_agree_on_one_head_and_one_token(world: World) -> None:
    for _ in range(4):
        world.add()

    _wait(lambda: len(_alive()) == 4)

    assert len({of for _, of in _alive()}) == 1
    token = world.object("token")
    assert {vm.token.read_bytes() for vm in world.vms} == {token}
    assert len(bytes.fromhex(token.decode())) >= 32
    assert {vm.token.stat().st_mode & 0o777 for vm in world.vms} == {0o644}


class _JobApi(BaseHTTPRequestHandler):
    """Ray's job API, for whoever shows the token."""

    jobs: list[dict[str, Any]]

    def do_GET(self) -> None:
        """All jobs."""
        knows = self.headers["Authorization"] == "Bearer the-token"
        self.send_response(200 if knows and self.path == "/api/jobs/" else 401)
        self.end_headers()
        self.wfile.write(json.dumps(self.jobs).encode())

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def test_a_head_writes_what_others_run_when_that_changes(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _JobApi)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(ray_process, "ports", lambda: {"dashboard": server.server_port})
    monkeypatch.setenv("STORAGE_EMULATOR_HOST", world.url)
    token = tmp_path / "shown"
    token.write_text("the-token")
    others = Others(Folder(BUCKET, FOLDER), token)
    sent: dict[str, Any] = {
        "type": "SUBMISSION",
        "submission_id": "raysubmit_x",
        "status": "RUNNING",
    }
    sent |= {"entrypoint": "train --key=secret", "start_time": 5000, "metadata": {}}
    joined: dict[str, Any] = {
        "type": "DRIVER",
        "job_id": "02000000",
        "status": "PENDING",
        "start_time": None,
    }
    ours = {**sent, "submission_id": "train-1-1", "metadata": {"started_by": "aiinfra Run"}}
    _JobApi.jobs = [sent, joined, ours, {**sent, "status": "SUCCEEDED"}]

    others.note("127.0.0.1")
    assert json.loads(world.object("jobs.json")) == {
        "jobs": [
            {"name": "raysubmit_x", "state": "RUNNING", "since": 5.0},
            {"name": "02000000", "state": "PENDING", "since": 0.0},
        ]
    }

    world.object("jobs.json", "DELETE")
    others.note("127.0.0.1")  # nothing has changed
    with pytest.raises(HTTPError):
        world.object("jobs.json")
    _JobApi.jobs = [joined]
    others.note("127.0.0.1")
    assert b"raysubmit_x" not in world.object("jobs.json")
    token.write_text("another")
    with pytest.raises(OSError, match="401"):
        others.note("127.0.0.1")
    server.shutdown()
    server.server_close()


@pytest.fixture
def relay() -> Iterator[tuple[Relay, socket.socket]]:
    """A relay that listens, and a dashboard for it on another machine."""
    with socket.create_server(("127.0.0.77", 0)) as dashboard:
        made = Relay(dashboard.getsockname()[1])
        made.start()
        yield made, dashboard
        made.stop()


def test_the_dashboard_of_the_head_is_at_the_localhost_of_each_vm(
    relay: tuple[Relay, socket.socket],
) -> None:
    made, dashboard = relay
    here = ("127.0.0.1", dashboard.getsockname()[1])
    with socket.create_connection(here) as early:
        assert early.recv(1) == b""  # there is no head yet

    made.lead_to("127.0.0.77")
    with socket.create_connection(here) as browser:
        browser.sendall(b"question")
        browser.shutdown(socket.SHUT_WR)
        head, _ = dashboard.accept()
        with head:
            assert head.recv(100) == b"question"
            assert head.recv(100) == b""
            head.sendall(b"answer")
        assert browser.recv(100) == b"answer"
        assert browser.recv(100) == b""
