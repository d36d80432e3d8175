"""A difference between two clouds, from the wire to the report."""

import json
from pathlib import Path

import pytest
import requests

from rehearsal import session
from rehearsal.cloud.server import Cloud
from smoke import differences, replay
from smoke.differences import Kind
from smoke.places import GOOGLE
from smoke.recorder import Recorder

TOKEN = "ya29.the-callers-own"  # noqa: S105 - of a test
NETWORKS = "/compute/v1/projects/my-project/global/networks"


def _otherwise(_method: str, path: str, status: int, body: bytes) -> tuple[int, bytes]:
    """Google as it is not simulated."""
    if not path.endswith("/networks/n"):
        return status, body
    document = json.loads(body) | {"newAtGoogle": True}
    document["routingConfig"]["routingMode"] = "GLOBAL"
    return status, json.dumps(document).encode()


@pytest.mark.loopback
def test_what_google_answers_otherwise_is_found_and_no_token_is_written(tmp_path: Path) -> None:
    file = tmp_path / "recording.jsonl"
    with (
        Cloud(database=tmp_path / "google.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as google,
        Recorder(file, upstream=google.base_url, amiss=_otherwise) as recorder,
    ):
        base, headers = recorder.base_url, {"Authorization": f"Bearer {TOKEN}"}
        made = requests.post(
            base + NETWORKS,
            json={"name": "n", "autoCreateSubnetworks": False},
            headers=headers,
            timeout=600,
        )
        operation = made.json()["name"]
        global_ = NETWORKS.removesuffix("/networks")
        for path in (f"{global_}/operations/{operation}", f"{NETWORKS}/n", f"{NETWORKS}/none"):
            requests.get(base + path, headers=headers, timeout=600)
        exchanges = list(recorder.exchanges)
    assert [it.status for it in exchanges] == [200, 200, 200, 404]
    assert TOKEN not in file.read_text()
    assert len(file.read_text().splitlines()) == 4

    pairs = replay.replay(exchanges, tmp_path, "my-project")
    # The operation has another name in the replay, and is found by that.
    assert [it.status for it in pairs] == [200, 200, 200, 404]
    found = {(it.kind, it.field, it.google) for it, _ in differences.of(pairs)}
    assert found == {
        (Kind.ABSENT.value, "newAtGoogle", "there"),
        (Kind.ENUM.value, "routingConfig.routingMode", "GLOBAL"),
    }


@pytest.mark.loopback
def test_all_that_the_program_reaches_has_its_place_at_google(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "recording.jsonl")
    recorder._server.server_close()
    for variable, path in session.ENDPOINTS.items():
        if path and "{endpoint}" not in path and variable != session.OF_TOKENS:
            assert any(path.startswith(it) for it in GOOGLE), variable
            assert ".googleapis.com/" in recorder.where(path)


@pytest.mark.loopback
@pytest.mark.parametrize(
    ("path", "address"),
    [
        ("/compute/v1/projects/p", "https://compute.googleapis.com/compute/v1/projects/p"),
        ("/bucket/object", "https://storage.googleapis.com/bucket/object"),
        (
            "/kubernetes/gke-1a.us-central1.gke.goog/api/v1/nodes",
            "https://gke-1a.us-central1.gke.goog/api/v1/nodes",
        ),
        ("/kubernetes/evil.example.com/api/v1/nodes", ""),
        ("/kubernetes/evil.example.com%2F.gke.goog/api", ""),
    ],
)
def test_a_token_goes_to_google_and_to_nobody_else(tmp_path: Path, path: str, address: str) -> None:
    recorder = Recorder(tmp_path / "recording.jsonl")
    recorder._server.server_close()
    assert recorder.where(path) == address
