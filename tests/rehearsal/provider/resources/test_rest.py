"""What a collection makes, reads, changes and deletes, beyond what the recorded traffic has."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.failures import OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import DATA_SOURCES, RESOURCES
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

NETWORK, SUBNETWORK, FIREWALL, NAT, POLICY = (
    RESOURCES[f"google_compute_{it}"]
    for it in ("network", "subnetwork", "firewall", "router_nat", "resource_policy")
)
SHARE, DASHBOARD = RESOURCES["google_filestore_instance"], RESOURCES["google_monitoring_dashboard"]

DONE = {"name": "o", "status": "DONE", "targetId": "7"}
FAILED = {**DONE, "error": {"errors": [{"message": "Quota exceeded."}]}}
GLOBAL = "/compute/v1/projects/p/global"
REGION = "/compute/v1/projects/p/regions/us-central1"
ONE = f"{GLOBAL}/networks/n"
LINK = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"
ANY_NETWORK = {"name": "n", "auto_create_subnetworks": True, "id": "projects/p/global/networks/n"}
SHARES = "/file/v1/projects/p/locations/us-central1-c/instances"
OF_SHARE: dict[str, Any] = {
    "name": "f",
    "location": "us-central1-c",
    "file_shares": [{"name": "s", "capacity_gb": 2560, "nfs_export_options": []}],
    "networks": [{"network": "n", "modes": ["MODE_IPV4"], "connect_mode": "DIRECT_PEERING"}],
    "effective_labels": {"a": "b"},
}
BOARD = "/monitoring/v1/projects/12/dashboards/d"
WANTED = {"displayName": "a", "gridLayout": {"widgets": [{"title": "t"}]}}
SHOWN = {**WANTED, "name": "projects/12/dashboards/d", "etag": "e1"}
OF_BOARD = {"id": SHOWN["name"], "project": "p", "dashboard_json": json.dumps(SHOWN)}

# ------------------------------------------------------------------ what becomes of refusals


@cases(
    """
