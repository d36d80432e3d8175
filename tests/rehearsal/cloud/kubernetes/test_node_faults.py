"""What Test finds where a node of a pool has a fault: the program against the simulated cluster."""

import pytest

from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes import jobs, nodes, trials
from tests.rehearsal.cloud.kubernetes.conftest import Make

EXAMPLE = "gke-a3-ultra-flex-queued"


@pytest.mark.parametrize(("count", "measured"), [("3", 4), ("4", 5)])
def test_a_slow_node_is_named_by_pairs(gke_of: Make, count: str, measured: int) -> None:
    cluster = gke_of(EXAMPLE, "slow-vm", **{"ACTION": "Test", "--nodes": count})
    cluster.create()
    tested = cluster.test()
    assert len(tested.tried) == measured
    slow = min(tested.nodes)
    assert tested.bad == (slow,)
    (problem,) = testing.problems(tested)
    assert problem.what.startswith(f"{slow} is at fault: its peak bus bandwidth")


def test_of_two_nodes_the_slow_one_can_t_be_told(gke_of: Make) -> None:
    cluster = gke_of(EXAMPLE, "slow-vm")
    cluster.create()
    tested = cluster.test()
    assert (tested.bad, set(tested.document.suspects)) == ((), set(tested.nodes))


@pytest.mark.parametrize(
    ("scenario", "fault"),
    [
        ("bad-gpu", "17 uncorrected memory (ECC) errors since its boot, on GPU 0"),
        ("missing-interface", "its pod has 9 of 10 network interfaces"),
    ],
)
def test_a_fault_of_one_node_is_told_of_that_node_alone(
    gke_of: Make, scenario: str, fault: str
) -> None:
    cluster = gke_of(EXAMPLE, scenario)
    cluster.create()
    tested = cluster.test()
    (problem,) = testing.problems(tested)
    assert problem.what.startswith(f"{min(tested.nodes)}: {fault}")


def test_a_cordoned_node_says_why_and_gets_no_new_pod(gke_of: Make) -> None:
    cluster = gke_of("gke-plain")
    cluster.create()
    pool = cluster.pool
    selector = f"cloud.google.com/gke-nodepool={pool.name}"
    first, *others = sorted(
        it["metadata"]["name"] for it in cluster.api.all("v1", "Node", selector=selector)
    )
    assert nodes.cordon(cluster.api, first, "7 GPUs instead of 8")
    node = cluster.api.find("v1", "Node", first)
    assert node is not None
    assert node["spec"]["unschedulable"] is True
    assert node["metadata"]["annotations"][nodes.CORDONED] == (
        f"Test found: 7 GPUs instead of 8; undo with: kubectl uncordon {first}"
    )
    for _ in others:
        cluster.api.create(jobs.sample(cluster.facts, pool))
    assert first not in {pod["spec"].get("nodeName") for pod in cluster.pods()}
    assert not nodes.cordon(cluster.api, "no-such-node", "it is gone")


@pytest.mark.parametrize("scenario", ["", "bad-gpu"])
def test_ray_uses_each_gpu_and_tells_of_the_bad_one(gke_of: Make, scenario: str) -> None:
    cluster = gke_of("gke-ray-h200", scenario)
    cluster.create()
    pool = cluster.pool
    check, _ = trials.ray(
        cluster.api, cluster.facts, pool, 2, timeout=10, progress=cluster.progress
    )
    assert sorted(check.gpus.values()) == [8, 8]
    bad = f"{min(check.gpus)}: GPU 0 has 17 uncorrected memory (ECC) errors" if scenario else ""
    assert (check.passed, check.why) == (not scenario, bad)
    for kind in ("RayJob", "RayCluster"):
        assert cluster.api.all("ray.io/v1", kind) == []
