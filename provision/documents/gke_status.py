"""What Status tells of a GKE cluster."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Annotated, Self, TypeVar

from provision.documents import status
from provision.documents.status import PoolMode, Status


@dataclass(frozen=True, kw_only=True)
class ClusterNow:
    """The cluster itself, as GKE tells of it."""

    name: Annotated[str, "its name"]
    location: Annotated[str, "its region or zone"]
    status: Annotated[str | None, "its state, such as RUNNING"] = None
    message: Annotated[str | None, "what GKE says of that; None for nothing"] = None
    version: Annotated[str | None, "the version of its control plane"] = None
    supported_until: Annotated[
        str | None,
        "the last day of that version's standard support, by a dated list; None if not known",
    ] = None
    support_is_over: Annotated[bool, "whether that day has passed"] = False


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """A node pool."""

    name: Annotated[str, "its name"]
    machine_type: Annotated[str, "the machine type of its nodes"]
    mode: Annotated[PoolMode | None, "how they are got; None if not known"] = None
    status: Annotated[str | None, "its state, such as RUNNING"] = None
    message: Annotated[str | None, "what GKE says of that; None for nothing"] = None
    min: Annotated[int | None, "the least number of nodes; None without autoscaling"] = None
    max: Annotated[int | None, "the greatest number of nodes; None without autoscaling"] = None
    nodes: Annotated[int | None, "how many there are; None if not known"]
    ready: Annotated[int | None, "how many are ready; None if not known"]
    unready: Annotated[tuple[str, ...], "the others, each with Kubernetes' reason and message"] = ()
    remaining_seconds: Annotated[
        int | None,
        "the seconds until Google deletes the first node at the end of its run; None if none "
        "has an end",
    ] = None


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node."""

    name: Annotated[str, "its name"]
    pool: Annotated[str, "its pool"]
    ready: Annotated[bool, "whether it is ready"]
    ends: Annotated[
        str | None,
        "when Google deletes it at the end of its run, in RFC 3339 format; None for never, or "
        "where that is not known",
    ] = None
    remaining_seconds: Annotated[int | None, "the seconds until then"] = None
    gpus: Annotated[int, "how many GPUs its machine has; 0 for none"] = 0
    usable_gpus: Annotated[int, "how many of them pods may have now"] = 0
    faults: Annotated[
        tuple[str, ...], 'what is wrong with it, such as "GPU error XID 79"; () for nothing'
    ] = ()
    cordoned: Annotated[bool, "whether somebody has taken it out of use"] = False
    maintenance: Annotated[
        str | None,
        "when Google begins to maintain its host, in RFC 3339 format; None for nothing that is "
        "announced",
    ] = None
    maintenance_seconds: Annotated[int | None, "the seconds until then"] = None

    @property
    def is_in_order(self) -> bool:
        """Whether nobody has to look at it."""
        return self.ready and not (self.faults or self.cordoned or self.maintenance)


class JobState(enum.StrEnum):
    """The state of a job; those that need a look come first.

    `GIVEN_UP`: Kueue tries no more. `PENDING`: It has no quota; or outside the queue, pods without
    a node. `WAITING_FOR_NODES`: It has quota, and its request for nodes waits. `STARTING`: It has
    its nodes, and not all its pods are ready yet, or any more. `RUNNING`: All its pods are ready.
    `ENDING`: All its pods have succeeded, and the queue has not noted its end yet. `FINISHED`: It
    has ended.
    """

    GIVEN_UP = "given up"
    PENDING = "pending"
    WAITING_FOR_NODES = "waiting for nodes"
    STARTING = "starting"
    RUNNING = "running"
    ENDING = "ending"
    FINISHED = "finished"


class RequestState(enum.StrEnum):
    """The state of a ProvisioningRequest; those that need a look come first.

    `FAILED`: It got no nodes, and will get none. `WAITING`: It is in Google's queue, and Google
    tells what it lacks. `PENDING`: No pool takes it yet. `ACCEPTED`: It is in Google's queue.
    `PROVISIONED`: Its nodes have come. `RUNNING`: Its job has its nodes. `EXPIRED`: Its nodes were
    kept for 10 minutes; they go when no pod runs on them. `DONE`: Its job has ended. `ENDED`: Its
    nodes' run is over.
    """

    FAILED = "failed"
    WAITING = "waiting"
    PENDING = "pending"
    ACCEPTED = "accepted"
    PROVISIONED = "provisioned"
    RUNNING = "running"
    EXPIRED = "expired"
    DONE = "done"
    ENDED = "ended"


