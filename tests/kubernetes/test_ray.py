"""What Ray's own operator makes of our RayClusters and RayJobs, with Kueue before it."""

import re
from collections.abc import Callable

import pytest

from provision.kinds.gke.kubernetes import jobs, kueue, run_jobs, stages
from provision.kinds.gke.kubernetes.client import Body
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.objects import Object
from tests.kubernetes import samples
from tests.kubernetes.world import PROGRESS, World

RDMA = samples.FLEX_QUEUED_ULTRA
TCPXO = samples.facts(samples.MEGA, networks=samples.TCPXO)
MAKERS: dict[str, Callable[[ClusterFacts, GpuPool], Object]] = {
    "RayCluster": jobs.ray_cluster,
    "RayJob": jobs.ray_job,
    "RayJob of Run": lambda facts, _: run_jobs.RAY_JOB.build(facts, samples.wanted(facts)),
}


def _submit(world: World, facts: ClusterFacts, kind: str) -> Object:
    """Set a cluster up, and make one of its Ray jobs."""
    stages.apply(world.cluster, stages.own(facts), progress=PROGRESS)
    return world.cluster.create(MAKERS[kind](facts, facts.pools[0]))


def _grant(world: World, job: Object) -> None:
    """Answer the request of a job on a queued pool."""
    world.answer(world.request(job["metadata"]["name"]), "Provisioned", "Provisioned")


def _worker_template(job: Object) -> Object:
    spec = job["spec"].get("rayClusterSpec", job["spec"])
    template: Object = spec["workerGroupSpecs"][0]["template"]
    return template


def _pods(world: World, group: str) -> list[Object]:
    return world.cluster.all("v1", "Pod", "default", f"ray.io/node-type={group}")


def _workers(world: World) -> list[Object]:
    """The two workers of the only job, once they are there."""

    def look() -> list[Object] | None:
        found = _pods(world, "worker")
        return found if len(found) == 2 else None

    return world.until(look)


@pytest.fixture
def ray(world: World) -> World:
    """The cluster, without any Ray job of a test before."""
    for kind in ("RayJob", "RayCluster"):
        for thing in world.cluster.all("ray.io/v1", kind, "default"):
            world.cluster.delete("ray.io/v1", kind, thing["metadata"]["name"], "default")
    world.until(lambda: not [*_pods(world, "worker"), *_pods(world, "head")])
    return world


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("facts", [RDMA, TCPXO], ids=["rdma", "tcpxo"])
def test_the_operators_workers_have_all_parts_of_the_fabric(
    ray: World, facts: ClusterFacts, kind: str
) -> None:
    job = _submit(ray, facts, kind)
    if facts is RDMA:
        assert _pods(ray, "worker") == []
        _grant(ray, job)
    wanted = _worker_template(job)
    for pod in _workers(ray):
        for key, value in wanted["metadata"]["annotations"].items():
            assert pod["metadata"]["annotations"][key] == value
        ours, made = wanted["spec"]["containers"][0], pod["spec"]["containers"][0]
        assert _named(ours["volumeMounts"]) <= _named(made["volumeMounts"])
        assert _named(wanted["spec"]["volumes"]) <= _named(pod["spec"]["volumes"])
        for entry in ours["env"]:
            assert entry in made["env"]
        assert made["resources"]["limits"] == ours["resources"]["limits"]
        # Ours comes first, and Ray starts only where it went well.
        (before,) = ours["command"]
        assert made["command"] == ["/bin/bash", "-c", "--"]
        (script,) = made["args"]
        after = script.strip().removeprefix(before)
        assert after != script.strip()
        assert "ray start" not in before
        assert re.match(r"\s*&& .*ray start", after), after
        assert f"--num-cpus={ours['resources']['requests']['cpu']}" in after
        assert _shared_memory(pod) == {
            "medium": "Memory",
            "sizeLimit": ours["resources"]["limits"]["memory"],
        }
        # The gate and the daemon are in the order in which they were asked for.
        names = [it["name"] for it in pod["spec"]["initContainers"]]
        asked = [it["name"] for it in wanted["spec"]["initContainers"]]
        assert [name for name in names if name in asked] == asked
        stays = [it.get("restartPolicy") for it in wanted["spec"]["initContainers"]]
        kept = {it["name"]: it.get("restartPolicy") for it in pod["spec"]["initContainers"]}
        assert [kept[name] for name in asked] == stays


def _shared_memory(pod: Object) -> Object:
    """What is at /dev/shm of a worker: the operator's, where we mount nothing."""
    mounts = pod["spec"]["containers"][0]["volumeMounts"]
    (name,) = (it["name"] for it in mounts if it["mountPath"] == "/dev/shm")  # noqa: S108 - shared memory, no file
    (volume,) = (it for it in pod["spec"]["volumes"] if it["name"] == name)
    found: Object = volume["emptyDir"]
    return found


def _named(entries: list[Object]) -> set[tuple[str, str]]:
    """Volumes or mounts, told apart by name and place."""
    return {(entry["name"], entry.get("mountPath", "")) for entry in entries}


@pytest.mark.parametrize("kind", MAKERS)
def test_what_kueue_suspends_loses_its_pods_and_gets_them_back(ray: World, kind: str) -> None:
    job = _submit(ray, RDMA, kind)
    name = job["metadata"]["name"]
    _grant(ray, job)
    before = {pod["metadata"]["uid"] for pod in _workers(ray)}

    _activate(ray, name, active=False)

    ray.until(lambda: not _pods(ray, "worker"))
    found = ray.cluster.find("ray.io/v1", kind.partition(" ")[0], name, "default")
    assert found is not None
    assert found["spec"]["suspend"] is True
    _activate(ray, name, active=True)
    _grant(ray, job)
    assert not before & {pod["metadata"]["uid"] for pod in _workers(ray)}


def test_the_operators_head_of_a_job_of_run_has_its_program_before_ray_starts(ray: World) -> None:
    job = _submit(ray, TCPXO, "RayJob of Run")
    wanted = job["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]
    (pod,) = ray.until(lambda: _pods(ray, "head"))
    assert pod["metadata"]["labels"][run_jobs.RAY_LABEL] == "train-1"
    ours, made = wanted["spec"]["containers"][0], pod["spec"]["containers"][0]
    (before,) = ours["command"]
    assert re.match(r"\s*&& .*ray start", made["args"][0].strip().removeprefix(before))
    assert made["lifecycle"] == ours["lifecycle"]
    assert made["workingDir"] == ours["workingDir"]
    assert [it["name"] for it in pod["spec"]["initContainers"]] == ["fetch-folder", "keep-log"]


def _activate(world: World, name: str, *, active: bool) -> None:
    """What an administrator of a queue does with a job's Workload."""
    (work,) = (
        thing
        for thing in world.cluster.all(kueue.API, "Workload", "default")
        if thing["metadata"]["ownerReferences"][0]["name"] == name
    )
    world.cluster._json(
        "deactivate",
        "PATCH",
        world.cluster._path_of(work),
        body=Body({"spec": {"active": active}}, "application/merge-patch+json"),
    )
