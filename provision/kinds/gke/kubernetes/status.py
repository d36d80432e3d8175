"""What is waiting and running in a cluster, and what to do about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue, reasons
from provision.kinds.gke.kubernetes.objects import conditions, holds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

_Found = TypeVar("_Found", NodeRequest, Workload)

REQUEST_API: Final = "autoscaling.x-k8s.io/v1"
REQUEST_KIND: Final = "ProvisioningRequest"


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The existing nodes of one pool.

    Attributes:
        pool: The name of the pool.
        count: The number of nodes.
        ready: The number of ready nodes.
        oldest: When the oldest node was created, in RFC 3339 format; "" if not known.
        created: When each node was created, likewise, as far as it is known.
        ends: When the first of them is deleted at the end of its run, likewise.
        last_end: When the last of them is, as far as the nodes say.
        unready: The nodes that are not ready, each with Kubernetes' reason and message.
    """

    pool: str
    count: int
    ready: int
    oldest: str = ""
    created: tuple[str, ...] = ()
    ends: str = ""
    last_end: str = ""
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Status:
    """The nodes, queued jobs and ProvisioningRequests of a cluster."""

    nodes: tuple[Nodes, ...]
    workloads: tuple[Workload, ...]
    requests: tuple[NodeRequest, ...]


def is_out_of_stock(thing: NodeRequest | Workload) -> bool:
    """Whether a request failed or waits, or a job does, because the zone has no such machines."""
    match thing:
        case NodeRequest(state=RequestState.WAITING | RequestState.FAILED):
            return refusals.read(thing.reason, thing.message) is Refusal.STOCKOUT
        case Workload(state=JobState.PENDING | JobState.GIVEN_UP):
            return refusals.read("", thing.message) is Refusal.STOCKOUT
        case _:
            return False


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
_RETRIED: Final = "Kueue makes another attempt by itself"
GIVEN_UP: Final = (
    "Kueue makes no more attempts: see why the last request failed, then delete the job and submit"
    " it again"
)
_TERMINATION: Final = "node.gke.io/machine-termination-datetime"
"""The annotation of nodes with the end of their run, in RFC 3339 format."""
_RESET: Final = "Reset to Pending"
"""How Kueue's words about a check begin that is made again after an eviction."""
_CHECKED: Final = "AdmissionCheckUpdated"
"""The reason of Kueue's events about the requests of a workload; they outlive the requests."""


def read(cluster: Cluster) -> Status:
    """Read the status of a cluster; kinds that it does not have count as empty.

    Raises:
        KubernetesError: These credentials may not read it.
        TransientError: The cluster does not answer now.
    """
    works = cluster.all(kueue.API, "Workload")
    states = {work["metadata"].get("uid"): _job(work) for work in works}
    said = _said_before(cluster) if set(states.values()) - {JobState.RUNNING} else {}
    return Status(
        nodes=_nodes(cluster.all("v1", "Node", selector=kueue.POOL_LABEL)),
        workloads=tuple(
            dataclasses.replace(
                _dated(workload(thing, said.get(thing["metadata"].get("uid", ""), ())), thing),
                retries=_retries(thing),
            )
            for thing in works
        ),
        requests=tuple(
            _dated(request(thing, _state_of_owner(thing, states)), thing)
            for thing in cluster.all(REQUEST_API, REQUEST_KIND)
        ),
    )


def _retries(thing: Object) -> int:
    """How often Kueue has tried again to get the nodes of a Workload."""
    checks = (thing.get("status") or {}).get("admissionChecks") or []
    return max((int(check.get("retryCount") or 0) for check in checks), default=0)


def _dated(found: _Found, thing: Object) -> _Found:
    return dataclasses.replace(found, created=_created(thing) or None)


