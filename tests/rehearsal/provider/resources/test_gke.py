"""Clusters and pools of GKE, beyond what the recorded traffic has."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from rehearsal.cloud import discovery
from rehearsal.provider import schema
from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES
from rehearsal.provider.resources.cluster import CHANGES
from tests.rehearsal.provider.resources.conftest import Google
from tests.table import cases

CLUSTER, POOL = (RESOURCES[f"google_container_{it}"] for it in ("cluster", "node_pool"))
OF_CLUSTER, OF_POOL = (
    schema.load("resources", f"google_container_{it}").block for it in ("cluster", "node_pool")
)
PATH = "projects/p/locations/us-central1/clusters/c"
ONE, POOLS = f"/container/v1/{PATH}", f"/container/v1/{PATH}/nodePools"
ALL, POOL_N = ONE.removesuffix("/c"), f"{POOLS}/n"
OPERATION = "/container/v1/projects/p/locations/us-central1/operations/o"
GROUPS = "/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers"
DONE, RUNNING = ({"name": "o", "status": status} for status in ("DONE", "RUNNING"))
FAILED = {**DONE, "error": {"code": 8, "message": "no room"}}
THERE: dict[str, Any] = yaml.safe_load("""
name: c
location: us-central1
status: RUNNING
currentMasterVersion: 1.33.5-gke.1
locations: [us-central1-a]
resourceLabels: {team: ml, other: x}
controlPlaneEndpointsConfig: {ipEndpointsConfig: {enabled: false}}
""")
LABELS = {"goog-gke-x": "y", "a": "b"}
POOL_THERE: dict[str, Any] = {
    "name": "n",
    "status": "RUNNING",
    "initialNodeCount": 2,
    "instanceGroupUrls": [f"https://www.googleapis.com{GROUPS}/g"],
    "config": {"machineType": "e2-standard-4", "resourceLabels": LABELS},
}
PLAN: dict[str, Any] = schema.complete(
    OF_CLUSTER,
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
NODES = [{"machine_type": "e2-standard-4", "disk_type": UNKNOWN}]
POOL_PLAN: dict[str, Any] = schema.complete(
    OF_POOL,
    {
        "name": "n",
        "cluster": PATH,
        "node_count": 2,
        "node_config": NODES,
        "initial_node_count": UNKNOWN,
        "version": UNKNOWN,
    },
)


def missing_then(*answers: Any) -> tuple[Any, ...]:
    return ((404, {"error": {"code": 404, "message": "none"}}), *answers)


@pytest.fixture(autouse=True)
def groups(google: Google) -> None:
    """The group of the pool has two nodes."""
    google.on(f"GET {GROUPS}", {"items": [{"name": "g", "targetSize": 2}]})


# ------------------------------------------------------------------ clusters


def created(google: Google, api: Api, **attributes: Any) -> dict[str, Any]:
    """The JSON object of a new cluster."""
    google.on(f"POST {ALL}", DONE).on(f"GET {ONE}", *missing_then(THERE))
    CLUSTER.create(api, {**PLAN, **attributes})
    found: dict[str, Any] = google.body(f"POST {ALL}")["cluster"]
    return found


def test_the_smallest_cluster_is_sent_with_what_the_provider_always_sends(
    google: Google, api: Api
) -> None:
    assert created(google, api) == yaml.safe_load("""
name: c
network: projects/p/global/networks/default
initialNodeCount: 1
nodeConfig: {}
resourceLabels: {team: ml}
autopilot: {enabled: false}
autoscaling: {enableNodeAutoprovisioning: false}
binaryAuthorization: {enabled: false}
controlPlaneEndpointsConfig:
  dnsEndpointConfig:
    {allowExternalTraffic: false, enableK8sCertsViaDns: false, enableK8sTokensViaDns: false}
  ipEndpointsConfig:
    {enabled: true, enablePublicEndpoint: true, globalAccess: false,
     privateEndpointSubnetwork: "", authorizedNetworksConfig: {}}
legacyAbac: {enabled: false}
maintenancePolicy: {window: {}}
networkConfig: {}
networkPolicy: {}
notificationConfig: {pubsub: {}}
shieldedNodes: {enabled: false}
""")


RECURRING = {"start_time": "s", "end_time": "e", "recurrence": "r"}
OPTIONS = [{"scope": "ALL", "end_time_behavior": "UNTIL"}]
HELD = {"exclusion_name": "held", "start_time": "s", "exclusion_options": OPTIONS}
WINDOW = yaml.safe_load("""
recurringWindow: {recurrence: r, window: {startTime: s, endTime: e}}
maintenanceExclusions:
  held: {startTime: s, maintenanceExclusionOptions: {scope: ALL, endTimeBehavior: UNTIL}}