@dataclass(frozen=True, kw_only=True)
class PodCounts:
    """How many pods of a job are in each state; those that have succeeded are not counted."""

    waiting: Annotated[int, "they have no node"] = 0
    starting: Annotated[int, "they are on a node and not ready"] = 0
    ready: Annotated[int, "they are ready"] = 0
    failed: Annotated[int, "they have failed"] = 0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job, in the queue or outside it."""

    name: Annotated[str, "the kind and name of the job"]
    state: Annotated[JobState, "its state"]
    message: Annotated[
        str,
        "Kueue's last message about it, and after it the failure that it hides; of a job that "
        "starts, what keeps its pods",
    ] = ""
    advice: Annotated[str, 'what to do; "" for nothing'] = ""
    created: Annotated[
        str | None, "since when it has been there, in RFC 3339 format; None if not known"
    ] = None
    retries: Annotated[
        int, "how many requests for its nodes have failed since it was last admitted"
    ] = 0
    next_try: Annotated[
        str | None, "when Kueue asks again, in RFC 3339 format; None if it waits for no such time"
    ] = None
    queue: Annotated[str | None, "the queue that it is in; None outside the queue"] = None
    flavors: Annotated[
        tuple[str, ...],
        "what its quota was taken from, which is the pools that it may run on; () before",
    ] = ()
    pods: Annotated[PodCounts | None, "its pods; None before it was let in"] = None
    pools: Annotated[tuple[str, ...], "the pools whose nodes its pods are on"] = ()
    place: Annotated[
        int | None, "its place in the queue, from 1; None for one that is not in it, or not known"
    ] = None
    stops: Annotated[
        str | None,
        "when Kueue stops it at the limit of its label, in RFC 3339 format; None for none",
    ] = None
    stops_seconds: Annotated[int | None, "the seconds until then"] = None
    nodes_end: Annotated[
        str | None, "when Google deletes the first of its nodes, likewise; None for never"
    ] = None
    nodes_end_seconds: Annotated[int | None, "the seconds until then"] = None
    interruptions: Annotated[
        tuple[str, ...], 'what has interrupted it so far, and how often, such as "PodsReadyTimeout"'
    ] = ()
    log: Annotated[
        str, "the command that prints what its pods have written, also when they are gone"
    ] = ""


@dataclass(frozen=True, kw_only=True)
class NodeRequest:
    """A ProvisioningRequest: one attempt to get the nodes for a job."""

    name: Annotated[str, "its name"]
    state: Annotated[RequestState, "its state"]
    reason: Annotated[str, 'the autoscaler\'s reason, such as "QuotaExceeded"; "" for none'] = ""
    message: Annotated[str, "the autoscaler's message"] = ""
    advice: Annotated[str, 'what to do; "" if there is nothing to do but wait'] = ""
    created: Annotated[str | None, "when it was made, in RFC 3339 format; None if not known"] = None
    waits_for: Annotated[
        str,
        'what it waits for, or got no nodes for lack of, such as "quota"; "" if it lacks '
        "nothing, or nobody says what",
    ] = ""
    since: Annotated[
        str | None, "since when it is in that state, in RFC 3339 format; None if not known"
    ] = None
    until: Annotated[
        str | None, "when that ends automatically, likewise; None for never, or if not known"
    ] = None
    then: Annotated[str, 'what happens then; "" for nothing'] = ""


_Said = TypeVar("_Said", Workload, NodeRequest)


@dataclass(frozen=True, kw_only=True)
class GkeCluster(Status):
    """A GKE cluster."""

    cluster: Annotated[ClusterNow | None, "the cluster itself; None if it does not exist"] = None
    node_pools: Annotated[tuple[NodePool, ...], "its node pools"] = ()
    nodes: Annotated[
        tuple[Node, ...], "its nodes, those that need a look first; without --full a few"
    ] = ()
    jobs: Annotated[dict[str, int], "how many jobs of the queue are in each state"] = (
        dataclasses.field(default_factory=dict)
    )
    workloads: Annotated[
        tuple[Workload, ...], "the jobs in the queue, those that do not run first"
    ] = ()
    outside: Annotated[
        tuple[Workload, ...],
        "the jobs that no queue knows and that have not ended, those that wait first",
    ] = ()
    requests: Annotated[
        tuple[NodeRequest, ...], "the ProvisioningRequests, those that failed or wait first"
    ] = ()

    def short(self) -> Self:
        """The same with a limited number of nodes, jobs and requests."""
        whole = super().short()
        cut = dataclasses.replace(
            whole,
            node_pools=tuple(
                dataclasses.replace(pool, unready=status.lines(pool.unready))
                for pool in self.node_pools
            ),
            nodes=tuple(status.few(self.nodes)),
            workloads=tuple(map(_short_message, status.few(self.workloads))),
            outside=tuple(map(_short_message, status.few(self.outside))),
            requests=tuple(map(_short_message, status.few(self.requests))),
        )
        return dataclasses.replace(cut, shortened=whole.shortened or cut != whole)


def _short_message(thing: _Said) -> _Said:
    return dataclasses.replace(thing, message=status.cut(thing.message))
