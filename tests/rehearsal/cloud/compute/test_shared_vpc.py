"""A subnetwork of a host project is for those that it is shared with, and who may use it."""

import pytest

from rehearsal.cloud import projects
from tests.rehearsal.cloud.compute.conftest import (
    GROUPS,
    PROJECT,
    TEMPLATES,
    Compute,
    group_body,
    template_properties,
)

HOST = "projects/net-host"
SUBNETWORK = f"{HOST}/regions/us-central1/subnetworks/gpus"
AGENT = f"serviceAccount:{projects.number('proj-a1')}@cloudservices.gserviceaccount.com"
ATTACHED = {"xpnResource": {"id": "proj-a1", "type": "PROJECT"}}
BODY = {
    "name": "tpl",
    "properties": template_properties(networkInterfaces=[{"subnetwork": SUBNETWORK}]),
}


@pytest.fixture
def host(api: Compute) -> Compute:
    """With a host project that has one subnetwork for four VMs, and shares it with nobody."""
    network = f"{HOST}/global/networks"
    api.post(network, {"name": "vpc", "autoCreateSubnetworks": False})
    body = {"name": "gpus", "network": f"{network}/vpc", "ipCidrRange": "10.9.0.0/29"}
    api.post(SUBNETWORK.removesuffix("/gpus"), body)
    return api


@pytest.fixture
def shared(host: Compute) -> Compute:
    """With a subnetwork that is shared with the project."""
    host.post(f"{HOST}/enableXpnHost")
    host.post(f"{HOST}/enableXpnResource", ATTACHED)
    return host


def _grant(api: Compute, role: str = "roles/compute.networkUser") -> None:
    policy = {"bindings": [{"role": role, "members": [AGENT]}]}
    api.post(f"{SUBNETWORK}/setIamPolicy", {"policy": policy})


def test_only_an_attached_project_refers_to_a_subnetwork_of_a_host(host: Compute) -> None:
    words = host.refused("POST", TEMPLATES, BODY)
    assert words.endswith("Cross-project references for this resource are not allowed.")
    words = host.refusal("POST", f"{HOST}/enableXpnResource", ATTACHED)["message"]
    assert words == "'projects/net-host' is not a shared VPC host project."
    assert host.get(f"{PROJECT}/getXpnHost") == {}

    host.post(f"{HOST}/enableXpnHost")
    host.post(f"{HOST}/enableXpnResource", ATTACHED)
    host.post(TEMPLATES, BODY)
    assert host.get(f"{PROJECT}/getXpnHost")["name"] == "net-host"
    assert host.get(HOST)["xpnProjectStatus"] == "HOST"


def test_the_caller_needs_the_right_to_use_it(shared: Compute) -> None:
    asked = {"permissions": ["compute.subnetworks.use"]}
    assert shared.post(f"{SUBNETWORK}/testIamPermissions", asked) == asked
    shared.scenarios = frozenset({"network-forbidden"})
    assert shared.post(f"{SUBNETWORK}/testIamPermissions", asked) == {}
    words = f"403 Required 'compute.subnetworks.use' permission for '{SUBNETWORK}'"
    assert shared.refused("POST", TEMPLATES, BODY) == words


def test_who_may_not_look_may_use_it_all_the_same(shared: Compute) -> None:
    shared.scenarios = frozenset({"network-unseen"})
    for path in (SUBNETWORK, f"{SUBNETWORK}/getIamPolicy", f"{HOST}/global/firewalls"):
        assert shared.refusal("GET", path)["code"] == 403
    shared.post(TEMPLATES, BODY)


def test_a_group_needs_the_right_of_googles_own_account(shared: Compute) -> None:
    shared.post(TEMPLATES, BODY)
    _grant(shared, "roles/compute.networkViewer")
    refused = shared.refused("POST", GROUPS, group_body())
    assert refused.startswith("403 ")
    assert f"(when acting as '{AGENT.partition(':')[2]}')" in refused
    _grant(shared)
    shared.group(size=1)
    assert len(shared.vms()) == 1


def test_addresses_are_counted_and_run_out(shared: Compute) -> None:
    _grant(shared)
    shared.post(TEMPLATES, BODY)
    shared.group(size=3)
    seen = shared.get(SUBNETWORK, views="WITH_UTILIZATION")["utilizationDetails"]
    assert seen["ipv4Utilizations"] == [{"totalAllocatedIp": "7", "totalFreeIp": "1"}]
    assert "utilizationDetails" not in shared.get(SUBNETWORK)

    shared.group("more", size=2)
    (error,) = shared.get(f"{GROUPS}/more/listErrors")["items"]
    assert error["error"]["code"] == "IP_SPACE_EXHAUSTED"
    assert len({vm["networkInterfaces"][0]["networkIP"] for vm in shared.vms()}) == 4
    reason = shared.refusal("DELETE", SUBNETWORK)["errors"][0]["reason"]
    assert reason == "resourceInUseByAnotherResource"
