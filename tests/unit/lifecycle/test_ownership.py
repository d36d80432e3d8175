"""A plan touches nothing of another's, whatever the state has: what Google says of it counts."""

import json
from types import SimpleNamespace
from typing import Any, cast

import pytest

from provision.errors import StateError
from provision.google import resources
from provision.google.owner import Owner
from provision.lifecycle import ownership
from provision.state.location import StateLocation
from provision.terraform.plan import Existing, Plan
from tests.unit.kinds.cases import problem_of

PLACE = cast("Any", SimpleNamespace(project_id="my-project", name_prefix="np"))
LOCATION = StateLocation("states", "team/np-deployment", is_default=False)
OURS = Owner.of("my-project", "np", LOCATION.url)
OTHER = Owner.of("my-project", "np", "gs://elsewhere/np-deployment")
NODES = "serviceAccount:np-nodes@my-project.iam.gserviceaccount.com"
SOMEBODY = "user:ann@example.com"
LOGS = "roles/logging.logWriter"
USER = "roles/storage.objectUser"
IAM = ".iam.gserviceaccount.com"
ACCOUNTS = "projects/my-project/serviceAccounts"


def _plan(type_: str, values: dict[str, Any]) -> Plan:
    return Plan(touched=(Existing(address="it", type=type_, values=values, called="rule x"),))


def _described(owner: Owner) -> dict[str, Any]:
    return {"name": "x", "description": owner.text}


def _labelled(where: str, owner: Owner) -> dict[str, Any]:
    return {"name": "x", "description": "", where: {"aiinfra-cluster": owner.id, "team": "ml"}}


def _nodes(owner: Owner | None, cluster: str = "np-gke") -> dict[str, Any]:
    labels = {"aiinfra-cluster": owner.id} if owner else {}
    return {"name": "x", "cluster": cluster, "node_config": [{"resource_labels": labels}]}


def _board(owner: Owner) -> dict[str, Any]:
    return {"id": "x", "dashboard_json": json.dumps({"labels": {"aiinfra-cluster": owner.id}})}


def _role(member: str, *conditions: dict[str, Any], role: str = LOGS) -> dict[str, Any]:
    return {"role": role, "member": member, "condition": list(conditions)}


def _of_bucket(name: str, bucket: str = "states") -> dict[str, Any]:
    return {"bucket": bucket, "name": name}


_PARTS = "team/np-deployment/files/"
OWN_AND_OTHERS: dict[resources.Resource, tuple[list[dict[str, Any]], list[dict[str, Any]]]] = {
    resources.FIREWALL: (
        [_described(OURS)],
        [_described(OTHER), {"name": "x", "description": "ssh"}, {"name": "x"}],
    ),
    resources.SERVICE_ACCOUNT: ([_described(OURS)], [{"description": None}]),
    resources.FILESTORE: ([_labelled("labels", OURS)], [_labelled("labels", OTHER)]),
    resources.CLUSTER: ([_labelled("resource_labels", OURS)], [{"name": "np-gke"}]),
    resources.DASHBOARD: ([_board(OURS)], [_board(OTHER)]),
    # Parts of what is ours carry no marker, or need not keep theirs.
    resources.NODE_POOL: (
        [_nodes(OURS), _nodes(None), _nodes(OURS, "a")],
        [_nodes(OTHER), _nodes(None, "np-2-gke")],
    ),
    resources.NAT: (
        [{"router": it} for it in ("np-router", "np-router-0123abcd")],
        [{"router": it} for it in ("np-2-router", "edge")],
    ),
    resources.PROJECT_ROLE: (
        [_role(NODES), _role(SOMEBODY, {"description": OURS.text})],
        [_role(SOMEBODY), _role(NODES.replace("np-", "np-2-")), _role(NODES.replace("my-", "a-"))],
    ),
    resources.ACCOUNT_ROLE: (
        [{"service_account_id": f"{ACCOUNTS}/np-workload@my-project{IAM}"}],
        [{"service_account_id": f"{ACCOUNTS}/ann@my-project{IAM}"}],
    ),
    resources.BUCKET_ROLE: (
        [_role(SOMEBODY, {"description": OURS.text}), _role(NODES, role=USER)],
        [
            _role(SOMEBODY, role=USER),
            _role(SOMEBODY, {"description": OTHER.text}, role=USER),
            _role(NODES, {"description": OTHER.text}, role=USER),
        ],
    ),
    resources.OBJECT: (
        [_of_bucket(f"{_PARTS}0.tar.gz")],
        [_of_bucket("team/other/0.tar.gz"), _of_bucket(f"{_PARTS}0", "data")],
    ),
}


@pytest.mark.parametrize("row", OWN_AND_OTHERS, ids=lambda it: it.noun)
def test_what_carries_another_marker_or_none_is_a_strangers(row: resources.Resource) -> None:
    def strange(values: dict[str, Any]) -> bool:
        return bool(ownership.strangers(_plan(row.type, values), PLACE, LOCATION))

    own, others = OWN_AND_OTHERS[row]
    assert [it for it in own if strange(it)] == []
    assert [it for it in others if not strange(it)] == []


@pytest.mark.parametrize("row", resources.SWEPT, ids=lambda row: row.noun)
def test_nothing_that_always_has_a_marker_goes_without(row: resources.Resource) -> None:
    found = _plan(row.type, {"name": "np-mig", "dashboard_json": "{}"})
    assert ownership.strangers(found, PLACE, LOCATION)


def test_what_is_another_deployments_is_named_with_its_owner_and_what_brings_the_state_back() -> (
    None
):
    link = "https://www.googleapis.com/compute/v1/projects/p/global/firewalls/x"
    found = _plan(resources.FIREWALL.type, _described(OTHER) | {"self_link": link})

    problem = problem_of(StateError, ownership.require_ours, found, PLACE, LOCATION)
    assert problem.why == (
        "it is the rule x (projects/p/global/firewalls/x), which belongs to the deployment with its"
        " state in gs://elsewhere/np-deployment"
    )
    assert f"{LOCATION.url}/terraform/state/default.tfstate" in problem.fix
    assert OURS.text in problem.fix


def test_a_type_that_nobody_knows_is_a_strangers() -> None:
    found = _plan("google_storage_bucket", {"name": "data"})
    assert ownership.strangers(found, PLACE, LOCATION)
