"""A subnetwork of a host project is for those that it is shared with, and who may use it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import projects
from tests.rehearsal.cloud.compute.conftest import ZONE, template_properties

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

HOST = "projects/net-host"
SUBNETWORKS = f"{HOST}/regions/us-central1/subnetworks"
SUBNETWORK = f"{SUBNETWORKS}/gpus"
TEMPLATES = "projects/proj-a1/global/instanceTemplates"
AGENT = f"serviceAccount:{projects.number('proj-a1')}@cloudservices.gserviceaccount.com"
ATTACHED = {"xpnResource": {"id": "proj-a1", "type": "PROJECT"}}


@pytest.fixture
def host(api: Compute) -> Compute:
    """With a host project that has one subnetwork for four VMs, and shares it with nobody."""
    api.post(f"{HOST}/global/networks", {"name": "vpc", "autoCreateSubnetworks": False})
    body = {
        "name": "gpus",
        "network": f"{HOST}/global/networks/vpc",
        "ipCidrRange": "10.9.0.0/29",
    }
    api.post(SUBNETWORKS, body)
    return api


def _share(api: Compute) -> None:
    api.post(f"{HOST}/enableXpnHost")
    api.post(f"{HOST}/enableXpnResource", ATTACHED)


def _grant(api: Compute, role: str = "roles/compute.networkUser") -> None:
    policy = {"bindings": [{"role": role, "members": [AGENT]}]}
    api.post(f"{SUBNETWORK}/setIamPolicy", {"policy": policy})


def _body() -> dict[str, Any]:
    interfaces = [{"subnetwork": SUBNETWORK}]
    return {"name": "tpl", "properties": template_properties(networkInterfaces=interfaces)}


def test_only_an_attached_project_refers_to_a_subnetwork_of_a_host(host: Compute) -> None:
    words = host.refusal("POST", TEMPLATES, _body())["message"]
    assert words.endswith("Cross-project references for this resource are not allowed.")
    words = host.refusal("POST", f"{HOST}/enableXpnResource", ATTACHED)["message"]
    assert words == "'projects/net-host' is not a shared VPC host project."
    assert host.get("projects/proj-a1/getXpnHost") == {}

    _share(host)

    host.post(TEMPLATES, _body())
    assert host.get("projects/proj-a1/getXpnHost")["name"] == "net-host"
    assert host.get(HOST)["xpnProjectStatus"] == "HOST"


def test_the_caller_needs_the_right_to_use_it(host: Compute) -> None:
    _share(host)
    asked = {"permissions": ["compute.subnetworks.use"]}
    assert host.post(f"{SUBNETWORK}/testIamPermissions", asked) == asked

    host.scenarios = frozenset({"network-forbidden"})

    assert host.post(f"{SUBNETWORK}/testIamPermissions", asked) == {}
    refused = host.refusal("POST", TEMPLATES, _body())
    assert refused["code"] == 403
    assert refused["message"] == f"Required 'compute.subnetworks.use' permission for '{SUBNETWORK}'"


def test_who_may_not_look_may_use_it_all_the_same(host: Compute) -> None:
    _share(host)
    host.scenarios = frozenset({"network-unseen"})

    for path in (SUBNETWORK, f"{SUBNETWORK}/getIamPolicy", f"{HOST}/global/firewalls"):
        assert host.refusal("GET", path)["code"] == 403
    host.post(TEMPLATES, _body())


def test_a_group_needs_the_right_of_googles_own_account(host: Compute) -> None:
    _share(host)
    host.post(TEMPLATES, _body())
    _grant(host, "roles/compute.networkViewer")
    body = {
        "name": "grp",
        "baseInstanceName": "grp-vm",
        "targetSize": 1,
        "versions": [{"instanceTemplate": f"{TEMPLATES}/tpl"}],
    }
    refused = host.refusal("POST", f"{ZONE}/instanceGroupManagers", body)
    assert refused["code"] == 403
    assert f"(when acting as '{AGENT.partition(':')[2]}')" in refused["message"]

    _grant(host)

    host.post(f"{ZONE}/instanceGroupManagers", body)
    assert len(host.vms()) == 1


def test_addresses_are_counted_and_run_out(host: Compute) -> None:
    _share(host)
    _grant(host)
    host.post(TEMPLATES, _body())
    host.group(size=3)

    seen = host.get(SUBNETWORK, views="WITH_UTILIZATION")["utilizationDetails"]
    assert seen["ipv4Utilizations"] == [{"totalAllocatedIp": "7", "totalFreeIp": "1"}]
    assert "utilizationDetails" not in host.get(SUBNETWORK)

    host.group("more", size=2)
    (error,) = host.get(f"{ZONE}/instanceGroupManagers/more/listErrors")["items"]
    assert error["error"]["code"] == "IP_SPACE_EXHAUSTED"
    assert len({vm["networkInterfaces"][0]["networkIP"] for vm in host.vms()}) == 4
    assert host.refusal("DELETE", SUBNETWORK)["errors"][0]["reason"] == (
        "resourceInUseByAnotherResource"
    )
