"""What is waiting and running in a cluster, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue, reasons
from provision.kinds.gke.kubernetes.objects import conditions, holds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

REQUEST_API: Final = "autoscaling.x-k8s.io/v1"
REQUEST_KIND: Final = "ProvisioningRequest"


@dataclass(frozen=True, kw_only=True)
class ProvisioningRequest:
    """A ProvisioningRequest: one attempt to get the nodes for a job.

    Attributes:
        name: Its name.
        state: pending (no pool takes it yet), accepted, waiting (accepted, and Google tells what
            it lacks), provisioned, running (its job has its nodes), expired (its nodes were kept
            for 10 minutes, and no job runs on them), ended (its nodes' run is over) or failed.
        reason: The autoscaler's reason, such as "QuotaExceeded"; "" for none.
        message: The autoscaler's message.
        advice: What to do; "" if there is nothing to do but wait.
    """

    name: str
    state: str
    reason: str = ""
    message: str = ""
    advice: str = ""

    @property
    def is_out_of_stock(self) -> bool:
        """Whether it failed, or waits, because the zone has no such machines."""
        refusal = refusals.read(self.reason, self.message)
        return self.state in {"waiting", "failed"} and refusal is Refusal.STOCKOUT


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job in the queue.

    Attributes:
        name: The kind and name of the job that owns it.
        state: pending, waiting for nodes, running, finished or given up.
        message: Kueue's last message about it; after it, the failure that it hides.
        advice: What to do; "" for nothing.
    """

    name: str
    state: str
    message: str = ""
    advice: str = ""

    @property
    def is_out_of_stock(self) -> bool:
        """Whether its last request failed because the zone has no such machines."""
        refusal = refusals.read("", self.message)
        return self.state in {"pending", "given up"} and refusal is Refusal.STOCKOUT


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The existing nodes of one pool.

    Attributes:
        pool: The name of the pool.
        count: The number of nodes.
        ready: The number of ready nodes.
        oldest: When the oldest node was created, in RFC 3339 format; "" if not known.
        ends: When the first of them is deleted at the end of its run, likewise.
        unready: The nodes that are not ready, each with Kubernetes' reason and message.
    """

    pool: str
    count: int
    ready: int
    oldest: str = ""
    ends: str = ""
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Status:
    """The nodes, queued jobs and ProvisioningRequests of a cluster."""

    nodes: tuple[Nodes, ...]
    workloads: tuple[Workload, ...]
    requests: tuple[ProvisioningRequest, ...]


_START: Final = (
    "start the pods within 10 minutes after the nodes came, otherwise the autoscaler removes the"
    " nodes"
)
_EXPIRED: Final = (
    "no job runs on its nodes, so the autoscaler removes them: delete the request and submit the"
    " job again"
)
_RETRIED: Final = "Kueue makes another attempt by itself"
GIVEN_UP: Final = (
    "Kueue makes no more attempts: see why the last request failed, then delete the job and submit"
    " it again"
)
_TERMINATION: Final = "node.gke.io/machine-termination-datetime"
"""The annotation of nodes with the end of their run, in RFC 3339 format."""
_CHECKED: Final = "AdmissionCheckUpdated"
"""The reason of Kueue's events about the requests of a workload; they outlive the requests."""


def read(cluster: Cluster) -> Status:
    """Read the status of a cluster; kinds that it does not have count as empty.

    Raises:
        KubernetesError: These credentials may not read it.
        TransientError: The cluster does not answer now.
    """
    works = cluster.all(kueue.API, "Workload")
    running = {work["metadata"].get("uid") for work in works if _runs(work)}
    said = _said_before(cluster) if len(running) < len(works) else {}
    return Status(
        nodes=_nodes(cluster.all("v1", "Node", selector=kueue.POOL_LABEL)),
        workloads=tuple(
            workload(thing, said.get(thing["metadata"].get("uid", ""), ())) for thing in works
        ),
        requests=tuple(
            request(thing, is_running=not running.isdisjoint(_owners(thing)))
            for thing in cluster.all(REQUEST_API, REQUEST_KIND)
        ),
    )


def request(thing: Object, *, is_running: bool = False) -> ProvisioningRequest:
    """Read the state of a ProvisioningRequest (rules Q12 to Q14, and the autoscaler's source).

    Args:
        thing: The request.
        is_running: Whether its job has been admitted to its nodes and has not ended. The booking of
            the nodes expires 10 minutes after they came, whether or not a job runs on them.
    """
    name = thing["metadata"]["name"]
    said = conditions(thing)
    for condition, state, usual in _OVER:
        if holds(thing, condition):
            return _said(name, state, said[condition], usual)
    if is_running and holds(thing, "Provisioned"):
        return ProvisioningRequest(name=name, state="running")
    for condition, state, usual in _GRANTED:
        if holds(thing, condition):
            return _said(name, state, said[condition], usual)
    if "Provisioned" in said:
        return _said(name, "waiting", said["Provisioned"], "")
    state = "accepted" if holds(thing, "Accepted") else "pending"
    return _said(name, state, said.get("Accepted", {}), "")


# Condition that is true, the state that it means, and the usual advice; the first one counts.
_OVER: Final = (("Failed", "failed", _RETRIED), ("CapacityRevoked", "ended", ""))
_GRANTED: Final = (("BookingExpired", "expired", _EXPIRED), ("Provisioned", "provisioned", _START))


def _owners(thing: Object) -> set[str | None]:
    return {owner.get("uid", "") for owner in thing["metadata"].get("ownerReferences", [])}


def _runs(work: Object) -> bool:
    return holds(work, "Admitted") and not holds(work, "Finished")


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
    said = conditions(thing)
    for condition, state in (("Finished", "finished"), ("Admitted", "running")):
        if holds(thing, condition):
            return Workload(name=name, state=state, message=_message(said[condition]))
    if thing["spec"].get("active") is False:
        # Between its deactivation and its eviction, the condition tells of the attempt before.
        said_of = "Evicted" if holds(thing, "Evicted") else "DeactivationTarget"
        evicted = _message(said.get(said_of, {}))
        return _refused(name, "given up", evicted, said_before, GIVEN_UP)
    checks = (thing.get("status") or {}).get("admissionChecks") or []
    words = "; ".join(check["message"] for check in checks if check.get("message"))
    if holds(thing, "QuotaReserved"):
        return Workload(name=name, state="waiting for nodes", message=words)
    pending = _message(said.get("QuotaReserved", {}))
    return _refused(name, "pending", pending, said_before, "")


def _refused(
    name: str, state: str, message: str, said_before: Sequence[str], usual: str
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


def _said(name: str, state: str, condition: Mapping[str, Any], usual: str) -> ProvisioningRequest:
    reason, message = str(condition.get("reason", "")), _message(condition)
    if state in {"provisioned", "expired"}:
        advice = usual
    else:
        advice = reasons.advice(reason, message, waiting=state == "waiting") or usual
    return ProvisioningRequest(
        name=name, state=state, reason=reason, message=message, advice=advice
    )


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
            oldest=min(str(node["metadata"].get("creationTimestamp", "")) for node in nodes),
            ends=min(filter(None, map(_end, nodes)), default=""),
            unready=tuple(_unready(node) for node in nodes if not holds(node, "Ready")),
        )
        for pool, nodes in sorted(pools.items())
    )


def _end(node: Object) -> str:
    return str((node["metadata"].get("annotations") or {}).get(_TERMINATION, ""))


def _unready(node: Object) -> str:
    ready = conditions(node).get("Ready", {})
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    return f"{node['metadata']['name']} is not ready{reason}: {_message(ready)}".rstrip(": ")


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message", ""))
