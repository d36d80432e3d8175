"""Each scenario on GKE: its exit code, what a person reads, and the way out that it names."""

import hashlib
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from provision import in_tree
from provision.kinds.gke.kubernetes import manifests
from rehearsal.inventory import stays
from tests.conftest import Golden
from tests.runs import cluster_side
from tests.runs.conftest import Ended, Rehearsal, Rehearse, Standing
from tests.runs.reading import normal

FIXED = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "2"}
QUEUED = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "g2-standard-24",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "ENABLE_FLEX_START": "yes",
    "GKE_MAX_NODE_COUNT": "4",
}
SAMPLE = "sample-job-np-nodepool-1.yaml"


def _ok(ended: Ended) -> Ended:
    assert ended.code == 0, ended.said
    return ended


@pytest.fixture
def created(made_once: Callable[..., Standing]) -> Ended:
    """How the Create of a cluster with a queue ended."""
    return made_once(QUEUED).created


@pytest.fixture
def queue(standing: Rehearse) -> Rehearse:
    """Make a rehearsal with a copy of that cluster."""

    def make(**how: object) -> Rehearsal:
        rehearsal = standing(QUEUED, **how)
        rehearsal.settings |= QUEUED
        return rehearsal

    return make


def _submit(rehearsal: Rehearsal, created: Ended) -> None:
    """Submit the example job, as a user does."""
    connection = created.document["connection"]
    cluster = cluster_side.kubectl(rehearsal, connection)
    cluster.create(cluster_side.job(rehearsal, connection, SAMPLE))


def _told(rehearsal: Rehearsal) -> str:
    """What Status says to a person of pools, jobs and requests."""
    return _cut(_ok(rehearsal.run("Status")).said)


def _cut(text: str) -> str:
    text = text[text.index("np   GKE cluster") : text.index("  state      gs://")]
    for pattern, stand_in in _NORMAL:
        text = pattern.sub(stand_in, text)
    return text


_NORMAL = (
    (re.compile(r"(sample-job-)[\w-]+?\b(?=-dws|\s|,)"), r"\1<id>"),
    (re.compile(r"(job-sample-job-)[\w-]+-dws"), r"\1<id>-dws"),
    (re.compile(r",\s+for \d+ (?:s|min|h)\b"), ", for <age>"),
    # Prices are renewed; what is said of them has goldens of its own.
    (re.compile(r"  costs  .*?discounts\n", re.DOTALL), ""),
)


