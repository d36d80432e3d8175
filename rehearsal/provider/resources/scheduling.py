"""How the VMs of an instance template are scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, expand, flatten

if TYPE_CHECKING:
    from rehearsal.provider.resource import State


def _affinities(blocks: list[State], scope: Scope) -> list[dict[str, Any] | None]:
    """The list as provider 7.45.0 makes it: always with a null at its beginning."""
    return [None, *(expand(_AFFINITY, block, scope) for block in blocks)]


_AFFINITY = (Field("key"), Field("operator"), Field("values", kind=Kind.SET))
_DURATION = (Field("seconds", kind=Kind.INT64), Field("nanos", kind=Kind.NUMBER))

_FIELDS = (
    Field("automatic_restart", kind=Kind.BOOL, send=Send.ALWAYS),
    Field("preemptible", kind=Kind.BOOL, send=Send.ALWAYS),
    Field("on_host_maintenance", send=Send.ALWAYS),
    Field(
        "node_affinities",
        kind=Kind.BLOCK_SET,
        send=Send.ALWAYS,
        expand=_affinities,
        flatten=lambda found, scope: [flatten(_AFFINITY, it, scope) for it in found or [] if it],
    ),
    Field("min_node_cpus", kind=Kind.NUMBER),
    Field("provisioning_model", send=Send.ALWAYS),
    Field("instance_termination_action", send=Send.ALWAYS),
    Field("termination_time"),
    Field("availability_domain", kind=Kind.NUMBER),
    Field("max_run_duration", kind=Kind.BLOCK, fields=_DURATION),
    Field(
        "on_instance_stop_action",
        kind=Kind.BLOCK,
        fields=(Field("discard_local_ssd", kind=Kind.BOOL),),
    ),
    # Null where it is not set: a zero would be a wrong number of seconds.
    Field(
        "host_error_timeout_seconds",
        kind=Kind.NUMBER,
        send=Send.ALWAYS,
        expand=lambda value, _: value or None,
    ),
    Field("local_ssd_recovery_timeout", kind=Kind.BLOCK, fields=_DURATION),
)


def _expand(blocks: list[State], scope: Scope) -> dict[str, Any]:
    if not blocks:
        return {"onHostMaintenance": "MIGRATE"}
    body = expand(_FIELDS, blocks[0] or {}, scope)
    if body["preemptible"] and not body["onHostMaintenance"]:
        body["onHostMaintenance"] = "TERMINATE"
    return body


SCHEDULING = Field("scheduling", kind=Kind.BLOCK, fields=_FIELDS, expand=_expand)
