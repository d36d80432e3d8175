"""The accounts of nodes and pods: one that is gone is told, with what brings it back."""

from typing import Any

import pytest

from provision.codes import Code
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds.gke import control_plane
from tests.unit.kinds.cases import having

PLACE = having(project_id="my-project", region="r", zone="z", name_prefix="np")
IAM = "my-project.iam.gserviceaccount.com"
NODES, PODS = f"np-nodes@{IAM}", f"np-workload@{IAM}"
DEFAULT = "42-compute@developer.gserviceaccount.com"


def _cluster(*accounts: str) -> dict[str, Any]:
    return {
        "nodePools": [
            {"name": f"np-{number}", "config": {"serviceAccount": it}}
            for number, it in enumerate(accounts)
        ]
    }


def _cloud(**standing: object) -> tuple[Any, list[str]]:
    """A cloud in which accounts are there, but for those that are named by their first part."""
    asked: list[str] = []

    def find(_: object, path: str) -> object:
        email = path.rpartition("/")[2]
        asked.append(email)
        found = standing.get(email.partition("@")[0].replace("-", "_"), {"uniqueId": "1"})
        if isinstance(found, Exception):
            raise found
        return found

    return having(api=having(find=find), lists=None, project_number="42"), asked


@pytest.mark.parametrize(
    ("accounts", "asked"),
    [
        ((NODES, NODES), [NODES, PODS]),
        (("default",), [DEFAULT, PODS]),
        ((), []),
        # One of Google's own names no project, so nobody knows whom to ask.
        (("x@appspot.gserviceaccount.com",), [PODS]),
    ],
)
def test_each_account_is_looked_at_once(accounts: tuple[str, ...], asked: list[str]) -> None:
    cloud, looked = _cloud()
    assert list(control_plane.lost_accounts(cloud, PLACE, _cluster(*accounts))) == []
    assert looked == asked


def test_one_that_is_gone_or_disabled_is_told_with_what_brings_it_back() -> None:
    cloud, _ = _cloud(np_nodes=None, np_workload={"uniqueId": "1", "disabled": True})
    nodes, pods = control_plane.lost_accounts(cloud, PLACE, _cluster(NODES))
    assert nodes.code is Code.ACCOUNT_GONE
    assert nodes.what == f"the nodes act as {NODES}, a service account that was deleted"
    assert "gcloud iam service-accounts undelete <NUMBER> --project my-project" in nodes.fix
    assert pods.what == f"the pods act as {PODS}, a service account that is disabled"
    assert pods.fix == f"gcloud iam service-accounts enable {PODS} --project my-project"
    hidden, _ = _cloud(np_nodes=GoogleApiError(403, "no", "https://x"))
    assert list(control_plane.lost_accounts(hidden, PLACE, _cluster(NODES))) == []


def test_nothing_is_built_on_an_account_that_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(control_plane, "find", lambda *_: _cluster(NODES))
    control_plane.require_accounts(_cloud()[0], PLACE)
    with pytest.raises(ClusterError) as caught:
        control_plane.require_accounts(_cloud(np_workload=None)[0], PLACE)
    assert [it.code for it in caught.value.problems] == [Code.ACCOUNT_GONE]
