"""Jobs: their pods, and how they end.

Pods that failed, and what their Job makes of it.

As Kubernetes 1.34's Job controller does it: a pod is counted once, a rule of the Job's
`podFailurePolicy` may fail the Job at once or leave the pod out, and another pod comes after a
pause that doubles. With `backoffLimitPerIndex` each index has limit and pause of its own, and one
that has failed stays so; the Job goes on to its last index.

JobSets: their jobs, how they end, and how they begin again.

As JobSet 0.12.0 does it (its source of 2026-08-18): without a `failurePolicy` the first failed job
fails the set; with one, all its jobs are recreated, as often as it says.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from rehearsal.cloud.kubernetes import jobs, objects, pods, programs
from rehearsal.cloud.kubernetes.kinds import Kind
from rehearsal.cloud.kubernetes.objects import Object, World

_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_FAILURES: Final = "batch.kubernetes.io/job-index-failure-count"


def look(world: World) -> None:
    """Let jobs make pods, and end with them."""
    kind = world.own("batch/v1", "jobs")
    for job in world.each(kind):
        if forget(world, kind, job):
            continue
        if is_over(job):
            continue
        if job["spec"].get("suspend"):
            _suspend(world, job)
        else:
            _run(world, job)
        world.put(kind, job)


def is_over(job: Object) -> bool:
    """Whether a job has ended."""
    return objects.holds(job, "Complete") or objects.holds(job, "Failed")


def forget(world: World, kind: Kind, job: Object) -> bool:
    """Delete what was kept for a while after its end, if time passes at all; whether it was."""
    ttl = job["spec"].get("ttlSecondsAfterFinished")
    ended = job.get("_ended")
    if ttl is None or ended is None or not world.request.rate:
        return False
    if ended + ttl * world.request.rate > world.now:
        return False
    world.remove(kind, job)
    return True


def _suspend(world: World, job: Object) -> None:
    for pod in pods.of(world, job):
        if not pods.is_over(pod):
            pods.stop(world, pod)
        elif "deletionTimestamp" in pod["metadata"]:
            pods.remove(world, pod)
    objects.tell(world, job, "Suspended", True, "JobSuspended", "Job suspended")
    job["status"] |= {"active": 0, "ready": 0}


def _run(world: World, job: Object) -> None:
    spec, status = job["spec"], job.setdefault("status", {})
    if objects.holds(job, "Suspended"):
        objects.tell(world, job, "Suspended", False, "JobResumed", "Job resumed")
    status.setdefault("startTime", world.stamp)
    wanted = int(spec.get("completions") or spec.get("parallelism", 1))
    failure = _count(world, job)
    own = pods.of(world, job)
    alive = [it for it in own if it["status"]["phase"] != "Failed"]
    for it in alive:
        if it["status"]["phase"] == "Succeeded":
            # It counts also when its pod has gone with its node.
            labels = it["metadata"]["labels"]
            job.setdefault("_done", {})[it["metadata"]["name"]] = labels.get(_INDEX, "")
    done = job.get("_done", {})
    failure = failure or _tell_indexes(job, wanted)
    if failure is not None:
        _fail(world, job, alive, failure)
        return
    active = sum(not pods.is_over(it) for it in alive)
    left = wanted - len(done) - len(job.get("_lost", []))
    more = min(left, int(spec.get("parallelism", 1))) - active
    if job.get("_paused", 0.0) > world.now:
        more = 0
    missing = _missing(job, alive, wanted, world.now)[: max(0, more)]
    for index in missing:
        _make(world, job, index)
    ready = sum(objects.holds(it, "Ready") for it in alive)
    status |= {"active": active + len(missing), "ready": ready, "succeeded": len(done)}
    if len(done) >= wanted:
        words = ("CompletionsReached", "Reached expected number of succeeded pods")
        objects.tell(world, job, "SuccessCriteriaMet", True, *words)
        objects.tell(world, job, "Complete", True, *words)
        status |= {"active": 0, "ready": 0, "completionTime": world.stamp}
        job["_ended"] = world.now


def _count(world: World, job: Object) -> Failure | None:
    """Count the pods that failed since the last look; how the job fails by them, if it does."""
    own = pods.of(world, job)
    fresh = [it for it in own if it["status"]["phase"] == "Failed" and not it.get("_counted")]
    weighed = toll(job, fresh)
    for pod in fresh:
        pods.count(world, pod)
    status = job["status"]
    if fresh and _is_per_index(job):
        status["failed"] = int(status.get("failed", 0)) + weighed.counted
        return weighed.failure or _by_index(world, job, fresh)
    if fresh:
        status["failed"] = int(status.get("failed", 0)) + weighed.counted
        job["_paused"] = world.request.after(pause(status["failed"]))
        world.wake(job["_paused"])
    if _is_per_index(job):
        return weighed.failure
    restarts = sum(pods.restarts(it) for it in own)
    return weighed.failure or beyond_limit(job, int(status.get("failed", 0)), restarts)


def _is_per_index(job: Object) -> bool:
    return job["spec"].get("backoffLimitPerIndex") is not None


def _by_index(world: World, job: Object, fresh: Iterable[Object]) -> Failure | None:
    """Count pods that failed by their index, each with a limit and a pause of its own."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    failures, lost = job.setdefault("_failures", {}), job.setdefault("_lost", [])
    for pod in fresh:
        index, (action, _) = pod["metadata"]["labels"][_INDEX], _judge(rules, pod)
        if action == "Ignore":
            continue
        failures[index] = failures.get(index, 0) + 1
        if action == "FailIndex" or failures[index] > int(job["spec"]["backoffLimitPerIndex"]):
            lost.append(int(index))
            continue
        until = job.setdefault("_paused_index", {})
        until[index] = world.request.after(pause(failures[index]))
        world.wake(until[index])
    most = job["spec"].get("maxFailedIndexes")
    if most is None or len(lost) <= int(most):
        return None
    words = "Job has exceeded the specified maximal number of failed indexes"
    return Failure("MaxFailedIndexesExceeded", words)


