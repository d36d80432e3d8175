"""The VM that an instance template describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resources import links, scopes
from rehearsal.provider.resources.disk import DISKS
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    Table,
    expand,
    flatten,
    in_set_order,
    is_zero,
)
from rehearsal.provider.resources.network_interface import INTERFACES
from rehearsal.provider.resources.scheduling import SCHEDULING

if TYPE_CHECKING:
    from rehearsal.provider.resource import State

_STARTUP = "startup-script"


def _scopes(values: list[str], _: Scope) -> list[str]:
    return in_set_order([scopes.canonical(value) for value in values])


def _accelerators(blocks: list[State], _: Scope) -> list[dict[str, Any]]:
    """Numbers and names of accelerators; a template wants the name, not a link."""
    return [
        {"acceleratorCount": block["count"], "acceleratorType": block["type"]}
        for block in blocks
        if block["count"]
    ]


def _metadata(items: dict[str, str], where: Scope) -> dict[str, Any]:
    script = where.state.get("metadata_startup_script")
    if not is_zero(script):
        if _STARTUP in items:
            raise ProviderError(
                "Cannot provide both metadata_startup_script and metadata.startup-script."
            )
        items = {**items, _STARTUP: str(script)}
    pairs = [{"key": key, "value": items[key]} for key in sorted(items)]
    return {"items": pairs} if pairs else {}


def _read_metadata(answer: dict[str, Any] | None, where: Scope) -> dict[str, str]:
    items = {it["key"]: it.get("value", "") for it in (answer or {}).get("items") or []}
    if not is_zero(where.state.get("metadata_startup_script")):
        items.pop(_STARTUP, None)
    return items


def _fingerprint(answer: dict[str, Any] | None, _: Scope) -> str:
    return str((answer or {}).get("fingerprint", ""))


_RESERVATION = Table(
    "google_compute_instance_template.reservation_affinity.specific_reservation",
    Field("key"),
    Field("values"),
)


def _reservation(blocks: list[State], where: Scope) -> dict[str, Any] | None:
    if not blocks:
        return None
    specific = blocks[0].get("specific_reservation") or [{}]
    return {
        "consumeReservationType": blocks[0]["type"],
        **expand(_RESERVATION, specific[0], where),
    }


def _read_reservation(answer: dict[str, Any] | None, where: Scope) -> list[State]:
    if not answer:
        return []
    kind = answer.get("consumeReservationType")
    specific = [flatten(_RESERVATION, answer, where)] if kind == "SPECIFIC_RESERVATION" else []
    return [{"type": kind, "specific_reservation": specific}]


def _forced(name: str) -> Field:
    return Field(name, send=Send.ALWAYS)


PROPERTIES = Table(
    "google_compute_instance_template",
    Field("can_ip_forward"),
    Field("instance_description", "description"),
    DISKS,
    Field(
        "guest_accelerator",
        "guestAccelerators",
        fields=(Field("count", "acceleratorCount"), Field("type", "acceleratorType")),
        expand=_accelerators,
        flatten=lambda found, _: [
            {"count": it.get("acceleratorCount", 0), "type": it.get("acceleratorType", "")}
            for it in found or []
        ],
    ),
    Field("machine_type"),
    Field("min_cpu_platform"),
    Field("metadata", send=Send.ALWAYS, expand=_metadata, flatten=_read_metadata),
    Field("metadata_fingerprint", "metadata", send=Send.NEVER, flatten=_fingerprint),
    INTERFACES,
    Field("network_performance_config"),
    SCHEDULING,
    Field(
        "service_account",
        "serviceAccounts",
        kind=Kind.BLOCKS,
        fields=(
            Field("email", expand=lambda email, _: email or "default"),
            Field("scopes", expand=_scopes),
        ),
    ),
    Field(
        "tags",
        send=Send.ALWAYS,
        expand=lambda tags, _: {"items": in_set_order(tags)} if tags else {},
        flatten=lambda answer, _: (answer or {}).get("items") or [],
    ),
    Field("tags_fingerprint", "tags", send=Send.NEVER, flatten=_fingerprint),
    Field("confidential_instance_config"),
    Field(
        "shielded_instance_config",
        fields=(
            _forced("enable_secure_boot"),
            _forced("enable_vtpm"),
            _forced("enable_integrity_monitoring"),
        ),
    ),
    Field("advanced_machine_features"),
    Field("resource_policies", expand=lambda values, _: [links.name(value) for value in values]),
    Field("resource_manager_tags"),
    Field("reservation_affinity", expand=_reservation, flatten=_read_reservation),
    Field("key_revocation_action_type"),
    Field("workload_identity_config"),
    Field("effective_labels", "labels"),
)
