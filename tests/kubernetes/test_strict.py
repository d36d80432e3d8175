"""Every object that is generated, against a real API server that lets no unknown field pass."""

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from provision.kinds.gke.kubernetes import all_gather, jobs, run_jobs, stages
from provision.kinds.gke.kubernetes.client import Body, KubernetesError
from provision.kinds.gke.kubernetes.facts import ClusterFacts
from provision.kinds.gke.kubernetes.objects import MANAGER, Object, from_yaml
from provision.settings.gke import Queue
from provision.settings.job_options import JobArray
from tests.kubernetes import samples
from tests.kubernetes.world import World

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").glob("gke-*.env.list"))
CLUSTERS = {
    **{path.name.partition(".")[0]: samples.of_example(path) for path in EXAMPLES},
    # No example has Filestore, teams, all modes and all machines.
    "everything": dataclasses.replace(
        samples.everything(),
        queues=(Queue(name="team-a", gpus=8),),
        bucket_options=("uid=1000",),
        bucket_cache_gib=10,
    ),
    "a3-mega": samples.facts(samples.MEGA, networks=samples.TCPXO),
    "by-gke": samples.BY_GKE,
    "a3-high": samples.facts(samples.HIGH, networks=samples.TCPX),
}
# As the program itself: what another manager has applied before would stay.
_STRICT = {"fieldManager": MANAGER, "fieldValidation": "Strict", "dryRun": "All"}


def _applied(facts: ClusterFacts) -> list[Object]:
    """What Create applies, but for what comes from manifests."""
    return [thing for stage in stages.own(facts) for thing in stage.objects]


def _created(facts: ClusterFacts) -> Iterator[Object]:
    """The jobs of a cluster, and each kind of job on each pool."""
    for text in jobs.render(facts).values():
        yield from from_yaml(text)
    for shape in (run_jobs.JOB_SET, run_jobs.RAY_JOB):
        # Of a name that no other test has created: what is there can't be changed.
        yield shape.build(facts, samples.wanted(facts, name="strict-1", restarts=1, seconds=600))
    tasks = samples.wanted(facts, name="strict-2", array=JobArray(0, 7), gpus=1, seconds=600)
    yield run_jobs.JOB.build(facts, dataclasses.replace(tasks, nodes=1, slots=2))
    for pool in facts.pools:
        yield jobs.sample(facts, pool)
        yield all_gather.job_set(facts, pool, 2)
        yield jobs.ray_cluster(facts, pool)
        yield jobs.ray_job(facts, pool)
        yield jobs.torchrun(facts, pool, 2)


def _try(world: World, thing: Object) -> None:
    """Let the API server judge an object; nothing is kept."""
    cluster = world.cluster
    metadata = thing["metadata"]
    if "name" in metadata:
        body = Body(thing, "application/apply-patch+yaml")
        cluster._json("try", "PATCH", cluster._path_of(thing), {**_STRICT, "force": "true"}, body)
        return
    path = cluster._path(thing["apiVersion"], thing["kind"], metadata.get("namespace", ""))
    cluster._json("try", "POST", path, _STRICT, Body(thing))


@pytest.mark.parametrize("name", CLUSTERS)
def test_no_object_has_a_field_that_the_api_does_not_know(world: World, name: str) -> None:
    facts = CLUSTERS[name]
    refused = {}
    for thing in (*_applied(facts), *_created(facts), stages.ray_policy(world.cluster)):
        metadata = thing["metadata"]
        called = metadata.get("name") or metadata["generateName"]
        try:
            _try(world, thing)
        except KubernetesError as error:
            refused[f"{thing['kind']} {called}"] = error.message
    assert refused == {}


def test_a_field_that_the_api_does_not_know_is_refused_of_every_kind(world: World) -> None:
    facts = CLUSTERS["everything"]
    one_of_each = {thing["kind"]: thing for thing in (*_applied(facts), *_created(facts))}
    one_of_each |= {thing["kind"]: thing for thing in stages.claims(samples.BY_GKE)}
    assert {"DaemonSet", "Network", "ClusterQueue", "RayJob", "JobSet"} <= one_of_each.keys()
    for kind, thing in one_of_each.items():
        wrong = {**thing, "spec": {**thing["spec"], "neverHeardOf": 1}} if "spec" in thing else None
        with pytest.raises(KubernetesError) as caught:
            _try(world, wrong or {**thing, "neverHeardOf": 1})
        words = caught.value.message
        assert "neverHeardOf" in words, kind
        assert "not declared in schema" in words or "unknown field" in words, kind