answer | text
@running | Error waiting for Creating Network: error
@failed | Error waiting to create Network: Quota exceeded.
""",
    running={**DONE, "status": "RUNNING"},
    failed=FAILED,
)
def test_what_is_not_made_to_the_end_is_not_in_the_state(
    google: Google, api: Api, answer: Any, text: str
) -> None:
    google.on(".*", answer)
    api.cancel.set()
    with pytest.raises(ProviderError, match=text):
        NETWORK.create(api, ANY_NETWORK)


def test_a_failed_delete_operation_says_its_messages_alone(google: Google, api: Api) -> None:
    google.on("DELETE .*", FAILED)
    with pytest.raises(OperationError, match=r"\AQuota exceeded.\n\Z"):
        NETWORK.delete(api, ANY_NETWORK)


# A type, a state of it, where that is, and a change.
KINDS: list[tuple[Any, dict[str, Any], str, dict[str, Any]]] = [
    (NETWORK, ANY_NETWORK, ONE, {"mtu": 8896}),
    (SHARE, OF_SHARE, f"{SHARES}/f", {"description": "x"}),
    (DASHBOARD, OF_BOARD, BOARD, {"dashboard_json": "{}"}),
]


@pytest.mark.parametrize("of", KINDS)
def test_what_is_gone_is_read_as_such_and_deleted_already(
    google: Google, api: Api, of: Any
) -> None:
    kind, state, path, _ = of
    assert kind.read(api, state) is None
    kind.delete(api, state)
    assert google.lines == [f"GET {path}", f"DELETE {path}"]


@pytest.mark.parametrize("of", KINDS)
def test_googles_refusals_are_told(
    google: Google, api: Api, refuse: Callable[..., Any], of: Any
) -> None:
    google.on(".*", refuse(400, "wrong"))
    kind, state, _, change = of
    attempts: list[Callable[[], object]] = [
        lambda: kind.create(api, state),
        lambda: kind.read(api, state),
        lambda: kind.update(api, state, state | change),
        lambda: kind.delete(api, state),
    ]
    for attempt in attempts:
        with pytest.raises(ProviderError, match=r"\AError .*wrong"):
            attempt()


def test_a_protected_object_is_not_deleted_and_an_abandoned_one_left_alone(
    google: Google, api: Api
) -> None:
    with pytest.raises(ProviderError, match="cannot destroy ComputeNetwork without"):
        NETWORK.delete(api, {**ANY_NETWORK, "deletion_policy": "PREVENT"})
    NETWORK.delete(api, {**ANY_NETWORK, "deletion_policy": "ABANDON"})
    assert google.lines == []


def test_a_plan_knows_project_and_deletion_policy(connect: Callable[..., Api]) -> None:
    api = connect(deletion_policy="PREVENT")
    plan = NETWORK.customize(api, None, {"project": UNKNOWN, "deletion_policy": UNKNOWN})
    assert plan == {"project": "p", "deletion_policy": "PREVENT"}


# ------------------------------------------------------------------ networks, rules, policies


def test_a_changed_mtu_is_sent_under_the_networks_fingerprint(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "n", "fingerprint": "f"}).on("PATCH .*", DONE)
    NETWORK.update(api, {**ANY_NETWORK, "mtu": 1460}, {**ANY_NETWORK, "mtu": 8896})
    assert google.body(f"PATCH {ONE}") == {"fingerprint": "f", "mtu": 8896}


def test_secondary_ranges_change_under_the_fingerprint(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "s", "fingerprint": "f", "region": f"x/{REGION}", "network": LINK})
    google.on("PATCH .*", DONE)
    subnetwork = {"name": "s", "network": "n", "region": "us-central1", "secondary_ip_range": []}
    pods = {"range_name": "pods", "ip_cidr_range": "10.8.0.0/14", "reserved_internal_range": None}
    found = SUBNETWORK.update(api, subnetwork, {**subnetwork, "secondary_ip_range": [pods]})
    assert google.body(f"PATCH {REGION}/subnetworks/s") == {
        "fingerprint": "f",
        "secondaryIpRanges": [{"rangeName": "pods", "ipCidrRange": "10.8.0.0/14"}],
    }
    assert (found["region"], found["network"], found["log_config"]) == ("us-central1", LINK, [])


RULE = {
    "name": "f",
    "network": LINK,
    "priority": 1000,
    "allow": [{"protocol": "tcp", "ports": []}, {"protocol": "icmp", "ports": []}],
    "deny": [],
    "source_service_accounts": ["a@b"],
    "log_config": [],
}


def test_an_update_of_a_firewall_rule_says_what_it_has_not(google: Google, api: Api) -> None:
    google.on("PATCH .*", DONE).on("GET .*", {"name": "f"})
    FIREWALL.update(api, RULE, {**RULE, "disabled": True})
    empty = ("denied", "destinationRanges", "sourceRanges", "sourceTags", "targetTags")
    assert google.body(f"PATCH {GLOBAL}/firewalls/f") == {
        **{key: [] for key in (*empty, "targetServiceAccounts")},
        "allowed": [{"IPProtocol": "icmp"}, {"IPProtocol": "tcp"}],
        "description": "",
        "disabled": True,
        "logConfig": {"enable": False},
        "network": "projects/p/global/networks/n",
        "priority": 1000,
        "sourceServiceAccounts": ["a@b"],
    }


def test_an_ingress_rule_needs_a_source_when_it_is_planned(api: Api) -> None:
    plan = {**dict.fromkeys(("source_ranges", "source_tags", "source_service_accounts"))}
    with pytest.raises(ValueError, match="one of source_tags, source_ranges, or source_service"):
        FIREWALL.customize(api, None, {**plan, "direction": UNKNOWN})
    assert FIREWALL.customize(api, None, {**plan, "direction": UNKNOWN, "source_tags": ["a"]})
    assert FIREWALL.customize(api, None, {**plan, "direction": "EGRESS"})


OTHER, MINE = {"name": "other"}, {"name": "nat"}
OF_NAT = {"name": "nat", "router": "r", "log_config": [], "nat_ips": UNKNOWN}


def test_a_nat_joins_and_leaves_the_others_of_its_router(google: Google, api: Api) -> None:
    google.on("PATCH .*", DONE).on("GET .*", {"nats": [OTHER]}, {"nats": [OTHER, MINE]})
    with pytest.raises(ProviderError, match="Unable to create RouterNat, existing object already"):
        NAT.create(api, NAT.create(api, OF_NAT))
    NAT.delete(api, OF_NAT)
    joined, left = (it.body["nats"] for it in google.asked if it.method == "PATCH")
    assert [nat["name"] for nat in joined] == ["other", "nat"]
    assert left == [OTHER]


def test_a_nat_whose_router_is_gone_is_gone(google: Google, api: Api) -> None:
    assert NAT.read(api, OF_NAT) is None
    NAT.delete(api, OF_NAT)
    assert google.lines == [f"GET {REGION}/routers/r"] * 2


@cases("""
block | sent
{group_placement_policy: [{collocation: COLLOCATED}]}
    | {groupPlacementPolicy: {collocation: COLLOCATED}}
{workload_policy: [{type: HIGH_THROUGHPUT, accelerator_topology: 1x72}]}
    | {workloadPolicy: {type: HIGH_THROUGHPUT, acceleratorTopology: 1x72}}
