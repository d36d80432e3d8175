"""JobSets: their jobs, how they end, and how they begin again.

As JobSet 0.12.0 does it (its source of 2026-08-18): without a `failurePolicy` the first failed job
fails the set; with one, all its jobs are recreated, as often as it says.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import batch, jobs, objects, pods

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from rehearsal.cloud.kubernetes.kinds import Kind
    from rehearsal.cloud.kubernetes.objects import Object, World

_PREFIX: Final = "jobset.sigs.k8s.io"
_PART: Final = f"{_PREFIX}/replicatedjob-name"
_ATTEMPT: Final = f"{_PREFIX}/restart-attempt"

_RESTART: Final = "RestartJobSet"
_RESTART_FREELY: Final = "RestartJobSetAndIgnoreMaxRestarts"
_FAIL: Final = "FailJobSet"


def look(world: World) -> None:
    """Let sets make jobs, and end with them."""
    kind, of_jobs = world.kind(*jobs.VERSIONS["JobSet"]), world.kind(*jobs.VERSIONS["Job"])
    if kind is None or of_jobs is None:
        return
    for job_set in world.each(kind):
        if batch.forget(world, kind, job_set):
            continue
        children = jobs.children(world, job_set)
        if is_over(job_set):
            _clean(world, of_jobs, [it for it in children if not batch.is_over(it)])
            continue
        current = [it for it in children if _is_current(job_set, it)]
        _clean(world, of_jobs, [it for it in children if it not in current])
        _tell_parts(job_set, current)
        failed = [it for it in current if objects.holds(it, "Failed")]
        if failed:
            _heal(world, job_set, failed)
        elif job_set["spec"].get("suspend"):
            _clean(world, of_jobs, current)
            objects.tell(world, job_set, "Suspended", True, "SuspendedJobs", "jobset is suspended")
        else:
            _run(world, of_jobs, job_set, current)
        world.put(kind, job_set)


def is_over(job_set: Object) -> bool:
    """Whether a set has ended."""
    return objects.holds(job_set, "Completed") or objects.holds(job_set, "Failed")


def _is_current(job_set: Object, child: Object) -> bool:
    """Whether a job is of the set's last start."""
    restarts = int((job_set.get("status") or {}).get("restarts", 0))
    return bool(int(child["metadata"]["labels"].get(_ATTEMPT, "0")) >= restarts)


def _clean(world: World, of_jobs: Kind, children: Iterable[Object]) -> None:
    """Delete jobs; their programs have time to save what they did."""
    for child in children:
        for pod in pods.of(world, child):
            if not pods.is_over(pod):
                pods.stop(world, pod)
        world.remove(of_jobs, child)


def _run(world: World, of_jobs: Kind, job_set: Object, children: list[Object]) -> None:
    if objects.holds(job_set, "Suspended"):
        words = "jobset is resumed"
        objects.tell(world, job_set, "Suspended", False, "ResumeJobs", words)
    names = {child["metadata"]["name"] for child in children}
    wanted = list(_wanted(job_set))
    for child in wanted:
        if child["metadata"]["name"] not in names:
            world.put(of_jobs, child)
    if objects.holds(job_set, "RestartingJobSet") and _all_ready(job_set):
        words = "all jobs are ready"
        objects.tell(world, job_set, "RestartingJobSet", False, "JobsReady", words)
    done = [child for child in children if objects.holds(child, "Complete")]
    if wanted and len(done) == len(wanted):
        _complete(world, job_set)


def _complete(world: World, job_set: Object) -> None:
    words = "jobset completed successfully"
    objects.tell(world, job_set, "Completed", True, "AllJobsCompleted", words)
    job_set["status"]["terminalState"] = "Completed"
    job_set["_ended"] = world.now


# ------------------------------------------------------------------ failures


