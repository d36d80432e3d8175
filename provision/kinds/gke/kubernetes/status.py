"""What is waiting and running in a cluster, and what to do about it.

Jobs, nodes, and ProvisioningRequests: where each stands, what it waits for, how long yet.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, assert_never

from provision.catalogue import limits
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue, nodes, parts, pods, reasons
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds, later
from provision.kinds.status import until
from provision.screens.layout import counted
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.documents.status import Trouble
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.kinds.gke.kubernetes.pods import Pods

REQUEST_API: Final = "autoscaling.x-k8s.io/v1"
REQUEST: Final = "ProvisioningRequest"
_CLOCK: Final = Clock()


@dataclass(frozen=True, kw_only=True)
class Status:
    """The nodes, jobs and ProvisioningRequests of a cluster."""

    nodes: tuple[Nodes, ...]  # of each pool
    workloads: tuple[Workload, ...]  # the jobs in the queue
    requests: tuple[NodeRequest, ...]
    outside: tuple[Workload, ...] = ()  # the jobs that no queue knows and that have not ended
    faults: tuple[Trouble, ...] = ()  # what is wrong with what Create has brought into the cluster


def is_out_of_stock(thing: NodeRequest | Workload) -> bool:
    """Whether a request failed or waits, or a job does, because the zone has no such machines."""
    match thing:
        case NodeRequest(state=RequestState.WAITING | RequestState.FAILED):
            return refusals.read(thing.reason, thing.message) is Refusal.STOCKOUT
        case Workload(state=JobState.PENDING | JobState.GIVEN_UP):
            return refusals.read("", thing.message) is Refusal.STOCKOUT
        case _:
            return False


def read(cluster: Cluster, clock: Clock = _CLOCK, facts: ClusterFacts | None = None) -> Status:
    """Read the status of a cluster; kinds that it does not have count as empty.

    `facts`: what Create has brought into it; None to leave that out.
    """
    works = cluster.all(kueue.API, "Workload")
    machines = cluster.all("v1", "Node", selector=kueue.POOL_LABEL)
    events = cluster.all("v1", "Event")
    of_queue, outside = pods.read(cluster, works, machines, events)
    said = said_before(events)
    waiting = {
        (str(work["metadata"].get("namespace", "")), str(work["spec"].get("queueName", "")))
        for work in works
        if not holds(work, "QuotaReserved")
    }
    # Names are unique in a namespace, and have a digest.
    places = {name: at for queue in waiting for name, at in cluster.places(*queue).items()}
    states: dict[str, JobState] = {}
    found = []
    for work in works:
        uid = str(work["metadata"].get("uid", ""))
        own = next(filter(None, map(of_queue.get, pods.owners(work))), pods.NOTHING)
        states[uid] = state(work, own)
        told = of_workload(work, own, said.get(uid, ()), clock)
        found.append(dataclasses.replace(told, place=places.get(work["metadata"]["name"])))
    return Status(
        nodes=nodes.read(machines, events, clock),
        workloads=tuple(found),
        requests=tuple(
            request(it, next(filter(None, map(states.get, pods.owners(it))), None), clock)
            for it in cluster.all(REQUEST_API, REQUEST)
        ),
        outside=outside,
        faults=parts.look(cluster, facts) if facts else (),
    )


# ------------------------------------------------------------------------------ requests

_START: Final = (
    "start the pods within 10 minutes after the nodes came, otherwise the autoscaler removes the"
    " nodes"
)
_EXPIRED: Final = (
    "no job runs on its nodes, so the autoscaler removes them: delete the request and submit the"
    " job again"
)
_UNKNOWN: Final = (
    "no job of the queue made it: its nodes stay as long as pods run on them, and go when none does"
)
_RETRIED: Final = "Kueue tries again"
_MADE_BY_HAND: Final = "no job of the queue made it: fix the cause, and submit it again"
_SINCE: Final[Mapping[RequestState, str]] = {
    RequestState.ACCEPTED: "Accepted",
    RequestState.WAITING: "Accepted",
    RequestState.PROVISIONED: "Provisioned",
    RequestState.RUNNING: "Provisioned",
    RequestState.DONE: "Provisioned",
    RequestState.EXPIRED: "BookingExpired",
    RequestState.FAILED: "Failed",
    RequestState.ENDED: "CapacityRevoked",
}
"""State of a request -> the condition since which it is in it; else it is so from its creation.