""")
def test_each_kind_of_policy_is_sent_and_read_and_changed_by_one_patch(
    google: Google, api: Api, block: dict[str, Any], sent: dict[str, Any]
) -> None:
    policies = f"{REGION}/resourcePolicies"
    google.on("(POST|PATCH) .*", DONE).on(f"GET {policies}/x", {"name": "x", **sent})
    state = POLICY.create(api, {"name": "x", **block})
    body = {"name": "x", "diskConsistencyGroupPolicy": None, **sent}
    region = {"region": "projects/p/global/regions/us-central1"}
    assert google.body(f"POST {policies}") == {**body, **region}
    assert (len(state[next(iter(block))]), state["region"]) == (1, "us-central1")
    POLICY.update(api, {"name": "x", **block}, {"name": "x", "description": "new", **block})
    assert google.body(f"PATCH {policies}/x") == {**body, "description": "new"}


# ------------------------------------------------------------------ shares and dashboards


def test_an_update_of_a_share_sends_what_can_change_and_says_what_does(
    google: Google, api: Api
) -> None:
    google.on(f"PATCH {SHARES}/f", {"name": "o", "done": True}).on(f"GET {SHARES}/f", {})
    shares = [{"name": "s", "capacity_gb": 3000, "nfs_export_options": []}]
    SHARE.update(api, OF_SHARE, OF_SHARE | {"file_shares": shares, "description": "new"})
    assert google.asked[0].query["updateMask"] == "description,fileShares"
    assert google.asked[0].body == {
        "description": "new",
        "fileShares": [{"name": "s", "capacityGb": 3000}],
        "labels": {"a": "b"},
    }


def test_what_only_the_provider_knows_is_changed_without_a_request(
    google: Google, api: Api
) -> None:
    google.on(f"GET {SHARES}/f", {})
    state = SHARE.update(api, OF_SHARE, OF_SHARE | {"deletion_policy": "PREVENT"})
    assert google.lines == [f"GET {SHARES}/f"]
    assert state["deletion_policy"] == "PREVENT"


@pytest.mark.parametrize(
    ("wanted", "same"),
    [
        (WANTED, True),
        ({**WANTED, "displayName": "b"}, False),
        ({**WANTED, "labels": {"x": ""}}, False),
        ({"displayName": "a", "gridLayout": {"widgets": []}}, False),
        ({"displayName": "a", "gridLayout": {"widgets": [{"title": "t"}, {}]}}, False),
    ],
)
def test_what_google_adds_to_a_dashboard_is_no_difference(
    wanted: dict[str, Any], *, same: bool
) -> None:
    compare = DASHBOARD.suppress["dashboard_json"]
    assert compare(json.dumps(SHOWN), json.dumps(wanted), {}) is same


def test_an_edit_of_a_dashboard_carries_the_etag_of_the_state(google: Google, api: Api) -> None:
    google.on(".*", SHOWN)
    new = json.dumps({**WANTED, "displayName": "b"})
    DASHBOARD.update(api, OF_BOARD, {**OF_BOARD, "dashboard_json": new})
    assert google.asked[0].body == {**WANTED, "displayName": "b", "etag": "e1"}


@pytest.mark.parametrize(
    ("text", "planned"), [(UNKNOWN, UNKNOWN), ('{"b": 1,\n "a": "<"}', '{"a":"<","b":1}')]
)
def test_a_document_is_planned_in_the_one_form_that_the_state_has(
    api: Api, text: Any, planned: Any
) -> None:
    assert DASHBOARD.customize(api, None, {"dashboard_json": text})["dashboard_json"] == planned


# ------------------------------------------------------------------ imports and data sources


@cases(
    """