def _tell_indexes(job: Object, wanted: int) -> Failure | None:
    """Say which indexes have ended how; how the Job fails when that is the last of them."""
    if job["spec"].get("completionMode") != "Indexed":
        return None
    done, lost = job.get("_done", {}), job.get("_lost", [])
    job["status"]["completedIndexes"] = _shown(map(int, done.values()))
    if _is_per_index(job):
        job["status"]["failedIndexes"] = _shown(lost)
    if lost and len(lost) + len(done) >= wanted:
        return Failure("FailedIndexes", "Job has failed indexes")
    return None


def _shown(indexes: Iterable[int]) -> str:
    """Indexes as a Job's status has them: "0,1,4-6"; two that follow each other are no span."""
    spans: list[list[int]] = []
    for index in sorted(indexes):
        if spans and index == spans[-1][-1] + 1:
            spans[-1].append(index)
        else:
            spans.append([index])
    shown = (f"{it[0]}-{it[-1]}" if len(it) > _SPAN else ",".join(map(str, it)) for it in spans)
    return ",".join(shown)


def _fail(world: World, job: Object, alive: list[Object], failure: Failure) -> None:
    for pod in alive:
        if not pods.is_over(pod):
            pods.stop(world, pod)
    for name in ("FailureTarget", "Failed"):
        objects.tell(world, job, name, True, failure.reason, failure.message)
    job["status"] |= {"active": 0, "ready": 0}
    job["_ended"] = world.now


def _missing(job: Object, own: list[Object], wanted: int, now: float) -> list[int]:
    """The numbers of the pods that are to be made; only those of indexed jobs matter."""
    done: dict[str, str] = job.get("_done", {})
    active = [it for it in own if it["metadata"]["name"] not in done]
    if job["spec"].get("completionMode") != "Indexed":
        return list(range(len(active) + len(done), wanted))
    there = {int(it["metadata"]["labels"][_INDEX]) for it in active} | set(map(int, done.values()))
    there |= set(job.get("_lost", []))
    there |= {int(it) for it, until in job.get("_paused_index", {}).items() if until > now}
    return [number for number in range(wanted) if number not in there]


def _make(world: World, job: Object, index: int) -> None:
    name = job["metadata"]["name"]
    labels = {
        "batch.kubernetes.io/job-name": name,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": job["metadata"]["uid"],
    }
    prefix = name
    if job["spec"].get("completionMode") == "Indexed":
        labels[_INDEX], prefix = str(index), f"{name}-{index}"
    template = job["spec"].get("template") or {}
    if _is_per_index(job):
        metadata = template.get("metadata") or {}
        failed = str(job.get("_failures", {}).get(str(index), 0))
        annotations = {**(metadata.get("annotations") or {}), _FAILURES: failed}
        template = {**template, "metadata": {**metadata, "annotations": annotations}}
    seconds = programs.seconds(template.get("spec") or {})
    pods.make(world, job, prefix, template, labels=labels, seconds=seconds)


_BACKOFF_LIMIT: Final = 6  # how many failed pods a Job takes that does not say
_PAUSE: Final = 10.0
_SPAN: Final = 2
_LONGEST_PAUSE: Final = 600.0
_LIMIT_REACHED: Final = "Job has reached the specified backoff limit"


@dataclass(frozen=True)
class Failure:
    """How a Job fails: the reason and the message of its condition."""

    reason: str
    message: str


@dataclass(frozen=True)
class Toll:
    """What some failed pods mean for their Job."""

    counted: int  # how many of them count
    failure: Failure | None  # how the Job fails by a rule of its policy; None if none says so


def toll(job: Object, failed: Iterable[Object]) -> Toll:
    """Judge pods that failed, by the Job's own rules."""
    rules = (job["spec"].get("podFailurePolicy") or {}).get("rules") or []
    counted, failure = 0, None
    for pod in failed:
        action, words = _judge(rules, pod)
        counted += action != "Ignore"
        if action == "FailJob" and failure is None:
            failure = Failure("PodFailurePolicy", words)
    return Toll(counted, failure)


