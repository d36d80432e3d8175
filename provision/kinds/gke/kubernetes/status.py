"""What is waiting and running in a cluster, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue
from provision.kinds.gke.kubernetes.objects import conditions, holds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.refusals import Quota
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

REQUEST_API: Final = "autoscaling.x-k8s.io/v1"
REQUEST_KIND: Final = "ProvisioningRequest"


@dataclass(frozen=True, kw_only=True)
class ProvisioningRequest:
    """A ProvisioningRequest: one attempt to get the nodes for a job.

    Attributes:
        name: Its name.
        state: pending, accepted, waiting, provisioned or failed.
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
        """Whether it failed because the zone has no such machines."""
        refusal = refusals.read(self.reason, self.message)
        return self.state != "provisioned" and refusal is Refusal.STOCKOUT


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job in the queue.

    Attributes:
        name: The kind and name of the job that owns it.
        state: pending, waiting for nodes, running, finished or given up.
        message: Kueue's last message about it.
        advice: What to do; "" for nothing.
    """

    name: str
    state: str
    message: str = ""
    advice: str = ""


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The existing nodes of one pool.

    Attributes:
        pool: The name of the pool.
        count: The number of nodes.
        ready: The number of ready nodes.
        oldest: When the oldest node was created, in RFC 3339 format; "" if not known.
        unready: The nodes that are not ready, each with Kubernetes' reason and message.
    """

    pool: str
    count: int
    ready: int
    oldest: str = ""
    unready: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Status:
    """The nodes, queued jobs and ProvisioningRequests of a cluster."""

    nodes: tuple[Nodes, ...]
    workloads: tuple[Workload, ...]
    requests: tuple[ProvisioningRequest, ...]


_WAIT: Final = "Google has no such machines at the moment; the request stays in Google's queue"
_START: Final = (
    "start the pods within 10 minutes after the nodes came, otherwise the autoscaler removes the"
    " nodes"
)
_GIVEN_UP: Final = (
    "Kueue makes no more attempts: see why the requests failed, then delete the job and submit it"
    " again"
)


def read(cluster: Cluster) -> Status:
    """Read the status of a cluster; kinds that it does not have count as empty.

    Raises:
        KubernetesError: These credentials may not read it.
        PassingError: The cluster does not answer now.
    """
    return Status(
        nodes=_nodes(cluster.all("v1", "Node", selector=kueue.POOL_LABEL)),
        workloads=tuple(workload(thing) for thing in cluster.all(kueue.API, "Workload")),
        requests=tuple(request(thing) for thing in cluster.all(REQUEST_API, REQUEST_KIND)),
    )


def request(thing: Object) -> ProvisioningRequest:
    """Read the state of a ProvisioningRequest (rules Q12 to Q14)."""
    name = thing["metadata"]["name"]
    said = conditions(thing)
    failed, provisioned = said.get("Failed", {}), said.get("Provisioned", {})
    if failed.get("status") == "True":
        return _said(name, "failed", failed, "Kueue makes another attempt by itself")
    if holds(thing, "BookingExpired"):
        return _said(name, "failed", said["BookingExpired"], _START)
    if provisioned.get("status") == "True":
        return _said(name, "provisioned", provisioned, _START)
    if provisioned:
        return _said(name, "waiting", provisioned, _WAIT)
    accepted = said.get("Accepted", {})
    if accepted.get("status") == "True":
        return _said(name, "accepted", accepted, "")
    return ProvisioningRequest(name=name, state="pending")


def workload(thing: Object) -> Workload:
    """Read the state of a Workload of Kueue."""
    owner = next(iter(thing["metadata"].get("ownerReferences", [])), None)
    name = f"{owner['kind']} {owner['name']}" if owner else thing["metadata"]["name"]
    said = conditions(thing)
    for condition, state in (("Finished", "finished"), ("Admitted", "running")):
        if holds(thing, condition):
            return Workload(name=name, state=state, message=_message(said[condition]))
    if thing["spec"].get("active") is False:
        evicted = _message(said.get("Evicted", {}))
        return Workload(name=name, state="given up", message=evicted, advice=_GIVEN_UP)
    checks = (thing.get("status") or {}).get("admissionChecks") or []
    words = "; ".join(check["message"] for check in checks if check.get("message"))
    if holds(thing, "QuotaReserved"):
        return Workload(name=name, state="waiting for nodes", message=words)
    pending = _message(said.get("QuotaReserved", {}))
    return Workload(name=name, state="pending", message=pending)


def _said(name: str, state: str, condition: Mapping[str, Any], usual: str) -> ProvisioningRequest:
    reason, message = str(condition.get("reason", "")), _message(condition)
    refusal = refusals.read(reason, message)
    advice = _advice(refusal, message, usual)
    if state == "provisioned" and refusal is not Refusal.QUOTA:
        advice = usual
    return ProvisioningRequest(
        name=name, state=state, reason=reason, message=message, advice=advice
    )


def _advice(refusal: Refusal | None, message: str, usual: str) -> str:
    match refusal:
        case Refusal.QUOTA:
            return _quota_advice(refusals.quota(message))
        case Refusal.STOCKOUT:
            return "the zone has no such machines now: try another zone, region or machine type"
        case Refusal.NOT_YET:
            return _WAIT
        case _:
            return usual


def _quota_advice(quota: Quota | None) -> str:
    asking = "in the console (IAM & Admin > Quotas), or use fewer GPUs"
    if quota is None:
        return f"request a higher quota {asking}"
    place = f" of {quota.region}" if quota.region else ""
    return f"request a higher quota {quota.metric}{place}, now {quota.limit:g}, {asking}"


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
            unready=tuple(_unready(node) for node in nodes if not holds(node, "Ready")),
        )
        for pool, nodes in sorted(pools.items())
    )


def _unready(node: Object) -> str:
    ready = conditions(node).get("Ready", {})
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    return f"{node['metadata']['name']} is not ready{reason}: {_message(ready)}".rstrip(": ")


def _message(condition: Mapping[str, Any]) -> str:
    return str(condition.get("message", ""))
