"""Kueue's controller: from a queue to a running job.

A workload reserves quota, passes the checks of its queue, is admitted, and ends with its job. One
whose checks fail, or whose pods are not ready for long, waits and tries again, until it is
deactivated; so is one that has run for as long as it may.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.kubernetes import (
    checks,
    jobs,
    objects,
    preemption,
    queues,
    readiness,
    workloads,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.workloads import Entry

_EVICTED: Final = "AdmissionCheck"
_UNREADY: Final = "PodsReadyTimeout"
_PAST: Final = "accumulatedPastExecutionTimeSeconds"


def look(world: World) -> None:
    """Take each workload as far as it goes."""
    kind = world.kind(queues.API, "workloads")
    if kind is None:
        return
    queues.look(world)
    entries = workloads.every(world, kind)
    for entry in entries:
        _advance(world, entries, entry)
        world.put(kind, entry.workload)


def _advance(world: World, entries: Sequence[Entry], entry: Entry) -> None:
    workload = entry.workload
    if objects.holds(workload, "Finished"):
        return
    ended = jobs.end(entry.job)
    if ended is not None:
        objects.tell(world, workload, "Finished", True, *ended)
        checks.forget(world, workload)
        return
    if objects.holds(workload, "DeactivationTarget"):
        workload["spec"]["active"] = False
    if workload["spec"].get("active") is False:
        _evict(world, entry, "Deactivated", "The workload is deactivated")
        return
    queue = queues.queue_of(world, workload)
    if isinstance(queue, str):
        _refuse(world, entry, queue)
        return
    if not objects.holds(workload, "QuotaReserved"):
        _reserve(world, entries, entry, queue)
    if objects.holds(workload, "QuotaReserved"):
        _check(world, entry, queue)
    _watch(world, entry)


def _refuse(world: World, entry: Entry, words: str) -> None:
    """There is no queue of use; one that is being drained takes back what it gave."""
    admission = (entry.workload.get("status") or {}).get("admission")
    if admission is not None:
        queue = queues.find(world, "clusterqueues", admission["clusterQueue"]) or {}
        if (queue.get("spec") or {}).get("stopPolicy") != "HoldAndDrain":
            return
        _evict(world, entry, "ClusterQueueStopped", "The ClusterQueue is stopped")
    objects.tell(world, entry.workload, "QuotaReserved", False, "Inadmissible", words)


def _reserve(world: World, entries: Sequence[Entry], entry: Entry, queue: Object) -> None:
    workload = entry.workload
    if workload.get("_again", 0.0) > world.now:
        return
    if objects.condition(workload, "Requeued").get("status") == "False":
        words = "The workload backoff was finished"
        objects.tell(world, workload, "Requeued", True, "BackoffFinished", words)
        workload["status"].get("requeueState", {}).pop("requeueAt", None)
    found = preemption.place(world, entries, entry, queue)
    while isinstance(found, preemption.NoPlace) and found.victims:
        for victim, why in found.victims:
            objects.tell(world, victim.workload, "Preempted", True, why, found.words)
            _evict(world, victim, "Preempted", found.words)
        # What they had is the first's at once, as it goes before them in the queue.
        found = preemption.place(world, entries, entry, queue)
    if isinstance(found, preemption.NoPlace):
        objects.tell(world, workload, "QuotaReserved", False, "Pending", found.why)
        return
    status = workload.setdefault("status", {})
    status["admission"] = {"clusterQueue": found.queue, "podSetAssignments": found.assignments}
    words = f"Quota reserved in ClusterQueue {found.queue}"
    objects.tell(world, workload, "QuotaReserved", True, "QuotaReserved", words)
    if objects.holds(workload, "Evicted"):
        before = objects.condition(workload, "Evicted")["message"]
        objects.tell(world, workload, "Evicted", False, "QuotaReserved", f"Previously: {before}")
    names = queues.checks_of(queue, workload)
    status["admissionChecks"] = checks.pending(world, workload, names)


def _check(world: World, entry: Entry, queue: Object) -> None:
    workload = entry.workload
    verdict = checks.advance(world, workload, queues.checks_of(queue, workload))
    if verdict.state == "Rejected":
        words = f"AdmissionCheck in Rejected state: {verdict.check}"
        objects.warn(world, workload, "AdmissionCheckRejected", f"Deactivated due to {words}")
        _deactivate(world, entry, "AdmissionCheck", words)
    elif verdict.state == "Retry":
        words = f"AdmissionCheck in Retry state: {verdict.check}"
        _evict(world, entry, _EVICTED, f"Evicted due to {words}")
        workload["_again"] = world.request.after(verdict.pause)
        world.wake(workload["_again"])
        _requeue_at(workload, workload["_again"])
    elif verdict.state == "Ready" and not objects.holds(workload, "Admitted"):
        objects.tell(world, workload, "Admitted", True, "Admitted", "The workload is admitted")
        workload["_admitted"] = world.now
        workloads.start(world, entry)


def _watch(world: World, entry: Entry) -> None:
    """Take back what a job has whose pods are not ready for long, or that has run long enough."""
    workload = entry.workload
    late = readiness.look(world, workload, entry.job)
    if late is not None and late.again:
        metadata = workload["metadata"]
        words = f"Exceeded the PodsReady timeout {metadata['namespace']}/{metadata['name']}"
        _evict(world, entry, _UNREADY, words)
        objects.tell(world, workload, "Requeued", False, _UNREADY, words)
        workload["_again"] = late.moment
        world.wake(late.moment)
        _requeue_at(workload, late.moment)
        workload["status"]["requeueState"]["count"] = late.count
    elif late is not None:
        words = "exceeding the maximum number of re-queuing retries"
        _deactivate(world, entry, "RequeuingLimitExceeded", words)
    elif _has_run(world, workload):
        most = workload["spec"]["maximumExecutionTimeSeconds"]
        words = f"The maximum execution time ({most}s) exceeded"
        objects.warn(world, workload, "MaximumExecutionTimeExceeded", words)
        words = "exceeding the maximum execution time"
        _deactivate(world, entry, "MaximumExecutionTimeExceeded", words)
        workload["status"].pop(_PAST, None)


def _has_run(world: World, workload: Object) -> bool:
    """Whether a job has run for as long as it may; what it ran before an eviction counts."""
    most = workload["spec"].get("maximumExecutionTimeSeconds")
    if most is None or not objects.holds(workload, "Admitted") or not world.request.rate:
        return False
    left = most - workload["status"].get(_PAST, 0)
    moment = workload["_admitted"] + left * world.request.rate
    world.wake(moment)
    return bool(moment <= world.now)


def _requeue_at(workload: Object, moment: float) -> None:
    state = workload["status"].setdefault("requeueState", {})
    state["requeueAt"] = rfc3339(moment)


def _deactivate(world: World, entry: Entry, cause: str, words: str) -> None:
    """Give a job up: its next run takes another workload.

    The condition stays, and whoever sets the workload active again sees that taken back (seen with
    the real Kueue 0.18.3).
    """
    entry.workload["spec"]["active"] = False
    objects.tell(world, entry.workload, "DeactivationTarget", True, cause, words)
    _evict(world, entry, f"DeactivatedDueTo{cause}", f"The workload is deactivated due to {words}")
    for name in ("requeueAt", "count"):
        entry.workload["status"].get("requeueState", {}).pop(name, None)


def _note(workload: Object, reason: str) -> None:
    """Count an eviction in `status.schedulingStats`, with its cause where Kueue tells one."""
    stats = workload.setdefault("status", {}).setdefault("schedulingStats", {"evictions": []})
    unready = objects.condition(workload, "PodsReady").get("reason", "")
    cause = unready if reason == _UNREADY else ""
    for found in stats["evictions"]:
        if (found["reason"], found["underlyingCause"]) == (reason, cause):
            found["count"] += 1
            return
    stats["evictions"].append({"reason": reason, "underlyingCause": cause, "count": 1})


def _evict(world: World, entry: Entry, reason: str, message: str) -> None:
    """Take back what a workload has; its job is suspended, its requests go."""
    workload = entry.workload
    if objects.holds(workload, "Evicted"):
        return
    _note(workload, reason)
    workloads.stop(world, entry)
    workload.setdefault("status", {}).pop("admission", None)
    checks.reset(world, workload)
    checks.forget(world, workload)
    objects.tell(world, workload, "Evicted", True, reason, message)
    objects.tell(world, workload, "QuotaReserved", False, "Pending", message)
    if objects.holds(workload, "Admitted"):
        run = (world.now - workload["_admitted"]) / (world.request.rate or 1)
        workload["status"][_PAST] = int(workload["status"].get(_PAST, 0) + run)
        unready = "The workload has no reservation and not all checks ready"
        objects.tell(world, workload, "Admitted", False, "NoReservationUnsatisfiedChecks", unready)
