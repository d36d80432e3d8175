"""Kueue's controller: from a queue to a running job.

A workload reserves quota, passes the checks of its queue, is admitted, and ends with its job. One
whose checks fail, or whose pods are not ready for long, waits and tries again, until it is
deactivated; so is one that has run for as long as it may.

Whether the pods of an admitted job are ready, and how long Kueue waits for them.

As Kueue 0.18.3 does it (its source of 2026-07-10): of a Ray cluster it reads the state alone, which
KubeRay (1.6.2) never takes back, so that a lost worker is not seen.

What the cluster's Kueue was told in its ConfigMap: how long pods may be not ready.

As Kueue 0.18.3 reads it (its source of 2026-07-10): without the section `waitForPodsReady` nothing
is waited for, and with it what is left out has the values below.
"""

import functools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from rehearsal.cloud.kubernetes import checks, jobs, objects, queues, workloads
from rehearsal.cloud.kubernetes.objects import Object, World
from rehearsal.cloud.kubernetes.queues import Entry
from rehearsal.cloud.wire import rfc3339

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
    uncounted = _uncounted(world, workload)
    if uncounted:
        _refuse(world, entry, uncounted)
        return
    if not objects.holds(workload, "QuotaReserved"):
        _reserve(world, entries, entry, queue)
    elif entry.job["kind"] == "Job":
        _reclaim(entry)
    if objects.holds(workload, "QuotaReserved"):
        _check(world, entry, queue)
    _watch(world, entry)


def _uncounted(world: World, workload: Object) -> str:
    """Why Kueue takes no workload whose pods claim devices; "" for nothing.

    So since 0.18 (pkg/controller/core/workload_controller.go, pkg/dra/claims.go): a class counts by
    its mapping in the configuration, unless both features are off, and then not at all.
    """
    templates = [it["template"].get("spec") or {} for it in workload["spec"]["podSets"]]
    if not any(it.get("resourceClaims") for it in templates):
        return ""
    settings: Any = yaml.safe_load(_settings(world)) or {}
    gates = settings.get("featureGates") or {}
    if gates.get("KueueDRAIntegration", True):
        return "DeviceClass mrdma.google.com is not mapped in DRA configuration"
    if gates.get("KueueDRARejectWorkloadsWhenDRADisabled", True):
        return "Workload uses DRA resources but the KueueDRAIntegration feature gate is not enabled"
    return ""


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
    found = queues.place(world, entries, entry, queue)
    while isinstance(found, queues.NoPlace) and found.victims:
        for victim, why in found.victims:
            objects.tell(world, victim.workload, "Preempted", True, why, found.words)
            _evict(world, victim, "Preempted", found.words)
        # What they had is the first's at once, as it goes before them in the queue.
        found = queues.place(world, entries, entry, queue)
    if isinstance(found, queues.NoPlace):
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


def _reclaim(entry: Entry) -> None:
    """Say which of a Job's pods need their quota no more, as fewer indexes are left than those."""
    spec, status = entry.job["spec"], entry.workload["status"]
    at_a_time = int(spec.get("parallelism", 1))
    over = len(entry.job.get("_done", {})) + len(entry.job.get("_lost", []))
    left = int(spec.get("completions") or at_a_time) - over
    if over and left < at_a_time:
        status["reclaimablePods"] = [{"name": "main", "count": at_a_time - left}]


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
    late = _overdue(world, workload, entry.job)
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


_START: Final = "WaitForStart"
_RECOVERY: Final = "WaitForRecovery"
_NOT_READY: Final = "Not all pods are ready or succeeded"
_LOST_POD: Final = "At least one pod has failed, waiting for recovery"
_READY: Final = "All pods reached readiness and the workload is running"


@dataclass(frozen=True)
class _Overdue:
    """A job whose pods were not ready for too long."""

    again: bool  # whether it is queued again; else it has been too often
    count: int  # how often it has been queued again then
    moment: float  # when its turn comes again (Unix epoch)


