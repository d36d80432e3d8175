"""Networks, subnetworks, firewall rules, routers: what is sent, and what becomes of refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

NETWORK = RESOURCES["google_compute_network"]
SUBNETWORK = RESOURCES["google_compute_subnetwork"]
FIREWALL = RESOURCES["google_compute_firewall"]
NAT = RESOURCES["google_compute_router_nat"]

DONE = {"name": "o", "status": "DONE", "targetId": "7"}
GLOBAL = "/compute/v1/projects/p/global"
REGION = "/compute/v1/projects/p/regions/us-central1"
LINK = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"

ANY_NETWORK = {"name": "n", "auto_create_subnetworks": True, "id": "projects/p/global/networks/n"}


def test_a_network_sends_false_but_no_other_empty_value(google: Google, api: Api) -> None:
    google.on("POST .*", DONE).on("GET .*", {"name": "n", "selfLink": LINK})
    plan = {"name": "n", "auto_create_subnetworks": False, "description": None, "mtu": UNKNOWN}
    NETWORK.create(api, plan)
    assert google.body(f"POST {GLOBAL}/networks") == {"autoCreateSubnetworks": False, "name": "n"}


def test_a_changed_mtu_is_sent_under_the_networks_fingerprint(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "n", "fingerprint": "f"}).on("PATCH .*", DONE)
    NETWORK.update(api, {**ANY_NETWORK, "mtu": 1460}, {**ANY_NETWORK, "mtu": 8896})
    assert google.body(f"PATCH {GLOBAL}/networks/n") == {"fingerprint": "f", "mtu": 8896}


def test_a_network_that_exists_already_is_not_adopted(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    message = "The resource 'projects/p/global/networks/n' already exists"
    google.on("POST .*", refuse(409, message, "alreadyExists"))
    with pytest.raises(ProviderError) as caught:
        NETWORK.create(api, ANY_NETWORK)
    assert str(caught.value) == (
        f"Error creating Network: googleapi: Error 409: {message}, alreadyExists"
    )


def test_a_failed_operation_leaves_no_network_in_the_state(google: Google, api: Api) -> None:
    failed = {**DONE, "error": {"errors": [{"message": "Quota exceeded."}]}}
    google.on("POST .*", failed)
    with pytest.raises(ProviderError, match="Error waiting to create Network: Quota exceeded"):
        NETWORK.create(api, ANY_NETWORK)
    assert len(google.asked) == 1


def test_an_interrupted_create_leaves_the_network_out_of_the_state(
    google: Google, api: Api
) -> None:
    google.on(".*", {"name": "o", "status": "RUNNING"})
    api.cancel.set()
    with pytest.raises(ProviderError) as caught:
        NETWORK.create(api, ANY_NETWORK)
    assert str(caught.value) == (
        "Error waiting to create Network: Error waiting for Creating Network: error while"
        " retrieving operation: unable to finish polling, context has been cancelled"
    )


def test_a_network_that_is_gone_is_none(google: Google, api: Api) -> None:
    assert NETWORK.read(api, ANY_NETWORK) is None
    assert google.lines == [f"GET {GLOBAL}/networks/n"]


def test_a_read_that_is_refused_says_so(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    google.on("GET .*", refuse(403, "Required permission", "forbidden"))
    with pytest.raises(ProviderError) as caught:
        NETWORK.read(api, ANY_NETWORK)
    assert str(caught.value) == (
        'Error when reading or editing ComputeNetwork "projects/p/global/networks/n":'
        " googleapi: Error 403: Required permission, forbidden"
    )


def test_deleting_what_is_gone_is_success(google: Google, api: Api) -> None:
    NETWORK.delete(api, ANY_NETWORK)
    assert google.lines == [f"DELETE {GLOBAL}/networks/n"]


def test_deleting_what_is_in_use_fails_at_once(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    google.on("DELETE .*", refuse(400, "in use", "resourceInUseByAnotherResource"))
    with pytest.raises(ProviderError, match="Error when reading or editing Network: googleapi"):
        NETWORK.delete(api, ANY_NETWORK)
    assert len(google.asked) == 1


def test_a_failed_delete_operation_says_its_messages_alone(google: Google, api: Api) -> None:
    google.on("DELETE .*", {**DONE, "error": {"errors": [{"message": "used by x"}]}})
    with pytest.raises(OperationError, match=r"\Aused by x\n\Z"):
        NETWORK.delete(api, ANY_NETWORK)


def test_a_protected_object_is_not_deleted(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="cannot destroy ComputeNetwork without"):
        NETWORK.delete(api, {**ANY_NETWORK, "deletion_policy": "PREVENT"})
    assert google.lines == []


def test_an_abandoned_object_is_left_alone(google: Google, api: Api) -> None:
    NETWORK.delete(api, {**ANY_NETWORK, "deletion_policy": "ABANDON"})
    assert google.lines == []


def test_a_plan_knows_project_and_deletion_policy(connect: Callable[..., Api]) -> None:
    api = connect(deletion_policy="PREVENT")
    plan = NETWORK.customize(api, None, {"project": UNKNOWN, "deletion_policy": UNKNOWN})
    assert plan == {"project": "p", "deletion_policy": "PREVENT"}


SUBNET = {
    "name": "s",
    "network": "n",
    "ip_cidr_range": "10.0.0.0/16",
    "region": "us-central1",
    "log_config": [],
    "secondary_ip_range": [],
    "private_ip_google_access": UNKNOWN,
}


def test_secondary_ranges_change_under_the_fingerprint(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "s", "fingerprint": "f"}).on("PATCH .*", DONE)
    pods = {"range_name": "pods", "ip_cidr_range": "10.8.0.0/14", "reserved_internal_range": None}
    SUBNETWORK.update(api, SUBNET, {**SUBNET, "secondary_ip_range": [pods]})
    assert google.body(f"PATCH {REGION}/subnetworks/s") == {
        "fingerprint": "f",
        "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.8.0.0/14"}],
    }


def test_a_subnetwork_reads_its_region_as_a_name(google: Google, api: Api) -> None:
    region = LINK.partition("/global/")[0] + "/regions/us-central1"
    google.on("GET .*", {"name": "s", "region": region, "network": LINK})
    found = SUBNETWORK.read(api, SUBNET)
    assert found is not None
    assert (found["region"], found["network"], found["log_config"]) == ("us-central1", LINK, [])


RULE = {
    "name": "f",
    "network": LINK,
    "priority": 1000,
    "allow": [{"protocol": "tcp", "ports": []}, {"protocol": "icmp", "ports": []}],
    "deny": [],
    "source_ranges": ["10.0.0.0/8"],
    "log_config": [],
    "enable_logging": UNKNOWN,
}


def test_an_update_of_a_firewall_rule_says_what_it_has_not(google: Google, api: Api) -> None:
    google.on("PATCH .*", DONE).on("GET .*", {"name": "f"})
    FIREWALL.update(api, RULE, {**RULE, "disabled": True})
    assert google.body(f"PATCH {GLOBAL}/firewalls/f") == {
        "allowed": [{"IPProtocol": "icmp"}, {"IPProtocol": "tcp"}],
        "denied": [],
        "description": "",
        "destinationRanges": [],
        "disabled": True,
        "logConfig": {"enable": False},
        "network": "projects/p/global/networks/n",
        "priority": 1000,
        "sourceRanges": ["10.0.0.0/8"],
        "sourceServiceAccounts": [],
        "sourceTags": [],
        "targetServiceAccounts": [],
        "targetTags": [],
    }


NAT_PLAN = {"name": "nat", "router": "r", "log_config": [], "nat_ips": UNKNOWN}
NAT_WIRE: dict[str, Any] = {
    **{key: [] for key in ("natIps", "drainNatIps", "initialNatIps")},
    **{key: [] for key in ("subnetworks", "nat64Subnetworks", "rules")},
    "name": "nat",
    "logConfig": None,
}


def router(*nats: dict[str, Any]) -> dict[str, Any]:
    return {"name": "r", "nats": list(nats)}


def test_a_nat_joins_the_others_of_its_router(google: Google, api: Api) -> None:
    other = {"name": "other"}
    google.on("PATCH .*", DONE).on("GET .*", router(other), router(other, NAT_WIRE))
    NAT.create(api, NAT_PLAN)
    assert google.body(f"PATCH {REGION}/routers/r") == {"nats": [other, NAT_WIRE]}


def test_a_nat_that_exists_already_is_not_written_over(google: Google, api: Api) -> None:
    google.on("GET .*", router({"name": "nat"}))
    with pytest.raises(ProviderError, match="Unable to create RouterNat, existing object already"):
        NAT.create(api, NAT_PLAN)


def test_a_nat_leaves_the_others_of_its_router(google: Google, api: Api) -> None:
    other = {"name": "other"}
    google.on("PATCH .*", DONE).on("GET .*", router(other, {"name": "nat"}))
    NAT.delete(api, NAT_PLAN)
    assert google.body(f"PATCH {REGION}/routers/r") == {"nats": [other]}


def test_a_nat_whose_router_is_gone_is_gone(google: Google, api: Api) -> None:
    assert NAT.read(api, NAT_PLAN) is None
    NAT.delete(api, NAT_PLAN)
    assert google.lines == [f"GET {REGION}/routers/r"] * 2


@pytest.mark.parametrize(
    ("name", "import_id", "found"),
    [
        ("google_compute_network", "projects/q/global/networks/n", {"project": "q", "name": "n"}),
        ("google_compute_network", "q/n", {"project": "q", "name": "n"}),
        ("google_compute_network", "n", {"project": "p", "name": "n"}),
        ("google_compute_subnetwork", "s", {"region": "us-central1", "name": "s"}),
        ("google_compute_subnetwork", "projects/q/regions/r/subnetworks/s", {"region": "r"}),
        ("google_compute_firewall", "projects/q/global/firewalls/f", {"name": "f"}),
        ("google_compute_router_nat", "projects/q/regions/r/routers/x/n", {"router": "x"}),
        ("google_compute_router_nat", "x/n", {"router": "x", "id": "p/us-central1/x/n"}),
        (
            "google_compute_instance_template",
            "projects/q/global/instanceTemplates/t",
            {"name": "t"},
        ),
        (
            "google_compute_instance_group_manager",
            "projects/q/zones/z/instanceGroupManagers/m",
            {"zone": "z", "name": "m"},
        ),
        ("google_service_account", "projects/q/serviceAccounts/a@b", {"email": "a@b"}),
        ("google_project_iam_member", "q roles/viewer user:a@b", {"role": "roles/viewer"}),
    ],
)
def test_an_import_id_names_the_object(
    name: str, import_id: str, found: dict[str, Any], api: Api
) -> None:
    state = RESOURCES[name].import_state(api, import_id)
    assert found.items() <= state.items()


@pytest.mark.parametrize(
    ("name", "import_id"),
    [
        ("google_compute_network", LINK),
        ("google_compute_subnetwork", f"{LINK}/x"),
        ("google_compute_router_nat", "n"),
        ("google_compute_instance_group_manager", LINK),
        ("google_project_iam_member", "q/roles/viewer/user:a@b"),
        ("google_storage_bucket_object", "b/o"),
    ],
)
def test_another_import_id_is_refused(name: str, import_id: str, api: Api) -> None:
    with pytest.raises(ValueError, match=r"."):
        RESOURCES[name].import_state(api, import_id)
