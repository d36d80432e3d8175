"""Whose a deployment is, whether these settings may change it, and what it has beside its state.

Names are deterministic and every resource carries the marker of its deployment, so nothing that a
killed run leaves behind is lost: Create imports it into the state with an import block, and Destroy
removes it. A resource of the same name without the marker belongs to somebody else and is never
touched.
"""

from __future__ import annotations

import concurrent.futures
import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import accounts, names
from provision.codes import Code
from provision.deployment import workspace
from provision.documents import json_object
from provision.errors import StateError
from provision.google import owner, resources
from provision.google.owner import MARKER, Owner
from provision.lifecycle import marked
from provision.settings.choices import KIND
from provision.state.location import STATE
from provision.state.objects import RESTORE

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.google.api import GoogleApi
    from provision.google.resources import Look
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record
    from provision.terraform.plan import Creation, Existing, Plan

_AT_ONCE: Final = 8  # the number of concurrent look-ups


def ours(place: Place, location: StateLocation) -> Owner:
    """The deployment, as its marker names it."""
    return Owner.of(place.project_id, place.name_prefix, location.url)


def is_ours(document: Mapping[str, Any], place: Place, location: StateLocation) -> bool:
    """Whether something, as Google has it, carries this deployment's marker."""
    found = owner.read(document)
    return found is not None and found.id == ours(place, location).id


def strangers(found: Plan, place: Place, location: StateLocation) -> dict[str, str]:
    """What a plan would change or delete although it is not this deployment's.

    Whoever may write to the bucket may have named it in the state. What Google says of it counts,
    which the plan has asked. Returns address -> what it is, and whose.
    """
    own = ours(place, location)
    return {
        one.address: _words(one, other)
        for one in found.touched
        if (other.id != own.id if (other := _marker(one)) else not _is_named(one, place, location))
    }


def require_ours(found: Plan, place: Place, location: StateLocation) -> None:
    """Make sure that a plan changes and deletes only what is this deployment's."""
    url, own = f"{location.url}/{STATE}", ours(place, location)
    if others := strangers(found, place, location):
        raise StateError(
            "The state names what is not this deployment's, so it is neither changed nor deleted",
            code=Code.STATE_FOREIGN,
            why="\n".join(others.values()),
            fix=f"{RESTORE.format(url=url)};"
            f" or, if this deployment made it, write its marker back: the description '{own.text}',"
            f" or the label {MARKER}={own.id}; Destroy leaves it, and removes the rest",
        )


def _words(one: Existing, other: Owner | None) -> str:
    path = str(one.values.get("self_link") or "").partition("/v1/")[2] or one.values.get("id")
    whose = f"belongs to {other.words}" if other else f"does not carry the marker {MARKER}"
    return f"{one.address} is the {one.called} ({path}), which {whose}"


def _marker(one: Existing) -> Owner | None:
    """Whose something is, by its own marker, that of its nodes, or of its condition."""
    nested = (one.values.get(name) or () for name in ("node_config", "condition"))
    documents = [one.values, *(it for blocks in nested for it in blocks)]
    if one.type == resources.DASHBOARD.type:
        documents.append(json_object.read(one.values["dashboard_json"]))
    return next(filter(None, map(owner.read, documents)), None)


def _is_named(one: Existing, place: Place, location: StateLocation) -> bool:
    """Whether what carries no marker has the name of this deployment's, or is part of such."""
    prefix, values = place.name_prefix, one.values
    match one.type:
        case resources.NODE_POOL.type:
            own = resources.last(values.get("cluster")) == names.CLUSTER.of(prefix)
        case resources.NAT.type:
            own = (
                names.ROUTER.pattern(prefix).fullmatch(resources.last(values.get("router")))
                is not None
            )
        case resources.PROJECT_ROLE.type:
            own = _is_account(values.get("member"), place)
        case resources.ACCOUNT_ROLE.type:
            own = _is_account(values.get("service_account_id"), place)
        case resources.BUCKET_ROLE.type:
            # To an account that others use too it is given under a condition, which has the marker.
            own = not values.get("condition") and _is_account(values.get("member"), place)
        case resources.OBJECT.type:
            within = str(values.get("name")).startswith(f"{location.folder}/")
            own = values.get("bucket") == location.bucket and within
        case _:
            own = False
    return own


def _is_account(named: object, place: Place) -> bool:
    """Whether a member, or the path of an account, is an account that is made for this prefix."""
    own = {
        accounts.of_project(name.of(place.name_prefix), place.project_id)
        for name in (names.SERVICE_ACCOUNT, names.WORKLOAD_ACCOUNT)
    }
    return resources.last(named).removeprefix("serviceAccount:") in own


def deployed(context: Context, cloud: Cloud) -> Record | None:
    """The record of the deployment, with the zone where it is now; None if nothing is deployed."""
    record = _record(cloud) if cloud.has_bucket() else None
    if record is None:
        return None
    check_project(context, cloud, record)
    return marked.where(cloud, record)


def existing(
    context: Context,
    cloud: Cloud,
    kinds: Sequence[Kind[Any]],
    purpose: str,
    make: str = "run Create first",
) -> Record:
    """The record of the deployment, as `deployed` has it; `make`: what makes one."""
    record = deployed(context, cloud)
    if record is None:
        require_nothing(context, cloud, kinds)
        raise StateError(
            f"There is no deployment in {cloud.folder.location.url} {purpose}",
            code=Code.NO_CLUSTER,
            fix=f"{make}, or check NAME_PREFIX and TERRAFORM_GCS_PATH",
        )
    return record


def _record(cloud: Cloud) -> Record | None:
    record = cloud.folder.record()
    cloud.folder.require_ours(workspace.providers(), workspace.declares())
    return record


