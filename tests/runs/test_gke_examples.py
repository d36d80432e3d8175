"""Each GKE story of `examples/`: Create, Status, Create without changes, a job, Destroy."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from dotenv import dotenv_values

from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.gke.kubernetes.objects import Object, holds
from rehearsal.inventory import stays
from tests.runs import cluster_side, rights
from tests.runs.conftest import Ended, Rehearsal
from tests.runs.reading import to_read
from tests.waiting import until

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTHING = {"add": 0, "change": 0, "destroy": 0}


@dataclass(frozen=True)
class Story:
    """What one example leads to."""

    # each GPU pool's mode, in order, and the nodes that Create leaves it with
    pools: tuple[tuple[str, int], ...]
    jobs: tuple[str, ...] = ()  # the rendered examples that run on it
    # the pool that the rendered training runs on, and the network that NCCL then says
    trained: tuple[str, str] | None = None
    tested: int = 0  # the nodes of each pool that Test tests together; 0 for no Test


STORIES = {
    "gke-a3-high": Story(
        (("standard", 2),), trained=("gke-high-nodepool-1", "GPUDirectTCPX_v7"), tested=2
    ),
    "gke-a3-mega": Story((("standard", 2),), trained=("gke-mega-nodepool-1", "FasTrak"), tested=2),
    "gke-a3-ultra-flex": Story((("flex_start", 0),), tested=2),
    "gke-a3-ultra-flex-queued": Story(
        (("flex_start_queued", 0),), trained=("ultra-queue-nodepool-1", "gIB"), tested=2
    ),
    "gke-a4": Story((("flex_start", 0),), trained=("gke-a4-nodepool-1", "gIB"), tested=2),
    "gke-any-zone": Story((("standard", 2),)),
    "gke-plain": Story((("standard", 2),), jobs=("sample-job-gke-l4-nodepool-1.yaml",)),
    "gke-ray-h200": Story((("flex_start_queued", 0),), jobs=("ray-job.yaml",), tested=2),
    "gke-t4-a100-queued": Story(
        (("queued", 0), ("queued", 0)),
        jobs=("sample-job-dws-t4.yaml", "sample-job-dws-a100.yaml"),
        tested=1,
    ),
}

QUICK = {"gke-plain"}
SLOW = pytest.mark.slow(sibling="::test_a_gke_story_comes_works_and_goes")


def test_every_gke_example_is_a_story() -> None:
    found = {path.name.partition(".")[0] for path in EXAMPLES.glob("gke-*.list")}
    assert found == STORIES.keys()


def _ok(ended: Ended) -> Ended:
    assert ended.code == 0, ended.said
    return ended


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=SLOW) for name in STORIES]
)
def test_a_gke_story_comes_works_and_goes(rehearsal: Rehearsal, name: str) -> None:
    story = STORIES[name]
    path = EXAMPLES / f"{name}.env.list"
    rehearsal.settings = {key: value for key, value in dotenv_values(path).items() if value}
    created = _ok(rehearsal.run("Create"))
    assert len(to_read(created.said)) <= 40, created.said
    connection = created.document["connection"]
    assert connection["get_credentials"].endswith("--dns-endpoint")

    asked = len(rehearsal.requests())
    status = _ok(rehearsal.run("Status")).document["status"]
    assert rehearsal.writes(since=asked) == []
    assert status["cluster"]["status"] == "RUNNING"
    pools = [pool for pool in status["node_pools"] if pool["mode"] != "system"]
    assert [(pool["mode"], pool["ready"]) for pool in pools] == list(story.pools)
    assert (status["workloads"], status["requests"]) == ([], [])

    again = _ok(rehearsal.run("Create"))
    assert again.document["changes"] == NOTHING
    assert "Kubernetes: no changes" in again.said
    assert again.document["connection"] == connection

    for file in story.jobs:
        _delete(rehearsal, connection, _run(rehearsal, connection, file))
    if story.trained:
        _train(rehearsal, connection, *story.trained)
    if story.tested:
        _test(rehearsal, connection, story.tested)

    _ok(rehearsal.run("Destroy"))
    left = [line for line in rehearsal.resources() if not stays(line)]
    assert left == []

    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)


def _run(rehearsal: Rehearsal, connection: dict[str, Any], file: str) -> Object:
    """Submit a rendered example, as the how-to says, and see it end well."""
    cluster = cluster_side.kubectl(rehearsal, connection)
    made = cluster.create(cluster_side.job(rehearsal, connection, file))
    until(lambda: _is_done(cluster, made), lambda: f"{file} does not end: {made}")
    return made


def _is_done(cluster: Cluster, thing: Object) -> bool:
    metadata = thing["metadata"]
    found = cluster.find(
        thing["apiVersion"], thing["kind"], metadata["name"], metadata["namespace"]
    )
    assert found is not None
    if thing["kind"] == "RayJob":
        return (found.get("status") or {}).get("jobStatus") == "SUCCEEDED"
    return holds(found, "Completed" if thing["kind"] == "JobSet" else "Complete")


def _train(rehearsal: Rehearsal, connection: dict[str, Any], pool: str, network: str) -> None:
    """Train on two nodes, over the network of their GPUs."""
    made = _run(rehearsal, connection, f"torchrun-{pool}.yaml")
    cluster = cluster_side.kubectl(rehearsal, connection)
    selector = f"jobset.sigs.k8s.io/jobset-name={made['metadata']['name']}"
    pods = [it["metadata"]["name"] for it in cluster.all("v1", "Pod", "default", selector)]
    logs = [cluster.log("default", pod, "torchrun") for pod in pods]
    assert len(logs) == 2
    assert all(f"Using network {network}" in log for log in logs), logs
    _delete(rehearsal, connection, made)


def _delete(rehearsal: Rehearsal, connection: dict[str, Any], made: Object) -> None:
    cluster = cluster_side.kubectl(rehearsal, connection)
    cluster.delete(made["apiVersion"], made["kind"], made["metadata"]["name"], "default")


def _test(rehearsal: Rehearsal, connection: dict[str, Any], nodes: int) -> None:
    """Test pools, and what is between their nodes; the jobs are gone afterwards."""
    tested = _ok(rehearsal.run("Test"))
    assert tested.document["checks"]
    for measured in tested.document["checks"].values():
        assert measured["nodes"] == nodes
        assert nodes == 1 or measured["average"] > 0
        assert measured["out_of_bounds"] == 0
    cluster = cluster_side.kubectl(rehearsal, connection)
    assert cluster.all("jobset.x-k8s.io/v1alpha2", "JobSet") == []