def _overdue(world: World, workload: Object, job: Object) -> _Overdue | None:
    """Tell whether the pods of a workload are ready; what is to be done if not for too long."""
    patience = _patience(world)
    if patience is None:
        return None
    _tell_readiness(world, workload, job)
    said = objects.condition(workload, "PodsReady")
    if said["status"] == "True" or not objects.holds(workload, "Admitted"):
        return None
    starts = said["reason"] == _START
    allowed = patience.start if starts else patience.recovery
    if allowed is None or not world.request.rate:
        return None
    since = workload["_admitted" if starts else "_unready"]
    deadline = since + allowed * world.request.rate
    world.wake(deadline)
    if deadline > world.now:
        return None
    count = int((workload["status"].get("requeueState") or {}).get("count", 0)) + 1
    again = patience.limit is None or count <= patience.limit
    return _Overdue(again, count, world.request.after(patience.pause(count)))


def _tell_readiness(world: World, workload: Object, job: Object) -> None:
    before = objects.condition(workload, "PodsReady")
    if not objects.holds(workload, "Admitted"):
        objects.tell(world, workload, "PodsReady", False, _START, _NOT_READY)
    elif _is_ready(job):
        healed = before.get("reason") in {_RECOVERY, "Recovered"}
        reason = "Recovered" if healed else "Started"
        objects.tell(world, workload, "PodsReady", True, reason, _READY)
    elif before.get("status") == "True":
        workload["_unready"] = world.now
        objects.tell(world, workload, "PodsReady", False, _RECOVERY, _LOST_POD)
    elif before.get("reason") != _RECOVERY:
        objects.tell(world, workload, "PodsReady", False, _START, _NOT_READY)


def _is_ready(job: Object) -> bool:
    spec, status = job["spec"], job.get("status") or {}
    match job["kind"]:
        case "Job":
            wanted = int(spec.get("parallelism", 1))
            wanted = min(wanted, int(spec.get("completions") or wanted))
            return bool(_sum([status], "ready", "succeeded") >= wanted)
        case "JobSet":
            wanted = sum(int(it.get("replicas", 1)) for it in spec.get("replicatedJobs") or [])
            known = status.get("replicatedJobsStatus") or []
            return bool(_sum(known, "ready", "succeeded") == wanted)
        case "RayJob":
            return bool((status.get("rayClusterStatus") or {}).get("state") == "ready")
        case _:
            return bool(status.get("state") == "ready")


def _sum(statuses: Iterable[Object], *names: str) -> int:
    return sum(int(it.get(name, 0)) for it in statuses for name in names)


_NAMESPACE: Final = "kueue-system"
_CONFIG_NAME: Final = "kueue-manager-config"
_CONFIG_KEY: Final = "controller_manager_config.yaml"

_TIMEOUT: Final = "5m"
_BASE_PAUSE: Final = 60
_MOST_PAUSE: Final = 3600
_UNITS: Final = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")


@dataclass(frozen=True, kw_only=True)
class _Patience:
    """The section `waitForPodsReady`; times in seconds of cloud time."""

    start: float  # from a job's admission until all its pods are ready
    recovery: float | None  # from a lost pod until all are ready again; None for ever
    base: float  # the pause before a job is queued again for the first time; it doubles
    most: float  # the longest pause
    limit: int | None  # how often a job is queued again; None for ever

    def pause(self, count: int) -> float:
        """The pause before a job is queued again for the `count`th time."""
        return float(min(self.most, self.base * 2 ** (count - 1)))


def _patience(world: World) -> _Patience | None:
    """How long jobs are waited for; None for ever."""
    return _parse(_settings(world))


def _settings(world: World) -> str:
    found = world.get(world.own("v1", "configmaps"), _NAMESPACE, _CONFIG_NAME)
    return str((found or {}).get("data", {}).get(_CONFIG_KEY, ""))


@functools.lru_cache(maxsize=8)
def _parse(text: str) -> _Patience | None:
    document: Any = yaml.safe_load(text) or {}
    section = document.get("waitForPodsReady")
    if not section:
        return None
    start = _seconds(section.get("timeout") or _TIMEOUT)
    recovery = _seconds(section["recoveryTimeout"]) if "recoveryTimeout" in section else start
    again = section.get("requeuingStrategy") or {}
    return _Patience(
        start=start,
        recovery=recovery or None,
        base=float(again.get("backoffBaseSeconds", _BASE_PAUSE)),
        most=float(again.get("backoffMaxSeconds", _MOST_PAUSE)),
        limit=again.get("backoffLimitCount"),
    )


def _seconds(duration: str) -> float:
    """A duration in Go's form, such as "1h30m"."""
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(duration))
