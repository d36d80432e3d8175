"""GKE clusters: their making and its failures, updates in the provider's order, deletion."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import discovery
from rehearsal.provider import schema
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES
from rehearsal.provider.resources.cluster import CHANGES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

CLUSTER = RESOURCES["google_container_cluster"]
FIELDS = schema.load("resources", "google_container_cluster").block
PATH = "projects/p/locations/us-central1/clusters/c"
ONE = f"/container/v1/{PATH}"
ALL = ONE.removesuffix("/c")
OPERATIONS = "/container/v1/projects/p/locations/us-central1/operations/"
ZONE = "/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers"
DONE = {"name": "o", "status": "DONE"}
RUNNING = {"name": "o", "status": "RUNNING"}
THERE: dict[str, Any] = {
    "name": "c",
    "location": "us-central1",
    "status": "RUNNING",
    "currentMasterVersion": "1.33.5-gke.1",
    "locations": ["us-central1-a"],
    "resourceLabels": {"team": "ml", "other": "x"},
    "labelFingerprint": "f",
    "ipAllocationPolicy": {"useIpAliases": True},
    "controlPlaneEndpointsConfig": {"ipEndpointsConfig": {"enabled": False}},
}
PLAN: dict[str, Any] = schema.complete(
    FIELDS,
    {
        "name": "c",
        "location": "us-central1",
        "initial_node_count": 1,
        "deletion_protection": False,
        "resource_labels": {"team": "ml"},
        "terraform_labels": {"team": "ml"},
        "node_version": UNKNOWN,
        "node_config": UNKNOWN,
    },
)


def _missing_then(*answers: Any) -> tuple[Any, ...]:
    return ((404, {"error": {"code": 404, "message": "none"}}), *answers)


def test_it_is_looked_for_made_waited_for_read_and_seen_at_rest(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", RUNNING, DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE))
    state = CLUSTER.create(api, PLAN)
    operation = f"GET {OPERATIONS}o"
    assert google.lines == [
        f"GET {ONE}",
        f"POST {ALL}",
        operation,
        operation,
        f"GET {ONE}",
        f"GET {ONE}",
    ]
    assert google.asked[0].query == {"alt": "json", "prettyPrint": "false"}
    assert state["id"] == PATH
    assert state["master_version"] == "1.33.5-gke.1"
    assert state["resource_labels"] == {"team": "ml"}
    assert state["effective_labels"] == {"team": "ml", "other": "x"}
    assert state["operation"] == ""


def _created(google: Google, api: Api, **attributes: Any) -> dict[str, Any]:
    """The JSON object of a new cluster."""
    google.on(f"POST {ALL}", DONE).on(f"GET {ONE}", *_missing_then(THERE))
    CLUSTER.create(api, {**PLAN, **attributes})
    found: dict[str, Any] = google.body(f"POST {ALL}")["cluster"]
    return found


def test_the_smallest_cluster_is_sent_with_what_the_provider_always_sends(
    google: Google, api: Api
) -> None:
    assert _created(google, api) == {
        "name": "c",
        "network": "projects/p/global/networks/default",
        "initialNodeCount": 1,
        "nodeConfig": {},
        "resourceLabels": {"team": "ml"},
        "autopilot": {"enabled": False},
        "autoscaling": {"enableNodeAutoprovisioning": False},
        "binaryAuthorization": {"enabled": False},
        "controlPlaneEndpointsConfig": {
            "dnsEndpointConfig": {
                "allowExternalTraffic": False,
                "enableK8sCertsViaDns": False,
                "enableK8sTokensViaDns": False,
            },
            "ipEndpointsConfig": {
                "enabled": True,
                "enablePublicEndpoint": True,
                "globalAccess": False,
                "privateEndpointSubnetwork": "",
                "authorizedNetworksConfig": {},
            },
        },
        "legacyAbac": {"enabled": False},
        "maintenancePolicy": {"window": {}},
        "networkConfig": {},
        "networkPolicy": {},
        "notificationConfig": {"pubsub": {}},
        "shieldedNodes": {"enabled": False},
    }


@pytest.mark.parametrize(
    ("attributes", "field", "sent"),
    [
        (
            {"ip_allocation_policy": [{"cluster_secondary_range_name": "pods"}]},
            "ipAllocationPolicy",
            {
                "useIpAliases": True,
                "stackType": "IPV4",
                "clusterSecondaryRangeName": "pods",
            },
        ),
        (
            {"cluster_autoscaling": [{"enabled": True}]},
            "autoscaling",
            {
                "enableNodeAutoprovisioning": True,
                "autoprovisioningNodePoolDefaults": {},
                "defaultComputeClassConfig": {},
            },
        ),
        ({"monitoring_config": [{}]}, "monitoringConfig", {"componentConfig": {}}),
    ],
)
def test_a_new_cluster_is_sent_as_the_provider_sends_it(
    google: Google, api: Api, attributes: Any, field: str, sent: Any
) -> None:
    assert _created(google, api, **attributes)[field] == sent


def test_one_that_is_there_already_is_not_touched(google: Google, api: Api) -> None:
    google.on(f"GET {ONE}", THERE)
    with pytest.raises(ProviderError, match=f"resource - {PATH} - already exists"):
        CLUSTER.create(api, PLAN)
    assert google.lines == [f"GET {ONE}"]


def test_a_conflict_fails_at_once(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    google.on(f"POST {ALL}", refuse(409, f"Already exists: {PATH}.", "alreadyExists"))
    with pytest.raises(GoogleApiError) as caught:
        CLUSTER.create(api, PLAN)
    assert str(caught.value) == f"googleapi: Error 409: Already exists: {PATH}., alreadyExists"
    assert google.lines == [f"GET {ONE}", f"POST {ALL}"]


def test_the_default_pool_goes_when_it_is_not_wanted(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", DONE).on(f"DELETE {ONE}/nodePools/default-pool", DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE))
    CLUSTER.create(api, {**PLAN, "remove_default_node_pool": True})
    assert google.lines[1:3] == [f"POST {ALL}", f"DELETE {ONE}/nodePools/default-pool"]


def test_a_cluster_whose_making_fails_is_kept_tainted(google: Google, api: Api) -> None:
    failed = {**DONE, "error": {"code": 8, "message": "no room"}}
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", failed)
    google.on(f"GET {ONE}", *_missing_then(THERE))
    with pytest.raises(PartialError) as caught:
        CLUSTER.create(api, PLAN)
    assert str(caught.value) == "Error waiting for creating GKE cluster: no room"
    assert caught.value.state["id"] == PATH
    assert "node_version" not in caught.value.state


def test_a_cluster_that_did_not_come_to_be_is_not_kept(google: Google, api: Api) -> None:
    failed = {**DONE, "error": {"code": 8, "message": "no room"}}
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", failed)
    with pytest.raises(OperationError):
        CLUSTER.create(api, PLAN)


def test_a_cluster_that_comes_with_an_error_is_kept_tainted(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", DONE)
    google.on(f"GET {ONE}", *_missing_then({**THERE, "status": "ERROR"}))
    with pytest.raises(PartialError) as caught:
        CLUSTER.create(api, PLAN)
    assert str(caught.value) == 'Cluster c was created in the error state "ERROR"'
    assert caught.value.state["master_version"] == "1.33.5-gke.1"


def test_an_interrupted_creation_goes_on_at_the_next_read(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", RUNNING, RUNNING, DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE))
    api.cancel.set()
    state = CLUSTER.create(api, PLAN)
    assert (state["id"], state["operation"]) == (PATH, "o")
    assert UNKNOWN not in state.values()
    api.cancel.clear()
    google.asked.clear()
    found = CLUSTER.read(api, schema.complete(FIELDS, state))
    assert google.lines == [f"GET {OPERATIONS}o", f"GET {OPERATIONS}o", f"GET {ONE}"]
    assert found is not None
    assert found["operation"] == ""


def test_sizes_of_its_pools_come_from_their_groups(google: Google, api: Api) -> None:
    links = [f"https://www.googleapis.com{ZONE}/{name}" for name in ("a", "b", "gone")]
    pools = [
        {"name": name, "instanceGroupUrls": [url]}
        for name, url in zip(("a", "b", "gone"), links, strict=True)
    ]
    google.on(f"GET {ONE}", {**THERE, "nodePools": pools})
    sizes = [{"name": "a", "targetSize": 2}, {"name": "b", "targetSize": 0}]
    google.on(f"GET {ZONE}", {"items": sizes})
    found = CLUSTER.read(api, PLAN | {"node_config": []})
    assert found is not None
    assert [pool["node_count"] for pool in found["node_pool"]] == [2, 0, 0]
    lists = google.lines.count(f"GET {ZONE}")
    assert lists <= 2  # one for those that are there, one for the one that is not


def test_a_cluster_that_is_gone_is_none(google: Google, api: Api) -> None:
    assert CLUSTER.read(api, PLAN) is None
    assert google.lines == [f"GET {ONE}"]


def test_a_refusal_to_read_is_told(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    google.on(f"GET {ONE}", refuse(403, "no", "forbidden"))
    with pytest.raises(ProviderError, match='reading or editing Container Cluster "c": googleapi'):
        CLUSTER.read(api, PLAN)


def _updated(google: Google, api: Api, prior: dict[str, Any], plan: dict[str, Any]) -> list[Any]:
    """The requests of an update, without those that only look."""
    google.on("(PUT|POST|DELETE) .*", DONE).on(f"GET {ONE}", THERE)
    google.on(f"GET {ONE}/nodePools/default-pool", {"name": "default-pool"})
    full: dict[str, Any] = {"node_config": [], "node_version": None}
    CLUSTER.update(api, {**PLAN, **full, **prior}, {**PLAN, **full, **plan})
    return [(it.line, it.body) for it in google.asked if it.method != "GET"]


def test_each_change_has_a_request_of_its_own_in_the_provider_s_order(
    google: Google, api: Api
) -> None:
    dns = {"allow_external_traffic": True}
    endpoints = {"dns_endpoint_config": [dns], "ip_endpoints_config": [{"enabled": False}]}
    prior = {
        "master_version": "1.33.5-gke.1",
        "label_fingerprint": "f",
        "terraform_labels": {"team": "ml"},
        "min_master_version": "1.33",
    }
    plan = {
        **prior,
        "terraform_labels": {"team": "x"},
        "min_master_version": "1.34",
        "enable_shielded_nodes": True,
        "control_plane_endpoints_config": [endpoints],
        "release_channel": [{"channel": "RAPID"}],
    }
    assert _updated(google, api, prior, plan) == [
        (
            f"PUT {ONE}",
            {
                "update": {
                    "desiredControlPlaneEndpointsConfig": {
                        "dnsEndpointConfig": {
                            "allowExternalTraffic": True,
                            "enableK8sCertsViaDns": False,
                            "enableK8sTokensViaDns": False,
                        },
                        "ipEndpointsConfig": {"enabled": False},
                    }
                }
            },
        ),
        (f"PUT {ONE}", {"update": {"desiredShieldedNodes": {"enabled": True}}}),
        (f"PUT {ONE}", {"update": {"desiredReleaseChannel": {"channel": "RAPID"}}}),
        (f"PUT {ONE}", {"update": {"desiredMasterVersion": "1.34"}}),
        (
            f"POST {ONE}:setResourceLabels",
            {"resourceLabels": {"team": "x"}, "labelFingerprint": "f"},
        ),
    ]


@pytest.mark.parametrize(
    ("prior", "plan", "sent"),
    [
        (
            {"enable_multi_networking": True},
            {"enable_multi_networking": False},
            [("PUT", {"update": {"desiredEnableMultiNetworking": False}})],
        ),
        (
            {"workload_identity_config": [{"workload_pool": "p.svc.id.goog"}]},
            {"workload_identity_config": []},
            [("PUT", {"update": {"desiredWorkloadIdentityConfig": {"workloadPool": ""}}})],
        ),
        (
            {"addons_config": [{"gcs_fuse_csi_driver_config": [{"enabled": True}]}]},
            {"addons_config": []},
            [],
        ),
        (
            {"min_master_version": None, "master_version": "1.34.1-gke.2"},
            {"min_master_version": "1.33", "master_version": "1.34.1-gke.2"},
            [],
        ),
        (
            {"node_locations": ["us-central1-a"]},
            {"node_locations": ["us-central1-b"]},
            [
                ("PUT", {"update": {"desiredLocations": ["us-central1-b", "us-central1-a"]}}),
                ("PUT", {"update": {"desiredLocations": ["us-central1-b"]}}),
            ],
        ),
        (
            {"remove_default_node_pool": False},
            {"remove_default_node_pool": True},
            [("DELETE/nodePools/default-pool", None)],
        ),
    ],
)
def test_an_update_sends_what_the_provider_sends(
    google: Google, api: Api, prior: Any, plan: Any, sent: list[Any]
) -> None:
    found = _updated(google, api, prior, plan)
    assert [(line.replace(f" {ONE}", ""), body) for line, body in found] == sent


def test_a_new_maintenance_policy_goes_with_the_version_of_the_old(
    google: Google, api: Api
) -> None:
    there = {**THERE, "maintenancePolicy": {"resourceVersion": "v1"}}
    google.on("POST .*", DONE).on(f"GET {ONE}", there)
    daily = [{"daily_maintenance_window": [{"start_time": "03:00"}]}]
    CLUSTER.update(api, PLAN, {**PLAN, "node_config": [], "maintenance_policy": daily})
    assert google.body(f"POST {ONE}:setMaintenancePolicy") == {
        "maintenancePolicy": {
            "window": {"dailyMaintenanceWindow": {"startTime": "03:00"}},
            "resourceVersion": "v1",
        }
    }


def test_every_field_of_an_update_is_one_of_google_s() -> None:
    document = json.loads((discovery.folder() / "container.v1.json").read_text())
    known = document["schemas"]["ClusterUpdate"]["properties"]
    assert [change.name for change in CHANGES if change.name not in known] == []


def test_a_protected_cluster_is_not_deleted(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="deletion_protection is set to true"):
        CLUSTER.delete(api, {**PLAN, "deletion_protection": True})
    assert google.lines == []


def test_a_deletion_waits_for_rest_and_for_its_end(google: Google, api: Api) -> None:
    google.on(f"GET {ONE}", {"status": "RECONCILING"}, {"status": "RUNNING"})
    google.on(f"DELETE {ONE}", RUNNING).on(f"GET {OPERATIONS}o", DONE)
    CLUSTER.delete(api, PLAN)
    assert google.lines == [
        f"GET {ONE}",
        f"GET {ONE}",
        f"DELETE {ONE}",
        f"GET {OPERATIONS}o",
    ]


def test_a_deletion_of_what_is_gone_is_done(google: Google, api: Api) -> None:
    CLUSTER.delete(api, PLAN)
    assert google.lines == [f"GET {ONE}"]


def test_a_deletion_is_asked_for_again_for_half_a_minute_whatever_google_says(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    google.on(f"GET {ONE}", {"status": "RUNNING"})
    google.on(f"DELETE {ONE}", refuse(403, "no", "forbidden"))
    with pytest.raises(ProviderError) as caught:
        CLUSTER.delete(api, PLAN)
    assert str(caught.value) == "Error deleting Cluster: googleapi: Error 403: no, forbidden"
    assert google.lines.count(f"DELETE {ONE}") == 7


@pytest.mark.parametrize("import_id", [PATH, "p/us-central1/c", "us-central1/c"])
def test_it_is_imported_by_its_path_or_less(google: Google, api: Api, import_id: str) -> None:
    google.on(f"GET {ONE}", THERE)
    state = CLUSTER.import_state(api, import_id)
    assert (state["id"], state["name"], state["deletion_protection"]) == (PATH, "c", True)
    found = CLUSTER.read(api, schema.complete(FIELDS, state))
    assert found is not None
    assert found["id"] == PATH


def test_the_import_of_what_is_not_there_fails(google: Google, api: Api) -> None:
    with pytest.raises(GoogleApiError, match="Error 404"):
        CLUSTER.import_state(api, PATH)
    assert google.lines == [f"GET {ONE}"]
