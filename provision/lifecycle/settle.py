"""Waiting for operations that an earlier run started and Google has not finished yet.

Whether a run was killed or interrupted, its last operations continue without it. A resource that
is still being created or deleted can't be changed or created again, so the next run waits first.
"""

from __future__ import annotations

import concurrent.futures
import functools
from typing import TYPE_CHECKING, Final

from provision.catalogue import names
from provision.documents.timeline import StageName
from provision.google import resources
from provision.google.api import GoogleApiError, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.time.progress import Progress

_POLL: Final = 5.0
"""Poll interval in seconds of cloud time."""
_LONGEST: Final = 1200.0
"""Seconds of cloud time after which the run continues anyway, to find out what is wrong."""
_FORBIDDEN: Final = 403
_PASSING: Final = {"CREATING": "insert", "DELETING": "delete", "REPAIRING": "repair"}
"""Transitional states of a Filestore instance -> the operation that is running."""
_COLLECTIONS: Final = frozenset(
    row.look.collection
    for row in resources.ALL
    if row.lookup and row.look.service is Service.COMPUTE
)
"""The collections of Compute Engine in which this tool creates resources."""


def wait(api: GoogleApi, places: Sequence[Place], progress: Progress) -> None:
    """Wait until no resource of a deployment is being created, changed or deleted.

    VMs of a group do not count: a group can be changed and deleted while its VMs come and go.
    `api`: Google; without permission to list operations, there is no wait. `places`: the deployment
    whose resources count: where it is to be, and if that is another zone, where it was.
    """
    with progress.stage(StageName.EARLIER_RUN) as stage:
        deadline = stage.deadline(_LONGEST, _POLL)
        while (found := ", ".join(_unfinished(api, places))) and not deadline.is_over:
            stage.news(f"Waiting for operations of an earlier run: {found}")
            deadline.pause()


def await_account(progress: Progress, seconds: float) -> None:
    """Give Google time to know a new account everywhere."""
    progress.tell(f"Google does not know the new account everywhere yet; again in {seconds:.0f} s")
    progress.deadline(seconds, seconds).pause()


def _unfinished(api: GoogleApi, places: Sequence[Place]) -> list[str]:
    """What is under way, as "delete np-mig"; all is asked at the same time."""
    place = places[0]
    regions = {one.region: one for one in places}
    scopes = ["global", *(f"regions/{region}" for region in regions)]
    scopes += [f"zones/{zone}" for zone in dict.fromkeys(one.zone for one in places)]
    looked = [(place.project_id, scope) for scope in scopes]
    looked += [(host, "global") for host in {host for one in places for host in one.hosts}]
    looks: list[Callable[[], Iterator[str]]] = [
        *(functools.partial(_in_scope, api, place.name_prefix, *one) for one in looked),
        *(functools.partial(_on_clusters, api, one) for one in regions.values()),
        functools.partial(_on_shares, api, place),
    ]
    with concurrent.futures.ThreadPoolExecutor(len(looks)) as pool:
        return [one for found in pool.map(lambda look: list(look()), looks) for one in found]


def _in_scope(api: GoogleApi, prefix: str, project: str, scope: str) -> Iterator[str]:
    try:
        operations = api.unfinished(project, scope)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return
    for operation in operations:
        collection, name = operation.get("targetLink", "/").split("/")[-2:]
        if collection in _COLLECTIONS and name.startswith(f"{prefix}-"):
            yield f"{operation['operationType']} {name}"


def _on_clusters(api: GoogleApi, place: Place) -> Iterator[str]:
    for operation in api.cluster_operations(place.project_id, place.region):
        cluster = operation.get("targetLink", "").partition("/clusters/")[2].partition("/")[0]
        if cluster == names.CLUSTER.of(place.name_prefix):
            yield f"{operation['operationType']} {cluster}"


def _on_shares(api: GoogleApi, place: Place) -> Iterator[str]:
    for instance in api.listed(resources.FILESTORE.look, place.project_id):
        name, state = instance["name"].rpartition("/")[2], instance.get("state")
        if state in _PASSING and name.startswith(f"{place.name_prefix}-"):
            yield f"{_PASSING[state]} {name}"