A change of a reason alone is no new beginning."""
_WAITS_FOR: Final[Mapping[RequestState, str]] = {
    **dict.fromkeys(RequestState, ""),
    RequestState.PENDING: "a pool that takes it",
    RequestState.WAITING: "all its machines at once",
    RequestState.ACCEPTED: "all its machines at once",
    RequestState.PROVISIONED: "its pods",
}
_LACKING: Final = frozenset(
    {RequestState.PENDING, RequestState.WAITING, RequestState.FAILED, RequestState.ENDED}
)
"""States in which what the autoscaler says tells more of what a request lacks."""
_PLACELESS_SECONDS: Final = 120
"""How long a request may be without a pool that takes it (the autoscaler's source)."""
_BOOKED_SECONDS: Final = 600
"""How long the nodes of a request are kept without pods (rule Q12)."""


def request(thing: Object, job: JobState | None = None, clock: Clock = _CLOCK) -> NodeRequest:
    """Read the state of a ProvisioningRequest (rules Q12 to Q14, and the autoscaler's source).

    `job`: the state of its job; None if no job of the queue made it. The booking of the nodes
    expires 10 minutes after they came, whether or not a job runs on them: alone it says nothing.
    """
    state, kind = _state(thing, job)
    said = conditions(thing)
    condition = said.get(kind, {})
    reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
    if state in {RequestState.RUNNING, RequestState.DONE}:
        reason = message = ""
    created = thing["metadata"].get("creationTimestamp")
    since = said.get(_SINCE.get(state, ""), {}).get("lastTransitionTime")
    ends, then = _until(thing, state, clock)
    return NodeRequest(
        name=thing["metadata"]["name"],
        state=state,
        reason=reason,
        message=message,
        advice=_advice(state, reason, message, job),
        created=created,
        waits_for=(state in _LACKING and reasons.lacks(reason, message)) or _WAITS_FOR[state],
        since=since or created,
        until=ends,
        then=then,
    )


def _state(thing: Object, job: JobState | None) -> tuple[RequestState, str]:
    """The state of a request, and the condition that decides it; "" for none."""
    said, is_expired = conditions(thing), holds(thing, "BookingExpired")
    is_done, came = job is JobState.FINISHED, is_expired or holds(thing, "Provisioned")
    # The first that holds counts.
    rows = (
        (holds(thing, "Failed"), RequestState.FAILED, "Failed"),
        # Every run ends so, that of a job that had finished long before as well.
        (
            holds(thing, "CapacityRevoked"),
            RequestState.DONE if is_done else RequestState.ENDED,
            "CapacityRevoked",
        ),
        (came and job in _ON_NODES, RequestState.RUNNING, "Provisioned"),
        (came and is_done, RequestState.DONE, "Provisioned"),
        (is_expired, RequestState.EXPIRED, "BookingExpired"),
        (came, RequestState.PROVISIONED, "Provisioned"),
        ("Provisioned" in said, RequestState.WAITING, "Provisioned"),
        (holds(thing, "Accepted"), RequestState.ACCEPTED, "Accepted"),
    )
    pending = RequestState.PENDING, "Accepted" if "Accepted" in said else ""
    return next(((state, kind) for is_so, state, kind in rows if is_so), pending)


def _advice(state: RequestState, reason: str, message: str, job: JobState | None) -> str:
    """What a person can do; "" for nothing but to wait."""
    match state:
        case RequestState.FAILED:
            usual = _RETRIED if job else _MADE_BY_HAND
            usual = GIVEN_UP if job is JobState.GIVEN_UP else usual
            return reasons.advice(reason, message) or usual
        case RequestState.WAITING:
            return reasons.advice(reason, message, waiting=True)
        case RequestState.PENDING | RequestState.ACCEPTED | RequestState.ENDED:
            return reasons.advice(reason, message)
        case RequestState.PROVISIONED:
            return _START
        case RequestState.EXPIRED:
            return _EXPIRED if job else _UNKNOWN
        case RequestState.RUNNING | RequestState.DONE:
            return ""
        case _:
            assert_never(state)


def _until(thing: Object, state: RequestState, clock: Clock) -> tuple[str | None, str]:
    """When the state of a request ends automatically, and what happens then."""
    created = thing["metadata"].get("creationTimestamp")
    came = conditions(thing).get("Provisioned", {}).get("lastTransitionTime")
    asked = (thing.get("spec") or {}).get("parameters") or {}
    patience, run = (
        int(text) if (text := str(asked.get(name))).isdecimal() else 0
        for name in ("ValidUntilSeconds", "maxRunDurationSeconds")
    )
    gives_up = created, patience, "it gives up its place in Google's queue"
    is_over = came, run or limits.LONGEST_RUN, "Google deletes its nodes"
    since, seconds, then = {
        RequestState.PENDING: (created, _PLACELESS_SECONDS, "it fails, if no pool has taken it"),
        RequestState.ACCEPTED: gives_up,
        RequestState.WAITING: gives_up,
        RequestState.PROVISIONED: (came, _BOOKED_SECONDS, "nodes without pods are removed"),
        RequestState.RUNNING: is_over,
        RequestState.EXPIRED: is_over,
    }.get(state, (None, 0, ""))
    if not seconds:
        return None, ""
    return later(since, clock.wall(seconds)) if since else None, then


# ------------------------------------------------------------------------------ jobs in the queue

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
STOPPED: Final = "DeactivatedDueToMaximumExecutionTimeExceeded"
"""Kueue's reason for a job that it has stopped at the limit of its label."""
_ON_NODES: Final = frozenset({JobState.STARTING, JobState.RUNNING, JobState.ENDING})
_ENDS_WITH_PODS: Final = frozenset({"Job", "JobSet"})
_BEFORE: Final = "; the failure before: "
_RESET: Final = "Reset to Pending"
"""How Kueue's words about a check begin that is made again after an eviction."""
_CHECKED: Final = "AdmissionCheckUpdated"
"""The reason of Kueue's events about the requests of a workload; they outlive the requests."""


def of_workload(
    thing: Object,
    own: Pods | None = None,
    said_before: Sequence[str] = (),
    clock: Clock = _CLOCK,
) -> Workload:
    """Read a Workload of Kueue with its pods; `said_before` as the function of that name has it."""
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
        stops_seconds=until(stops, clock) if stops else None,
        nodes_end=ends,
        nodes_end_seconds=until(ends, clock) if ends else None,
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
    """The same of an admitted job: whether it runs."""
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
            is_over = conditions(thing).get("Evicted", {}).get("reason") == STOPPED
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
            message = said.get(kind, "")
            lacking = (kueue.lacks_place(pool, message) for pool in _selected(thing))
            found = _refused(message, said_before, next(filter(None, lacking), ""))
        case _:
            assert_never(current)
    return found


def _selected(thing: Object) -> list[str]:
    """The pools that the sets of pods of a workload select."""
    specs = (pods["template"]["spec"] for pods in thing["spec"].get("podSets") or [])
    selectors = (it.get("nodeSelector") or {} for it in specs)
    return [it[kueue.POOL_LABEL] for it in selectors if kueue.POOL_LABEL in it]


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


def turn(work: Object) -> tuple[bool, int, str]:
    """By what a queue is sorted: first what has room, then by priority and by age, as by Kueue."""
    waits = state(work) is JobState.PENDING
    priority = int(work["spec"].get("priority") or 0)
    return waits, -priority, str(work["metadata"]["creationTimestamp"])


def in_the_way(before: Sequence[Object]) -> str:
    """Which of the jobs before another one keeps it waiting: that with most GPUs of those let in.

    `before`: their Workloads, those that Kueue has let in first.
    """
    let_in = [it for it in before if state(it) is not JobState.PENDING]
    first = max(let_in, key=_gpus) if let_in else before[0]
    name = next(iter(first["metadata"]["ownerReferences"]))["name"]
    holds = f", with {counted(_gpus(first), 'GPU')}" if let_in and _gpus(first) else ""
    return f"{name} is before it{holds}"


def _gpus(work: Object) -> int:
    """How many GPUs the pods of a Workload ask for."""
    number = 0
    for group in work["spec"].get("podSets") or ():
        for container in group["template"]["spec"].get("containers") or ():
            asked = container.get("resources") or {}
            each = {**(asked.get("limits") or {}), **(asked.get("requests") or {})}
            number += group["count"] * int(each.get(kueue.GPU, 0))
    return number