""")


@cases(
    """
attributes | field | sent
{ip_allocation_policy: [{cluster_secondary_range_name: pods}]} | ipAllocationPolicy
    | {useIpAliases: true, stackType: IPV4, clusterSecondaryRangeName: pods}
{cluster_autoscaling: [{enabled: false, autoscaling_profile: O}]} | autoscaling
    | {autoscalingProfile: O, autoprovisioningNodePoolDefaults: {}, defaultComputeClassConfig: {}}
{monitoring_config: [{}]} | monitoringConfig | {componentConfig: {}}
{database_encryption: [{state: ENCRYPTED, key_name: k}]} | databaseEncryption
    | {state: ENCRYPTED, keyName: k}
{maintenance_policy: [{recurring_window: [@recurring], maintenance_exclusion: [@held]}]}
    | maintenancePolicy | {window: @window}
""",
    recurring=RECURRING,
    held=HELD,
    window=WINDOW,
)
def test_a_new_cluster_is_sent_as_the_provider_sends_it(
    google: Google, api: Api, attributes: Any, field: str, sent: Any
) -> None:
    assert created(google, api, **attributes)[field] == sent


def test_a_cluster_is_read_in_the_words_of_the_schema(google: Google, api: Api) -> None:
    ip = {"enabled": True, "enablePublicEndpoint": True, "authorizedNetworksConfig": {}}
    ip["authorizedNetworksConfig"] = {"enabled": True, "cidrBlocks": [{"cidrBlock": "10.0.0.0/8"}]}
    policy = {"window": WINDOW, "resourceVersion": "v"}
    endpoints = {"controlPlaneEndpointsConfig": {"ipEndpointsConfig": ip}}
    google.on(f"GET {ONE}", {**THERE, **endpoints, "maintenancePolicy": policy})
    found = CLUSTER.read(api, PLAN | {"node_config": []})
    assert found is not None
    (authorized,) = found["master_authorized_networks_config"]
    assert authorized["cidr_blocks"] == [{"cidr_block": "10.0.0.0/8", "display_name": ""}]
    (private,) = found["private_cluster_config"]
    assert (private["enable_private_endpoint"], private["enable_private_nodes"]) == (False, False)
    (kept,) = found["maintenance_policy"]
    assert kept["recurring_window"] == [RECURRING]
    assert kept["maintenance_exclusion"] == [{**HELD, "end_time": ""}]
    assert found["resource_labels"] == {"team": "ml"}
    assert found["effective_labels"] == {"team": "ml", "other": "x"}


@cases("""
status | text
RUNNING | Error waiting for creating GKE cluster: no room
ERROR | Cluster c was created in the error state "ERROR"
""")
def test_a_cluster_whose_making_fails_is_kept_tainted(
    google: Google, api: Api, status: str, text: str
) -> None:
    done = DONE if "state" in text else FAILED
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATION}", done)
    google.on(f"GET {ONE}", *missing_then({**THERE, "status": status}))
    with pytest.raises(PartialError) as caught:
        CLUSTER.create(api, PLAN)
    assert str(caught.value) == text
    assert caught.value.state["id"] == PATH
    assert UNKNOWN not in caught.value.state.values()


def test_a_cluster_that_did_not_come_to_be_is_not_kept(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATION}", FAILED)
    with pytest.raises(OperationError):
        CLUSTER.create(api, PLAN)


def test_an_interrupted_creation_goes_on_at_the_next_read(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATION}", RUNNING, RUNNING, DONE)
    google.on(f"GET {ONE}", *missing_then(THERE))
    api.cancel.set()
    state = CLUSTER.create(api, PLAN)
    assert (state["id"], state["operation"]) == (PATH, "o")
    assert UNKNOWN not in state.values()
    api.cancel.clear()
    google.asked.clear()
    found = CLUSTER.read(api, schema.complete(OF_CLUSTER, state))
    assert google.lines == [f"GET {OPERATION}", f"GET {OPERATION}", f"GET {ONE}"]
    assert found is not None
    assert found["operation"] == ""


def test_sizes_of_its_pools_come_from_their_groups(google: Google, api: Api) -> None:
    pools = [
        {"name": name, "instanceGroupUrls": [f"https://www.googleapis.com{GROUPS}/{name}"]}
        for name in ("g", "gone")
    ]
    google.on(f"GET {ONE}", {**THERE, "nodePools": pools})
    found = CLUSTER.read(api, PLAN | {"node_config": []})
    assert found is not None
    assert [pool["node_count"] for pool in found["node_pool"]] == [2, 0]
    # One list for those that are there, one for the one that is not.
    assert google.lines.count(f"GET {GROUPS}") == 2


def test_a_cluster_that_is_gone_is_none_and_deleted_already(google: Google, api: Api) -> None:
    assert CLUSTER.read(api, PLAN) is None
    CLUSTER.delete(api, PLAN)
    assert google.lines == [f"GET {ONE}"] * 2


@cases("""
prior | plan | sent
{enable_shielded_nodes: false, logging_config: [], min_master_version: "1.33"}
    | {enable_shielded_nodes: true, logging_config: [{enable_components: [A]}],
       min_master_version: "1.34"}
    | [[PUT, {desiredShieldedNodes: {enabled: true}}], [PUT, {desiredMasterVersion: "1.34"}],
       [PUT, {desiredLoggingConfig: {componentConfig: {enableComponents: [A]}}}]]
{enable_multi_networking: true} | {enable_multi_networking: false}
    | [[PUT, {desiredEnableMultiNetworking: false}]]
{workload_identity_config: [{workload_pool: p.svc.id.goog}]} | {workload_identity_config: []}
    | [[PUT, {desiredWorkloadIdentityConfig: {workloadPool: ""}}]]
{database_encryption: [{state: ENCRYPTED}]} | {database_encryption: []} | [[PUT, {}]]
{addons_config: [{gcs_fuse_csi_driver_config: [{enabled: true}]}]} | {addons_config: []} | []
{min_master_version: null} | {min_master_version: "1.32"} | []
{node_locations: [us-central1-a]} | {node_locations: [us-central1-b]}
    | [[PUT, {desiredLocations: [us-central1-b, us-central1-a]}],
       [PUT, {desiredLocations: [us-central1-b]}]]
{remove_default_node_pool: false} | {remove_default_node_pool: true}
    | [[DELETE/nodePools/default-pool, null]]
