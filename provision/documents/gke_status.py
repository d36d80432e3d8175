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
    """The cluster itself, as GKE tells of it.

    Attributes:
        name: Its name.
        location: Its region or zone.
        status: Its state, such as RUNNING.
        message: What GKE says of that; None for nothing.
        version: The version of its control plane.
        supported_until: The last day of that version's standard support, by a dated list; None if
            not known.
    """

    name: str
    location: str
    status: str | None = None
    message: str | None = None
    version: str | None = None
    supported_until: str | None = None


@dataclass(frozen=True, kw_only=True)
class NodePool:
    """A node pool.

    Attributes:
        name: Its name.
        machine_type: The machine type of its nodes.
        mode: How they are got; None if not known.
        status: Its state, such as RUNNING.
        message: What GKE says of that; None for nothing.
        min: The least number of nodes; None without autoscaling.
        max: The greatest number of nodes; None without autoscaling.
        nodes: How many there are; None if not known.
        ready: How many are ready; None if not known.
        unready: The others, each with Kubernetes' reason and message.
        remaining_seconds: The seconds until Google deletes the first node at the end of its run;
            None if none has an end.
    """

    name: str
    machine_type: str
    mode: PoolMode | None = None
    status: str | None = None
    message: str | None = None
    min: int | None = None
    max: int | None = None
    nodes: int | None
    ready: int | None
    unready: tuple[str, ...] = ()
    remaining_seconds: int | None = None


@dataclass(frozen=True, kw_only=True)
class Node:
    """A node.

    Attributes:
        name: Its name.
        pool: Its pool.
        ready: Whether it is ready.
        ends: When Google deletes it at the end of its run, in RFC 3339 format; None for never, or
            where that is not known.
        remaining_seconds: The seconds until then.
        gpus: How many GPUs its machine has; 0 for none.
        usable_gpus: How many of them pods may have now.
        faults: What is wrong with it, such as "GPU error XID 79"; () for nothing.
        cordoned: Whether somebody has taken it out of use.
        maintenance: When Google begins to maintain its host, in RFC 3339 format; None for nothing
            that is announced.
        maintenance_seconds: The seconds until then.
    """

    name: str
    pool: str
    ready: bool
    ends: str | None = None
    remaining_seconds: int | None = None
    gpus: int = 0
    usable_gpus: int = 0
    faults: tuple[str, ...] = ()
    cordoned: bool = False
    maintenance: str | None = None
    maintenance_seconds: int | None = None

    @property
    def is_in_order(self) -> bool:
        """Whether nobody has to look at it."""
        return self.ready and not (self.faults or self.cordoned or self.maintenance)


class JobState(enum.StrEnum):
    """The state of a job; those that need a look come first.

    Attributes:
        GIVEN_UP: Kueue tries no more.
        PENDING: It has no quota; or outside the queue, pods without a node.
        WAITING_FOR_NODES: It has quota, and its request for nodes waits.
        STARTING: It has its nodes, and not all its pods are ready yet, or any more.
        RUNNING: All its pods are ready.
        ENDING: All its pods have succeeded, and the queue has not noted its end yet.
        FINISHED: It has ended.
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

    Attributes:
        FAILED: It got no nodes, and will get none.
        WAITING: It is in Google's queue, and Google tells what it lacks.
        PENDING: No pool takes it yet.
        ACCEPTED: It is in Google's queue.
        PROVISIONED: Its nodes have come.
        RUNNING: Its job has its nodes.
        EXPIRED: Its nodes were kept for 10 minutes; they go when no pod runs on them.
        DONE: Its job has ended.
        ENDED: Its nodes' run is over.
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
    """How many pods of a job are in each state; those that have succeeded are not counted.

    Attributes:
        waiting: They have no node.
        starting: They are on a node and not ready.
        ready: They are ready.
        failed: They have failed.
    """

    waiting: int = 0
    starting: int = 0
    ready: int = 0
    failed: int = 0


@dataclass(frozen=True, kw_only=True)
class Workload:
    """A job, in the queue or outside it.

    Attributes:
        name: The kind and name of the job.
        state: Its state.
        message: Kueue's last message about it, and after it the failure that it hides; of a job
            that starts, what keeps its pods.
        advice: What to do; "" for nothing.
        created: Since when it has been there, in RFC 3339 format; None if not known.
        retries: How many requests for its nodes have failed since it was last admitted.
        next_try: When Kueue asks again, in RFC 3339 format; None if it waits for no such time.
        queue: The queue that it is in; None outside the queue.
        flavors: What its quota was taken from, which is the pools that it may run on; () before.
        pods: Its pods; None before it was let in.
        pools: The pools whose nodes its pods are on.
        place: Its place in the queue, from 1; None for one that is not in it, or not known.
        stops: When Kueue stops it at the limit of its label, in RFC 3339 format; None for none.
        stops_seconds: The seconds until then.
        nodes_end: When Google deletes the first of its nodes, likewise; None for never.
        nodes_end_seconds: The seconds until then.
        interruptions: What has interrupted it so far, and how often, such as "PodsReadyTimeout".
        log: The command that prints what its pods have written, also when they are gone.
    """

    name: str
    state: JobState
    message: str = ""
    advice: str = ""
    created: str | None = None
    retries: int = 0
    next_try: str | None = None
    queue: str | None = None
    flavors: tuple[str, ...] = ()
    pods: PodCounts | None = None
    pools: tuple[str, ...] = ()
    place: int | None = None
    stops: str | None = None
    stops_seconds: int | None = None
    nodes_end: str | None = None
    nodes_end_seconds: int | None = None
    interruptions: tuple[str, ...] = ()
    log: str = ""


@dataclass(frozen=True, kw_only=True)
class NodeRequest:
    """A ProvisioningRequest: one attempt to get the nodes for a job.

    Attributes:
        name: Its name.
        state: Its state.
        reason: The autoscaler's reason, such as "QuotaExceeded"; "" for none.
        message: The autoscaler's message.
        advice: What to do; "" if there is nothing to do but wait.
        created: When it was made, in RFC 3339 format; None if not known.
        waits_for: What it waits for, or got no nodes for lack of, such as "quota"; "" if it lacks
            nothing, or nobody says what.
        since: Since when it is in that state, in RFC 3339 format; None if not known.
        until: When that ends automatically, likewise; None for never, or if not known.
        then: What happens then; "" for nothing.
    """

    name: str
    state: RequestState
    reason: str = ""
    message: str = ""
    advice: str = ""
    created: str | None = None
    waits_for: str = ""
    since: str | None = None
    until: str | None = None
    then: str = ""


_Said = TypeVar("_Said", Workload, NodeRequest)


@dataclass(frozen=True, kw_only=True)
class GkeCluster(Status):
    """A GKE cluster.

    Attributes:
        cluster: The cluster itself; None if it does not exist.
        node_pools: Its node pools.
        nodes: Its nodes, those that need a look first; without --full a few.
        jobs: How many jobs of the queue are in each state.
        workloads: The jobs in the queue, those that do not run first.
        outside: The jobs that no queue knows and that have not ended, those that wait first.
        requests: The ProvisioningRequests, those that failed or wait first.
    """

    cluster: ClusterNow | None = None
    node_pools: tuple[NodePool, ...] = ()
    nodes: tuple[Node, ...] = ()
    jobs: dict[str, int] = dataclasses.field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()
    outside: tuple[Workload, ...] = ()
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
