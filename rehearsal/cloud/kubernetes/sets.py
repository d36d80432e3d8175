"""JobSets: their jobs, and how they end."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import batch, jobs, objects

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rehearsal.cloud.kubernetes.objects import Object, World

_PREFIX: Final = "jobset.sigs.k8s.io"


def look(world: World) -> None:
    """Let sets make jobs, and end with them."""
    kind, of_jobs = world.kind(*jobs.VERSIONS["JobSet"]), world.kind(*jobs.VERSIONS["Job"])
    if kind is None or of_jobs is None:
        return
    for job_set in world.each(kind):
        if batch.forget(world, kind, job_set) or is_over(job_set):
            continue
        children = jobs.children(world, job_set)
        if job_set["spec"].get("suspend"):
            for child in children:
                world.remove(of_jobs, child)
            objects.tell(world, job_set, "Suspended", True, "SuspendedJobs", "jobset is suspended")
        else:
            if objects.holds(job_set, "Suspended"):
                words = "jobset is resumed"
                objects.tell(world, job_set, "Suspended", False, "ResumeJobs", words)
            names = {child["metadata"]["name"] for child in children}
            for child in _wanted(job_set):
                if child["metadata"]["name"] not in names:
                    world.put(of_jobs, child)
            _end(world, job_set, children)
        world.put(kind, job_set)


def is_over(job_set: Object) -> bool:
    """Whether a set has ended."""
    return objects.holds(job_set, "Completed") or objects.holds(job_set, "Failed")


def _wanted(job_set: Object) -> Iterator[Object]:
    """The jobs of a set."""
    name = job_set["metadata"]["name"]
    for part in job_set["spec"].get("replicatedJobs") or []:
        for number in range(int(part.get("replicas", 1))):
            labels = {
                f"{_PREFIX}/jobset-name": name,
                f"{_PREFIX}/replicatedjob-name": part["name"],
                f"{_PREFIX}/job-index": str(number),
            }
            spec = copy.deepcopy((part.get("template") or {}).get("spec") or {})
            metadata = spec.setdefault("template", {}).setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
            yield {
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": {
                    "name": f"{name}-{part['name']}-{number}",
                    "namespace": job_set["metadata"]["namespace"],
                    "labels": labels,
                    "ownerReferences": [objects.owner(job_set)],
                },
                "spec": spec,
            }


def _end(world: World, job_set: Object, children: list[Object]) -> None:
    wanted = len(list(_wanted(job_set)))
    done = [child for child in children if objects.holds(child, "Complete")]
    if wanted == 0 or len(done) < wanted:
        return
    words = "jobset completed successfully"
    objects.tell(world, job_set, "Completed", True, "AllJobsCompleted", words)
    job_set["status"]["terminalState"] = "Completed"
    job_set["_ended"] = world.now
