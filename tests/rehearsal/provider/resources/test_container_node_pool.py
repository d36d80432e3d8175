"""GKE node pools: their making and its failures, updates in the provider's order, deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider import schema
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import RESOURCES

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

POOL = RESOURCES["google_container_node_pool"]
FIELDS = schema.load("resources", "google_container_node_pool").block
CLUSTER = "projects/p/locations/us-central1/clusters/c"
PATH = f"{CLUSTER}/nodePools/n"
PARENT = f"/container/v1/{CLUSTER}"
ALL = f"{PARENT}/nodePools"
ONE = f"/container/v1/{PATH}"
OPERATIONS = "/container/v1/projects/p/locations/us-central1/operations/"
GROUPS = "/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers"
DONE = {"name": "o", "status": "DONE"}
RUNNING = {"name": "o", "status": "RUNNING"}
THERE: dict[str, Any] = {
    "name": "n",
    "status": "RUNNING",
    "initialNodeCount": 2,
    "locations": ["us-central1-a"],
    "instanceGroupUrls": [f"https://www.googleapis.com{GROUPS}/g"],
    "config": {"machineType": "e2-standard-4", "resourceLabels": {"goog-gke-x": "y", "a": "b"}},
}
PLAN: dict[str, Any] = schema.complete(
    FIELDS,
    {
        "name": "n",
        "cluster": CLUSTER,
        "node_count": 2,
        "initial_node_count": UNKNOWN,
        "version": UNKNOWN,
        "node_config": [{"machine_type": "e2-standard-4", "disk_type": UNKNOWN}],
    },
)
BUSY = "Cluster is running incompatible operation operation-1."


def _missing_then(*answers: Any) -> tuple[Any, ...]:
    return ((404, {"error": {"code": 404, "message": "none"}}), *answers)


@pytest.fixture(autouse=True)
def groups(google: Google) -> None:
    """The pool's group has two nodes."""
    google.on(f"GET {GROUPS}", {"items": [{"name": "g", "targetSize": 2}]})


def test_it_is_looked_for_made_waited_for_listed_and_seen_at_rest(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE)).on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.create(api, PLAN)
    assert google.lines == [
        f"GET {ONE}",
        f"POST {ALL}",
        f"GET {OPERATIONS}o",
        f"GET {ALL}",
        f"GET {GROUPS}",
        f"GET {ONE}",
    ]
    assert google.body(f"POST {ALL}") == {
        "nodePool": {
            "name": "n",
            "initialNodeCount": 2,
            "networkConfig": {},
            "config": {
                "machineType": "e2-standard-4",
                "loggingConfig": {"variantConfig": {}},
            },
        }
    }
    assert (state["id"], state["location"], state["node_count"]) == (PATH, "us-central1", 2)
    assert state["managed_instance_group_urls"] == state["instance_group_urls"]


def test_the_cluster_may_be_named_alone(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE)).on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.create(api, {**PLAN, "cluster": "c", "location": "us-central1"})
    assert (state["id"], state["cluster"], state["project"]) == (PATH, "c", "p")


