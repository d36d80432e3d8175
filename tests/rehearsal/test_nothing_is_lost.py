"""What a killed run leaves behind is found again: adopted by Create, removed by Destroy."""

from __future__ import annotations

import contextlib
import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import requests
from google.cloud import storage
from google.oauth2.credentials import Credentials

from provision.adoption import LOOKS
from provision.rehearsal import session
from tests.rehearsal.conftest import rehearsed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.rehearsal.conftest import Rehearsal

EVERYTHING = {
    "NETWORK_CONFIG": "new_network",
    "NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD",
    "ENABLE_COMPACT_PLACEMENT": "yes",
}
OF_OTHER_CLUSTERS = {
    "google_compute_resize_request",
    "google_container_cluster",
    "google_container_node_pool",
}
STATE = "np-deployment/terraform/state/default.tfstate"
NOTHING = {"add": 0, "change": 0, "destroy": 0}


@contextlib.contextmanager
def _object(rehearsal: Rehearsal, name: str) -> Iterator[storage.Blob]:
    endpoint = rehearsal.environ["GOOGLE_STORAGE_CUSTOM_ENDPOINT"].removesuffix("/storage/v1/")
    client = storage.Client(
        "my-project", Credentials("test"), client_options={"api_endpoint": endpoint}
    )
    yield client.bucket("aiinfra-terraform-my-project").blob(name)
    client.close()


def _state(rehearsal: Rehearsal) -> dict[str, Any]:
    with _object(rehearsal, STATE) as blob:
        state: dict[str, Any] = json.loads(blob.download_as_bytes())
        return state


def _edit_state(rehearsal: Rehearsal, lost: Callable[[dict[str, Any]], bool]) -> None:
    """Make the state forget resources, as a killed run's does that never wrote them down."""
    state = _state(rehearsal)
    state["resources"] = [r for r in state["resources"] if not lost(r)]
    state["serial"] += 1
    with _object(rehearsal, STATE) as blob:
        blob.upload_from_string(json.dumps(state))


def _left(rehearsal: Rehearsal) -> list[str]:
    return [line for line in rehearsal.resources() if not line.startswith("storage/")]


def _send(rehearsal: Rehearsal, path: str, body: dict[str, Any]) -> None:
    answer = requests.post(
        rehearsal.environ["GOOGLE_COMPUTE_CUSTOM_ENDPOINT"] + f"projects/my-project/{path}",
        json=body,
        headers={"Authorization": "Bearer test"},
        timeout=10,
    )
    assert answer.ok, answer.text


def test_create_adopts_all_of_it_and_changes_nothing_that_runs(rehearsal: Rehearsal) -> None:
    created = rehearsal.run("Create", NETWORK_CONFIG="new_network")
    assert created.code == 0, created.said
    before = sorted(_left(rehearsal))
    _edit_state(rehearsal, lambda _: True)

    again = rehearsal.run("Create", NETWORK_CONFIG="new_network")
    assert again.code == 0, again.said
    assert "is there already" in again.said
    assert again.document["changes"]["destroy"] == 0
    assert sorted(_left(rehearsal)) == before
    assert rehearsal.run("Create", NETWORK_CONFIG="new_network").document["changes"] == NOTHING
    assert rehearsal.run("Destroy").code == 0
    assert _left(rehearsal) == []


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of a cloud in which a cluster with all that VMs can have was made."""
    folder = tmp_path_factory.mktemp("standing")
    with rehearsed(folder) as rehearsal:
        created = rehearsal.run("Create", **EVERYTHING)
        assert created.code == 0, created.said
    return folder / session.DATABASE


@pytest.mark.parametrize(
    "kind", sorted(LOOKS.keys() - OF_OTHER_CLUSTERS | {"google_project_iam_member"})
)
def test_destroy_removes_what_the_state_does_not_know(
    standing: Path, rehearse: Callable[..., Rehearsal], tmp_path: Path, kind: str
) -> None:
    shutil.copy(standing, tmp_path / session.DATABASE)
    rehearsal = rehearse()
    assert kind in {resource["type"] for resource in _state(rehearsal)["resources"]}
    _edit_state(rehearsal, lambda resource: resource["type"] == kind)
    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    assert _left(rehearsal) == []


def test_an_orphaned_template_takes_the_place_of_the_one_that_the_state_has(
    rehearsal: Rehearsal,
) -> None:
    assert rehearsal.run("Create").code == 0
    kept = _state(rehearsal)["resources"]
    assert rehearsal.run("Create", "--yes", LABELS="team=a").code == 0
    # The run that made the new template and gave it to the group never wrote that down.
    old = next(r for r in kept if r["type"] == "google_compute_instance_template")
    _swap_in_state(rehearsal, old)
    again = rehearsal.run("Create", "--yes", LABELS="team=a")
    assert again.code == 0, again.said
    assert rehearsal.run("Create", LABELS="team=a").document["changes"] == NOTHING
    assert rehearsal.run("Destroy").code == 0
    assert _left(rehearsal) == []


def _swap_in_state(rehearsal: Rehearsal, resource: dict[str, Any]) -> None:
    def swap(present: dict[str, Any]) -> bool:
        if present["type"] == resource["type"]:
            present["instances"] = resource["instances"]
        return False

    _edit_state(rehearsal, swap)


@pytest.mark.parametrize("action", ["Create", "Plan"])
def test_somebody_elses_network_of_that_name_is_never_touched(
    rehearsal: Rehearsal, action: str
) -> None:
    _send(rehearsal, "global/networks", {"name": "np-net", "autoCreateSubnetworks": False})
    _send(
        rehearsal,
        "global/firewalls",
        {
            "name": "np-internal",
            "network": "projects/my-project/global/networks/np-net",
            "sourceRanges": ["10.0.0.0/8"],
            "allowed": [{"IPProtocol": "tcp"}],
        },
    )
    before = _left(rehearsal)
    ended = rehearsal.run(action, NETWORK_CONFIG="new_network")
    assert ended.code == 5
    problems = ended.document["problems"]
    assert {p["what"].split(" ")[0] for p in problems} == {
        "projects/my-project/global/networks/np-net",
        "projects/my-project/global/firewalls/np-internal",
    }
    assert all("choose another NAME_PREFIX" in p["fix"] for p in problems)
    assert _left(rehearsal) == before


def test_a_plan_tells_of_orphans_and_leaves_them_where_they_are(rehearsal: Rehearsal) -> None:
    assert rehearsal.run("Create").code == 0
    _edit_state(rehearsal, lambda resource: "service_account" in resource["type"])
    asked = len(rehearsal.requests())
    planned = rehearsal.run("Plan")
    assert planned.code == 0, planned.said
    assert "np-nodes@" in planned.said
    assert "is there already" in planned.said
    assert rehearsal.writes(since=asked) == []


def test_destroy_waits_for_nobody_who_is_at_work(rehearsal: Rehearsal) -> None:
    assert rehearsal.run("Create").code == 0
    _edit_state(rehearsal, lambda resource: resource["type"] == "google_service_account")
    with _object(rehearsal, STATE.replace("tfstate", "tflock")) as lock:
        lock.upload_from_string(json.dumps({"Who": "ann@laptop", "Created": "2026-11-21"}))
    before = _left(rehearsal)
    ended = rehearsal.run("Destroy")
    assert ended.code == 5
    assert "ann@laptop" in ended.problem["what"]
    assert _left(rehearsal) == before
