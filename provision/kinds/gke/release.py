"""What Destroy does in a GKE cluster before it removes it.

It cancels the ProvisioningRequests of jobs, and deletes what GKE makes things in Google Cloud for:
with the cluster gone, nobody would unmake those.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision import words
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, CredentialsError, StateError
from provision.google.resources import CLUSTER, NETWORK
from provision.kinds.gke import control_plane, left_behind
from provision.kinds.gke.kubernetes import clearing
from provision.kinds.gke.left_behind import Traces
from provision.lifecycle import ownership, phases
from provision.lifecycle.phases import Phase
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.context import Cloud, Context
    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.state.record import Record
    from provision.time.deadline import Deadline

_PATIENCE: Final = 600.0
"""Seconds of cloud time for GKE to unmake load balancers and disks; one takes a minute or two."""
_POLL: Final = 5.0
_SILENCES: Final = 5
"""So many requests in a row without an answer, and the control plane counts as silent."""
T = TypeVar("T")


def data(context: Context, cloud: Cloud, record: Record) -> list[str]:
    """The volumes that go with the cluster's claims, in words.

    None where the control plane is silent: a volume whose policy nobody can ask for is kept.
    """
    document = _own(cloud, record)
    if document is None:
        return []
    try:
        return clearing.going(control_plane.reach(document, cloud.api, context.environ))
    except (ClusterError, CredentialsError, TransientError):
        return []


def release(context: Context, cloud: Cloud, record: Record) -> None:
    """Release in the cluster what would outlive it, if it exists and answers.

    A failure here does not stop Destroy: requests go with the cluster, and what GKE leaves is
    looked for when the cluster is gone.
    """
    with phases.during(Phase.REMOVING, cloud, "Could not look for the cluster"):
        document = _own(cloud, record)
    earlier = left_behind.kept(cloud.folder, record)
    # Whoever may write to the bucket may have changed the state, too.
    of_state = (str(it.get("id", "")) for it in cloud.folder.of_type(NETWORK.type).values())
    known = Traces.of(record, of_state).and_earlier(earlier)
    if document is None:
        # It is gone, but what it has left need not be.
        if earlier is None:
            left_behind.keep(cloud.folder, known)
        return
    # Kept before anything is deleted: a run that is killed later may be the last to see it.
    left_behind.keep(cloud.folder, known)
    cluster = control_plane.reach(document, cloud.api, context.environ)
    _cancel(context, cloud, cluster, record)
    _clear(context, cloud, cluster, known)


def _own(cloud: Cloud, record: Record) -> dict[str, Any] | None:
    """The deployment's cluster as Google has it; None if there is none.

    One without our marker is another's, whatever the state says: its Services and claims are not
    ours to delete.
    """
    found = control_plane.find(cloud.api, record)
    if found is not None and ownership.is_ours(found, record, cloud.folder.location):
        return found
    owner = ownership.ours(record, cloud.folder.location)
    return next(iter(cloud.api.marked(CLUSTER.look, record.project_id, owner)), None)


def _cancel(context: Context, cloud: Cloud, cluster: Cluster, record: Record) -> None:
    try:
        facts = control_plane.kept(cloud.folder, record)
        count = clearing.cancel_requests(cluster, facts) if facts and facts.has_queue else 0
    except (ClusterError, CredentialsError, StateError, TransientError) as error:
        context.console.progress(f"Could not cancel the requests in the cluster first: {error}")
        return
    if count:
        context.console.progress(f"Cancelled {count} requests for nodes")


def _clear(context: Context, cloud: Cloud, cluster: Cluster, known: Traces) -> None:
    """Delete Services and claims, and wait until GKE has unmade what it made for them."""
    tell = context.console.progress
    try:
        with context.progress.stage(StageName.RELEASE, OnInterrupt.LEAVES_REST) as stage:
            deadline = stage.deadline(_PATIENCE, _POLL)
            left_behind.keep(cloud.folder, _answer(deadline, lambda: _told(cluster, known)))
            left = first = _answer(deadline, lambda: clearing.step(cluster))
            if first:
                tell(f"Deleting in Kubernetes first: {words.listed(first)}")
                stage.counts(f"GKE removes what it made for {words.listed(first)}")
            while left and not deadline.is_over:
                deadline.pause()
                left = _answer(deadline, lambda: clearing.step(cluster))
                stage.counts(f"GKE removes what it made for {words.listed(left)}" if left else "")
            if left:
                tell(f"Not waiting longer for GKE to remove what it made for {words.listed(left)}")
            elif first:
                tell("Kubernetes has deleted them, and GKE what it made for them")
    except (ClusterError, CredentialsError, TransientError) as error:
        tell(
            "Could not delete Services and claims in Kubernetes first, so what GKE made for them"
            f" is looked for when the cluster is gone: {error}"
        )


def _answer(deadline: Deadline, ask: Callable[[], T]) -> T:
    """The answer of a control plane that may be silent for a while.

    Raises:
        TransientError: It stays silent.
    """
    for _ in range(_SILENCES - 1):
        try:
            return ask()
        except TransientError:
            deadline.pause()
    return ask()


def _told(cluster: Cluster, known: Traces) -> Traces:
    """The traces, with what the cluster knows of its load balancers and disks."""
    services = clearing.balanced(cluster)
    annotations = [
        name.strip().rpartition("/")[2]  # a Gateway's are lists of paths
        for it in services
        for value in (it["metadata"].get("annotations") or {}).values()
        for name in str(value).split(",")
    ]
    found = dataclasses.replace(known, volumes=clearing.storage(cluster, known.project))
    return found.with_stems([*map(left_behind.balancer, services), *annotations]).and_earlier(known)
