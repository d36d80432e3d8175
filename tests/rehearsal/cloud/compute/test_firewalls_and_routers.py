from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
NETWORK = f"{PROJECT}/global/networks/net"
FIREWALLS = f"{PROJECT}/global/firewalls"
ROUTERS = f"{PROJECT}/regions/us-central1/routers"
TCP = [{"IPProtocol": "tcp", "ports": ["22"]}]

ACCOUNT = "train-nodes@my-project.iam.gserviceaccount.com"


def _rule(**fields: Any) -> dict[str, Any]:
    return {"name": "rule", "network": NETWORK, "allowed": TCP, **fields}


def test_a_rule_without_a_source_is_for_everybody(api: Compute) -> None:
    api.network()
    api.post(FIREWALLS, _rule())
    rule = api.get(f"{FIREWALLS}/rule")
    assert rule["sourceRanges"] == ["0.0.0.0/0"]
    assert rule["direction"] == "INGRESS"
    assert rule["priority"] == 1000


def test_a_network_for_rdma_takes_no_rules(api: Compute) -> None:
    api.network(networkProfile=f"{PROJECT}/global/networkProfiles/us-central1-a-vpc-roce")
    assert "RDMA network profile" in api.refusal("POST", FIREWALLS, _rule())["message"]


def test_a_rule_needs_its_network(api: Compute) -> None:
    error = api.refusal("POST", FIREWALLS, _rule())
    assert error["message"] == f"The resource '{NETWORK}' was not found"


@pytest.mark.parametrize(
    "fields",
    [
        {"allowed": []},
        {"denied": TCP},
        {"priority": 65536},
        {"priority": -1},
        {"sourceRanges": ["10.0.0.1/8"]},
        {"sourceTags": ["Upper"]},
        {"sourceServiceAccounts": [ACCOUNT], "targetTags": ["ray"]},
        {"targetServiceAccounts": [ACCOUNT], "sourceTags": ["ray"]},
        {"sourceServiceAccounts": [ACCOUNT], "direction": "EGRESS"},
        {"sourceServiceAccounts": [f"{number}-{ACCOUNT}" for number in range(11)]},
        {"allowed": [{"IPProtocol": "icmp", "ports": ["1"]}]},
        {"allowed": [{"IPProtocol": "tcp", "ports": ["ssh"]}]},
        {"allowed": [{"IPProtocol": "pigeon"}]},
    ],
)
def test_a_rule_that_makes_no_sense_is_refused(api: Compute, fields: dict[str, Any]) -> None:
    api.network()
    assert api.refusal("POST", FIREWALLS, _rule(**fields))["code"] == 400


@pytest.mark.parametrize(
    "fields",
    [
        {"sourceServiceAccounts": [ACCOUNT], "targetServiceAccounts": [ACCOUNT]},
        {"sourceRanges": ["0.0.0.0/0"], "targetServiceAccounts": [ACCOUNT]},
    ],
)
def test_a_rule_may_name_vms_by_their_account(api: Compute, fields: dict[str, Any]) -> None:
    api.network()
    api.post(FIREWALLS, _rule(**fields))
    kept = api.get(f"{FIREWALLS}/rule")
    assert {name: kept[name] for name in fields} == fields
    assert ("sourceRanges" in kept) == ("sourceRanges" in fields)


def test_a_patched_rule_is_checked_again(api: Compute) -> None:
    api.network()
    api.post(FIREWALLS, _rule())
    api.patch(f"{FIREWALLS}/rule", {"sourceRanges": ["10.0.0.0/8"]})
    assert api.get(f"{FIREWALLS}/rule")["sourceRanges"] == ["10.0.0.0/8"]
    assert api.refusal("PATCH", f"{FIREWALLS}/rule", {"allowed": []})["code"] == 400


def test_a_nat_lives_in_its_router(api: Compute) -> None:
    api.network()
    api.post(ROUTERS, {"name": "router", "network": NETWORK})
    nat = {
        "name": "nat",
        "natIpAllocateOption": "AUTO_ONLY",
        "sourceSubnetworkIpRangesToNat": "ALL_SUBNETWORKS_ALL_IP_RANGES",
    }
    api.patch(f"{ROUTERS}/router", {"nats": [nat]})
    (kept,) = api.get(f"{ROUTERS}/router")["nats"]
    assert kept["autoNetworkTier"] == "PREMIUM"
    assert kept["endpointTypes"] == ["ENDPOINT_TYPE_VM"]
    assert api.refusal("PATCH", f"{ROUTERS}/router", {"nats": [nat, nat]})["code"] == 400
    api.patch(f"{ROUTERS}/router", {"nats": []})
    assert api.get(f"{ROUTERS}/router")["nats"] == []


def test_a_nat_for_listed_subnetworks_needs_the_list(wired: Compute) -> None:
    wired.post(ROUTERS, {"name": "router", "network": NETWORK})
    nat: dict[str, Any] = {
        "name": "nat",
        "sourceSubnetworkIpRangesToNat": "LIST_OF_SUBNETWORKS",
    }
    assert wired.refusal("PATCH", f"{ROUTERS}/router", {"nats": [nat]})["code"] == 400
    nat["subnetworks"] = [{"name": f"{PROJECT}/regions/us-central1/subnetworks/none"}]
    assert wired.refusal("PATCH", f"{ROUTERS}/router", {"nats": [nat]})["code"] == 404
    nat["subnetworks"] = [{"name": f"{PROJECT}/regions/us-central1/subnetworks/sub"}]
    assert wired.patch(f"{ROUTERS}/router", {"nats": [nat]})["status"] == "DONE"