name | import_id | found
compute_network | projects/q/global/networks/n | {project: q, name: n}
compute_network | q/n | {project: q, name: n}
compute_network | n | {project: p, name: n}
compute_network | @link | null
compute_subnetwork | s | {region: us-central1, name: s}
compute_subnetwork | projects/q/regions/r/subnetworks/s | {region: r}
compute_router_nat | projects/q/regions/r/routers/x/n | {router: x}
compute_router_nat | x/n | {router: x, id: p/us-central1/x/n}
compute_router_nat | n | null
compute_instance_template | projects/q/global/instanceTemplates/t | {name: t}
filestore_instance | l/f | {id: projects/p/locations/l/instances/f}
monitoring_dashboard | d | {id: projects/p/dashboards/d}
service_account | projects/q/serviceAccounts/a@b | {email: a@b}
project_iam_member | q roles/viewer user:a@b | {role: roles/viewer}
project_iam_member | q/roles/viewer/user:a@b | null
storage_bucket_object | b/o | null
""",
    link=LINK,
)
def test_an_import_id_names_the_object_or_is_refused(
    name: str, import_id: str, found: dict[str, Any] | None, api: Api
) -> None:
    if found is None:
        with pytest.raises(ValueError, match=r"."):
            RESOURCES[f"google_{name}"].import_state(api, import_id)
    else:
        assert found.items() <= RESOURCES[f"google_{name}"].import_state(api, import_id).items()


@cases("""
kind | config | path
network | {name: n} | p/global/networks/n
network | {self_link: "https://x/projects/q/global/networks/n"} | q/global/networks/n
subnetwork | {name: s} | p/regions/us-central1/subnetworks/s
subnetwork | {self_link: "https://x/projects/q/regions/r/subnetworks/s"} | q/regions/r/subnetworks/s
""")
def test_a_network_or_subnetwork_is_found_by_name_or_link(
    kind: str, config: dict[str, Any], path: str, google: Google, api: Api
) -> None:
    ranges = [{"rangeName": "pods", "ipCidrRange": "10.0.0.0/8"}]
    google.on("GET .*", {"name": "n", "id": "7", "secondaryIpRanges": ranges, "selfLink": "link"})
    found = DATA_SOURCES[f"google_compute_{kind}"].read(api, config)
    assert google.lines == [f"GET /compute/v1/projects/{path}"]
    assert (found["id"], found["self_link"]) == (f"projects/{path}", "link")
    assert 7 in (found.get("network_id"), found.get("subnetwork_id"))


def test_an_image_is_found_by_its_name_or_its_family(google: Google, api: Api) -> None:
    google.on("GET .*", {"name": "cos-1", "family": "cos", "diskSizeGb": "10", "id": "7"})
    config: dict[str, Any] = {"project": "cos-cloud", "family": "cos", "name": None}
    found = DATA_SOURCES["google_compute_image"].read(api, config)
    DATA_SOURCES["google_compute_image"].read(api, {**config, "name": "x"})
    images = "GET /compute/v1/projects/cos-cloud/global/images"
    assert google.lines == [f"{images}/family/cos", f"{images}/x"]
    assert (found["name"], found["disk_size_gb"], found["image_id"]) == ("cos-1", 10, "7")
    assert found["id"] == "projects/cos-cloud/global/images/cos-1"


def test_a_project_has_its_parent_and_its_billing_account(google: Google, api: Api) -> None:
    google.on("GET /crm.*", {"projectNumber": "12", "parent": {"type": "folder", "id": "9"}})
    google.on("GET /cloudbilling.*", {"billingAccountName": "billingAccounts/A"})
    found = DATA_SOURCES["google_project"].read(api, {})
    expected = {"number": "12", "folder_id": "9", "org_id": "", "billing_account": "A"}
    assert expected.items() <= found.items()
