"""What Destroy gives up before it removes a GKE cluster: what its jobs have asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.errors import ClusterError, CredentialsError
from provision.google.resources import CLUSTER
from provision.kinds.gke import control_plane
from provision.kinds.gke.kubernetes import cancel
from provision.time.retries import PassingError

if TYPE_CHECKING:
    from provision.context import Cloud, Context
    from provision.state.record import Record


def release(context: Context, cloud: Cloud, _record: Record) -> None:
    """Cancel what a GKE cluster's jobs have asked for, as far as it is there and answers.

    All requests go with the cluster, so nothing that fails here stands in the way.
    """
    facts = control_plane.kept(cloud.folder)
    if facts is None or not facts.queued_pools:
        return
    path = CLUSTER.path(project=facts.project, location=facts.location, name=facts.name)
    if cloud.api.find(CLUSTER.look.service, path) is None:
        return
    cluster = control_plane.reach(facts, cloud.api, context.environ)
    try:
        count = cancel.open_requests(cluster, facts)
    except (ClusterError, CredentialsError, PassingError) as error:
        context.console.progress(f"The cluster's queue is not asked first: {error}")
        return
    if count:
        context.console.progress(f"Cancelled: {count} requests for nodes")
