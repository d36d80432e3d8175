"""GPUs that fail and hosts that are maintained, as nodes show it and as the program reads it."""

import json
from typing import Any

import pytest

from provision.documents.gke_status import JobState
from provision.documents.status import PoolMode
from provision.kinds.gke import trouble
from provision.kinds.gke.kubernetes.nodes import Node
from provision.kinds.gke.kubernetes.objects import build, conditions
from provision.time import clock as google_clock
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

UP = 31


def _nodes(cluster: Gke) -> list[Node]:
    """The nodes of the GPU pool."""
    name = cluster.facts.pools[0].name
    return [node for it in cluster.seen.nodes if it.pool == name for node in it.each]


def _raw(cluster: Gke, name: str) -> Any:
    return cluster.api.find("v1", "Node", name)


def _job(name: str, gpus: int) -> Any:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}}
    container = {"name": "c", "image": "sleep", "args": ["600s"], "resources": resources}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    return build("batch/v1", "Job", name, "default", spec={"template": template})


def test_a_job_in_no_queue_is_listed_with_what_keeps_it(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1", ENABLE_KUEUE="no")
    clock.forward(60)
    cluster.api.create(_job("small", 2))
    cluster.api.create(_job("large", 8))
    large, small = cluster.seen.outside
    assert (small.name, small.state) == ("Job small", JobState.RUNNING)
    assert small.pools == (cluster.facts.pools[0].name,)
    assert (large.name, large.state) == ("Job large", JobState.PENDING)
    assert "Insufficient nvidia.com/gpu" in large.message
    assert "wait until other jobs end" in large.advice
    clock.forward(601)
    assert [it.name for it in cluster.seen.outside] == ["Job large"]


def test_pods_get_neither_a_broken_gpu_nor_a_node_that_is_out_of_use(
    gke_of: Make, clock: Clock
) -> None:
    cluster = gke_of("gke-plain", rate="1", scenario="gpu-error")
    clock.forward(UP)
    cluster.pods()
    clock.forward(61)
    bad, good = _nodes(cluster)
    patch = {"spec": {"unschedulable": True}}
    path = f"/api/v1/nodes/{good.name}"
    cluster.raw("PATCH", path, patch, "application/merge-patch+json")
    for name, gpus in (("two", 2), ("one", 1)):
        cluster.api.create(_job(name, gpus))
    placed = {
        it["metadata"]["labels"]["job-name"]: it["spec"].get("nodeName") for it in cluster.pods()
    }
    assert placed == {"two": None, "one": bad.name}
    assert _nodes(cluster)[1].cordoned


@pytest.mark.parametrize(
    ("scenario", "xid", "usable"), [("gpu-error", "48", 1), ("lost-gpu", "79", 2)]
)
def test_a_gpu_that_fails_is_named_and_its_node_stays_ready(
    gke_of: Make, clock: Clock, scenario: str, xid: str, usable: int
) -> None:
    cluster = gke_of("gke-plain", rate="1", scenario=scenario)
    clock.forward(UP)
    assert [it.xids for it in _nodes(cluster)] == [(), ()]
    clock.forward(61)
    bad, good = _nodes(cluster)
    assert (bad.xids, bad.gpus, bad.usable, bad.unready) == ((xid,), 2, usable, "")
    assert (good.xids, good.usable, good.recent) == ((), 2, ())
    said = conditions(_raw(cluster, bad.name))["XidCriticalError"]
    assert said["reason"] == f'{{"{xid}":true}}'
    # Once, however long one looks.
    clock.forward(600)
    assert [it.xids for it in _nodes(cluster)] == [(xid,), ()]


def test_a_node_that_is_made_anew_has_no_fault(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1", scenario="lost-gpu")
    clock.forward(UP)
    cluster.pods()
    clock.forward(61)
    (pool,) = [it for it in cluster.seen.nodes if "system" not in it.pool]
    url = f"/container/v1/projects/my-project/locations/{cluster.facts.location}/clusters/demo-gke"
    (document,) = [it for it in cluster.google("GET", url)["nodePools"] if it["name"] == pool.pool]
    (found,) = trouble.troubles(pool, 2, document, PoolMode.STANDARD, google_clock.Clock())
    # What Status tells somebody to do does help.
    words = found.fix.splitlines()[-1].split()
    group, zone = words[words.index("managed") + 2], words[words.index("--zone") + 1]
    assert words[words.index("managed") + 1] == "recreate-instances"
    path = f"projects/my-project/zones/{zone}"
    instances = [f"{path}/instances/{name}" for name in words[-1].partition("=")[2].split(",")]
    cluster.google(
        "POST",
        f"/compute/v1/{path}/instanceGroupManagers/{group}/recreateInstances",
        {"instances": instances},
    )
    clock.forward(200)
    assert [(it.xids, it.unready) for it in _nodes(cluster)] == [((), ""), ((), "")]


def test_maintenance_is_told_on_the_node_until_it_is_over(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1", scenario="maintenance")
    clock.forward(UP)
    cluster.pods()
    clock.forward(60)
    node = next(it for it in _nodes(cluster) if it.maintenance)
    told = node.maintenance
    assert told is not None
    assert (told.reasons, told.is_ongoing, told.is_repair) == (("FAILURE_INFRA",), False, True)
    raw = _raw(cluster, node.name)["metadata"]
    upcoming = json.loads(raw["annotations"]["node.gke.io/upcoming-maintenance"])
    assert upcoming["maintenance_status"] == "PENDING"
    assert int(raw["labels"]["cloud.google.com/scheduled-maintenance-time"]) > clock.time()

    clock.forward(3600)
    (ongoing,) = [it for it in _nodes(cluster) if it.maintenance]
    assert ongoing.name == node.name
    assert ongoing.maintenance is not None
    assert (ongoing.maintenance.is_ongoing, ongoing.is_leaving) == (True, True)
    assert ongoing.unready
    clock.forward(800)
    assert all(it.maintenance is None and not it.is_leaving for it in _nodes(cluster))
    assert not any(it.unready for it in _nodes(cluster))
