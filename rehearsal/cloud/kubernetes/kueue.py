"""Kueue's controller: from a queue to a running job.

A workload reserves quota, passes the checks of its queue, is admitted, and ends with its job. One
whose checks fail waits and tries again, until it is deactivated.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.kubernetes import checks, jobs, objects, preemption, queues, workloads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.kubernetes.workloads import Entry

_EVICTED: Final = "AdmissionCheck"


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
        workload["spec"]["active"] = False
        reason = "DeactivatedDueToAdmissionCheck"
        _evict(world, entry, reason, f"The workload is deactivated due to {words}")
    elif verdict.state == "Retry":
        words = f"AdmissionCheck in Retry state: {verdict.check}"
        _evict(world, entry, _EVICTED, f"Evicted due to {words}")
        workload["_again"] = world.request.after(verdict.pause)
        world.wake(workload["_again"])
        workload["status"]["requeueState"] = {"requeueAt": rfc3339(workload["_again"])}
    elif verdict.state == "Ready" and not objects.holds(workload, "Admitted"):
        objects.tell(world, workload, "Admitted", True, "Admitted", "The workload is admitted")
        workloads.start(world, entry)


def _evict(world: World, entry: Entry, reason: str, message: str) -> None:
    """Take back what a workload has; its job is suspended, its requests go."""
    workload = entry.workload
    if objects.holds(workload, "Evicted"):
        return
    workloads.stop(world, entry)
    workload.setdefault("status", {}).pop("admission", None)
    checks.reset(world, workload)
    checks.forget(world, workload)
    objects.tell(world, workload, "Evicted", True, reason, message)
    objects.tell(world, workload, "QuotaReserved", False, "Pending", message)
    if objects.holds(workload, "Admitted"):
        unready = "The workload has no reservation and not all checks ready"
        objects.tell(world, workload, "Admitted", False, "NoReservationUnsatisfiedChecks", unready)