def _heal(world: World, job_set: Object, failed: list[Object]) -> None:
    """Begin a set again, or fail it, by its policy."""
    status = job_set.setdefault("status", {})
    policy = job_set["spec"].get("failurePolicy")
    if policy is None:
        _fail(world, job_set, "FailedJobs", "jobset failed due to one or more job failures", failed)
        return
    rule = next((it for it in policy.get("rules") or [] if _applies(it, failed)), None)
    action = rule["action"] if rule else _RESTART
    counted = int(status.get("restartsCountTowardsMax", 0))
    if action == _FAIL:
        words = "applying FailJobSet failure policy action"
        _fail(world, job_set, "FailJobSetFailurePolicyAction", words, failed)
        return
    if action == _RESTART and counted >= int(policy.get("maxRestarts", 0)):
        words = "jobset failed due to reaching max number of restarts"
        _fail(world, job_set, "ReachedMaxRestarts", words, failed)
        return
    status["restarts"] = int(status.get("restarts", 0)) + 1
    status["restartsCountTowardsMax"] = counted + (action != _RESTART_FREELY)
    reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
    words = _with_job(f"applying {action} failure policy action", failed)
    objects.tell(world, job_set, "RestartingJobSet", True, reason, words)
    objects.warn(world, job_set, f"{action}FailurePolicyAction", words)


def _applies(rule: Mapping[str, Any], failed: list[Object]) -> bool:
    """Whether a rule is meant for any of the failed jobs."""
    reasons = rule.get("onJobFailureReasons")
    parts = rule.get("targetReplicatedJobs")
    return any(
        (not reasons or objects.condition(it, "Failed")["reason"] in reasons)
        and (not parts or it["metadata"]["labels"][_PART] in parts)
        for it in failed
    )


def _fail(world: World, job_set: Object, reason: str, words: str, failed: list[Object]) -> None:
    objects.tell(world, job_set, "Failed", True, reason, _with_job(words, failed))
    job_set["status"]["terminalState"] = "Failed"
    job_set["_ended"] = world.now


def _with_job(words: str, failed: list[Object]) -> str:
    return f"{words} (first failed job: {failed[0]['metadata']['name']})"


# ------------------------------------------------------------------ the jobs


def _tell_parts(job_set: Object, children: list[Object]) -> None:
    """Say how many jobs of each part are ready, and how many have ended how."""
    told = []
    for part in job_set["spec"].get("replicatedJobs") or []:
        name = part["name"]
        own = [it for it in children if it["metadata"]["labels"][_PART] == name]
        alive = [it for it in own if not batch.is_over(it)]
        told.append(
            {
                "name": name,
                "ready": sum(_is_ready(it) for it in alive),
                "succeeded": sum(objects.holds(it, "Complete") for it in own),
                "failed": sum(objects.holds(it, "Failed") for it in own),
                "active": sum(bool((it.get("status") or {}).get("active")) for it in alive),
                "suspended": sum(bool(it["spec"].get("suspend")) for it in alive),
            }
        )
    job_set.setdefault("status", {})["replicatedJobsStatus"] = told


def _is_ready(child: Object) -> bool:
    wanted = int(child["spec"].get("parallelism", 1))
    wanted = min(wanted, int(child["spec"].get("completions") or wanted))
    status = child.get("status") or {}
    return bool(int(status.get("succeeded", 0)) + int(status.get("ready", 0)) >= wanted)


def _all_ready(job_set: Object) -> bool:
    parts = job_set["spec"].get("replicatedJobs") or []
    wanted = {it["name"]: int(it.get("replicas", 1)) for it in parts}
    told = job_set["status"]["replicatedJobsStatus"]
    return all(it["ready"] + it["succeeded"] == wanted[it["name"]] for it in told)


def _wanted(job_set: Object) -> Iterator[Object]:
    """The jobs of a set."""
    name = job_set["metadata"]["name"]
    attempt = str((job_set.get("status") or {}).get("restarts", 0))
    for part in job_set["spec"].get("replicatedJobs") or []:
        for number in range(int(part.get("replicas", 1))):
            labels = {
                f"{_PREFIX}/jobset-name": name,
                _PART: part["name"],
                f"{_PREFIX}/job-index": str(number),
                _ATTEMPT: attempt,
            }
            spec = copy.deepcopy((part.get("template") or {}).get("spec") or {})
            spec.setdefault("completionMode", "Indexed")
            metadata = spec.setdefault("template", {}).setdefault("metadata", {})
            metadata["labels"] = {**(metadata.get("labels") or {}), **labels}
            spec["template"].setdefault("spec", {}).setdefault("restartPolicy", "OnFailure")
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