# No root makes this change.
{} | {vertical_pod_autoscaling: [{enabled: true}]}
    | [[PUT, {desiredVerticalPodAutoscaling: {enabled: true}}]]
""")
def test_each_change_of_a_cluster_has_a_request_in_the_providers_order(
    google: Google, api: Api, prior: Any, plan: Any, sent: list[Any]
) -> None:
    google.on("(PUT|POST|DELETE) .*", DONE).on(f"GET {ONE}", THERE)
    google.on(f"GET {POOLS}/default-pool", {"name": "default-pool"})
    full = {**PLAN, "node_config": [], "node_version": None, "master_version": "1.33.5-gke.1"}
    CLUSTER.update(api, {**full, **prior}, {**full, **plan})
    asked = [it for it in google.asked if it.method != "GET"]
    found = [[it.line.replace(f" {ONE}", ""), it.body and it.body["update"]] for it in asked]
    assert found == sent


def test_a_new_maintenance_policy_goes_with_the_version_of_the_old(
    google: Google, api: Api
) -> None:
    there = {**THERE, "maintenancePolicy": {"resourceVersion": "v1", "window": WINDOW}}
    google.on("POST .*", DONE).on(f"GET {ONE}", there)
    held = {**PLAN, "node_config": [], "maintenance_policy": [{"maintenance_exclusion": [HELD]}]}
    CLUSTER.update(api, held, {**held, "maintenance_policy": []})
    exclusions = {"maintenanceExclusions": WINDOW["maintenanceExclusions"]}
    assert google.body(f"POST {ONE}:setMaintenancePolicy") == {
        "maintenancePolicy": {"window": exclusions, "resourceVersion": "v1"}
    }


def test_every_field_of_an_update_is_one_of_google_s() -> None:
    document = json.loads((discovery.folder() / "container.v1.json").read_text())
    known = document["schemas"]["ClusterUpdate"]["properties"]
    assert [change.name for change in CHANGES if change.name not in known] == []


def test_a_protected_cluster_is_not_deleted(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="deletion_protection is set to true"):
        CLUSTER.delete(api, {**PLAN, "deletion_protection": True})
    assert google.lines == []


@pytest.mark.parametrize(
    ("path", "times", "what"),
    # A cluster's is asked for again for half a minute, whatever Google says.
    [(ONE, 7, "Cluster"), (POOL_N, 1, "NodePool")],
)
def test_a_refusal_of_a_deletion_is_told_in_the_end(  # noqa: PLR0913, PLR0917 - fixtures and a row
    google: Google, api: Api, refuse: Callable[..., Any], path: str, times: int, what: str
) -> None:
    kind, plan = (CLUSTER, PLAN) if path == ONE else (POOL, POOL_PLAN)
    google.on(f"GET {path}", {"status": "RECONCILING"}, {"status": "RUNNING"})
    google.on(f"DELETE {path}", refuse(403, "no", "forbidden"))
    with pytest.raises(ProviderError) as caught:
        kind.delete(api, plan)
    assert str(caught.value) == f"Error deleting {what}: googleapi: Error 403: no, forbidden"
    assert google.lines == [f"GET {path}"] * 2 + [f"DELETE {path}"] * times


@cases(
    """
