"""What is waiting and running in a cluster, and what to do about it.

Jobs, nodes, and ProvisioningRequests: where each stands, what it waits for, how long yet.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, assert_never

from provision.catalogue import limits
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue, nodes, pods, reasons, workloads
from provision.kinds.gke.kubernetes.objects import conditions, holds, later
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.kinds.gke.kubernetes.objects import Object

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


def is_out_of_stock(thing: NodeRequest | Workload) -> bool:
    """Whether a request failed or waits, or a job does, because the zone has no such machines."""
    match thing:
        case NodeRequest(state=RequestState.WAITING | RequestState.FAILED):
            return refusals.read(thing.reason, thing.message) is Refusal.STOCKOUT
        case Workload(state=JobState.PENDING | JobState.GIVEN_UP):
            return refusals.read("", thing.message) is Refusal.STOCKOUT
        case _:
            return False


def read(cluster: Cluster, clock: Clock = _CLOCK) -> Status:
    """Read the status of a cluster; kinds that it does not have count as empty.

    Raises:
        KubernetesError: These credentials may not read it.
        TransientError: The cluster does not answer now.
    """
    works = cluster.all(kueue.API, "Workload")
    machines = cluster.all("v1", "Node", selector=kueue.POOL_LABEL)
    events = cluster.all("v1", "Event")
    jobs = pods.read(cluster, works, machines, events)
    said = workloads.said_before(events)
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
        own = next(filter(None, map(jobs.of_queue.get, pods.owners(work))), pods.NOTHING)
        states[uid] = workloads.state(work, own)
        told = workloads.read(work, own, said.get(uid, ()), clock)
        found.append(dataclasses.replace(told, place=places.get(work["metadata"]["name"])))
    return Status(
        nodes=nodes.read(machines, events, clock),
        workloads=tuple(found),
        requests=tuple(
            request(it, next(filter(None, map(states.get, pods.owners(it))), None), clock)
            for it in cluster.all(REQUEST_API, REQUEST)
        ),
        outside=jobs.outside,
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
_WITH_NODES: Final = frozenset({JobState.STARTING, JobState.RUNNING, JobState.ENDING})
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
    until, then = _until(thing, state, clock)
    return NodeRequest(
        name=thing["metadata"]["name"],
        state=state,
        reason=reason,
        message=message,
        advice=_advice(state, reason, message, job),
        created=created,
        waits_for=_waits_for(state, reason, message),
        since=since or created,
        until=until,
        then=then,
    )


def _state(thing: Object, job: JobState | None) -> tuple[RequestState, str]:
    """The state of a request, and the condition that decides it; "" for none."""
    said = conditions(thing)
    if holds(thing, "Failed"):
        found = RequestState.FAILED, "Failed"
    elif holds(thing, "CapacityRevoked"):
        # Every run ends so, that of a job that had finished long before as well.
        ended = RequestState.DONE if job is JobState.FINISHED else RequestState.ENDED
        found = ended, "CapacityRevoked"
    elif holds(thing, "Provisioned") or holds(thing, "BookingExpired"):
        found = _granted(thing, job)
    elif "Provisioned" in said:
        found = RequestState.WAITING, "Provisioned"
    elif holds(thing, "Accepted"):
        found = RequestState.ACCEPTED, "Accepted"
    else:
        found = RequestState.PENDING, "Accepted" if "Accepted" in said else ""
    return found


def _granted(thing: Object, job: JobState | None) -> tuple[RequestState, str]:
    """The same of a request whose nodes have come."""
    if job in _WITH_NODES:
        return RequestState.RUNNING, "Provisioned"
    if job is JobState.FINISHED:
        return RequestState.DONE, "Provisioned"
    if holds(thing, "BookingExpired"):
        return RequestState.EXPIRED, "BookingExpired"
    return RequestState.PROVISIONED, "Provisioned"


def _advice(state: RequestState, reason: str, message: str, job: JobState | None) -> str:
    """What a person can do; "" for nothing but to wait."""
    match state:
        case RequestState.FAILED:
            usual = _RETRIED if job else _MADE_BY_HAND
            usual = workloads.GIVEN_UP if job is JobState.GIVEN_UP else usual
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


def _waits_for(state: RequestState, reason: str, message: str) -> str:
    """What a request waits for, or got no nodes for lack of."""
    match state:
        case RequestState.PENDING:
            return reasons.lacks(reason, message) or "a pool that takes it"
        case RequestState.WAITING:
            return reasons.lacks(reason, message) or "all its machines at once"
        case RequestState.ACCEPTED:
            return "all its machines at once"
        case RequestState.FAILED | RequestState.ENDED:
            return reasons.lacks(reason, message)
        case RequestState.PROVISIONED:
            return "its pods"
        case RequestState.RUNNING | RequestState.EXPIRED | RequestState.DONE:
            return ""
        case _:
            assert_never(state)


def _until(thing: Object, state: RequestState, clock: Clock) -> tuple[str | None, str]:
    """When the state of a request ends automatically, and what happens then."""
    created = thing["metadata"].get("creationTimestamp")
    came = conditions(thing).get("Provisioned", {}).get("lastTransitionTime")
    parameters = (thing.get("spec") or {}).get("parameters") or {}

    def asked(name: str) -> int:
        text = str(parameters.get(name))
        return int(text) if text.isdecimal() else 0

    def after(moment: str | None, seconds: int) -> str | None:
        return later(moment, clock.wall(seconds)) if moment else None

    match state:
        case RequestState.PENDING:
            return after(created, _PLACELESS_SECONDS), "it fails, if no pool has taken it"
        case RequestState.ACCEPTED | RequestState.WAITING:
            patience = asked("ValidUntilSeconds")
            if not patience:
                return None, ""
            return after(created, patience), "it gives up its place in Google's queue"
        case RequestState.PROVISIONED:
            return after(came, _BOOKED_SECONDS), "nodes without pods are removed"
        case RequestState.RUNNING | RequestState.EXPIRED:
            run = asked("maxRunDurationSeconds") or limits.LONGEST_RUN
            return after(came, run), "Google deletes its nodes"
        case RequestState.FAILED | RequestState.DONE | RequestState.ENDED:
            return None, ""
        case _:
            assert_never(state)
