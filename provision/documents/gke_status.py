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
    """

    name: str
    location: str
    status: str | None = None
    message: str | None = None
    version: str | None = None


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
        nodes: How many there are.
        ready: How many are ready.
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
    nodes: int
    ready: int
    unready: tuple[str, ...] = ()
    remaining_seconds: int | None = None


class JobState(enum.StrEnum):
    """The state of a job in the queue; those that need a look come first."""

    GIVEN_UP = "given up"
    PENDING = "pending"
    WAITING_FOR_NODES = "waiting for nodes"
    RUNNING = "running"
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
class Workload:
    """A job in the queue.

    Attributes:
        name: The kind and name of the job.
        state: Its state.
        message: Kueue's last message about it; after it, the failure that it hides.
        advice: What to do; "" for nothing.
        created: Since when it has been in the queue, in RFC 3339 format; None if not known.
        retries: How many requests for its nodes have failed since it was last admitted.
    """

    name: str
    state: JobState
    message: str = ""
    advice: str = ""
    created: str | None = None
    retries: int = 0


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
    """

    name: str
    state: RequestState
    reason: str = ""
    message: str = ""
    advice: str = ""
    created: str | None = None


_Said = TypeVar("_Said", Workload, NodeRequest)


@dataclass(frozen=True, kw_only=True)
class GkeCluster(Status):
    """A GKE cluster.

    Attributes:
        cluster: The cluster itself; None if it does not exist.
        node_pools: Its node pools.
        jobs: How many jobs of the queue are in each state.
        workloads: The jobs in the queue, those that do not run first.
        requests: The ProvisioningRequests, those that failed or wait first.
    """

    cluster: ClusterNow | None = None
    node_pools: tuple[NodePool, ...] = ()
    jobs: dict[str, int] = dataclasses.field(default_factory=dict)
    workloads: tuple[Workload, ...] = ()
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
            workloads=tuple(map(_short_message, status.few(self.workloads))),
            requests=tuple(map(_short_message, status.few(self.requests))),
        )
        return dataclasses.replace(cut, shortened=whole.shortened or cut != whole)


def _short_message(thing: _Said) -> _Said:
    return dataclasses.replace(thing, message=status.cut(thing.message))