kind | import_id | looks
@cluster | @path | [@one]
@cluster | p/us-central1/c | [@one]
@cluster | us-central1/c | [@one]
@pool | @path/nodePools/n | [@one, @pool_n]
@pool | p/us-central1/c/n | [@one, @pool_n]
@pool | us-central1/c/n | [@one, @pool_n]
""",
    cluster=CLUSTER,
    pool=POOL,
    path=PATH,
    one=ONE,
    pool_n=POOL_N,
)
def test_it_is_imported_by_its_path_or_less(
    google: Google, api: Api, kind: Any, import_id: str, looks: list[str]
) -> None:
    google.on(f"GET ({ONE}|{POOL_N})", THERE).on(f"GET {POOLS}", {"nodePools": [POOL_THERE]})
    state = kind.import_state(api, import_id)
    assert google.lines == [f"GET {path}" for path in looks]
    assert state["id"] == looks[-1].removeprefix("/container/v1/")
    found = kind.read(api, schema.complete(OF_CLUSTER if kind is CLUSTER else OF_POOL, state))
    assert found["id"] == state["id"]


def test_the_import_of_what_is_not_there_fails(api: Api) -> None:
    with pytest.raises(GoogleApiError, match="Error 404"):
        CLUSTER.import_state(api, PATH)


# ------------------------------------------------------------------ pools


def test_the_cluster_may_be_named_alone(google: Google, api: Api) -> None:
    google.on(f"POST {POOLS}", DONE)
    google.on(f"GET {POOL_N}", *missing_then(POOL_THERE))
    google.on(f"GET {POOLS}", {"nodePools": [POOL_THERE]})
    state = POOL.create(api, {**POOL_PLAN, "cluster": "c", "location": "us-central1"})
    assert (state["id"], state["cluster"]) == (f"{PATH}/nodePools/n", "c")
    assert (state["project"], state["node_count"]) == ("p", 2)


def test_a_pool_has_one_size_at_its_beginning(api: Api) -> None:
    with pytest.raises(ProviderError, match="Cannot set both initial_node_count and node_count"):
        POOL.create(api, {**POOL_PLAN, "initial_node_count": 1})


def test_a_refusal_of_the_creation_is_told_at_once(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    google.on(f"POST {POOLS}", refuse(400, "wrong", "invalid"))
    with pytest.raises(ProviderError, match="error creating NodePool: googleapi: Error 400: wrong"):
        POOL.create(api, POOL_PLAN)
    assert google.lines.count(f"POST {POOLS}") == 1


def test_a_pool_whose_nodes_do_not_come_is_kept_tainted(google: Google, api: Api) -> None:
    there = {**POOL_THERE, "status": "RUNNING_WITH_ERROR"}
    google.on(f"POST {POOLS}", FAILED)
    google.on(f"GET {POOL_N}", *missing_then(there)).on(f"GET {POOLS}", {"nodePools": [there]})
    with pytest.raises(PartialError) as caught:
        POOL.create(api, POOL_PLAN)
    assert str(caught.value) == 'NodePool n was created in the error state "RUNNING_WITH_ERROR"'


def test_an_interrupted_pool_goes_on_at_the_next_read(google: Google, api: Api) -> None:
    google.on(f"POST {POOLS}", RUNNING).on(f"GET {OPERATION}", RUNNING, DONE)
    google.on(f"GET {POOLS}", {"nodePools": [POOL_THERE]})
    api.cancel.set()
    state = POOL.create(api, POOL_PLAN)
    assert state["operation"] == "o"
    assert "disk_type" not in state["node_config"][0]
    api.cancel.clear()
    found = POOL.read(api, schema.complete(OF_POOL, state))
    assert found is not None
    assert found["operation"] == ""
    assert google.lines[-3:] == [f"GET {OPERATION}", f"GET {POOLS}", f"GET {GROUPS}"]


def test_many_pools_are_read_with_one_list_and_one_that_is_missing_is_none(
    google: Google, api: Api
) -> None:
    pools = [{**POOL_THERE, "name": f"n{number}"} for number in range(50)]
    google.on(f"GET {POOLS}", {"nodePools": pools}, *missing_then())
    for pool in pools:
        found = POOL.read(api, {**POOL_PLAN, "name": pool["name"]})
        assert found is not None
        assert found["node_config"][0]["logging_variant"] == "DEFAULT"
    assert google.lines == [f"GET {POOLS}", f"GET {GROUPS}"]
    assert POOL.read(api, POOL_PLAN) is None  # its cluster is gone


def test_labels_that_google_adds_to_machines_are_no_change(google: Google, api: Api) -> None:
    google.on(f"GET {POOLS}", {"nodePools": [POOL_THERE]})
    state = POOL.read(api, {**POOL_PLAN, "node_config": []})
    nodes = {**POOL_PLAN["node_config"][0], "resource_labels": {"a": "c"}}
    planned = POOL.customize(api, state, {**POOL_PLAN, "node_config": [nodes]})
    assert planned["node_config"][0]["resource_labels"] == {"goog-gke-x": "y", "a": "c"}


LIMITS = {"total_min_node_count": 0, "total_max_node_count": 4, "location_policy": "ANY"}


@cases(
    """