def request(thing: Object, job: JobState | None = None) -> NodeRequest:
    """Read the state of a ProvisioningRequest (rules Q12 to Q14, and the autoscaler's source).

    Args:
        thing: The request.
        job: The state of its job; None if no job of the queue made it. The booking of the nodes
            expires 10 minutes after they came, whether or not a job runs on them: alone it says
            nothing.
    """
    name = thing["metadata"]["name"]
    said = conditions(thing)
    if holds(thing, "Failed"):
        return _said(name, RequestState.FAILED, said["Failed"], _RETRIED)
    if holds(thing, "CapacityRevoked"):
        # Every run ends so, that of a job that had finished long before as well.
        if job is JobState.FINISHED:
            return NodeRequest(name=name, state=RequestState.DONE)
        return _said(name, RequestState.ENDED, said["CapacityRevoked"], "")
    if holds(thing, "Provisioned") or holds(thing, "BookingExpired"):
        return _granted(thing, job)
    if "Provisioned" in said:
        return _said(name, RequestState.WAITING, said["Provisioned"], "")
    state = RequestState.ACCEPTED if holds(thing, "Accepted") else RequestState.PENDING
    return _said(name, state, said.get("Accepted", {}), "")


def _granted(thing: Object, job: JobState | None) -> NodeRequest:
    """A request whose nodes have come."""
    name, said = thing["metadata"]["name"], conditions(thing)
    if job is JobState.RUNNING:
        return NodeRequest(name=name, state=RequestState.RUNNING)
    if job is JobState.FINISHED:
        return NodeRequest(name=name, state=RequestState.DONE)
    if not holds(thing, "BookingExpired"):
        return _said(name, RequestState.PROVISIONED, said["Provisioned"], _START)
    usual = _UNKNOWN if job is None else _EXPIRED
    return _said(name, RequestState.EXPIRED, said["BookingExpired"], usual)


def _state_of_owner(thing: Object, states: Mapping[str | None, JobState]) -> JobState | None:
    """The state of the job that made a request."""
    owners = (owner.get("uid", "") for owner in thing["metadata"].get("ownerReferences", []))
    return next((states[uid] for uid in owners if uid in states), None)


def _job(work: Object) -> JobState:
    """How a job of the queue stands."""
    if holds(work, "Finished"):
        return JobState.FINISHED
    if holds(work, "Admitted"):
        return JobState.RUNNING
    if work["spec"].get("active") is False:
        return JobState.GIVEN_UP
    if holds(work, "QuotaReserved"):
        return JobState.WAITING_FOR_NODES
    return JobState.PENDING


def _said_before(cluster: Cluster) -> dict[str, list[str]]:
    """The UID of a workload -> what the autoscaler said of its earlier requests, oldest first.

    Kueue deletes a request that failed before it makes the next one.
    """
    found = [
        (_time(event), str(event["involvedObject"].get("uid")), str(event.get("message")))
        for event in cluster.all("v1", "Event")
        if event.get("reason") == _CHECKED
    ]
    said: dict[str, list[str]] = {}
    for _, uid, words in sorted(found):
        if reasons.passed_on(words):
            said.setdefault(uid, []).append(reasons.passed_on(words))
    return said


def _time(event: Object) -> str:
    times = ("eventTime", "lastTimestamp", "firstTimestamp")
    found = next((event[name] for name in times if event.get(name)), None)
    return str(found or event["metadata"].get("creationTimestamp", ""))


