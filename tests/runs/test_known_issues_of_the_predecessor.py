"""The known issues that the predecessor's README lists, avoided or explained."""

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from provision.catalogue import names
from rehearsal.inventory import stays
from tests.runs.conftest import Rehearsal, Rehearse

FIREWALLS = "projects/my-project/global/firewalls"
NETWORK = names.NETWORK.at("np", "us-central1")


@contextlib.contextmanager
def _answering(code: int, text: str) -> Iterator[str]:
    """A server that answers everything the same, but a metadata server's first question."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(200 if self.path == "/" else code)

        def do_POST(self) -> None:
            self._answer(code)

        def _answer(self, status: int) -> None:
            self.send_response(status)
            self.send_header("Metadata-Flavor", "Google")
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


def test_1_a_network_that_a_firewall_rule_of_others_uses_is_said_to_be_and_goes_once_that_is_gone(
    standing: Rehearse,
) -> None:
    rehearsal = standing({"NETWORK_CONFIG": "new_network"})
    base = rehearsal.environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"]
    headers = {"Authorization": "Bearer test"}
    rule = {
        "name": "somebody-elses",
        "network": f"projects/my-project/global/networks/{NETWORK}",
        "sourceRanges": ["10.0.0.0/8"],
        "allowed": [{"IPProtocol": "tcp"}],
    }
    assert requests.post(base + FIREWALLS, json=rule, headers=headers, timeout=600).ok
    ended = rehearsal.run("Destroy")
    assert ended.code == 8
    assert "firewalls/somebody-elses" in ended.problem["why"]
    assert "run Destroy again" in ended.problem["fix"]
    url = f"{base}{FIREWALLS}/somebody-elses"
    assert requests.delete(url, headers=headers, timeout=600).ok
    assert rehearsal.run("Destroy").code == 0
    assert [line for line in rehearsal.resources() if not stays(line)] == []


def test_2_a_machine_whose_account_gives_no_token_is_told_before_anything_is_made(
    rehearsal: Rehearsal,
) -> None:
    with _answering(404, "token?scopes=... not defined") as host:
        del rehearsal.environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
        for name in ("GCE_METADATA_HOST", "GCE_METADATA_IP", "GCE_METADATA_ROOT"):
            rehearsal.environ[name] = host
        ended = rehearsal.run("Create")
    assert ended.code == 3
    assert "--scopes=cloud-platform" in ended.problem["fix"]
    assert rehearsal.writes() == []


def test_3_credentials_that_have_expired_are_told_with_how_to_renew_them(
    rehearsal: Rehearsal, tmp_path: Path
) -> None:
    refusal = {"error": "invalid_grant", "error_description": "Token has been expired or revoked."}
    with _answering(400, json.dumps(refusal)) as host:
        file = tmp_path / "credentials.json"
        file.write_text(json.dumps(_account(f"http://{host}/token")))
        del rehearsal.environ["GOOGLE_OAUTH_ACCESS_TOKEN"]
        rehearsal.environ["GOOGLE_APPLICATION_CREDENTIALS"] = str(file)
        ended = rehearsal.run("Create")
    assert ended.code == 3
    assert "expired or revoked" in ended.problem["why"]
    assert "gcloud auth application-default login" in ended.problem["fix"]
    assert rehearsal.writes() == []


def _account(token_uri: str) -> dict[str, str]:
    """A service account's key file."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return {
        "type": "service_account",
        "project_id": "my-project",
        "private_key_id": "1",
        "private_key": pem.decode(),
        "client_email": "somebody@my-project.iam.gserviceaccount.com",
        "client_id": "1",
        "token_uri": token_uri,
    }
