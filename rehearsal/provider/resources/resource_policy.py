"""google_compute_resource_policy."""

from __future__ import annotations

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Send, Table
from rehearsal.provider.resources.rest import Patch, Rest
from rehearsal.provider.resources.subnetwork import REGION

_MUTABLE = (
    Field("name"),
    Field("description"),
    Field("snapshot_schedule_policy"),
    Field("group_placement_policy"),
    Field("instance_schedule_policy"),
    # The block has but a switch: in JSON it is an empty object, or null when there is none.
    Field(
        "disk_consistency_group_policy",
        send=Send.ALWAYS,
        expand=lambda blocks, _: {} if blocks and blocks[0].get("enabled") else None,
        flatten=lambda answer, _: [] if answer is None else [{"enabled": True}],
    ),
    Field("workload_policy"),
)

RESOURCE = Rest(
    label="ResourcePolicy",
    collection="projects/{project}/regions/{region}/resourcePolicies",
    fields=Table("google_compute_resource_policy", *_MUTABLE, REGION),
    patches=(Patch(tuple(each.name for each in _MUTABLE)),),
    suppress={"region": links.same_object},
)