def workload(thing: Object, said_before: Sequence[str] = ()) -> Workload:
    """Read the state of a Workload of Kueue.

    Args:
        thing: The workload.
        said_before: What the autoscaler said of its earlier requests, oldest first.
    """
    owner = next(iter(thing["metadata"].get("ownerReferences", [])), None)
    name = f"{owner['kind']} {owner['name']}" if owner else thing["metadata"]["name"]
    said, state = conditions(thing), _job(thing)
    match state:
        case JobState.FINISHED:
            return Workload(name=name, state=state, message=_message(said["Finished"]))
        case JobState.RUNNING:
            return Workload(name=name, state=state, message=_message(said["Admitted"]))
        case JobState.GIVEN_UP:
            # Between its deactivation and its eviction, the condition tells of the attempt before.
            said_of = "Evicted" if holds(thing, "Evicted") else "DeactivationTarget"
            evicted = _message(said.get(said_of, {}))
            return _refused(name, state, evicted, said_before, GIVEN_UP)
        case JobState.WAITING_FOR_NODES:
            checks = (thing.get("status") or {}).get("admissionChecks") or []
            words = "; ".join(check["message"] for check in checks if check.get("message"))
            if _retries(thing) and said_before:
                return _asked_again(name, state, words, said_before)
            return Workload(name=name, state=state, message=words)
        case JobState.PENDING:
            pending = _message(said.get("QuotaReserved", {}))
            return _refused(name, state, pending, said_before, "")


def _asked_again(name: str, state: JobState, words: str, said_before: Sequence[str]) -> Workload:
    """A workload that waits for another request; Kueue's check no longer says what failed."""
    told = [it for it in reversed(said_before) if reasons.passed_on(it)]
    cause = next((it for it in told if reasons.named(it) != reasons.IN_BACKOFF), said_before[-1])
    now = "" if words.startswith(_RESET) else words
    message = f"{now}; the failure before: {cause}" if now else f"asked again after: {cause}"
    return Workload(name=name, state=state, message=message, advice=reasons.advice("", cause))


def _refused(
    name: str, state: JobState, message: str, said_before: Sequence[str], usual: str
) -> Workload:
    """A workload whose last request failed, with the cause that a rest of the pool hides."""
    cause = reasons.passed_on(message)
    if reasons.named(cause) == reasons.IN_BACKOFF:
        earlier = (it for it in reversed(said_before) if reasons.named(it) != reasons.IN_BACKOFF)
        hidden = next(earlier, "")
        if hidden:
            cause, message = hidden, f"{message}; the failure before: {hidden}"
    advice = "\n".join(filter(None, [reasons.advice("", cause) if cause else "", usual]))
    return Workload(name=name, state=state, message=message, advice=advice)


def _said(name: str, state: RequestState, condition: Mapping[str, Any], usual: str) -> NodeRequest:
    reason, message = str(condition.get("reason", "")), _message(condition)
    if state in {RequestState.PROVISIONED, RequestState.EXPIRED}:
        advice = usual
    else:
        waits = state is RequestState.WAITING
        advice = reasons.advice(reason, message, waiting=waits) or usual
    return NodeRequest(name=name, state=state, reason=reason, message=message, advice=advice)


def _nodes(things: list[Object]) -> tuple[Nodes, ...]:
    pools: dict[str, list[Object]] = {}
    for thing in things:
        pools.setdefault(thing["metadata"]["labels"][kueue.POOL_LABEL], []).append(thing)
    return tuple(
        Nodes(
            pool=pool,
            count=len(nodes),
            ready=sum(holds(node, "Ready") for node in nodes),
            # All timestamps end with Z, so they sort as text.
            oldest=min(map(_created, nodes)),
            created=tuple(filter(None, map(_created, nodes))),
            ends=min(filter(None, map(_end, nodes)), default=""),
            last_end=max(filter(None, map(_end, nodes)), default=""),
            unready=tuple(_unready(node) for node in nodes if not holds(node, "Ready")),
        )
        for pool, nodes in sorted(pools.items())
    )


def _created(node: Object) -> str:
    return str(node["metadata"].get("creationTimestamp") or "")


def _end(node: Object) -> str:
    return str((node["metadata"].get("annotations") or {}).get(_TERMINATION, ""))


def _unready(node: Object) -> str:
    ready = conditions(node).get("Ready", {})
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    return f"{node['metadata']['name']} is not ready{reason}: {_message(ready)}".rstrip(": ")


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message", ""))
