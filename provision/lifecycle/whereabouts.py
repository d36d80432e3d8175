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
    """The record, with the zone and region where the machines are."""
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
    return cloud.api.marked(row.look, record.project_id, owner)


def _zones_of_pools(clusters: Iterable[Mapping[str, Any]], record: Record) -> Iterator[str]:
    """The zones of pools that a search takes from zone to zone."""
    for pool in _pools(clusters, record) if record.searching else ():
        yield from pool.get("locations", ())


def _pools(clusters: Iterable[Mapping[str, Any]], record: Record) -> Iterator[Mapping[str, Any]]:
    """The pools that run jobs."""
    system = names.SYSTEM_POOL.of(record.name_prefix)
    for pool in (pool for one in clusters for pool in one.get("nodePools", ())):
        if pool.get("name") != system:
            yield pool


def _without_model(properties: Mapping[str, Any]) -> Way:
    affinity = properties.get("reservationAffinity", {}).get("consumeReservationType")
    return Way.RESERVATION if affinity == "SPECIFIC_RESERVATION" else Way.ON_DEMAND


def _zone(group: Mapping[str, Any]) -> str:
    return str(group["zone"]).rpartition("/")[2]
