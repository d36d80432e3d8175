"""What an ended run had asked Google for and Google has not finished yet.

Whether a run was killed or stopped in order, its last requests go on without it. What is still
being made or deleted can be neither changed nor made anew, so the next run waits for it first.
"""

from __future__ import annotations

import concurrent.futures
import functools
from typing import TYPE_CHECKING, Final, Protocol

from provision.catalogue import names
from provision.google import resources
from provision.google.api import GoogleApiError, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.google.api import GoogleApi
    from provision.time.progress import Progress

_POLL: Final = 5.0
"""Seconds of cloud time between two looks."""
_LONGEST: Final = 1200.0
"""Seconds of cloud time after which the run goes on, to find out what is wrong."""
_FORBIDDEN: Final = 403
_PASSING: Final = {"CREATING": "insert", "DELETING": "delete", "REPAIRING": "repair"}
"""States of a Filestore instance that end by themselves."""
_COLLECTIONS: Final = frozenset(
    row.look.collection
    for row in resources.ALL
    if row.lookup and row.look.service is Service.COMPUTE
)
"""Compute Engine's collections in which the tool makes something itself."""


class Place(Protocol):
    """Where a deployment is; both settings and records say it."""

    @property
    def project_id(self) -> str:
        """The project."""

    @property
    def region(self) -> str:
        """The region of its networks."""

    @property
    def zone(self) -> str:
        """The zone of its machines."""

    @property
    def name_prefix(self) -> str:
        """How the names of all that is made begin."""


def wait(api: GoogleApi, place: Place, progress: Progress) -> None:
    """Wait until nothing of a deployment is being made, changed or deleted.

    A group's VMs are not waited for: a group can be changed and deleted while they come and go.

    Args:
        api: Google; whoever may not list operations does not wait.
        place: Whose resources count.
        progress: The run's clock and voice.
    """
    patience = progress.patience(_LONGEST, _POLL)
    said = ""
    while (found := ", ".join(_unfinished(api, place))) and not patience.is_over:
        if found != said:
            progress.tell(f"Waiting for what an earlier run has begun: {found}")
            said = found
        patience.pause()


def _unfinished(api: GoogleApi, place: Place) -> list[str]:
    """What is under way, as "delete np-mig"; all is asked at the same time."""
    scopes = ("global", f"regions/{place.region}", f"zones/{place.zone}")
    looks: list[Callable[[], Iterator[str]]] = [
        *(functools.partial(_in_scope, api, place, scope) for scope in scopes),
        functools.partial(_on_clusters, api, place),
        functools.partial(_on_shares, api, place),
    ]
    with concurrent.futures.ThreadPoolExecutor(len(looks)) as pool:
        return [one for found in pool.map(lambda look: list(look()), looks) for one in found]


def _in_scope(api: GoogleApi, place: Place, scope: str) -> Iterator[str]:
    try:
        operations = api.unfinished(place.project_id, scope)
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return
    for operation in operations:
        collection, name = operation.get("targetLink", "/").split("/")[-2:]
        if collection in _COLLECTIONS and name.startswith(f"{place.name_prefix}-"):
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
