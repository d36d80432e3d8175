"""Jobs of any kind, seen as sets of equal pods."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud.kubernetes.objects import Object, World

VERSIONS: Final[Mapping[str, tuple[str, str]]] = {
    "Job": ("batch/v1", "jobs"),
    "JobSet": ("jobset.x-k8s.io/v1alpha2", "jobsets"),
    "RayCluster": ("ray.io/v1", "rayclusters"),
    "RayJob": ("ray.io/v1", "rayjobs"),
}
"""Kind -> version and plural."""

RAY_ENDS: Final = frozenset({"Complete", "Failed"})
"""The states of its deployment in which a RayJob has ended (Kueue's rayjob_controller.go)."""

LEAST: Final = "kueue.x-k8s.io/job-min-parallelism"
_HEAD: Final = "head"


@dataclass(frozen=True)
class PodSet:
    """Some equal pods of a job."""

    name: str  # what they are called
    count: int  # how many
    template: Object  # their template, with metadata and spec; it is the part of the job, no copy
    least: int | None = None  # with how few of them the job may be let in; None for all

    @property
    def is_head(self) -> bool:
        """Whether it is the head of a Ray cluster."""
        return self.name == _HEAD

    @property
    def group(self) -> str:
        """The group of a Ray cluster whose pods these are."""
        return "headgroup" if self.is_head else self.name

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pods' specification."""
        found: Mapping[str, Any] = self.template.get("spec") or {}
        return found


def pod_sets(job: Object) -> list[PodSet]:
    """The pods that a job is made of."""
    spec = job.get("spec") or {}
    match job["kind"]:
        case "Job":
            count = int(spec.get("parallelism") or 1)
            count = min(count, int(spec.get("completions") or count))
            least = (job["metadata"].get("annotations") or {}).get(LEAST)
            least = None if least is None else int(least)
            return [PodSet("main", count, spec.get("template") or {}, least)]
        case "JobSet":
            return list(_replicated(spec))
        case "RayJob":
            return list(_ray(spec.get("rayClusterSpec") or {}))
        case _:
            return list(_ray(spec))


def _replicated(spec: Mapping[str, Any]) -> Iterator[PodSet]:
    for it in spec.get("replicatedJobs") or []:
        inner = (it.get("template") or {}).get("spec") or {}
        count = int(it.get("replicas") or 1) * int(inner.get("parallelism") or 1)
        yield PodSet(it["name"], count, inner.get("template") or {})


def _ray(spec: Mapping[str, Any]) -> Iterator[PodSet]:
    yield PodSet(_HEAD, 1, (spec.get("headGroupSpec") or {}).get("template") or {})
    for it in spec.get("workerGroupSpecs") or []:
        count = int(it.get("replicas") or 0) * int(it.get("numOfHosts") or 1)
        yield PodSet(it["groupName"], count, it.get("template") or {})


def is_head(pod: Object) -> bool:
    """Whether a pod is the head of a Ray cluster."""
    return bool(pod["metadata"]["labels"].get("ray.io/node-type") == _HEAD)


def children(world: World, owner: Object) -> list[Object]:
    """The jobs that an object owns."""
    uid = owner["metadata"]["uid"]
    return [
        job
        for job in (world.each(world.own(*VERSIONS["Job"]), owner["metadata"]["namespace"]))
        if any(it["uid"] == uid for it in job["metadata"].get("ownerReferences") or [])
    ]


def end(job: Object) -> tuple[str, str] | None:
    """How a job has ended, as reason and message for its Workload; None while it has not."""
    if job["kind"] == "RayJob":
        status = job.get("status") or {}
        reason = "Succeeded" if status.get("jobStatus") == "SUCCEEDED" else "Failed"
        is_over = status.get("jobDeploymentStatus") in RAY_ENDS
        return (reason, str(status.get("message", ""))) if is_over else None
    said = {it["type"]: it for it in (job.get("status") or {}).get("conditions") or []}
    for name, reason in _ENDS:
        if said.get(name, {}).get("status") == "True":
            return reason, str(said[name]["message"])
    return None


# Jobs say "Complete" of themselves, sets of jobs "Completed".
_ENDS: Final = (("Complete", "Succeeded"), ("Completed", "Succeeded"), ("Failed", "Failed"))
