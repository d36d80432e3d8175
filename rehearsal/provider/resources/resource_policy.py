"""google_compute_resource_policy."""

from __future__ import annotations

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Kind, Send
from rehearsal.provider.resources.rest import Patch, Rest
from rehearsal.provider.resources.subnetwork import REGION


def _times(cycle: str) -> tuple[Field, ...]:
    """How often snapshots are made, and from when on."""
    return (Field(cycle, kind=Kind.NUMBER), Field("start_time"))


_SCHEDULE = (
    Field("hourly_schedule", kind=Kind.BLOCK, fields=_times("hours_in_cycle")),
    Field("daily_schedule", kind=Kind.BLOCK, fields=_times("days_in_cycle")),
    Field(
        "weekly_schedule",
        kind=Kind.BLOCK,
        fields=(
            Field(
                "day_of_weeks",
                kind=Kind.BLOCK_SET,
                fields=(Field("start_time"), Field("day")),
            ),
        ),
    ),
)
_SNAPSHOTS = (
    Field("schedule", kind=Kind.BLOCK, fields=_SCHEDULE),
    Field(
        "retention_policy",
        kind=Kind.BLOCK,
        fields=(
            Field("max_retention_days", kind=Kind.NUMBER),
            Field("on_source_disk_delete"),
        ),
    ),
    Field(
        "snapshot_properties",
        kind=Kind.BLOCK,
        fields=(
            Field("labels", kind=Kind.MAP),
            Field("storage_locations", kind=Kind.SET),
            Field("guest_flush", kind=Kind.BOOL),
            Field("chain_name"),
        ),
    ),
)
_CRON = (Field("schedule"),)

_MUTABLE = (
    Field("name"),
    Field("description"),
    Field("snapshot_schedule_policy", kind=Kind.BLOCK, fields=_SNAPSHOTS),
    Field(
        "group_placement_policy",
        kind=Kind.BLOCK,
        fields=(
            Field("vm_count", kind=Kind.NUMBER),
            Field("availability_domain_count", kind=Kind.NUMBER),
            Field("collocation"),
            Field("gpu_topology"),
        ),
    ),
    Field(
        "instance_schedule_policy",
        kind=Kind.BLOCK,
        fields=(
            Field("vm_start_schedule", kind=Kind.BLOCK, fields=_CRON),
            Field("vm_stop_schedule", kind=Kind.BLOCK, fields=_CRON),
            Field("time_zone"),
            Field("start_time"),
            Field("expiration_time"),
        ),
    ),
    # The block has but a switch: in JSON it is an empty object, or null when there is none.
    Field(
        "disk_consistency_group_policy",
        kind=Kind.BLOCK,
        send=Send.ALWAYS,
        expand=lambda blocks, _: {} if blocks and blocks[0].get("enabled") else None,
        flatten=lambda answer, _: [] if answer is None else [{"enabled": True}],
    ),
    Field(
        "workload_policy",
        kind=Kind.BLOCK,
        fields=(
            Field("type"),
            Field("max_topology_distance"),
            Field("accelerator_topology"),
        ),
    ),
)

RESOURCE = Rest(
    label="ResourcePolicy",
    collection="projects/{project}/regions/{region}/resourcePolicies",
    fields=(*_MUTABLE, REGION),
    patches=(Patch(tuple(each.name for each in _MUTABLE)),),
    suppress={"region": links.same_object},
)