prior | plan | sent
{autoscaling: [@limits]} | {autoscaling: [@wider]}
    | {desiredNodePoolId: n, desiredNodePoolAutoscaling: {enabled: true, minNodeCount: 0,
       totalMinNodeCount: 0, totalMaxNodeCount: 8, locationPolicy: ANY}}
{autoscaling: [@limits]} | {autoscaling: []}
    | {desiredNodePoolId: n, desiredNodePoolAutoscaling: {enabled: false}}
{management: [{auto_repair: true, auto_upgrade: true}]}
    | {management: [{auto_repair: false, auto_upgrade: true}]}
    | {management: {autoRepair: false, autoUpgrade: true}}
{} | {version: "2"} | {nodePoolId: n, nodeVersion: "2"}
{} | {node_locations: [us-central1-b]} | {locations: [us-central1-b]}
{nodes: {disk_size_gb: 100, disk_type: pd-ssd, machine_type: e2-standard-4}}
    | {nodes: {disk_size_gb: 200, disk_type: pd-ssd, machine_type: e2-standard-4}}
    | {name: n, diskSizeGb: "200", diskType: pd-ssd, machineType: e2-standard-4}
{nodes: {disk_size_gb: 10, boot_disk: [{size_gb: 10, disk_type: pd-ssd}]}}
    | {nodes: {disk_size_gb: 20, boot_disk: [{size_gb: 10, disk_type: pd-ssd}]}}
    | {name: n, diskSizeGb: "20", bootDisk: {sizeGb: "20", diskType: pd-ssd}}
{nodes: {resource_labels: {a: b}}} | {nodes: {resource_labels: {}}} | {name: n}
{nodes: {workload_metadata_config: [{mode: GCE_METADATA}]}}
    | {nodes: {workload_metadata_config: [{mode: GKE_METADATA}]}}
    | {nodePoolId: n, workloadMetadataConfig: {mode: GKE_METADATA}}
{nodes: {logging_variant: DEFAULT}} | {nodes: {logging_variant: MAX_THROUGHPUT}}
    | {name: n, loggingConfig: {variantConfig: {variant: MAX_THROUGHPUT}}}
""",
    limits=LIMITS,
    wider={**LIMITS, "total_max_node_count": 8},
)
def test_a_change_of_a_pool_is_sent_and_looked_for(
    google: Google, api: Api, prior: Any, plan: Any, sent: Any
) -> None:
    google.on("(PUT|POST) .*", DONE).on(f"GET ({POOL_N}|{ONE})", POOL_THERE)
    google.on(f"GET {POOLS}", {"nodePools": [POOL_THERE]})
    base = {**POOL_PLAN, "initial_node_count": 0, "version": "1"}
    for given in (prior, plan):
        if "nodes" in given:
            nodes = given.pop("nodes")
            given["node_config"] = [schema.complete(OF_POOL["node_config"].block, nodes)]
    POOL.update(api, {**base, **prior}, {**base, **plan})
    looks = [it.path for it in google.asked if it.method == "GET"]
    assert looks == [POOL_N, ONE, POOL_N, POOLS, GROUPS]
    ((path, body),) = [(it.path, it.body) for it in google.asked if it.method != "GET"]
    assert body == ({"update": sent} if path == ONE else sent)
