"""What Status tells of a GKE cluster."""

from __future__ import annotations

import dataclasses
import enum
from dataclasses import dataclass
from typing import Self, TypeVar

from provision.documents import status
from provision.documents.status import PoolMode, Status


@dataclass(frozen=True, kw_only=True)
class ClusterNow:
    """The cluster itself, as GKE tells of it."""

    name: str  # its name
    location: str  # its region or zone
    status: str | None = None  # its state, such as RUNNING
    message: str | None = None  # what GKE says of that; None for nothing
    version: str | None = None  # the version of its control plane
    # the last day of that version's standard support, by a dated list; None if not known
    supported_until: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """A node pool."""

    name: str  # its name
    machine_type: str  # the machine type of its nodes
    mode: PoolMode | None = None  # how they are got; None if not known
    status: str | None = None  # its state, such as RUNNING
    message: str | None = None  # what GKE says of that; None for nothing
    min: int | None = None  # the least number of nodes; None without autoscaling
    max: int | None = None  # the greatest number of nodes; None without autoscaling
    nodes: int | None  # how many there are; None if not known
    ready: int | None  # how many are ready; None if not known
    unready: tuple[str, ...] = ()  # the others, each with Kubernetes' reason and message
    # the seconds until Google deletes the first node at the end of its run; None if none has an end
    remaining_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node."""

    name: str  # its name
    pool: str  # its pool
    ready: bool  # whether it is ready
    # when Google deletes it at the end of its run, in RFC 3339 format; None for never, or where
    # that is not known
    ends: str | None = None
    remaining_seconds: int | None = None  # the seconds until then
    gpus: int = 0  # how many GPUs its machine has; 0 for none
    usable_gpus: int = 0  # how many of them pods may have now
    # what is wrong with it, such as "GPU error XID 79"; () for nothing
    faults: tuple[str, ...] = ()
    cordoned: bool = False  # whether somebody has taken it out of use
    # when Google begins to maintain its host, in RFC 3339 format; None for nothing that is
    # announced
    maintenance: str | None = None
    maintenance_seconds: int | None = None  # the seconds until then

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

    waiting: int = 0  # they have no node
    starting: int = 0  # they are on a node and not ready
    ready: int = 0  # they are ready
    failed: int = 0  # they have failed


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job, in the queue or outside it."""

    name: str  # the kind and name of the job
    state: JobState  # its state
    # Kueue's last message about it, and after it the failure that it hides; of a job that starts,
    # what keeps its pods
    message: str = ""
    advice: str = ""  # what to do; "" for nothing
    # since when it has been there, in RFC 3339 format; None if not known
    created: str | None = None
    retries: int = 0  # how many requests for its nodes have failed since it was last admitted
    # when Kueue asks again, in RFC 3339 format; None if it waits for no such time
    next_try: str | None = None
    queue: str | None = None  # the queue that it is in; None outside the queue
    # what its quota was taken from, which is the pools that it may run on; () before
    flavors: tuple[str, ...] = ()
    pods: PodCounts | None = None  # its pods; None before it was let in
    pools: tuple[str, ...] = ()  # the pools whose nodes its pods are on
    # its place in the queue, from 1; None for one that is not in it, or not known
    place: int | None = None
    # when Kueue stops it at the limit of its label, in RFC 3339 format; None for none
    stops: str | None = None
    stops_seconds: int | None = None  # the seconds until then
    # when Google deletes the first of its nodes, likewise; None for never
    nodes_end: str | None = None
    nodes_end_seconds: int | None = None  # the seconds until then
    # what has interrupted it so far, and how often, such as "PodsReadyTimeout"
    interruptions: tuple[str, ...] = ()
    log: str = ""  # the command that prints what its pods have written, also when they are gone


@dataclass(frozen=True, kw_only=True)
class NodeRequest:
    """A ProvisioningRequest: one attempt to get the nodes for a job."""

    name: str  # its name
    state: RequestState  # its state
    reason: str = ""  # the autoscaler's reason, such as "QuotaExceeded"; "" for none
    message: str = ""  # the autoscaler's message
    advice: str = ""  # what to do; "" if there is nothing to do but wait
    created: str | None = None  # when it was made, in RFC 3339 format; None if not known
    # what it waits for, or got no nodes for lack of, such as "quota"; "" if it lacks nothing, or
    # nobody says what
    waits_for: str = ""
    # since when it is in that state, in RFC 3339 format; None if not known
    since: str | None = None
    # when that ends automatically, likewise; None for never, or if not known
    until: str | None = None
    then: str = ""  # what happens then; "" for nothing


_Said = TypeVar("_Said", Workload, NodeRequest)


@dataclass(frozen=True, kw_only=True)
class GkeCluster(Status):
    """A GKE cluster."""

    cluster: ClusterNow | None = None  # the cluster itself; None if it does not exist
    node_pools: tuple[NodePool, ...] = ()  # its node pools
    nodes: tuple[Node, ...] = ()  # its nodes, those that need a look first; without --full a few
    # how many jobs of the queue are in each state
    jobs: dict[str, int] = dataclasses.field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()  # the jobs in the queue, those that do not run first
    # the jobs that no queue knows and that have not ended, those that wait first
    outside: tuple[Workload, ...] = ()
    # the ProvisioningRequests, those that failed or wait first
    requests: tuple[NodeRequest, ...] = ()

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
