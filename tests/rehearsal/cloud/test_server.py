import json
import logging
import socket
import sys
import types
from collections.abc import Iterator
from http.client import HTTPConnection as Connection
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud import server
from rehearsal.cloud.server import Cloud, Mount
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request
from tests.running import ran

pytestmark = pytest.mark.loopback

NETWORKS = "/compute/v1/projects/proj-a1/global/networks"
TOKEN = {"Authorization": "Bearer token"}


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    environ = {"CLOUD_CLOCK_RATE": "0"}
    log = tmp_path / "requests.jsonl"
    with Cloud(database=tmp_path / "cloud.sqlite", environ=environ, log=log) as running:
        yield running


@pytest.fixture
def connection(cloud: Cloud) -> Iterator[Connection]:
    opened = Connection(cloud.base_url.removeprefix("http://"), timeout=600)
    yield opened
    opened.close()


@pytest.fixture
def probe(monkeypatch: pytest.MonkeyPatch) -> list[Request]:
    """A service at /probe/ that keeps its requests, and answers as their paths say."""
    seen: list[Request] = []

    def service(request: Request, store: Store) -> Reply:
        seen.append(request)
        store.put("probe", "last", {"path": request.path})
        if request.path == "refuse":
            raise GoogleError(409, "No.")
        if request.path == "fail":
            raise KeyError(request.path)
        if request.path == "bytes":
            return Reply(body=b"\0\1", headers={"content-type": "text/x-probe"})
        if request.path == "nothing":
            return Reply(status=204)
        return Reply(body={"last": store.count("probe")})

    module = types.ModuleType("rehearsal.cloud.probe")
    module.service = service  # type: ignore[attr-defined]  # a module of this test's own
    monkeypatch.setitem(sys.modules, module.__name__, module)
    mounts = (Mount("/probe/", "probe:service"), *server.MOUNTS)
    monkeypatch.setattr(server, "MOUNTS", mounts)
    return seen


def _ask(connection: Connection, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, TOKEN)
    answer = connection.getresponse()
    return answer.status, json.loads(answer.read() or b"null")


def test_a_resource_is_made_and_read_over_one_connection(connection: Connection) -> None:
    body = {"name": "net", "autoCreateSubnetworks": False}
    assert _ask(connection, "POST", NETWORKS, body)[0] == 200
    opened = connection.sock
    assert _ask(connection, "GET", f"{NETWORKS}/net")[1]["name"] == "net"
    assert connection.sock is opened


def test_a_request_without_credentials_is_refused_as_google_does(connection: Connection) -> None:
    connection.request("GET", NETWORKS)
    answer = connection.getresponse()
    error = json.loads(answer.read())["error"]
    assert answer.status == 401
    assert (error["status"], error["details"][0]["reason"]) == (
        "UNAUTHENTICATED",
        "CREDENTIALS_MISSING",
    )


@pytest.mark.parametrize("path", ["/", "/computeMetadata/v1/project/project-id"])
def test_the_metadata_server_needs_no_credentials(connection: Connection, path: str) -> None:
    connection.request("GET", path, headers={"Metadata-Flavor": "Google"})
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Metadata-Flavor"]) == (200, "Google")
    assert answer.read()


def test_a_path_a_query_and_a_chunked_body_arrive_as_they_were_sent(
    connection: Connection, probe: list[Request]
) -> None:
    _ask(connection, "GET", "/probe/a%2Fb/%20?q=1%202&empty=&q=3")
    assert probe[0].path == "a%2Fb/%20"
    assert probe[0].query == {"q": "3", "empty": ""}
    assert probe[0].headers["authorization"] == "Bearer token"
    connection.request("POST", "/probe/x", iter([b"one ", b"two"]), TOKEN, encode_chunked=True)
    assert connection.getresponse().read()
    assert probe[1].body == b"one two"


def test_bytes_and_nothing_are_answered_as_such_and_head_is_get_without_the_body(
    connection: Connection, probe: list[Request]
) -> None:
    connection.request("GET", "/probe/bytes", headers=TOKEN)
    answer = connection.getresponse()
    assert (answer.read(), answer.headers["Content-Type"]) == (b"\0\1", "text/x-probe")
    connection.request("HEAD", "/probe/bytes", headers=TOKEN)
    answer = connection.getresponse()
    assert (answer.headers["Content-Length"], answer.read()) == ("2", b"")
    connection.request("GET", "/probe/nothing", headers=TOKEN)
    answer = connection.getresponse()
    assert (answer.status, answer.headers["Content-Length"], answer.read()) == (204, None, b"")
    assert [it.method for it in probe] == ["GET"] * 3


