import contextlib
import http.server
import json
import ssl
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from provision import endpoints
from provision.errors import CredentialsError
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.client import Cluster, KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, build
from provision.time.deadline import TransientError
from rehearsal.provider import certificate

pytestmark = pytest.mark.loopback
KINDS = {"resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}]}
THING = build("v1", "ConfigMap", "settings", "default", data={"a": "b"})


class Handler(http.server.BaseHTTPRequestHandler):
    """An API that knows one kind and answers as it is told."""

    answer: ClassVar[tuple[int, Object]] = (200, {})
    requests: ClassVar[list[tuple[str, str, str, str]]] = []
    location: ClassVar[str] = ""
    kind: ClassVar[str] = "application/json"

    def _serve(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length).decode()
        kind, token = self.headers.get("Content-Type", ""), self.headers.get("Authorization", "")
        self.requests.append((f"{self.command} {self.path}", kind, token, body))
        code, answer = (200, KINDS) if self.path == "/api/v1" else self.answer
        content = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", self.kind)
        self.send_header("Content-Length", str(len(content)))
        if self.location:
            self.send_header("Location", self.location)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PATCH = do_DELETE = do_POST = _serve  # noqa: N815 - http.server's names

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextlib.contextmanager
def _serving(certificate_file: Path | None = None) -> Iterator[int]:
    """The port of a server, over TLS with a certificate."""
    Handler.requests.clear()
    Handler.answer = (200, {"items": []})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        if certificate_file:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate_file)
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with _serving() as port:
        yield Cluster(f"http://127.0.0.1:{port}", lambda _: "a-token")


def _status(code: int, message: str) -> None:
    Handler.answer = (code, {"kind": "Status", "message": message})


def test_what_stands_before_the_api_or_no_answer_may_be_an_answer_later(cluster: Cluster) -> None:
    Handler.answer = (503, {"error": {"code": 503, "message": "it is unavailable"}})
    with pytest.raises(TransientError, match=r"^503 it is unavailable$"):
        cluster.apply(THING)
    unheard = Cluster("http://127.0.0.1:9", lambda _: "a-token")
    with pytest.raises(TransientError):
        unheard.apply(THING)


def test_objects_are_applied_strictly_and_a_kind_is_looked_for_once(cluster: Cluster) -> None:
    cluster.apply(THING)
    cluster.apply(THING)
    assert [asked.split()[0] for asked, *_ in Handler.requests] == ["GET", "PATCH", "PATCH"]
    cluster.apply(THING)
    asked, kind, token, body = Handler.requests[-1]
    address = urlsplit(asked.removeprefix("PATCH "))
    assert address.path == "/api/v1/namespaces/default/configmaps/settings"
    assert parse_qs(address.query) == {
        "fieldManager": ["aiinfra"],
        "fieldValidation": ["Strict"],
        "force": ["true"],
    }
    assert kind == "application/apply-patch+yaml"
    assert token.split() == ["Bearer", "a-token"]
    assert json.loads(body) == THING


@pytest.mark.parametrize(
    ("code", "message", "error"),
    [
        (429, "slow down", TransientError),
        (503, "no endpoints", TransientError),
        (500, 'Internal error: failed calling webhook "mclusterqueue.kb.io"', TransientError),
        (500, "failed to create typed patch object: .x: field not declared", KubernetesError),
        (400, "strict decoding error: unknown field", KubernetesError),
        (422, "is invalid", KubernetesError),
        (403, "forbidden", KubernetesError),
    ],
)
def test_what_may_go_by_is_told_apart_from_what_is_final(
    cluster: Cluster, code: int, message: str, error: type[Exception]
) -> None:
    _status(code, message)
    with pytest.raises(error) as caught:
        cluster.apply(THING)
    assert type(caught.value) is error
    assert len(Handler.requests) == 2
    if isinstance(caught.value, KubernetesError):
        assert (caught.value.code, caught.value.message) == (code, message)


def test_a_token_that_is_not_taken_is_a_matter_of_credentials(cluster: Cluster) -> None:
    _status(401, "Unauthorized")
    with pytest.raises(CredentialsError):
        cluster.all("v1", "ConfigMap")


def test_what_is_not_there_is_none_and_listed_objects_know_their_kind(cluster: Cluster) -> None:
    _status(404, "not found")
    assert cluster.find("v1", "ConfigMap", "settings", "default") is None
    assert cluster.all("v1", "ConfigMap", "default") == []
    assert cluster.delete("v1", "ConfigMap", "settings", "default") is False
    assert cluster.all("batch/v1", "Job") == []
    assert cluster.all("v1", "Unheard") == []
    Handler.answer = (200, {"items": [{"metadata": {"name": "settings"}}]})
    (found,) = cluster.all("v1", "ConfigMap", "default", "a=b")
    assert found["kind"] == "ConfigMap"
    assert "labelSelector=a%3Db" in Handler.requests[-1][0]


@pytest.mark.parametrize("status", [200, 403, 404])
def test_a_web_page_is_no_answer_of_a_cluster(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    monkeypatch.setattr(Handler, "kind", "text/html; charset=utf-8")
    _status(status, "please log in")
    with pytest.raises(TransientError, match="web page"):
        cluster.find("v1", "ConfigMap", "settings", "default")


def test_the_token_goes_nowhere_else_and_no_login_takes_its_place(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("default login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    cluster.all("v1", "ConfigMap")
    assert {token for _, _, token, _ in Handler.requests} == {"Bearer a-token"}
    monkeypatch.setattr(Handler, "location", "/api/v1/elsewhere")
    _status(307, "it has moved")
    with pytest.raises(KubernetesError, match="307"):
        cluster.find("v1", "ConfigMap", "settings", "default")
    assert not any("elsewhere" in asked for asked, *_ in Handler.requests)


def test_only_the_certificate_that_was_named_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mine, other = tmp_path / "mine.pem", tmp_path / "other.pem"
    mine.write_bytes(certificate.make())
    other.write_bytes(certificate.make())
    with _serving(mine) as port:
        url = f"https://{certificate.HOST}:{port}"
        # What a machine trusts besides is no matter for a cluster with a certificate of its own.
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(other))
        assert Cluster(url, lambda _: "a-token", str(mine)).all("v1", "ConfigMap") == []
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(mine))
        with pytest.raises(TransientError, match="CERTIFICATE_VERIFY_FAILED"):
            Cluster(url, lambda _: "a-token", str(other)).all("v1", "ConfigMap")


def test_the_endpoint_can_be_moved() -> None:
    moved = {endpoints.KUBERNETES: "http://127.0.0.1:80/kubernetes/{endpoint}"}
    assert client.endpoint("gke-1.goog", {}) == "https://gke-1.goog"
    assert client.endpoint("gke-1.goog", moved) == "http://127.0.0.1:80/kubernetes/gke-1.goog"