def test_a_quota_that_is_too_small_is_told_before_anything_is_made(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    rehearsal = rehearse(scenario="quota")
    rehearsal.settings |= FIXED
    refused = rehearsal.run("Create")
    assert refused.code == 4
    golden.check(goldens / "gke-quota.txt", normal(refused.said))
    assert rehearsal.resources() == []


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
def test_a_create_whose_nodes_have_no_quota_keeps_all_and_goes_on_once_there_is_some(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    refusing = rehearse(scenario="quota")
    refusing.settings |= FIXED
    refused = refusing.run("Create", SKIP_CHECKS="quota")
    assert refused.code == 7
    golden.check(goldens / "gke-quota-unchecked.txt", normal(refused.said))
    asked = len(refusing.requests())
    planned = _ok(refusing.run("Plan", "--detailed-exitcode", SKIP_CHECKS="quota"))
    assert "exists but does not have all its nodes: Create will keep it" in planned.said
    assert planned.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    (log,) = refusing.writes(since=asked)
    assert "/upload/storage/" in log["path"]
    broken = _ok(refusing.run("Status")).document["status"]["trouble"]
    assert "is not in order" in broken[0]["what"]
    assert "needs 4 GPUs: 0 of 2 nodes of np-nodepool-1 run" in broken[1]["what"]
    granting = rehearse()
    granting.settings |= FIXED
    created = _ok(granting.run("Create"))
    assert created.document["changes"] == {"add": 0, "change": 0, "destroy": 0}
    assert "2 of 2 nodes of np-nodepool-1 run" in created.said


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
def test_a_pool_of_a_zone_without_machines_moves_once_somebody_agrees(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    rehearsal = rehearse(scenario="stockout")
    rehearsal.settings |= FIXED
    refused = rehearsal.run("Create")
    assert refused.code == 7
    golden.check(goldens / "gke-stockout.txt", normal(refused.said))
    match = re.search(r"set ZONE=([\w-]+),", refused.problem["fix"])
    assert match is not None
    asked = rehearsal.run("Create", ZONE=match[1])
    assert asked.code == 2
    assert "its nodes in us-central1-a end" in asked.problem["why"]
    moved = _ok(rehearsal.run("Create", "--yes", ZONE=match[1]))
    assert moved.document["changes"] == {"add": 0, "change": 2, "destroy": 0}
    assert moved.document["outputs"]["node_pools"]["np-nodepool-1"]["zone"] == match[1]
    assert "2 of 2 nodes of np-nodepool-1 run" in moved.said


REFUSED = {
    "quota": (
        "Quota 'PREEMPTIBLE_NVIDIA_L4_GPUS' exceeded.  Limit: 0.0 in region us-central1.",
        "request a higher quota PREEMPTIBLE_NVIDIA_L4_GPUS of us-central1, now 0",
    ),
    "stockout": (
        "due to insufficient capacity in zone us-central1-a",
        "the zone has no such machines now: try another zone, region or machine type",
    ),
}
"""Scenario -> what Google says of the request, and what to do."""


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
def test_nodes_that_do_not_come_in_time_end_the_test_with_a_reason_and_advice(
    queue: Rehearse, golden: Golden, goldens: Path
) -> None:
    tested = queue(scenario="never").run("Test")
    assert tested.code == 75
    golden.check(goldens / "gke-test-never.txt", normal(tested.said))


@pytest.mark.parametrize("scenario", REFUSED)
def test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice(
    queue: Rehearse, scenario: str
) -> None:
    tested = queue(scenario=scenario).run("Test")
    assert tested.code == 7
    why, fix = REFUSED[scenario]
    assert why in tested.problem["why"]
    assert tested.problem["fix"].startswith(fix)


def test_a_job_whose_nodes_do_not_come_is_told_with_advice_and_goes_with_the_cluster(
    queue: Rehearse, created: Ended, golden: Golden, goldens: Path
) -> None:
    rehearsal = queue(scenario="never")
    _submit(rehearsal, created)
    golden.check(goldens / "gke-status-never.txt", _told(rehearsal))
    destroyed = _ok(rehearsal.run("Destroy"))
    assert "Cancelled 1 request for nodes" in destroyed.said
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
@pytest.mark.parametrize("scenario", REFUSED)
def test_a_job_whose_requests_are_refused_is_asked_for_on_and_on_and_tells_why(
    queue: Rehearse, created: Ended, scenario: str
) -> None:
    rehearsal = queue(scenario=scenario)
    _submit(rehearsal, created)
    # Where no time passes it has been refused many times: each look finds it at another attempt.
    (job,) = _ok(rehearsal.run("Status")).document["status"]["workloads"]
    why, fix = REFUSED[scenario]
    assert job["state"] in {"pending", "waiting for nodes"}
    assert job["retries"] > 3
    assert why in job["message"]
    assert job["advice"].startswith(fix)
    _ok(rehearsal.run("Destroy"))
    assert [line for line in rehearsal.resources() if not stays(line)] == []


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
def test_a_request_that_waits_is_told_and_its_nodes_have_an_end(queue: Rehearse) -> None:
    rehearsal = queue(scenario="queue", rate=0.02)
    tested = _ok(rehearsal.run("Test"))
    assert "waiting for nodes; us-central1-" in tested.said
    assert "The bandwidth test is running" in tested.said
    (measured,) = tested.document["checks"].values()
    assert measured["average"] > 0
    told = _told(rehearsal)
    # A test asks for its nodes for half an hour, whatever the pool's longest run is.
    assert re.search(r"2 nodes of np-nodepool-1: (?:the first )?in \d+ min", told), told


@pytest.mark.slow(sibling="::test_nodes_that_are_refused_end_the_test_with_a_reason_and_advice")
def test_nodes_that_no_queue_asks_for_are_refused_in_the_autoscalers_words(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    rehearsal = rehearse(scenario="stockout", rate=0.002)
    rehearsal.settings |= FIXED | {"GKE_MAX_NODE_COUNT": "2", "GKE_MIN_NODE_COUNT": "0"}
    _ok(rehearsal.run("Create"))
    tested = rehearsal.run("Test", CAPACITY_TIMEOUT="60s")
    assert tested.code == 75
    said = re.sub(r"(?<=-nodepool-1-)[0-9a-f]{8}-\w{4}", "<id>", normal(tested.said))
    golden.check(goldens / "gke-test-no-queue.txt", said)


def test_without_the_manifests_nothing_is_begun(
    rehearse: Rehearse, golden: Golden, goldens: Path
) -> None:
    if in_tree("manifests").is_dir():
        pytest.skip("this clone has manifests, by make manifests")
    rehearsal = rehearse(rate=0.002)
    rehearsal.settings |= FIXED
    before = rehearsal.resources()
    del rehearsal.environ[manifests.VARIABLE]
    refused = rehearsal.run("Create")
    assert refused.code == 2
    golden.check(goldens / "gke-no-manifests.txt", normal(refused.said))
    for action in ("Plan", "Validate"):
        assert rehearsal.run(action).document["problems"] == refused.document["problems"]
    (problem,) = rehearsal.run("Plan", ENABLE_KUEUE="no").document["problems"]
    assert problem["code"] == "manifests-missing"
    assert "kueue" not in problem["fix"]
    assert rehearsal.resources() == before
    # Another machine may create the cluster.
    offline = _ok(rehearsal.run("Validate", "--offline"))
    assert [it["code"] for it in offline.document["notes"]] == ["manifests-missing"]


def test_a_gpu_that_falls_off_its_bus_and_a_job_in_no_queue_are_named(
    standing: Rehearse, made_once: Callable[..., Standing], golden: Golden, goldens: Path
) -> None:
    connection = made_once(FIXED).created.document["connection"]
    rehearsal = standing(FIXED, scenario="lost-gpu")
    rehearsal.settings |= FIXED
    cluster_side.kubectl(rehearsal, connection).create(BY_HAND)
    looked = _ok(rehearsal.run("Status", "--full"))
    said = _of_nodes(_cut(looked.said))
    golden.check(goldens / "gke-status-lost-gpu.txt", said)
    status = looked.document["status"]
    (broken,) = status["trouble"]
    first, second = (it for it in status["nodes"] if it["pool"] == "np-nodepool-1")
    assert broken["names"] == [first["name"]]
    assert first["faults"] == ["a GPU is broken (XID 79)"]
    assert second["faults"] == []
    (job,) = status["outside"]
    assert (job["name"], job["state"], job["pods"]["waiting"]) == ("Job by-hand", "pending", 1)


BY_HAND = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "by-hand", "namespace": "default"},
    "spec": {
        "template": {
            "spec": {
                "restartPolicy": "Never",
                "containers": [
                    {
                        "name": "c",
                        "image": "sleep",
                        "args": ["1000000s"],
                        "resources": {"limits": {"nvidia.com/gpu": "8"}},
                    }
                ],
            }
        }
    },
}


def _of_nodes(text: str) -> str:
    """A text with stand-ins for what the names of nodes and groups end with."""
    text = re.sub(r"(?<=-nodepool-1-)[0-9a-f]{8}-(?:grp|\w{4})", "<id>", text)
    return re.sub(r"(?<=-system-)[0-9a-f]{8}-\w{4}", "<id>", text)


@pytest.mark.slow(sibling="::test_without_the_manifests_nothing_is_begun")
def test_objects_that_cannot_be_brought_leave_a_cluster_that_can_be_reached(
    queue: Rehearse, golden: Golden, goldens: Path, tmp_path: Path
) -> None:
    rehearsal = queue()
    given = rehearsal.environ[manifests.VARIABLE]
    folder = shutil.copytree(given, tmp_path / "manifests")
    wrong = folder / manifests.JOBSET.file
    wrong.write_text("apiVersion: v1\nkind: Another\nmetadata: {name: another}\n")
    digest = hashlib.sha256(wrong.read_bytes()).hexdigest()
    with (folder / manifests.SUMS).open("a") as sums:
        sums.write(f"{digest}  {wrong.name}\n")
    rehearsal.environ[manifests.VARIABLE] = str(folder)
    ended = rehearsal.run("Create")
    assert ended.code == 8
    golden.check(
        goldens / "gke-objects.txt", normal(ended.said).replace(str(folder), "<manifests>")
    )
    assert "--dns-endpoint" in ended.document["connection"]["get_credentials"]
    rehearsal.environ[manifests.VARIABLE] = given
    assert "Kubernetes: no changes" in _ok(rehearsal.run("Create")).said


@pytest.mark.slow(sibling="::test_a_gpu_that_falls_off_its_bus_and_a_job_in_no_queue_are_named")
def test_ray_is_reached_from_its_namespace_alone_where_its_operator_knows_no_tokens(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="old-ray")
    made = _ok(rehearsal.run("Create", **FIXED, ENABLE_RAY_OPERATOR="yes"))
    cluster = cluster_side.kubectl(rehearsal, made.document["connection"])
    (policy,) = cluster.all("networking.k8s.io/v1", "NetworkPolicy", "default")
    inside, for_all = policy["spec"]["ingress"]
    of_namespace, of_gke = inside["from"]
    assert of_namespace == {"podSelector": {}}
    (among,) = of_gke["namespaceSelector"]["matchExpressions"]
    assert among["values"] == ["gke-managed-system", "kube-public", "kube-system"]
    assert [it["port"] for it in for_all["ports"]] == [8000, 8080]
    # The second Create has nothing to do.
    again = _ok(rehearsal.run("Create", **FIXED, ENABLE_RAY_OPERATOR="yes"))
    assert "Kubernetes: no changes" in again.said
