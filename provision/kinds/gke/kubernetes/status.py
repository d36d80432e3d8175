"""What is waiting and running in a cluster, and what to do about it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.google import refusals
from provision.google.refusals import Refusal
from provision.kinds.gke.kubernetes import kueue, node_requests, nodes, pods, workloads
from provision.kinds.gke.kubernetes.objects import holds
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.kinds.gke.kubernetes.objects import Object
    from provision.kinds.gke.kubernetes.pods import Pods

_CLOCK: Final = Clock()


@dataclass(frozen=True, kw_only=True)
class Status:
    """The nodes, jobs and ProvisioningRequests of a cluster."""

    nodes: tuple[Nodes, ...]  # the nodes of each pool
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
    found = [(_uid(work), work, _pods(work, jobs.of_queue)) for work in works]
    waiting = {_queue(work) for work in works if not holds(work, "QuotaReserved")}
    places = {name: at for queue in waiting for name, at in cluster.places(*queue).items()}
    states = {uid: workloads.state(work, own) for uid, work, own in found}
    return Status(
        nodes=nodes.read(machines, events, clock),
        workloads=tuple(
            dataclasses.replace(
                workloads.read(work, own, said.get(uid, ()), clock), place=_place(work, places)
            )
            for uid, work, own in found
        ),
        requests=tuple(
            node_requests.read(thing, _state_of_owner(thing, states), clock)
            for thing in cluster.all(node_requests.API, node_requests.KIND)
        ),
        outside=jobs.outside,
    )


def _queue(work: Object) -> tuple[str, str]:
    return str(work["metadata"].get("namespace", "")), str(work["spec"].get("queueName", ""))


def _place(work: Object, places: Mapping[str, int]) -> int | None:
    """The place of a job in its queue; names are unique in a namespace, and with a digest."""
    return places.get(work["metadata"]["name"])


def _uid(thing: Object) -> str:
    return str(thing["metadata"].get("uid", ""))


def _pods(work: Object, of_queue: Mapping[str, Pods]) -> Pods:
    """The pods of a job in the queue."""
    return next((of_queue[uid] for uid in pods.owners(work) if uid in of_queue), pods.NOTHING)


def _state_of_owner(thing: Object, states: Mapping[str, JobState]) -> JobState | None:
    """The state of the job that made a request."""
    return next((states[uid] for uid in pods.owners(thing) if uid in states), None)