def test_a_name_prefix_makes_a_name(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", {**DONE, "error": {"message": "enough"}})
    with pytest.raises(OperationError):
        POOL.create(api, {**PLAN, "name": UNKNOWN, "name_prefix": "gpu-"})
    name = google.body(f"POST {ALL}")["nodePool"]["name"]
    assert (name[:4], len(name)) == ("gpu-", 30)


def test_one_that_is_there_already_is_not_touched(google: Google, api: Api) -> None:
    google.on(f"GET {ONE}", THERE)
    with pytest.raises(ProviderError, match=f"resource - {PATH} - already exists"):
        POOL.create(api, PLAN)
    assert google.lines == [f"GET {ONE}"]


def test_a_pool_has_one_size_at_its_beginning(google: Google, api: Api) -> None:
    with pytest.raises(ProviderError, match="Cannot set both initial_node_count and node_count"):
        POOL.create(api, {**PLAN, "initial_node_count": 1})
    assert google.lines == [f"GET {ONE}"]


def test_the_creation_waits_while_something_else_works_on_the_cluster(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    busy = refuse(400, BUSY, "failedPrecondition")
    google.on(f"POST {ALL}", *[busy] * 9, DONE)
    google.on(f"GET {ONE}", *_missing_then(THERE)).on(f"GET {ALL}", {"nodePools": [THERE]})
    POOL.create(api, PLAN)
    assert google.lines.count(f"POST {ALL}") == 10


def test_a_refusal_of_the_creation_is_told_at_once(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    google.on(f"POST {ALL}", refuse(400, "wrong", "invalid"))
    with pytest.raises(ProviderError) as caught:
        POOL.create(api, PLAN)
    assert str(caught.value) == ("error creating NodePool: googleapi: Error 400: wrong, invalid")
    assert google.lines.count(f"POST {ALL}") == 1


def test_a_pool_that_did_not_come_to_be_is_not_kept(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", {**DONE, "error": {"code": 8, "message": "no room"}})
    with pytest.raises(OperationError, match=r"^no room$"):
        POOL.create(api, PLAN)
    assert google.lines == [f"GET {ONE}", f"POST {ALL}", f"GET {ONE}"]


def test_a_pool_whose_nodes_do_not_come_is_kept_tainted(google: Google, api: Api) -> None:
    there = {**THERE, "status": "RUNNING_WITH_ERROR"}
    google.on(f"POST {ALL}", {**DONE, "error": {"code": 8, "message": "no room"}})
    google.on(f"GET {ONE}", *_missing_then(there)).on(f"GET {ALL}", {"nodePools": [there]})
    with pytest.raises(PartialError) as caught:
        POOL.create(api, PLAN)
    assert str(caught.value) == 'NodePool n was created in the error state "RUNNING_WITH_ERROR"'
    assert caught.value.state["id"] == PATH


def test_an_interrupted_creation_goes_on_at_the_next_read(google: Google, api: Api) -> None:
    google.on(f"POST {ALL}", RUNNING).on(f"GET {OPERATIONS}o", RUNNING, DONE)
    google.on(f"GET {ALL}", {"nodePools": [THERE]})
    api.cancel.set()
    state = POOL.create(api, PLAN)
    assert (state["id"], state["operation"]) == (PATH, "o")
    assert "disk_type" not in state["node_config"][0]
    api.cancel.clear()
    found = POOL.read(api, schema.complete(FIELDS, state))
    assert found is not None
    assert found["operation"] == ""
    assert google.lines[-3:] == [f"GET {OPERATIONS}o", f"GET {ALL}", f"GET {GROUPS}"]


def test_many_pools_are_read_with_one_list(google: Google, api: Api) -> None:
    pools = [{**THERE, "name": f"n{number}"} for number in range(50)]
    google.on(f"GET {ALL}", {"nodePools": pools})
    for pool in pools:
        assert POOL.read(api, {**PLAN, "name": pool["name"]}) is not None
    assert google.lines == [f"GET {ALL}", f"GET {GROUPS}"]


def test_a_pool_that_is_not_in_the_list_is_none(google: Google, api: Api) -> None:
    google.on(f"GET {ALL}", {})
    assert POOL.read(api, PLAN) is None


def test_what_google_leaves_out_of_logging_is_the_usual(google: Google, api: Api) -> None:
    google.on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.read(api, PLAN)
    assert state is not None
    assert state["node_config"][0]["logging_variant"] == "DEFAULT"


def test_labels_that_google_adds_to_machines_are_no_change(google: Google, api: Api) -> None:
    google.on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.read(api, {**PLAN, "node_config": []})
    wanted = {**PLAN, "node_config": [{**PLAN["node_config"][0], "resource_labels": {"a": "c"}}]}
    planned = POOL.customize(api, state, wanted)
    assert planned["node_config"][0]["resource_labels"] == {"goog-gke-x": "y", "a": "c"}


def _updated(google: Google, api: Api, prior: dict[str, Any], plan: dict[str, Any]) -> list[Any]:
    """The requests of an update, without those that only look."""
    google.on("(PUT|POST) .*", DONE).on(f"GET ({ONE}|{PARENT})", THERE)
    google.on(f"GET {ALL}", {"nodePools": [THERE]})
    base = {**PLAN, "initial_node_count": 0, "version": "1"}
    POOL.update(api, {**base, **prior}, {**base, **plan})
    looks = [it.line for it in google.asked if it.method == "GET"]
    assert looks == [f"GET {ONE}", f"GET {PARENT}", f"GET {ONE}", f"GET {ALL}", f"GET {GROUPS}"]
    return [(it.line, it.body) for it in google.asked if it.method != "GET"]


def _nodes(**attributes: Any) -> dict[str, Any]:
    block = FIELDS["node_config"].block
    return {"node_config": [schema.complete(block, attributes)]}


LIMITS = {"total_min_node_count": 0, "total_max_node_count": 4, "location_policy": "ANY"}


@pytest.mark.parametrize(
    ("prior", "plan", "sent"),
    [
        (
            {"autoscaling": [LIMITS]},
            {"autoscaling": [{**LIMITS, "total_max_node_count": 8}]},
            [
                (
                    f"PUT {PARENT}",
                    {
                        "update": {
                            "desiredNodePoolId": "n",
                            "desiredNodePoolAutoscaling": {
                                "enabled": True,
                                "minNodeCount": 0,
                                "totalMinNodeCount": 0,
                                "totalMaxNodeCount": 8,
                                "locationPolicy": "ANY",
                            },
                        }
                    },
                )
            ],
        ),
        (
            {"autoscaling": [LIMITS]},
            {"autoscaling": []},
            [
                (
                    f"PUT {PARENT}",
                    {
                        "update": {
                            "desiredNodePoolId": "n",
                            "desiredNodePoolAutoscaling": {"enabled": False},
                        }
                    },
                )
            ],
        ),
        ({}, {"node_count": 5}, [(f"POST {ONE}:setSize", {"nodeCount": 5})]),
        (
            {"management": [{"auto_repair": True, "auto_upgrade": True}]},
            {"management": [{"auto_repair": False, "auto_upgrade": True}]},
            [
                (
                    f"POST {ONE}:setManagement",
                    {"management": {"autoRepair": False, "autoUpgrade": True}},
                )
            ],
        ),
        ({}, {"version": "2"}, [(f"PUT {ONE}", {"nodePoolId": "n", "nodeVersion": "2"})]),
        (
            {},
            {"node_locations": ["us-central1-b"]},
            [(f"PUT {ONE}", {"locations": ["us-central1-b"]})],
        ),
        (
            _nodes(disk_size_gb=100, disk_type="pd-ssd", machine_type="e2-standard-4"),
            _nodes(disk_size_gb=200, disk_type="pd-ssd", machine_type="e2-standard-4"),
            [
                (
                    f"PUT {ONE}",
                    {
                        "name": "n",
                        "diskSizeGb": "200",
                        "diskType": "pd-ssd",
                        "machineType": "e2-standard-4",
                    },
                )
            ],
        ),
        (
            _nodes(disk_size_gb=10, boot_disk=[{"size_gb": 10, "disk_type": "pd-ssd"}]),
            _nodes(disk_size_gb=20, boot_disk=[{"size_gb": 10, "disk_type": "pd-ssd"}]),
            [
                (
                    f"PUT {ONE}",
                    {
                        "name": "n",
                        "diskSizeGb": "20",
                        "bootDisk": {"sizeGb": "20", "diskType": "pd-ssd"},
                    },
                )
            ],
        ),
        (
            _nodes(disk_size_gb=10, boot_disk=[{"size_gb": 10}]),
            _nodes(disk_size_gb=10, boot_disk=[{"size_gb": 30}]),
            [(f"PUT {ONE}", {"name": "n", "diskSizeGb": "30", "bootDisk": {"sizeGb": "30"}})],
        ),
        (
            _nodes(labels={"a": "b"}, resource_labels={"a": "b"}, tags=["t"]),
            _nodes(labels={"a": "c"}, resource_labels={}, tags=[]),
            [
                (f"PUT {ONE}", {"name": "n", "labels": {"labels": {"a": "c"}}}),
                (f"PUT {ONE}", {"name": "n"}),
                (f"PUT {ONE}", {"name": "n", "tags": {"tags": []}}),
            ],
        ),
        (
            _nodes(workload_metadata_config=[{"mode": "GCE_METADATA"}]),
            _nodes(workload_metadata_config=[{"mode": "GKE_METADATA"}]),
            [
                (
                    f"PUT {ONE}",
                    {"nodePoolId": "n", "workloadMetadataConfig": {"mode": "GKE_METADATA"}},
                )
            ],
        ),
        (
            _nodes(logging_variant="DEFAULT"),
            _nodes(logging_variant="MAX_THROUGHPUT"),
            [
                (
                    f"PUT {ONE}",
                    {
                        "name": "n",
                        "loggingConfig": {"variantConfig": {"variant": "MAX_THROUGHPUT"}},
                    },
                )
            ],
        ),
    ],
)
def test_an_update_sends_what_the_provider_sends(
    google: Google, api: Api, prior: Any, plan: Any, sent: list[Any]
) -> None:
    assert _updated(google, api, prior, plan) == sent


def test_an_update_asks_again_for_what_was_read_before(google: Google, api: Api) -> None:
    google.on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.read(api, PLAN)
    assert state is not None
    assert google.lines == [f"GET {ALL}", f"GET {GROUPS}"]
    google.asked.clear()
    _updated(google, api, state, {**state, "node_count": 5})


def test_an_update_waits_while_something_else_works_on_the_pool(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    busy = refuse(400, BUSY, "failedPrecondition")
    google.on(f"POST {ONE}:setSize", busy, busy, DONE)
    google.on(f"GET ({ONE}|{PARENT})", THERE).on(f"GET {ALL}", {"nodePools": [THERE]})
    base = {**PLAN, "version": "1"}
    POOL.update(api, base, {**base, "node_count": 5})
    assert google.lines.count(f"POST {ONE}:setSize") == 3


def test_a_deletion_waits_while_something_else_works_on_the_cluster(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    busy = refuse(400, BUSY, "failedPrecondition")
    google.on(f"GET {ONE}", THERE).on(f"DELETE {ONE}", busy, busy, RUNNING)
    google.on(f"GET {OPERATIONS}o", DONE)
    POOL.delete(api, PLAN)
    deletion = f"DELETE {ONE}"
    assert google.lines == [
        f"GET {ONE}",
        deletion,
        deletion,
        deletion,
        f"GET {OPERATIONS}o",
    ]


def test_a_deletion_of_what_is_gone_is_done(google: Google, api: Api) -> None:
    POOL.delete(api, PLAN)
    assert google.lines == [f"GET {ONE}"]


def test_a_pool_goes_with_its_cluster(google: Google, api: Api) -> None:
    google.on(f"GET {ALL}", *_missing_then({}))
    assert POOL.read(api, PLAN) is None


def test_a_refusal_of_the_deletion_is_told(
    google: Google, api: Api, refuse: Callable[..., tuple[int, Any]]
) -> None:
    google.on(f"GET {ONE}", THERE).on(f"DELETE {ONE}", refuse(403, "no", "forbidden"))
    with pytest.raises(ProviderError, match=r"^Error deleting NodePool: googleapi: Error 403: no"):
        POOL.delete(api, PLAN)
    assert google.lines.count(f"DELETE {ONE}") == 1


@pytest.mark.parametrize("import_id", [PATH, "p/us-central1/c/n", "us-central1/c/n"])
def test_it_is_imported_by_its_path_or_less(google: Google, api: Api, import_id: str) -> None:
    google.on(f"GET ({ONE}|{PARENT})", THERE).on(f"GET {ALL}", {"nodePools": [THERE]})
    state = POOL.import_state(api, import_id)
    assert (state["id"], state["cluster"], state["name"]) == (PATH, "c", "n")
    assert google.lines == [f"GET {PARENT}", f"GET {ONE}"]
    found = POOL.read(api, schema.complete(FIELDS, state))
    assert found is not None
    assert found["node_count"] == 2


def test_the_import_of_what_is_not_there_fails(google: Google, api: Api) -> None:
    google.on(f"GET {PARENT}", THERE)
    with pytest.raises(GoogleApiError, match="Error 404"):
        POOL.import_state(api, PATH)
