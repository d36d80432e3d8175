"""In which zone the machines of a deployment are, and in which way they are got.

The record says where the last Create that ended put them. A run that was killed in the middle of a
move leaves both the record and the state behind: then only the marker says what exists.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.catalogue import names, zones
from provision.google import resources
from provision.google.owner import Owner
from provision.settings.choices import Way
from provision.spec.capacity import ASKING, Mode

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from provision.context import Cloud
    from provision.google.resources import Resource
    from provision.state.record import Record


def find(cloud: Cloud, record: Record) -> Record:
    """The record, with the zone and region where the machines are.

    Args:
        cloud: Google and the state folder.
        record: As the last Create wrote it.
    """
    found = [_zone(one) for one in _there(cloud, record, resources.GROUP)]
    if not found:
        clusters = _there(cloud, record, resources.CLUSTER)
        found = list(_zones_of_pools(clusters, record))
        if not found and any(one.get("location") == record.region for one in clusters):
            return record
        found = found or [zone for one in clusters for zone in one.get("locations", ())]
    if not found or record.zone in found:
        return record
    return dataclasses.replace(record, zone=found[0], region=zones.region_of(found[0]))


def way(cloud: Cloud, record: Record) -> Way | None:
    """The way of CAPACITY that its group has; that of the last Create where there is no group.

    Args:
        cloud: Google and the state folder.
        record: As the last Create wrote it.
    """
    for group in _there(cloud, record, resources.GROUP):
        versions = group.get("versions") or [group]
        path = f"projects/{versions[0]['instanceTemplate'].partition('/projects/')[2]}"
        template = cloud.api.find(resources.TEMPLATE.look.service, path) or {}
        properties = template.get("properties", {})
        affinity = properties.get("reservationAffinity", {}).get("consumeReservationType")
        model = properties.get("scheduling", {}).get("provisioningModel")
        named = Way.RESERVATION if affinity == "SPECIFIC_RESERVATION" else Way.ON_DEMAND
        return {"SPOT": Way.SPOT, "FLEX_START": Way.FLEX_START}.get(model, named)
    asked = {name: record.settings.get(name.upper()) for name in ASKING}
    return Mode.asked(asked).means.way


def _there(cloud: Cloud, record: Record, row: Resource) -> list[dict[str, Any]]:
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    return cloud.api.marked(row.look, record.project_id, owner)


def _zones_of_pools(clusters: Iterable[Mapping[str, Any]], record: Record) -> Iterator[str]:
    """The zones of pools that a search takes from zone to zone."""
    system = names.SYSTEM_POOL.of(record.name_prefix)
    for pool in (pool for one in clusters for pool in one.get("nodePools", ())):
        if record.searching and pool.get("name") != system:
            yield from pool.get("locations", ())


def _zone(group: Mapping[str, Any]) -> str:
    return str(group["zone"]).rpartition("/")[2]
