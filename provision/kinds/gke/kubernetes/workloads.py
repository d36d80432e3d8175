"""Jobs in the queue as Kueue's Workloads and their pods tell of them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, Final, assert_never

from provision.documents.gke_status import JobState, Workload
from provision.kinds.gke.kubernetes import pods, reasons
from provision.kinds.gke.kubernetes.objects import conditions, holds, later
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.objects import Object
    from provision.kinds.gke.kubernetes.pods import Pods

GIVEN_UP: Final = (
    "Kueue makes no more attempts: see why the last request failed, then delete the job and submit"
    " it again"
)
NEXT_RUN: Final = (
    "it goes on from what it has saved: its next run, with new nodes, begins with"
    " `kubectl delete workload {name} --namespace {namespace}`; the job itself stays"
)
"""What to do about a job whose run is over, or that was stopped at the limit of its label."""

_MORE_TIME: Final = (
    "; a job that is to have more time at once says so by the annotation"
    " provreq.kueue.x-k8s.io/maxRunDurationSeconds, 7 days at most"
)
_RAY_LOST: Final = (
    "the queue does not see that a Ray cluster has lost a worker: its other nodes are billed until"
    " it is deleted, with `kubectl delete {kind} {name} --namespace {namespace}`; then submit the"
    " work again"
)
_STOPPED: Final = "DeactivatedDueToMaximumExecutionTimeExceeded"
_ON_NODES: Final = frozenset({JobState.STARTING, JobState.RUNNING, JobState.ENDING})
_ENDS_WITH_PODS: Final = frozenset({"Job", "JobSet"})
_CLOCK: Final = Clock()
_BEFORE: Final = "; the failure before: "
_RESET: Final = "Reset to Pending"
"""How Kueue's words about a check begin that is made again after an eviction."""
_CHECKED: Final = "AdmissionCheckUpdated"
"""The reason of Kueue's events about the requests of a workload; they outlive the requests."""


def read(
    thing: Object,
    own: Pods | None = None,
    said_before: Sequence[str] = (),
    clock: Clock = _CLOCK,
) -> Workload:
    """Read a Workload of Kueue.

    `own`: its job's pods. `said_before`: what the autoscaler said of its earlier requests, oldest
    first.
    """
    current = state(thing, own)
    own = own or pods.NOTHING
    metadata, spec, status = thing["metadata"], thing["spec"], thing.get("status") or {}
    owner = next(iter(metadata.get("ownerReferences", [])), None)
    requeued = (status.get("requeueState") or {}).get("requeueAt")
    assigned = (status.get("admission") or {}).get("podSetAssignments") or []
    flavors = (flavor for it in assigned for flavor in (it.get("flavors") or {}).values())
    on_nodes = current in _ON_NODES
    stops, ends = (_stops(thing, clock), own.ends or None) if on_nodes else (None, None)
    message, advice = _said(thing, current, own, said_before)
    return Workload(
        name=f"{owner['kind']} {owner['name']}" if owner else metadata["name"],
        state=current,
        message=message,
        advice=advice,
        stops=stops,
        stops_seconds=_until(stops, clock),
        nodes_end=ends,
        nodes_end_seconds=_until(ends, clock),
        interruptions=tuple(_interruptions(status, own)),
        created=metadata.get("creationTimestamp"),
        retries=_retries(thing),
        next_try=requeued if current is JobState.PENDING else None,
        queue=spec.get("queueName"),
        flavors=tuple(dict.fromkeys(flavors)),
        pods=own.counts if on_nodes else None,
        pools=own.pools,
    )


def state(work: Object, own: Pods | None = None) -> JobState:
    """How a job stands: by Kueue, and by its pods where Kueue does not wait for them."""
    if holds(work, "Finished"):
        return JobState.FINISHED
    if work["spec"].get("active") is False:
        return JobState.GIVEN_UP
    if holds(work, "Evicted"):
        # Kueue may leave Admitted and QuotaReserved true meanwhile (kueue#14811).
        return JobState.PENDING
    if holds(work, "Admitted"):
        return _let_in(work, own)
    return JobState.WAITING_FOR_NODES if holds(work, "QuotaReserved") else JobState.PENDING


def _let_in(work: Object, own: Pods | None) -> JobState:
    """Whether an admitted job runs: by Kueue, or by its pods where Kueue does not wait for them."""
    if not holds(work, "PodsReady"):
        by_pods = "PodsReady" not in conditions(work)
        runs = by_pods and (own or pods.NOTHING).state is JobState.RUNNING
        return JobState.RUNNING if runs else JobState.STARTING
    kind = next((it["kind"] for it in work["metadata"].get("ownerReferences") or []), "")
    if own and kind in _ENDS_WITH_PODS and own.counts == pods.NOTHING.counts:
        return JobState.ENDING
    # Kueue takes the state of Ray's from KubeRay, which never takes "ready" back.
    lost = own and kind.startswith("Ray") and own.counts.waiting
    return JobState.STARTING if lost else JobState.RUNNING


def _stops(work: Object, clock: Clock) -> str | None:
    """When Kueue stops a job at the limit of its label, which counts its earlier nodes too."""
    most, status = work["spec"].get("maximumExecutionTimeSeconds"), work.get("status") or {}
    since = conditions(work).get("Admitted", {}).get("lastTransitionTime")
    if not most or not since:
        return None
    left = int(most) - int(status.get("accumulatedPastExecutionTimeSeconds") or 0)
    return later(since, clock.wall(left))


