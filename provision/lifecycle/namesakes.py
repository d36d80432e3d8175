"""What lives under a deployment's names although it has no state here.

The state may be in another bucket, or gone, while the machines bill on: so nobody is told that
there is nothing before somebody has looked.
"""

from __future__ import annotations

import concurrent.futures
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem, StateError
from provision.google import owner, resources
from provision.google.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.deployment.deployment import Left
    from provision.google.api import GoogleApi
    from provision.google.resources import Resource
    from provision.state.location import Place, StateLocation

_AT_ONCE: Final = 8
"""Lists that are asked for at the same time."""


@dataclass(frozen=True)
class Namesake:
    """Something in the cloud that carries a marker, and one of this deployment's names."""

    path: str  # where Google has it: "projects/..."
    owner: Owner


def find(api: GoogleApi, place: Place, location: StateLocation) -> list[Namesake]:
    """Everything with a marker that has one of the deployment's names or its marker.

    `api`: Google; of what these credentials may not list there is nothing.
    """
    ours = Owner.of(place.project_id, place.name_prefix, location.url)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        where = resources.places(resources.SWEPT, place.project_id, place.hosts)
        found = pool.map(lambda pair: _of_type(api, pair[0], pair[1], place, ours), where)
        return [one for of_type in found for one in of_type]


def networks(found: Sequence[Namesake], owner: Owner) -> list[str]:
    """The paths of those of them that are networks of this owner."""
    return [one.path for one in found if "/networks/" in one.path and one.owner.id == owner.id]


def error(
    found: Sequence[Namesake],
    place: Place,
    location: StateLocation,
    left: Sequence[Left] = (),
) -> StateError:
    """What is to be said of things that live while there is no state.

    `left`: what clusters that are gone have left; it carries no marker.
    """
    ours = Owner.of(place.project_id, place.name_prefix, location.url)
    # A label names its owner without the state; the description of another resource may name it.
    owners = {one.owner.id: one.owner for one in sorted(found, key=lambda one: one.owner.state)}
    paths: dict[str, list[str]] = {}
    for one in found:
        paths.setdefault(one.owner.id, []).append(one.path)
    return StateError.of(
        [
            *(_problem(owners[id_], of_one, ours, location) for id_, of_one in paths.items()),
            *(_orphans(one, location) for one in left if one.paths),
            *(problem for one in left for problem in one.kept),
        ]
    )


def _problem(other: Owner, paths: Sequence[str], ours: Owner, location: StateLocation) -> Problem:
    listed = "\n".join(sorted(paths))
    if other.id == ours.id:
        return Problem(
            code=Code.STATE_LOST,
            setting="TERRAFORM_GCS_PATH",
            what=f"There is no state in {location.url}, but this deployment's resources live on",
            why=f"the state was deleted, or a run was killed before it was written:\n{listed}",
            fix="run Destroy with --yes to delete all of them, or Create to bring them into a new"
            " state",
        )
    return Problem(
        code=Code.NAME_TAKEN,
        setting="TERRAFORM_GCS_PATH",
        what=f"There is no state in {location.url}, but these names are in use by {other.words}",
        why=listed,
        fix=resources.way_to(other),
    )


def _orphans(left: Left, location: StateLocation) -> Problem:
    listed = "\n".join(sorted(left.paths))
    return Problem(
        code=Code.STATE_LOST,
        setting="TERRAFORM_GCS_PATH",
        what=f"There is no state in {location.url}, but {left.what} lives on",
        why=f"the cluster is gone, and with it who unmakes this:\n{listed}",
        fix="run Destroy with --yes to delete all of it",
    )


def _of_type(
    api: GoogleApi, row: Resource, project: str, place: Place, ours: Owner
) -> Iterator[Namesake]:
    # In a host project, others may have the same names.
    is_own = project == place.project_id
    patterns = [name.pattern(place.name_prefix) for name in row.names if is_own]
    for document in api.listed(row.look, project):
        found = owner.read(document)
        if found is None:
            continue
        path = resources.path_in_document(document)
        last = path.rpartition("/")[2].partition("@")[0]
        if found.id == ours.id or any(pattern.fullmatch(last) for pattern in patterns):
            yield Namesake(path, found)
