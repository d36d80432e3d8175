"""In which zone the machines of a deployment are.

The record says where the last Create that ended put them. A run that was killed in the middle of a
move leaves both the record and the state behind: then only the marker says what exists.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.catalogue import zones
from provision.google import resources
from provision.google.owner import Owner

if TYPE_CHECKING:
    from collections.abc import Mapping

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
        if any(one.get("location") == record.region for one in clusters):
            return record
        found = [zone for one in clusters for zone in one.get("locations", ())]
    if not found or record.zone in found:
        return record
    return dataclasses.replace(record, zone=found[0], region=zones.region_of(found[0]))


def _there(cloud: Cloud, record: Record, row: Resource) -> list[dict[str, Any]]:
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    return cloud.api.marked(row.look, record.project_id, owner)


def _zone(group: Mapping[str, Any]) -> str:
    return str(group["zone"]).rpartition("/")[2]
