"""In which zone the machines of a deployment are.

The record says where the last Create that ended put them. A run that was killed in the middle of a
move leaves it behind: then the state knows better, and what is in neither carries the marker.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from provision.catalogue import zones
from provision.google import resources
from provision.google.owner import Owner

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.state.record import Record


def find(cloud: Cloud, record: Record) -> Record:
    """The record, with the zone and region where the machines are.

    Args:
        cloud: Google and the state folder.
        record: As the last Create wrote it.
    """
    zone = _of_group(cloud, record) or _of_cluster(cloud)
    if not zone or zone == record.zone:
        return record
    return dataclasses.replace(record, zone=zone, region=zones.region_of(zone))


def _of_group(cloud: Cloud, record: Record) -> str:
    """The zone of a group in the state, else of one with the marker; "" if there is none."""
    kept = list(cloud.folder.of_type(resources.GROUP.type).values())
    if not kept and cloud.folder.of_type(resources.CLUSTER.type):
        return ""
    owner = Owner.of(record.project_id, record.name_prefix, cloud.folder.location.url)
    found = kept or cloud.api.marked(resources.GROUP.look, record.project_id, owner)
    return next((_last(one["zone"]) for one in found if one.get("zone")), "")


def _of_cluster(cloud: Cloud) -> str:
    """The zone of a GKE cluster's nodes, as the state has it; "" if there is none."""
    pools = cloud.folder.of_type(resources.NODE_POOL.type)
    ordered = sorted(pools.items(), key=lambda pool: ".system" in pool[0])
    zones_of_pools = (one for _, pool in ordered for one in pool.get("node_locations") or ())
    return next(zones_of_pools, "")


def _last(link: str) -> str:
    return str(link).rpartition("/")[2]
