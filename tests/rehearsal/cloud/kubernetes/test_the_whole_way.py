"""The program's own client, objects, jobs and test against the simulated cluster."""

import pytest

from provision.kinds.gke import testing
from provision.kinds.gke.kubernetes import jobs
from provision.kinds.gke.kubernetes.objects import from_yaml
from tests.rehearsal.cloud.kubernetes.conftest import Make

ALL = ["gke-plain", "gke-a3-ultra-flex-queued", "gke-ray-h200", "gke-t4-a100-queued"]


@pytest.mark.parametrize("example", ALL)
def test_everything_is_applied_and_applying_it_again_changes_nothing(
    gke_of: Make, example: str
) -> None:
    cluster = gke_of(example)
    assert cluster.create() > 0
    assert cluster.create() == 0


@pytest.mark.parametrize("example", ALL)
def test_all_example_jobs_run_to_their_end(gke_of: Make, example: str) -> None:
    cluster = gke_of(example)
    cluster.create()
    for text in jobs.render(cluster.facts).values():
        (thing,) = from_yaml(text)
        made = cluster.api.create(thing)
        now = cluster.find({**made, "kind": thing["kind"], "apiVersion": thing["apiVersion"]})
        if thing["kind"] == "RayCluster":
            assert now["status"]["state"] == "ready"
            name = now["metadata"]["name"]
            cluster.api.delete(thing["apiVersion"], thing["kind"], name, "default")
        elif thing["kind"] == "RayJob":
            assert now["status"]["jobStatus"] == "SUCCEEDED"
        else:
            ended = {it["type"] for it in now["status"]["conditions"] if it["status"] == "True"}
            assert ended & {"Complete", "Completed"}


@pytest.mark.parametrize("example", ["gke-a3-ultra-flex-queued", "gke-ray-h200"])
def test_the_bandwidth_test_of_an_a3_ultra_cluster_comes_to_the_reference(
    gke_of: Make, example: str
) -> None:
    cluster = gke_of(example)
    cluster.create()
    tested = cluster.test(timeout=600)
    measured = tested.document
    assert measured.average == pytest.approx(120.248, abs=0.01)
    assert measured.peak_in_place == pytest.approx(335.67, abs=0.02)
    assert measured.peak_out_of_place == pytest.approx(328.85, abs=0.02)
    assert set(measured.interfaces.values()) == {10}
    assert list(testing.problems(tested)) == []
    assert "335.7 GB/s, 100% of the 335.67 GB/s published" in testing.passed(tested)
    assert not cluster.seen.workloads
