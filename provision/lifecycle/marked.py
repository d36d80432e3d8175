"""What of a deployment Google has, by its names and its marker: where it is, whose, and its end.

The record says where the last Create that ended put the machines. A run that was killed in the
middle of a move leaves both the record and the state behind: then only the marker says what exists.
The state may be in another bucket, or gone, while the machines bill on: so nobody is told that
there is nothing before somebody has looked. What interrupted runs left is removed by its marker;
resources of others are never touched.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import names, zones
from provision.codes import Code
from provision.deployment.deployment import NOTHING_HELD
from provision.errors import ClusterError, Problem, StateError
from provision.google import owner, resources
from provision.google.api import GoogleApiError, Service
from provision.google.lists import Lists
from provision.google.owner import Owner
from provision.settings.choices import Way
from provision.spec.capacity import ASKING, Mode
from provision.state import terraform_state

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Held, Left
    from provision.google.api import GoogleApi
    from provision.google.resources import Resource
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record

_AT_ONCE: Final = 8  # lists that are asked for at the same time
_IN_USE: Final = 400  # Compute Engine's code for "is already being used by"


def where(cloud: Cloud, record: Record) -> Record:
    """The record, with the zone and region where the machines are."""
    groups = _there(cloud, record, resources.GROUP)
    found = [str(one["zone"]).rpartition("/")[2] for one in groups]
    if not found:
        clusters = _there(cloud, record, resources.CLUSTER)
        # A search takes pools from zone to zone.
        pools = _pools(clusters, record) if record.searching else ()
        found = [zone for pool in pools for zone in pool.get("locations", ())]
        if not found and any(one.get("location") == record.region for one in clusters):
            return record
        found = found or [zone for one in clusters for zone in one.get("locations", ())]
    if not found or record.zone in found:
        return record
    return dataclasses.replace(record, zone=found[0], region=zones.region_of(found[0]))


def way(cloud: Cloud, record: Record) -> Way | None:
    """The way of CAPACITY that its machines have; that of the last Create where there are none."""
    for group in _there(cloud, record, resources.GROUP):
        versions = group.get("versions") or [group]
        path = f"projects/{versions[0]['instanceTemplate'].partition('/projects/')[2]}"
        template = cloud.api.find(resources.TEMPLATE.look.service, path) or {}
        properties = template.get("properties", {})
        model = properties.get("scheduling", {}).get("provisioningModel")
        by_model = {"SPOT": Way.SPOT, "FLEX_START": Way.FLEX_START}
        return by_model.get(model) or _without_model(properties)
    for pool in _pools(_there(cloud, record, resources.CLUSTER), record):
        config = pool.get("config", {})
        if config.get("spot") or config.get("flexStart"):
            return Way.SPOT if config.get("spot") else Way.FLEX_START
        return _without_model(config)
    asked = {name: record.settings.get(name.upper()) for name in ASKING}
    return Mode.asked(asked).means.way


def _there(cloud: Cloud, record: Record, row: Resource) -> list[dict[str, Any]]:
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    return (cloud.lists or Lists(cloud.api)).marked(row.look, record.project_id, owner)


def _pools(clusters: Iterable[Mapping[str, Any]], record: Record) -> Iterator[Mapping[str, Any]]:
    system = names.SYSTEM_POOL.of(record.name_prefix)
    for pool in (pool for one in clusters for pool in one.get("nodePools", ())):
        if pool.get("name") != system:
            yield pool


def _without_model(properties: Mapping[str, Any]) -> Way:
    affinity = properties.get("reservationAffinity", {}).get("consumeReservationType")
    return Way.RESERVATION if affinity == "SPECIFIC_RESERVATION" else Way.ON_DEMAND


@dataclass(frozen=True)
class Namesake:
    """Something in the cloud that carries a marker, and one of this deployment's names."""

    path: str  # where Google has it: "projects/..."
    owner: Owner


