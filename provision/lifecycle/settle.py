"""What an ended run had asked Google for and Google has not finished yet.

Whether a run was killed or stopped in order, its last requests go on without it. What is still
being made or deleted can be neither changed nor made anew, so the next run waits for it first.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, Protocol

from provision.catalogue import names
from provision.google.api import GoogleApiError
from provision.lifecycle.adopt import COLLECTIONS
from provision.time import clock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from provision.google.api import GoogleApi

_POLL: Final = 5.0
"""Seconds of cloud time between two looks."""
_LONGEST: Final = 1200.0
"""Seconds of cloud time after which the run goes on, to find out what is wrong."""
_SHORTEST_POLL: Final = 0.05
_SHORTEST_DEADLINE: Final = 10.0
_FORBIDDEN: Final = 403
_PASSING: Final = {"CREATING": "insert", "DELETING": "delete", "REPAIRING": "repair"}
"""States of a Filestore instance that end by themselves."""


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


def wait(
    api: GoogleApi, place: Place, environ: Mapping[str, str], tell: Callable[[str], None]
) -> None:
    """Wait until nothing of a deployment is being made, changed or deleted.

    A group's VMs are not waited for: a group can be changed and deleted while they come and go.

    Args:
        api: Google; whoever may not list operations does not wait.
        place: Whose resources count.
        environ: For the clock's rate.
        tell: Takes a sentence when there is something to wait for.
    """
    rate = clock.rate(environ)
    deadline = time.monotonic() + max(_LONGEST * rate, _SHORTEST_DEADLINE)
    said = ""
    while (found := ", ".join(_unfinished(api, place))) and time.monotonic() < deadline:
        if found != said:
            tell(f"Waiting for what an earlier run has begun: {found}")
            said = found
        time.sleep(max(_POLL * rate, _SHORTEST_POLL))


def _unfinished(api: GoogleApi, place: Place) -> Iterator[str]:
    """What is under way, as "delete np-mig"."""
    scopes = ("global", f"regions/{place.region}", f"zones/{place.zone}")
    for scope in scopes:
        try:
            operations = api.unfinished(place.project_id, scope)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            continue
        for operation in operations:
            collection, name = operation.get("targetLink", "/").split("/")[-2:]
            if collection in COLLECTIONS and name.startswith(f"{place.name_prefix}-"):
                yield f"{operation['operationType']} {name}"
    for operation in api.cluster_operations(place.project_id, place.region):
        cluster = operation.get("targetLink", "").partition("/clusters/")[2].partition("/")[0]
        if cluster == names.CLUSTER.of(place.name_prefix):
            yield f"{operation['operationType']} {cluster}"
    for instance in api.filestores(place.project_id):
        name, state = instance["name"].rpartition("/")[2], instance.get("state")
        if state in _PASSING and name.startswith(f"{place.name_prefix}-"):
            yield f"{_PASSING[state]} {name}"
