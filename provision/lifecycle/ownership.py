"""Whose a deployment is, and whether these settings may change it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.codes import Code
from provision.deployment import workspace
from provision.errors import StateError
from provision.google.owner import Owner
from provision.lifecycle import namesakes, whereabouts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.state.location import Place, StateLocation
    from provision.state.record import Record


def ours(context: Context, place: Place, location: StateLocation) -> list[Owner]:
    """Whose marker makes something this deployment's that the state does not know.

    The marker of the first version does not say of which state it is, so that two deployments may
    share it: it takes somebody's word (--yes).

    Args:
        context: The run.
        place: The project and the prefix.
        location: Where the state is.
    """
    owner = Owner.of(place.project_id, place.name_prefix, location.url)
    if not context.agreed:
        return [owner]
    return [owner, Owner.before_states(place.project_id, place.name_prefix)]


def deployed(context: Context, cloud: Cloud) -> Record | None:
    """The record of the deployment, with the zone where it is now; None if nothing is deployed.

    Raises:
        StateError: Another tool made it, or it is in another project.
    """
    record = _record(cloud) if cloud.has_bucket() else None
    if record is None:
        return None
    check_project(context, cloud, record)
    return whereabouts.find(cloud, record)


def existing(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]], purpose: str) -> Record:
    """The record of the deployment, as `deployed` has it.

    Args:
        context: The run.
        cloud: Has the state folder.
        kinds: All kinds of clusters.
        purpose: What is asked of it, as in "to test".

    Raises:
        StateError: There is none.
    """
    record = deployed(context, cloud)
    if record is None:
        require_nothing(context, cloud, kinds)
        raise StateError(
            f"There is no deployment in {cloud.folder.location.url} {purpose}",
            code=Code.NO_CLUSTER,
            fix="run Create first, or check NAME_PREFIX and TERRAFORM_GCS_PATH",
        )
    return record


def _record(cloud: Cloud) -> Record | None:
    record = cloud.folder.record()
    cloud.folder.require_ours(workspace.providers(), workspace.declares())
    return record


def require_same(context: Context, cloud: Cloud, record: Record | None) -> None:
    """Make sure, under the lock, that what is to be removed is what was shown.

    Args:
        context: The run.
        cloud: Has the state folder.
        record: As `deployed` returned it, before the lock was taken.

    Raises:
        StateError: Another run has changed the deployment meanwhile.
    """
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


def require_standing(context: Context, cloud: Cloud) -> None:
    """Make sure that what a Create has made and waited for was not removed meanwhile.

    Raises:
        StateError: It was.
    """
    if cloud.folder.record() is None:
        raise StateError(
            f"Another run has destroyed {context.settings.name_prefix} while this one waited",
            code=Code.STATE_LOCKED,
            why=f"there is no deployment any more in {cloud.folder.location.url}",
            fix="run Create again if it is wanted after all",
        )


def require_nothing(context: Context, cloud: Cloud, kinds: Sequence[Kind[Any]]) -> None:
    """Make sure that nothing lives in the cloud under the names of a deployment without a state.

    Args:
        context: The run; disks with data that a cluster has left are noted.
        cloud: Google.
        kinds: The kinds of cluster that may have been here.

    Raises:
        StateError: Something does; it is named with its owner and the way to it.
    """
    location, place = cloud.folder.location, context.settings
    found = namesakes.find(cloud.api, place, location)
    networks = namesakes.networks(found, ours(context, place, location))
    left = [kind.left(cloud, place, networks) for kind in kinds]
    if found or any(one.paths for one in left):
        raise namesakes.error(found, place, location, left)
    context.note([problem for one in left for problem in one.kept])


def check(context: Context, cloud: Cloud, kind: str) -> Record | None:
    """Make sure that a deployment with this prefix is ours, in this project and of this kind.

    Returns:
        The record of the deployment; None if nothing is deployed.

    Raises:
        StateError: It was made by another tool, in another project or as another kind.
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
            setting="ORCHESTRATOR_TYPE",
        )
    return record


def check_project(context: Context, cloud: Cloud, record: Record) -> None:
    """Make sure that a deployment is in the project that PROJECT_ID names.

    Raises:
        StateError: It is in another project.
    """
    if record.project_id != context.settings.project_id:
        raise StateError(
            f"{cloud.folder.location.url} holds a deployment of the project {record.project_id}",
            code=Code.STATE_FOREIGN,
            why=f"PROJECT_ID is {context.settings.project_id}",
            fix="choose another NAME_PREFIX or TERRAFORM_GCS_PATH, or set"
            f" PROJECT_ID={record.project_id}",
            setting="PROJECT_ID",
        )
