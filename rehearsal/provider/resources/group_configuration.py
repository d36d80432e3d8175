"""What a managed group of VMs is configured with."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    Table,
    expand,
    flatten,
    is_zero,
)
from rehearsal.provider.resources.template import unique_link

if TYPE_CHECKING:
    from collections.abc import Callable

    from rehearsal.provider.resource import State


def _amount(blocks: list[State], _: Scope) -> dict[str, int]:
    """How many VMs a version has: a share, else a number; {} is "the rest"."""
    if not blocks:
        return {}
    block = blocks[0] or {}
    if block.get("percent"):
        return {"percent": block["percent"]}
    return {"fixed": block.get("fixed") or 0}


def _read_amount(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    found = answer or {}
    name = next((name for name in ("percent", "fixed") if found.get(name)), None)
    return [{name: found[name]}] if name else []


def _limits(block: State, name: str) -> dict[str, Any]:
    """A surge or an unavailability: a share or a number, the other one null."""
    percent, fixed = block.get(f"{name}_percent"), block.get(f"{name}_fixed")
    if not is_zero(percent):
        return {"percent": percent, "fixed": None}
    return {"fixed": 0 if is_zero(fixed) else fixed, "percent": None}


_UPDATE = Table(
    "google_compute_instance_group_manager.update_policy",
    Field("minimal_action"),
    Field("type"),
    Field("replacement_method"),
    Field(
        "most_disruptive_allowed_action",
        send=Send.ALWAYS,
        expand=lambda action, _: action or None,
    ),
)


def _update_policy(blocks: list[State], where: Scope) -> dict[str, Any]:
    if not blocks:
        return {}
    return {
        **expand(_UPDATE, blocks[0], where),
        "maxSurge": _limits(blocks[0], "max_surge"),
        "maxUnavailable": _limits(blocks[0], "max_unavailable"),
    }


def _read_update_policy(answer: dict[str, Any] | None, where: Scope) -> list[State]:
    if answer is None:
        return []
    state = flatten(_UPDATE, answer, where)
    for name, key in (("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable")):
        amount = answer.get(key) or {}
        state[f"{name}_fixed"] = amount.get("fixed", 0)
        state[f"{name}_percent"] = amount.get("percent", 0)
    return [state]


def _or_empty(fields: Table) -> Callable[[list[State], Scope], dict[str, Any]]:
    """A block whose absence is sent as an empty object."""

    def expand_block(blocks: list[State], where: Scope) -> dict[str, Any]:
        return expand(fields, blocks[0] or {}, where) if blocks else {}

    return expand_block


_REPAIR = Table(
    "google_compute_instance_group_manager.instance_lifecycle_policy.on_repair",
    Field("allow_changing_zone"),
)
_LIFECYCLE = Table(
    "google_compute_instance_group_manager.instance_lifecycle_policy",
    Field("default_action_on_failure"),
    Field("force_update_on_repair"),
    Field("on_failed_health_check"),
    Field("on_repair", send=Send.ALWAYS, fields=_REPAIR.given, expand=_or_empty(_REPAIR)),
)
_STANDBY = Table(
    "google_compute_instance_group_manager.standby_policy",
    Field("initial_delay_sec", send=Send.ALWAYS),
    Field("mode"),
)


def _workload(blocks: list[State], _: Scope) -> dict[str, Any]:
    return (
        {"workloadPolicy": blocks[0].get("workload_policy") or ""}
        if blocks
        else {"workloadPolicy": None}
    )


def _everywhere(blocks: list[State], where: Scope) -> dict[str, Any] | None:
    """Labels and metadata of all VMs; what goes away is sent as null."""
    if not blocks:
        return None
    old: list[State] = (where.prior or {}).get("all_instances_config") or [{}]
    properties = {}
    for name in ("metadata", "labels"):
        now = blocks[0].get(name) or {}
        gone = dict.fromkeys(key for key in old[0].get(name) or {} if key not in now)
        properties[name] = {**now, **gone} or None
    return {"properties": properties}


def _read_everywhere(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    if not answer:
        return []
    properties = answer.get("properties") or {}
    return [{name: properties.get(name) or {} for name in ("metadata", "labels")}]


_STATUS = Field(
    "status",
    kind=Kind.BLOCK,
    send=Send.NEVER,
    fields=(
        Field("is_stable", kind=Kind.BOOL),
        Field(
            "stateful",
            kind=Kind.BLOCK,
            fields=(
                Field("has_stateful_config", kind=Kind.BOOL),
                Field(
                    "per_instance_configs",
                    kind=Kind.BLOCK,
                    fields=(Field("all_effective", kind=Kind.BOOL),),
                ),
            ),
        ),
        Field("version_target", kind=Kind.BLOCK, fields=(Field("is_reached", kind=Kind.BOOL),)),
        Field(
            "all_instances_config",
            kind=Kind.BLOCK,
            fields=(Field("effective", kind=Kind.BOOL), Field("current_revision")),
        ),
    ),
)

ALONE = Table(
    "google_compute_instance_group_manager",
    Field("named_port", "namedPorts"),
    Field("target_size", send=Send.ALWAYS),
)
"""What has requests of its own."""

# What PATCH changes; the size and the named ports have requests of their own.
PATCHED = Table(
    "google_compute_instance_group_manager",
    Field("description", send=Send.ALWAYS),
    Field("target_pools"),
    Field(
        "auto_healing_policies",
        kind=Kind.BLOCKS,
    ),
    Field(
        "version",
        "versions",
        fields=(
            Field(
                "instance_template",
                expand=lambda link, _: unique_link(link),
                flatten=lambda link, _: links.v1(link or ""),
            ),
            Field("target_size", send=Send.ALWAYS, expand=_amount, flatten=_read_amount),
        ),
    ),
    Field("standby_policy", send=Send.ALWAYS, fields=_STANDBY.given, expand=_or_empty(_STANDBY)),
    Field("target_suspended_size"),
    Field("target_stopped_size"),
    Field("update_policy", send=Send.ALWAYS, expand=_update_policy, flatten=_read_update_policy),
    Field(
        "instance_lifecycle_policy",
        send=Send.ALWAYS,
        fields=_LIFECYCLE.given,
        expand=_or_empty(_LIFECYCLE),
    ),
    Field("all_instances_config", expand=_everywhere, flatten=_read_everywhere),
    Field("list_managed_instances_results"),
    Field(
        "resource_policies",
        send=Send.ALWAYS,
        expand=_workload,
        flatten=lambda answer, _: (
            [{"workload_policy": answer.get("workloadPolicy", "")}] if answer else []
        ),
    ),
)
FIELDS = Table(
    "google_compute_instance_group_manager",
    Field("name"),
    Field("base_instance_name"),
    *PATCHED.given,
    *ALONE.given,
    Field("target_size_policy", kind=Kind.BLOCK),
    _STATUS,
    Field("creation_timestamp", send=Send.NEVER),
    Field("fingerprint", send=Send.NEVER),
    Field("instance_group", send=Send.NEVER, flatten=lambda link, _: links.v1(link or "")),
    Field("instance_group_manager_id", "id", send=Send.NEVER),
    Field("self_link", send=Send.NEVER, flatten=lambda link, _: links.v1(link or "")),
)