@pytest.mark.parametrize(
    "framing", [b"Content-Length: many\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\nmany\r\n"]
)
def test_a_broken_body_is_refused(cloud: Cloud, framing: bytes) -> None:
    host, _, port = cloud.base_url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=600) as plain:
        plain.sendall(b"POST /probe/x HTTP/1.1\r\nHost: here\r\n" + framing)
        assert plain.recv(100).startswith(b"HTTP/1.1 400 Bad Request\r\n")


@pytest.mark.parametrize("path", ["refuse", "fail"])
def test_what_fails_changes_nothing(
    cloud: Cloud, connection: Connection, probe: list[Request], path: str
) -> None:
    _ask(connection, "POST", "/probe/kept")
    _ask(connection, "POST", f"/probe/{path}")
    with cloud._database.transaction() as store:
        assert store.get("probe", "last") == {"path": "kept"}
    assert len(probe) == 2


def test_a_bug_is_answered_in_googles_shape_and_logged(
    connection: Connection, probe: list[Request], caplog: pytest.LogCaptureFixture
) -> None:
    status, answer = _ask(connection, "GET", "/probe/fail")
    assert (status, answer["error"]["status"]) == (500, "INTERNAL")
    assert probe
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "GET /probe/fail failed" in caplog.text
    assert "KeyError" in caplog.text


def test_the_log_tells_each_exchange_without_its_token(
    tmp_path: Path, connection: Connection
) -> None:
    body = {"name": "net", "autoCreateSubnetworks": False}
    _ask(connection, "POST", f"{NETWORKS}?alt=json", body)
    _ask(connection, "GET", f"{NETWORKS}/none")
    text = (tmp_path / "requests.jsonl").read_text()
    made, missed = (json.loads(line) for line in text.splitlines())
    assert (made["method"], made["path"], made["query"]) == ("POST", NETWORKS, {"alt": "json"})
    assert (made["body"], made["status"]) == (body, 200)
    assert made["response"]["kind"] == "compute#operation"
    assert (missed["body"], missed["status"]) == (None, 404)
    assert "token" not in text


def test_bytes_that_are_no_text_are_logged_by_their_length(
    tmp_path: Path, connection: Connection, probe: list[Request]
) -> None:
    connection.request("POST", "/probe/x", b"\xff\xfe", TOKEN)
    connection.getresponse().read()
    connection.request("POST", "/probe/x", b"words", TOKEN)
    connection.getresponse().read()
    lines = (tmp_path / "requests.jsonl").read_text().splitlines()
    assert [json.loads(line)["body"] for line in lines] == [{"bytes": 2}, {"text": "words"}]
    assert len(probe) == 2


def test_each_path_has_its_service() -> None:
    for path, service in {
        "/compute/v1/projects/p": "vm_agents:compute_service",
        "/storage/v1/b": "storage.service:json_api",
        "/upload/storage/v1/b/x/o": "storage.service:upload",
        "/download/storage/v1/b/x/o/y": "storage.service:media",
        "/bucket/folder/object": "storage.service:media",
        "/iam/v1/projects/p/serviceAccounts": "iam:service",
        "/crm/v1/projects/p": "projects:service_v1",
        "/crm/v3/projects/p": "projects:service_v3",
        "/serviceusage/v1/projects/p/services": "services:service",
        "/cloudbilling/v1/projects/p/billingInfo": "billing:service",
        "/": "metadata:service",
        "/token": "metadata:service",
    }.items():
        assert server.mount(path).service == service
        assert callable(server.served(service))


def test_an_end_drops_the_connections_that_are_kept_alive(tmp_path: Path) -> None:
    with Cloud(database=tmp_path / "cloud.sqlite") as cloud:
        kept = Connection(cloud.base_url.removeprefix("http://"), timeout=600)
        _ask(kept, "GET", NETWORKS)
        assert kept.sock is not None
        open_socket = kept.sock
    assert open_socket.recv(1) == b""
    kept.close()


def test_an_unknown_scenario_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'storm'; there are flaky, lost-answer, slow"):
        Cloud(database=tmp_path / "cloud.sqlite", scenario="slow,storm")


def test_each_service_can_be_the_first_that_is_asked() -> None:
    # Each in a process of its own: an import that only works after another one fails there.
    modules = sorted({mount.service.partition(":")[0] for mount in server.MOUNTS})
    program = "import importlib, os, sys\nfor name in sys.argv[1:]:\n    if not os.fork():\n"
    program += "        importlib.import_module(f'rehearsal.cloud.{name}')\n        os._exit(0)\n"
    program += "    assert os.wait()[1] == 0, name\n"
    ended = ran([sys.executable, "-c", program, *modules])
    assert ended.returncode == 0, ended.stderr
