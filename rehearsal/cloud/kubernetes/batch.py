"""Jobs: their pods, and how they end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import failures, objects, pods, programs

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.failures import Failure
    from rehearsal.cloud.kubernetes.kinds import Kind
    from rehearsal.cloud.kubernetes.objects import Object, World

_INDEX: Final = "batch.kubernetes.io/job-completion-index"


def look(world: World) -> None:
    """Let jobs make pods, and end with them."""
    kind = world.kind("batch/v1", "jobs")
    for job in world.each(kind) if kind else ():
        if kind is None or forget(world, kind, job):
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
    """Delete what has ended and was to be kept for a while only; whether it was deleted.

    Where nothing takes time, no time passes either, and so it is kept.
    """
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
    if failure is not None:
        _fail(world, job, alive, failure)
        return
    active = sum(not pods.is_over(it) for it in alive)
    more = min(wanted - len(done), int(spec.get("parallelism", 1))) - active
    if job.get("_paused", 0.0) > world.now:
        more = 0
    for index in _missing(job, alive, wanted)[: max(0, more)]:
        _make(world, job, index)
    ready = sum(objects.holds(it, "Ready") for it in alive)
    status |= {"active": active + max(0, more), "ready": ready, "succeeded": len(done)}
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
    toll = failures.toll(job, fresh)
    for pod in fresh:
        pods.count(world, pod)
    status = job["status"]
    if fresh:
        status["failed"] = int(status.get("failed", 0)) + toll.counted
        job["_paused"] = world.request.after(failures.pause(status["failed"]))
        world.wake(job["_paused"])
    restarts = sum(pods.restarts(it) for it in own)
    return toll.failure or failures.beyond_limit(job, int(status.get("failed", 0)), restarts)


def _fail(world: World, job: Object, alive: list[Object], failure: Failure) -> None:
    for pod in alive:
        if not pods.is_over(pod):
            pods.stop(world, pod)
    for name in ("FailureTarget", "Failed"):
        objects.tell(world, job, name, True, failure.reason, failure.message)
    job["status"] |= {"active": 0, "ready": 0}
    job["_ended"] = world.now


def _missing(job: Object, own: list[Object], wanted: int) -> list[int]:
    """The numbers of the pods that are to be made; only those of indexed jobs matter."""
    done: dict[str, str] = job.get("_done", {})
    active = [it for it in own if it["metadata"]["name"] not in done]
    if job["spec"].get("completionMode") != "Indexed":
        return list(range(len(active) + len(done), wanted))
    there = {int(it["metadata"]["labels"][_INDEX]) for it in active} | set(map(int, done.values()))
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
    seconds = programs.seconds(template.get("spec") or {})
    pods.make(world, job, prefix, template, labels=labels, seconds=seconds)