def _until(moment: str | None, clock: Clock) -> int | None:
    """Seconds of cloud time until a moment in RFC 3339 format, at least 0; None for none."""
    if not moment:
        return None
    return int(clock.until(dt.datetime.fromisoformat(moment).timestamp()))


def _interruptions(status: Mapping[str, Any], own: Pods) -> Iterator[str]:
    """What has interrupted a job so far: by its JobSet, and by Kueue's own count."""

    def times(count: int) -> str:
        return "once" if count == 1 else f"{count} times"

    for count, why in zip(own.attempts, ("its own failures", "what befell its pods"), strict=True):
        if count:
            yield f"begun again {times(count)} for {why}"
    for found in (status.get("schedulingStats") or {}).get("evictions") or []:
        cause = f" ({found['underlyingCause']})" if found.get("underlyingCause") else ""
        yield f"{found['reason']}{cause} {times(int(found['count']))}"


def failure(message: str) -> str:
    """The autoscaler's message about the request that failed, in what is said of a workload."""
    kueue, _, hidden = message.partition(_BEFORE)
    return hidden or reasons.passed_on(kueue)


def said_before(events: Iterable[Object]) -> dict[str, list[str]]:
    """The UID of a workload -> what the autoscaler said of its earlier requests, oldest first.

    Kueue deletes a request that failed before it makes the next one.
    """
    checks = [it for it in events if it.get("reason") == _CHECKED]
    said: dict[str, list[str]] = {}
    for event in sorted(checks, key=lambda it: (pods.moment(it), str(it.get("message")))):
        if words := reasons.passed_on(str(event.get("message"))):
            said.setdefault(str(event["involvedObject"].get("uid")), []).append(words)
    return said


def _retries(thing: Object) -> int:
    """How often Kueue has tried again to get the nodes of a Workload."""
    checks = (thing.get("status") or {}).get("admissionChecks") or []
    return max((int(check.get("retryCount") or 0) for check in checks), default=0)


def _said(
    thing: Object, current: JobState, own: Pods, said_before: Sequence[str]
) -> tuple[str, str]:
    """Kueue's message about a workload, or what keeps its pods, and what to do."""
    said = {kind: str(it.get("message", "")) for kind, it in conditions(thing).items()}
    match current:
        case JobState.FINISHED:
            found = "; ".join(filter(None, [said["Finished"], own.words])), ""
        case JobState.STARTING if holds(thing, "PodsReady"):
            owner = thing["metadata"]["ownerReferences"][0]
            names = {**thing["metadata"], "name": owner["name"], "kind": owner["kind"].lower()}
            found = f"it has lost a worker: {own.words}", _RAY_LOST.format_map(names)
        case JobState.ENDING:
            found = "its pods have succeeded", ""
        case JobState.RUNNING:
            found = said["Admitted"], ""
        case JobState.STARTING:
            told = own.words or said.get("PodsReady") or "its pods are being made"
            found = told, own.advice
        case JobState.GIVEN_UP:
            # Between its deactivation and its eviction, the condition tells of the attempt before.
            kind = "Evicted" if holds(thing, "Evicted") else "DeactivationTarget"
            is_over = conditions(thing).get("Evicted", {}).get("reason") == _STOPPED
            cause = reasons.named(reasons.passed_on(said.get(kind, "")))
            if is_over or cause == reasons.REVOKED:
                more = "" if is_over else _MORE_TIME
                found = said[kind], NEXT_RUN.format_map(thing["metadata"]) + more
            else:
                found = _refused(said.get(kind, ""), said_before, GIVEN_UP)
        case JobState.WAITING_FOR_NODES:
            checks = (thing.get("status") or {}).get("admissionChecks") or []
            words = "; ".join(check["message"] for check in checks if check.get("message"))
            again = _retries(thing) and said_before
            found = _asked_again(words, said_before) if again else (words, "")
        case JobState.PENDING:
            # One that is being evicted may still have its quota.
            kind = "Evicted" if holds(thing, "QuotaReserved") else "QuotaReserved"
            found = _refused(said.get(kind, ""), said_before, "")
        case _:
            assert_never(current)
    return found


def _asked_again(words: str, said_before: Sequence[str]) -> tuple[str, str]:
    """What to say where another request waits; Kueue's check no longer says what failed."""
    told = [it for it in reversed(said_before) if reasons.passed_on(it)]
    cause = next((it for it in told if reasons.named(it) != reasons.IN_BACKOFF), said_before[-1])
    now = "" if words.startswith(_RESET) else words
    message = f"{now}{_BEFORE}{cause}" if now else f"asked again after: {cause}"
    return message, reasons.advice("", cause)


def _refused(message: str, said_before: Sequence[str], usual: str) -> tuple[str, str]:
    """What to say where the last request failed, with the cause that a rest of the pool hides."""
    cause = reasons.passed_on(message)
    if reasons.named(cause) == reasons.IN_BACKOFF:
        earlier = (it for it in reversed(said_before) if reasons.named(it) != reasons.IN_BACKOFF)
        hidden = next(earlier, "")
        if hidden:
            cause, message = hidden, f"{message}{_BEFORE}{hidden}"
    advice = "\n".join(filter(None, [reasons.advice("", cause) if cause else "", usual]))
    return message, advice