def namesakes(api: GoogleApi, place: Place, location: StateLocation) -> list[Namesake]:
    """Everything with a marker that has one of the deployment's names or its marker.

    `api`: Google; of what these credentials may not list there is nothing.
    """
    ours = Owner.of(place.project_id, place.name_prefix, location.url)
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        where = resources.places(resources.SWEPT, place.project_id, place.hosts)
        found = pool.map(lambda pair: _of_type(api, pair[0], pair[1], place, ours), where)
        return [one for of_type in found for one in of_type]


def networks_of(found: Sequence[Namesake], owner: Owner) -> list[str]:
    """The paths of those of them that are networks of this owner."""
    return [one.path for one in found if "/networks/" in one.path and one.owner.id == owner.id]


def not_in_state(
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


def sweep(  # noqa: PLR0913 - one of them is a choice between two ways
    context: Context,
    cloud: Cloud,
    place: Place,
    *,
    last: bool,
    buckets: Collection[str] = (),
    rows: Sequence[Resource] = resources.SWEPT,
    held: Held = NOTHING_HELD,
    why: str = "an earlier run was interrupted and left it",
) -> int:
    """Remove the resources that carry the marker and are not in the state; returns their number.

    Terraform removes what is in the state. `last`: whether this is the last sweep. Earlier ones
    skip resources that are in use; by the last one nothing is in use any more.
    """
    project, api, known = place.project_id, cloud.api, cloud.folder.known()
    owner = Owner.of(project, place.name_prefix, cloud.folder.location.url)
    count = 0
    accounts = api.marked(resources.SERVICE_ACCOUNT.look, project, owner)
    ours = {f"serviceAccount:{one['email']}" for one in accounts}

    def is_left_behind(bucket: str, binding: Mapping[str, Any], member: str) -> bool:
        """By the member or by the marker in the condition.

        A service account that the user provided keeps roles without a condition: its owner may have
        granted them.
        """
        condition = binding.get("condition", {})
        found = terraform_state.grant(f"b/{bucket}", binding["role"], member, condition)
        stays = found in known or member.partition(":")[2] in held.accounts
        return not stays and (member in ours or condition.get("description") == owner.text)

    for bucket in buckets:
        api.revoke_in_bucket(bucket, functools.partial(is_left_behind, bucket))
    # In an order in which each is unused by the time it is removed.
    there = (
        (resources.path_in_document(it), row.look.service)
        for row, where in resources.places(rows, project, place.hosts)
        for it in api.marked(row.look, where, owner)
    )
    for path, service in there:
        if service is Service.IAM:
            email = path.rpartition("/")[2]
            if email in held.accounts:
                continue
            kept = _roles_in_state(project, email, known)
            api.revoke(project, email, kept)
            # The roles of a deleted account can't be revoked any more, so it has to stay.
            if kept or email in known:
                continue
        if path in held.paths or _is_known(path, known):
            continue
        if _delete(api, service, path, in_use_is_fine=not last):
            context.console.progress(f"Removed {path}: {why}")
            count += 1
    return count


def _is_known(path: str, known: Collection[str]) -> bool:
    """Whether the state has a path.

    A dashboard's path in the state has the project's number, or once imported the project's ID, so
    only its name is compared.
    """
    _, is_dashboard, name = path.partition("/dashboards/")
    if not is_dashboard:
        return path in known
    return any(one.endswith(f"/dashboards/{name}") for one in known)


def _roles_in_state(project: str, email: str, known: Collection[str]) -> set[str]:
    """The roles of an account in the project that Terraform revokes, conditional ones too."""
    prefix, member = f"{project}/", f"/serviceAccount:{email}"
    own = (one.removeprefix(prefix) for one in known if one.startswith(prefix))
    return {role for role, is_its, _ in (one.partition(member) for one in own) if is_its}


def _delete(api: GoogleApi, service: Service, path: str, *, in_use_is_fine: bool) -> bool:
    try:
        api.delete(service, path)
    except GoogleApiError as error:
        if in_use_is_fine and error.code == _IN_USE:
            return False
        raise ClusterError(
            f"{path} could not be removed",
            code=error.code_or(Code.NOT_REMOVED),
            why=error.message,
            fix=error.problems[0].fix or "fix what Google names and run Destroy again",
        ) from error
    return True
