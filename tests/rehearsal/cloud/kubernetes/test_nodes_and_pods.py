import itertools
from typing import Any

import pytest

from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes.objects import Object, build, conditions, holds
from tests.rehearsal.cloud.kubernetes.conftest import Clock, Gke, Make

SCALING = {"GKE_MIN_NODE_COUNT": "0", "GKE_MAX_NODE_COUNT": "3", "INSTANCE_COUNT": ""}
FLEX = {**SCALING, "ENABLE_FLEX_START": "yes"}
GROUPS = "/compute/v1/projects/my-project/zones/us-central1-a/instanceGroupManagers"


@pytest.fixture
def up(gke_of: Make, clock: Clock) -> Make:
    """Makes a cluster by a clock that goes on, whose nodes of the beginning are ready."""

    def make(scenario: str = "", **changes: str) -> Gke:
        cluster = gke_of("gke-plain", scenario, "1", **changes)
        clock.forward(60)
        return cluster

    return make


def _job(name: str, count: int = 1, gpus: int = 0, **pod: Any) -> Object:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    container = {"name": "c", "image": "sleep", "args": ["120s"], "resources": resources}
    spec = {
        "parallelism": count,
        "completions": count,
        "template": {"spec": {"restartPolicy": "Never", "containers": [container], **pod}},
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def test_nodes_have_the_labels_and_taints_of_their_pool(gke_of: Make) -> None:
    cluster = gke_of("gke-plain")
    found = {it.pool: it for it in cluster.seen.nodes}
    pool = cluster.facts.pools[0].name
    assert [it.unready for it in found[pool].each] == ["", ""]
    node = cluster.api.all("v1", "Node", selector=f"cloud.google.com/gke-nodepool={pool}")[0]
    labels = node["metadata"]["labels"]
    assert labels["node.kubernetes.io/instance-type"] == "g2-standard-24"
    assert labels["cloud.google.com/gke-accelerator"] == "nvidia-l4"
    assert labels["topology.kubernetes.io/zone"] == "us-central1-a"
    assert node["status"]["capacity"]["nvidia.com/gpu"] == "2"
    taint = {"key": "nvidia.com/gpu", "value": "present", "effect": "NoSchedule"}
    assert node["spec"]["taints"] == [taint]


def test_a_node_is_ready_half_a_minute_after_its_vm(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1")
    node = cluster.api.all("v1", "Node")[0]
    assert not holds(node, "Ready")
    clock.forward(31)
    assert holds(cluster.find({**node, "apiVersion": "v1", "kind": "Node"}), "Ready")


def test_a_node_whose_host_fails_is_not_ready_until_it_is_back(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1", scenario="host-error")
    name = cluster.facts.pools[0].name

    def unready() -> list[str]:
        (nodes,) = (it.each for it in cluster.seen.nodes if it.pool == name)
        return sorted(it.unready for it in nodes)

    clock.forward(60)
    assert unready() == ["", ""]
    clock.forward(61)
    ready, line = unready()
    assert not ready
    assert line.endswith(" is not ready (NodeStatusUnknown): Kubelet stopped posting node status.")
    clock.forward(330 + 25 + 30)
    assert unready() == ["", ""]


def test_a_preempted_node_goes_and_comes_again_by_its_name(up: Make, clock: Clock) -> None:
    cluster = up("preempted", ENABLE_SPOT="yes")

    def names() -> set[str]:
        return {it["metadata"]["name"] for it in cluster.api.all("v1", "Node")}

    before = names()
    clock.forward(61)
    assert len(names()) == len(before) - 1
    clock.forward(330 + 60)
    assert names() == before


def test_pods_share_the_gpus_of_nodes_and_wait_for_free_ones(up: Make, clock: Clock) -> None:
    cluster = up()  # two nodes of two GPUs
    cluster.api.create(_job("five", 5, gpus=1))
    assert cluster.phases() == ["Pending", *["Running"] * 4]
    (waiting,) = [it for it in cluster.pods() if it["status"]["phase"] == "Pending"]
    said = conditions(waiting)["PodScheduled"]
    assert said["reason"] == "Unschedulable"
    assert "Insufficient nvidia.com/gpu" in said["message"]
    clock.forward(121)
    assert cluster.phases() == ["Running", *["Succeeded"] * 4]


def test_a_pod_without_gpus_does_not_go_to_a_gpu_node(up: Make) -> None:
    cluster = up()
    cluster.api.create(_job("plain"))
    (pod,) = cluster.pods()
    assert "-system-" in pod["spec"]["nodeName"]
    there = {"cloud.google.com/gke-accelerator": "nvidia-l4"}
    cluster.api.create(_job("there", nodeSelector=there))
    assert cluster.phases("job-name=there") == ["Pending"]


def test_a_pool_grows_for_pods_that_wait_and_no_further_than_it_may(up: Make, clock: Clock) -> None:
    cluster = up(**SCALING)
    assert cluster.nodes() == 0
    cluster.api.create(_job("many", 9, gpus=2))
    clock.forward(120)
    assert cluster.nodes() == 3
    assert cluster.phases() == [*["Pending"] * 6, *["Running"] * 3]
    for _ in range(4):
        clock.forward(130)
        cluster.pods()
    assert set(cluster.phases()) == {"Succeeded"}
    clock.forward(700)
    assert cluster.nodes() == 0


@pytest.mark.parametrize("changes", [SCALING, FLEX], ids=["plain", "flex"])
def test_a_pool_without_capacity_stays_as_it_is_and_pods_hear_why(
    up: Make, clock: Clock, changes: dict[str, str]
) -> None:
    cluster = up("stockout", **changes)
    cluster.api.create(_job("one", gpus=1))
    clock.forward(30)
    cluster.pods()
    (event,) = cluster.events()
    assert event["reason"] == "FailedScaleUp"
    assert event["message"] == (
        "Node scale up in zones us-central1-a associated with this pod failed: GCE out of"
        " resources. Pod is at risk of not being scheduled."
    )
    sizes = {it["name"]: it["targetSize"] for it in cluster.google("GET", GROUPS)["items"]}
    assert [size for name, size in sizes.items() if "gke-l4" in name] == [0]


def test_a_flex_start_pool_gets_its_nodes_when_they_are_granted(up: Make, clock: Clock) -> None:
    cluster = up("queue", **FLEX)
    cluster.api.create(_job("one", gpus=1))
    clock.forward(200)
    assert cluster.nodes() == 0
    clock.forward(120)
    assert cluster.nodes() == 1
    clock.forward(60)
    assert cluster.phases() == ["Running"]


def _flex(cluster: Gke) -> list[str]:
    """The names of the resize requests of the pool of GPUs, those that ended aside."""
    found = cluster.google("GET", GROUPS)["items"]
    (name,) = (it["name"] for it in found if "gke-l4" in it["name"])
    asked = cluster.google("GET", f"{GROUPS}/{name}/resizeRequests").get("items", [])
    return sorted(it["name"] for it in asked if it["state"] in {"CREATING", "ACCEPTED"})


def test_a_flex_start_pool_asks_for_each_node_by_itself(up: Make, clock: Clock) -> None:
    # 18: it asked for all nodes at once
    cluster = up("never", **FLEX)
    cluster.api.create(_job("many", 2, gpus=2))
    clock.forward(30)
    cluster.pods()
    assert [name.rpartition("-")[2] for name in _flex(cluster)] == ["0", "1"]
    assert all(name.startswith("flex-") for name in _flex(cluster))


def test_flex_start_gives_up_after_a_quarter_of_an_hour_and_rests_longer_each_time(
    up: Make, clock: Clock
) -> None:
    # 18, 19: it waited for ever, and rested for five minutes always
    cluster = up("never", **FLEX)
    cluster.api.create(_job("one", gpus=1))
    asked = []
    for _ in range(420):
        clock.forward(10)
        cluster.pods()
        asked.append(bool(_flex(cluster)))
    turns = [0, *(at for at in range(1, len(asked)) if asked[at] != asked[at - 1]), len(asked)]
    spans = [10 * (after - before) for before, after in itertools.pairwise(turns)]
    assert asked[0]
    waited, rested, again, longer = spans[:4]
    assert 890 <= waited <= 1030
    assert 890 <= again <= 1030
    assert 170 <= rested <= 310
    assert 470 <= longer <= 610
    assert "FailedScaleUp" in {it["reason"] for it in cluster.events()}


def test_no_node_goes_soon_after_another_has_come(up: Make, clock: Clock) -> None:
    # 20
    cluster = up(**SCALING)
    cluster.api.create(_job("first", gpus=2))
    clock.forward(200)  # it has run; its node idles
    cluster.pods()
    clock.forward(500)
    cluster.api.create(_job("second", 2, gpus=2))
    clock.forward(200)
    assert cluster.nodes() == 2
    clock.forward(390)
    assert cluster.nodes() == 2
    clock.forward(500)
    assert cluster.nodes() == 0


def test_a_daemon_set_counts_the_nodes_that_it_is_for(gke_of: Make) -> None:
    cluster = gke_of("gke-plain")
    rule = {"key": "cloud.google.com/gke-accelerator", "operator": "In", "values": ["nvidia-l4"]}
    required = {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}}
    spec = {"selector": {}, "template": {"spec": {"affinity": affinity}}}
    thing = build("apps/v1", "DaemonSet", "d", "default", spec=spec)
    cluster.api.create(thing)
    said = cluster.find(thing)["status"]
    assert (said["desiredNumberScheduled"], said["numberReady"]) == (2, 2)


def test_a_deployment_is_available_once_there_is_a_node_for_it(gke_of: Make, clock: Clock) -> None:
    cluster = gke_of("gke-plain", rate="1")
    spec: Object = {"replicas": 2, "selector": {}, "template": {}}
    thing = build("apps/v1", "Deployment", "d", "default", spec=spec)
    cluster.api.create(thing)
    assert not holds(cluster.find(thing), "Available")
    clock.forward(60)
    assert holds(cluster.find(thing), "Available")
    assert cluster.find(thing)["status"]["availableReplicas"] == 2


def test_ended_jobs_are_forgotten_after_their_time_to_live(up: Make, clock: Clock) -> None:
    cluster = up()
    job = _job("short")
    job["spec"]["ttlSecondsAfterFinished"] = 100
    cluster.api.create(job)
    clock.forward(121)
    assert holds(cluster.find(job), "Complete")
    clock.forward(101)
    assert cluster.api.all("batch/v1", "Job", "default") == []
    assert cluster.pods() == []


def test_claims_are_bound_to_the_volumes_that_they_name(gke_of: Make) -> None:
    cluster = gke_of("gke-plain")
    claim = build("v1", "PersistentVolumeClaim", "c", "default", spec={"volumeName": "v"})
    volume = build("v1", "PersistentVolume", "v", spec={})
    cluster.api.create(claim)
    assert cluster.find(claim)["status"]["phase"] == "Pending"
    cluster.api.create(volume)
    assert cluster.find(claim)["status"]["phase"] == "Bound"
    assert cluster.find(volume)["status"]["phase"] == "Bound"


def test_the_all_gather_of_machines_without_a_gpu_network_is_slow_and_ends_earlier(
    gke_of: Make,
) -> None:
    cluster = gke_of("gke-plain")
    cluster.create()
    tested = cluster.test()
    measured = tested.document
    assert measured.networks == ("Socket",)
    assert list(measured.interfaces.values()) == [1, 1]
    assert measured.rows[-1].size == 2**30
    assert measured.peak_in_place < 20
    assert "without a verdict" in testing.passed(tested)


def test_the_all_gather_within_one_node_is_fast(gke_of: Make) -> None:
    cluster = gke_of("gke-plain", **{"ACTION": "Test", "--nodes": "1"})
    cluster.create()
    measured = cluster.test().document
    assert len(measured.interfaces) == 1
    assert measured.peak_in_place > 100
