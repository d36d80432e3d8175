"""A `deployment.json` that is lost or damaged, made again from what Terraform's state says."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from provision import __version__
from provision.google import owner, resources
from provision.state import terraform_state
from provision.state.record import Record

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.state.location import Place

_KINDS: Final = {resources.CLUSTER.type: "gke", resources.GROUP.type: "mig"}
"""The one thing that each kind of cluster has -> the kind's name."""
_OF_GKE_ALONE: Final = "module.workload_account"
"""The beginning of addresses that only the GKE root has, for a state without the cluster."""
_SOMETHING: Final = "unknown"
"""What stands for all that machines may hold and no state knows: the next Create looks for it."""
_NUMBERED: Final = re.compile(r"-(\d+)$")


def rebuild(state: Mapping[str, Any], place: Place) -> Record | None:
    """The record that belongs to a state; None where this tool did not make what it has.

    What the settings said is lost, but for what the state has of it. `place`: the project, prefix,
    region and zone that the settings of this run name; the state wins where it knows better.

    Raises:
        ValueError: What the state says is nothing that a record may say.
    """
    things = list(terraform_state.attributes(state))
    owners = [found for _, values in things if (found := owner.read(values)) is not None]
    if not owners:
        return None
    of_type = dict(reversed(things))
    # Rules may be in a host project.
    own = [(type_, values) for type_, values in things if type_ != resources.FIREWALL.type]
    record = Record(
        kind=_kind(of_type, terraform_state.addresses(state)),
        cluster_id=owners[0].id,
        project_id=_first(own, "project") or place.project_id,
        name_prefix=place.name_prefix,
        region=_region(of_type) or place.region,
        zone=resources.last(of_type.get(resources.GROUP.type, {}).get("zone")) or place.zone,
        tool_version=__version__,
        terraform_version=str(state.get("terraform_version", "")),
        image=_image(state),
        last_request=_last_request(things),
        held=(_SOMETHING,),
        hosts=place.hosts,
        gke_version=of_type.get(resources.CLUSTER.type, {}).get("min_master_version"),
    )
    # Whoever may write a record may write a state, so the same rules hold.
    checked = Record.parse(record.document())
    if checked is None:
        raise ValueError("its resources have a name, a place or a version that none can have")
    return checked


def _kind(of_type: Mapping[str, Any], addresses: set[str]) -> str:
    for type_, kind in _KINDS.items():
        if type_ in of_type:
            return kind
    if any(address.startswith(_OF_GKE_ALONE) for address in addresses):
        return _KINDS[resources.CLUSTER.type]
    return _KINDS[resources.GROUP.type]


def _region(of_type: Mapping[str, Mapping[str, Any]]) -> str:
    """A region that something says; links and bare names are both in use."""
    for type_ in (resources.SUBNETWORK.type, resources.TEMPLATE.type):
        found = of_type.get(type_, {}).get("region")
        if found:
            return resources.last(found)
    return str(of_type.get(resources.CLUSTER.type, {}).get("location") or "")


def _first(things: Sequence[tuple[str, Mapping[str, Any]]], name: str) -> str:
    return next((str(values[name]) for _, values in things if values.get(name)), "")


def _image(state: Mapping[str, Any]) -> dict[str, str | None]:
    """The image that the group was made with, from the outputs of an apply."""
    image = terraform_state.outputs(state).get("image")
    if not isinstance(image, dict):
        return {}
    return {name: image.get(name) for name in ("project", "family", "name")}


def _last_request(things: Sequence[tuple[str, Mapping[str, Any]]]) -> int:
    numbers = [
        int(found[1])
        for type_, values in things
        if type_ == resources.RESIZE_REQUEST.type
        and (found := _NUMBERED.search(str(values.get("name", "")))) is not None
    ]
    return max(numbers, default=0)