def beyond_limit(job: Object, failed: int, restarts: int) -> Failure | None:
    """How a Job fails by the number of its failed pods, or of its containers' restarts."""
    limit = int(job["spec"].get("backoffLimit", _BACKOFF_LIMIT))
    if failed > limit or (restarts and restarts >= limit):
        return Failure("BackoffLimitExceeded", _LIMIT_REACHED)
    return None


def pause(failed: int) -> float:
    """Seconds of cloud time from the last of some failures to the next pod."""
    return float(min(_LONGEST_PAUSE, _PAUSE * 2 ** (failed - 1))) if failed else 0.0


def _judge(rules: Iterable[Mapping[str, Any]], pod: Object) -> tuple[str, str]:
    """The action of the first rule that a failed pod meets, and the words for it."""
    metadata = pod["metadata"]
    name = f"{metadata['namespace']}/{metadata['name']}"
    for index, rule in enumerate(rules):
        where = f"matching {rule['action']} rule at index {index}"
        if "onExitCodes" in rule:
            met = _met_by_code(pod, rule["onExitCodes"])
            if met is not None:
                container, code = met
                words = f"Container {container} for pod {name} failed with exit code {code} {where}"
                return rule["action"], words
        elif (kind := _met_by_condition(pod, rule.get("onPodConditions") or [])) is not None:
            return rule["action"], f"Pod {name} has condition {kind} {where}"
    return "Count", ""


def _met_by_code(pod: Object, wanted: Mapping[str, Any]) -> tuple[str, int] | None:
    for it in pod["status"].get("containerStatuses") or []:
        code = (it["state"].get("terminated") or {}).get("exitCode", 0)
        named = wanted.get("containerName") in (None, it["name"])
        inside = code in wanted["values"]
        if code and named and inside == (wanted["operator"] == "In"):
            return it["name"], code
    return None


def _met_by_condition(pod: Object, patterns: Iterable[Mapping[str, str]]) -> str | None:
    wanted = {(it["type"], it.get("status", "True")) for it in patterns}
    for it in pod["status"].get("conditions") or []:
        if (it["type"], it["status"]) in wanted:
            return str(it["type"])
    return None


_PREFIX: Final = "jobset.sigs.k8s.io"
_PART: Final = f"{_PREFIX}/replicatedjob-name"
_ATTEMPT: Final = f"{_PREFIX}/restart-attempt"

_RESTART: Final = "RestartJobSet"
_RESTART_FREELY: Final = "RestartJobSetAndIgnoreMaxRestarts"
_FAIL: Final = "FailJobSet"


def look_at_sets(world: World) -> None:
    """Let sets make jobs, and end with them."""
    kind, of_jobs = world.kind(*jobs.VERSIONS["JobSet"]), world.own(*jobs.VERSIONS["Job"])
    if kind is None:
        return
    for job_set in world.each(kind):
        if forget(world, kind, job_set):
            continue
        children = jobs.children(world, job_set)
        if objects.holds(job_set, "Completed") or objects.holds(job_set, "Failed"):
            _clean(world, of_jobs, [it for it in children if not is_over(it)])
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
            _run_set(world, of_jobs, job_set, current)
        world.put(kind, job_set)


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


def _run_set(world: World, of_jobs: Kind, job_set: Object, children: list[Object]) -> None:
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
        _fail_set(
            world, job_set, "FailedJobs", "jobset failed due to one or more job failures", failed
        )
        return
    rule = next((it for it in policy.get("rules") or [] if _applies(it, failed)), None)
    action = rule["action"] if rule else _RESTART
    counted = int(status.get("restartsCountTowardsMax", 0))
    if action == _FAIL:
        words = "applying FailJobSet failure policy action"
        _fail_set(world, job_set, "FailJobSetFailurePolicyAction", words, failed)
        return
    if action == _RESTART and counted >= int(policy.get("maxRestarts", 0)):
        words = "jobset failed due to reaching max number of restarts"
        _fail_set(world, job_set, "ReachedMaxRestarts", words, failed)
        return
    status["restarts"] = int(status.get("restarts", 0)) + 1
    status["restartsCountTowardsMax"] = counted + (action != _RESTART_FREELY)
    reason = f"FailurePolicy_{rule['name']}" if rule else "DefaultFailurePolicy"
    words = _with_job(f"applying {action} failure policy action", failed)
    objects.tell(world, job_set, "RestartingJobSet", True, reason, words)
    objects.warn(world, job_set, f"{action}FailurePolicyAction", words)


def _applies(rule: Mapping[str, Any], failed: list[Object]) -> bool:
    reasons = rule.get("onJobFailureReasons")
    parts = rule.get("targetReplicatedJobs")
    words = rule.get("onJobFailureMessagePatterns") or [""]
    return any(
        (not reasons or objects.condition(it, "Failed")["reason"] in reasons)
        and any(re.search(one, objects.condition(it, "Failed")["message"]) for one in words)
        and (not parts or it["metadata"]["labels"][_PART] in parts)
        for it in failed
    )


def _fail_set(world: World, job_set: Object, reason: str, words: str, failed: list[Object]) -> None:
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
        alive = [it for it in own if not is_over(it)]
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