def require_same(context: Context, cloud: Cloud, record: Record | None) -> None:
    """Make sure, under the lock, that what is to be removed is what was shown."""
    now = cloud.folder.record()
    if now is not None and record is not None:
        # Where the machines are was asked of Google.
        now = dataclasses.replace(now, zone=record.zone, region=record.region)
    if now != record:
        raise StateError(
            f"Another run has changed {context.settings.name_prefix} meanwhile:"
            " nothing was removed",
            code=Code.STATE_LOCKED,
            why=f"{cloud.folder.location.url}/deployment.json is not what this run had read",
            fix="see with Status what exists now, then run Destroy again",
        )


def require_unmoved(context: Context, record: Record, serial: int) -> None:
    """Make sure, under the lock, that no other run has brought machines that were lost."""
    if record.serial != serial:
        raise StateError(
            f"Another run has changed {context.settings.name_prefix} meanwhile:"
            " it is left as it is now",
            code=Code.STATE_LOCKED,
            why="its machines may have come",
        )


def require_standing(context: Context, cloud: Cloud) -> None:
    """Make sure that what a Create has made and waited for was not removed meanwhile."""
    cloud.folder.look_again()
    if cloud.folder.record() is None:
        raise StateError(
            f"Another run has destroyed {context.settings.name_prefix} while this one waited",
            code=Code.STATE_LOCKED,
            why=f"there is no deployment any more in {cloud.folder.location.url}",
            fix="run Create again if it is wanted after all",
        )


def require_nothing(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]]) -> None:
    """Make sure that nothing lives in the cloud under the names of a deployment without a state."""
    location, place = cloud.folder.location, context.settings
    found = marked.namesakes(cloud.api, place, location)
    networks = marked.networks_of(found, ours(place, location))
    left = [kind.left(cloud, place, networks) for kind in kinds]
    if found or any(one.paths for one in left):
        raise marked.not_in_state(found, place, location, left)
    context.note([problem for one in left for problem in one.kept])


def check(context: Context, cloud: Cloud, kind: str) -> Record | None:
    """Make sure that a deployment with this prefix is ours, in this project and of this kind.

    Returns the record of the deployment; None if nothing is deployed.
    """
    record = _record(cloud)
    if record is None:
        return None
    check_project(context, cloud, record)
    if record.kind != kind:
        raise StateError(
            f"{context.settings.name_prefix} already exists as a cluster of the kind {record.kind}",
            code=Code.STATE_FOREIGN,
            why=f"these settings describe a cluster of the kind {kind}; applying them would"
            " replace everything",
            fix="run Destroy first, or choose another NAME_PREFIX",
            setting=KIND,
        )
    return record


def check_project(context: Context, cloud: Cloud, record: Record) -> None:
    """Make sure that a deployment is in the project that PROJECT_ID names."""
    if record.project_id != context.settings.project_id:
        raise StateError(
            f"{cloud.folder.location.url} holds a deployment of the project {record.project_id}",
            code=Code.STATE_FOREIGN,
            why=f"PROJECT_ID is {context.settings.project_id}",
            fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH, or set"
            f" PROJECT_ID={record.project_id}",
            setting="PROJECT_ID",
        )


@dataclass(frozen=True)
class Orphan:
    """A resource that exists and carries our marker, but is not in the state."""

    address: str  # its address in the Terraform root
    import_id: str  # Terraform's import ID for it
    displaces: bool  # whether the state has another object at that address


def orphans(
    creations: Sequence[Creation], ours: Owner, addresses: Collection[str], api: GoogleApi
) -> list[Orphan]:
    """Find the resources that a plan would create although they exist.

    `addresses`: the addresses in the state, even if the object is gone from the cloud.
    """
    known = [
        (creation, look)
        for creation in creations
        if (look := _look(creation)) and look.terms <= creation.values.keys()
    ]
    with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
        found = list(pool.map(lambda pair: _find(pair[0], pair[1], ours, api), known))
    there = [
        (creation, look, document)
        for (creation, look), document in zip(known, found, strict=True)
        if document is not None
    ]
    foreign = [
        resources.foreign(look.identity(creation.values, document), owner.read(document))
        for creation, look, document in there
        if not look.is_of(document, ours)
    ]
    if foreign:
        raise StateError.of(foreign)
    return [
        Orphan(
            creation.address,
            _identity(creation, look, document),
            displaces=creation.address in addresses,
        )
        for creation, look, document in there
    ]


def _identity(creation: Creation, look: Look, document: Mapping[str, Any]) -> str:
    if creation.type == resources.GROUP.type:
        return look.identity(
            {**creation.values, "zone": resources.last(document["zone"])}, document
        )
    return look.identity(creation.values, document)


def _look(creation: Creation) -> Look | None:
    """How to look up a resource; None for a type that can't be left behind."""
    row = resources.BY_TYPE.get(creation.type)
    return row.lookup if row else None


def _find(creation: Creation, look: Look, ours: Owner, api: GoogleApi) -> Mapping[str, Any] | None:
    """The existing object, or its parent for a part of a resource; None if it does not exist."""
    if look.by_list:
        return _marked(creation, look, ours, api)
    document = api.find(look.service, look.at(creation.values))
    if document is None and creation.type == resources.GROUP.type:
        # A run that was killed in a move leaves the group in another zone, where its VMs bill on.
        return _marked(creation, look, ours, api)
    if document is None or not look.part:
        return document
    parts = [part["name"] for part in document.get(look.part, [])]
    return document if creation.values["name"] in parts else None


def _marked(
    creation: Creation, look: Look, ours: Owner, api: GoogleApi
) -> Mapping[str, Any] | None:
    return next(iter(api.marked(look, creation.values["project"], ours)), None)
