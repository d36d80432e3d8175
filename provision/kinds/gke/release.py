"""What Destroy cancels before it removes a GKE cluster: the ProvisioningRequests of its jobs."""

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
    """Cancel the open ProvisioningRequests of a GKE cluster, if it exists and answers.

    All requests are deleted with the cluster, so a failure here does not stop Destroy.
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
        context.console.progress(f"Could not cancel the requests in the cluster first: {error}")
        return
    if count:
        context.console.progress(f"Cancelled {count} requests for nodes")
