"""What GKE has left of a cluster that no state tells of.

Only the names tell then whose something is: the cluster's, which each prefix has one of in a
region, and those of the networks that carry the deployment's marker.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.deployment.deployment import Left
from provision.errors import ClusterError
from provision.google.api import GoogleApiError
from provision.kinds.gke import leftovers
from provision.kinds.gke.traces import Traces

if TYPE_CHECKING:
    from collections.abc import Collection

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.state.location import Place

_FORBIDDEN: Final = 403


def find(cloud: Cloud, place: Place, networks: Collection[str]) -> Left:
    """What there is of the cluster; nothing while it is there, or where nobody may look.

    Raises:
        GoogleApiError: Google does not say whether the cluster is there.
    """
    traces = _traces(cloud.api, place, networks)
    if traces is None:
        return Left()
    paths, kept = leftovers.Sweep(traces, cloud.api, lambda _: None).seen()
    return Left(
        what=f"what GKE made for the cluster {traces.cluster}",
        paths=tuple(paths),
        kept=tuple(kept),
    )


def sweep(context: Context, cloud: Cloud, place: Place, networks: Collection[str]) -> int:
    """Remove it, but for what holds data: nobody can be asked whether that may go.

    Raises:
        ClusterError: Something of it can't be removed.
        GoogleApiError: Google does not say whether the cluster is there.
    """
    traces = _traces(cloud.api, place, networks)
    if traces is None:
        return 0
    found = leftovers.Sweep(traces, cloud.api, context.console.progress)
    found.balancers()
    # The rules tell the next run whose the rest is.
    if found.problems:
        raise ClusterError.of(found.problems)
    found.rules()
    if found.problems:
        raise ClusterError.of(found.problems)
    return found.removed


def _traces(api: GoogleApi, place: Place, networks: Collection[str]) -> Traces | None:
    known = Traces(
        project=place.project_id,
        location=place.region,
        cluster=names.CLUSTER.of(place.name_prefix),
        networks=frozenset(networks),
    )
    try:
        return leftovers.of_gone(api, known)
    except GoogleApiError as error:
        if error.code == _FORBIDDEN:
            return None
        raise
