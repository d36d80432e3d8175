"""How the VMs of an instance template are scheduled."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, Table, expand, flatten

if TYPE_CHECKING:
    from rehearsal.provider.resource import State


def _affinities(blocks: list[State], scope: Scope) -> list[dict[str, Any] | None]:
    """The list as provider 7.45.0 makes it: always with a null at its beginning."""
    return [None, *(expand(_AFFINITY, block, scope) for block in blocks)]


_AFFINITY = Table(
    "google_compute_instance_template.scheduling.node_affinities",
    Field("key"),
    Field("operator"),
    Field("values"),
)
_DURATION = (Field("seconds", kind=Kind.INT64),)

_FIELDS = Table(
    "google_compute_instance_template.scheduling",
    Field("automatic_restart", send=Send.ALWAYS),
    Field("preemptible", send=Send.ALWAYS),
    Field("on_host_maintenance", send=Send.ALWAYS),
    Field(
        "node_affinities",
        send=Send.ALWAYS,
        expand=_affinities,
        flatten=lambda found, scope: [flatten(_AFFINITY, it, scope) for it in found or [] if it],
    ),
    Field("min_node_cpus"),
    Field("provisioning_model", send=Send.ALWAYS),
    Field("instance_termination_action", send=Send.ALWAYS),
    Field("termination_time"),
    Field("availability_domain"),
    Field("max_run_duration", fields=_DURATION),
    Field("on_instance_stop_action"),
    # Null where it is not set: a zero would be a wrong number of seconds.
    Field("host_error_timeout_seconds", send=Send.ALWAYS, expand=lambda value, _: value or None),
    Field("local_ssd_recovery_timeout", kind=Kind.BLOCK, fields=_DURATION),
)


def _expand(blocks: list[State], scope: Scope) -> dict[str, Any]:
    if not blocks:
        return {"onHostMaintenance": "MIGRATE"}
    body = expand(_FIELDS, blocks[0] or {}, scope)
    if body["preemptible"] and not body["onHostMaintenance"]:
        body["onHostMaintenance"] = "TERMINATE"
    return body


SCHEDULING = Field("scheduling", fields=_FIELDS.given, expand=_expand)
