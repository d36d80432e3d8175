"""Every object of the GKE examples against its upstream's own definition, no field unknown.

The definitions are kept beside the repository. Where they are not, the real Kubernetes of
`make test-kubernetes` is what checks the same.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from provision.kinds.gke.kubernetes import jobs, run_jobs, stages
from provision.kinds.gke.kubernetes.client import KubernetesError
from provision.kinds.gke.kubernetes.objects import Object, from_yaml
from tests.kubernetes import samples
from tests.rehearsal.cloud.kubernetes import conftest as simulated
from tests.rehearsal.cloud.kubernetes.conftest import Gke

ROOT = Path(__file__).parents[2]
DEFINITIONS = ROOT.parent / "shared" / "crds"
DEFINITION = "CustomResourceDefinition"
EXAMPLES = sorted(path.name.partition(".")[0] for path in (ROOT / "examples").glob("gke-*.list"))

gke_of = simulated.gke_of


@pytest.fixture(scope="module")
def definitions() -> list[Object]:
    """Upstream's definitions."""
    if not DEFINITIONS.is_dir():
        pytest.skip(
            "THE LAYER strict objects DID NOT RUN: upstream's definitions are not beside the"
            " repository; make test-kubernetes checks it"
        )
    found = [
        thing
        for path in sorted(DEFINITIONS.glob("*.yaml"))
        for thing in from_yaml(path.read_text(encoding="utf-8"))
    ]
    assert found
    return found


@pytest.fixture
def strict_of(gke_of: Callable[..., Gke], definitions: list[Object]) -> Callable[[str], Gke]:
    """Makes the cluster of an example, which has upstream's definitions."""

    def make(example: str) -> Gke:
        cluster = gke_of(example)
        for thing in definitions:
            cluster.api.apply(thing)
        return cluster

    return make


def _objects(cluster: Gke) -> list[Object]:
    """All that Create brings into a cluster, but for definitions that stand in for upstream's."""
    wanted, _ = stages.stages(cluster.facts, cluster.environ)
    things = [thing for stage in wanted for thing in stage.objects]
    return [thing for thing in things if thing["kind"] != DEFINITION]


def _jobs(cluster: Gke) -> list[Object]:
    """The jobs that are rendered for a cluster, and those of Run."""
    rendered = [job for text in jobs.render(cluster.facts).values() for job in from_yaml(text)]
    wanted = samples.wanted(cluster.facts, restarts=1, seconds=600)
    return [
        *rendered,
        *(it.build(cluster.facts, wanted) for it in (run_jobs.JOB_SET, run_jobs.RAY_JOB)),
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_no_object_of_an_example_has_a_field_that_its_definition_has_not(
    strict_of: Callable[[str], Gke], example: str
) -> None:
    cluster = strict_of(example)
    for thing in _objects(cluster):
        cluster.api.apply(thing)
    for job in _jobs(cluster):
        cluster.api.create(job)


def test_a_field_that_no_definition_has_is_refused_of_every_kind(
    strict_of: Callable[[str], Gke], definitions: list[Object]
) -> None:
    cluster = strict_of("gke-ray-h200")
    defined = {thing["spec"]["names"]["kind"] for thing in definitions}
    made = {thing["kind"]: thing for thing in [*_objects(cluster), *_jobs(cluster)]}
    # Kueue itself makes those.
    assert defined - made.keys() == {"Workload"}
    for kind in sorted(defined & made.keys()):
        spec = made[kind].get("spec", {})
        metadata = {"name": "wrong", **made[kind]["metadata"]}
        wrong = {**made[kind], "metadata": metadata, "spec": {**spec, "neverHeardOf": 1}}
        with pytest.raises(KubernetesError) as caught:
            cluster.api.apply(wrong)
        assert "field not declared in schema" in caught.value.message
