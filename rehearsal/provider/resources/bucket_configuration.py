"""What a bucket is configured with."""

from __future__ import annotations

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, Table
from rehearsal.provider.resources.lifecycle import LIFECYCLE

_ENABLED = Field("enabled", send=Send.ALWAYS)


def _enforcement(name: str) -> Field:
    return Field(
        f"{name}_encryption_enforcement_config", fields=(Field("effective_time", send=Send.NEVER),)
    )


def _billing(pays: bool | None, _: Scope) -> dict[str, bool] | None:  # noqa: FBT001 - an attribute's value
    return {"requesterPays": True} if pays else None


def _seconds(text: str, _: Scope) -> str | None:
    return str(text) if text else None


# Each is one attribute and, by its JSON name, one part of a PATCH.
MUTABLE = Table(
    "google_storage_bucket",
    LIFECYCLE,
    Field("storage_class"),
    Field("versioning", fields=(_ENABLED,)),
    Field("website"),
    Field(
        "retention_policy",
        fields=(Field("retention_period", expand=_seconds, flatten=lambda v, _: str(v or "")),),
    ),
    Field("cors"),
    Field("default_event_based_hold"),
    Field("logging"),
    Field(
        "encryption",
        fields=(
            _enforcement("google_managed"),
            _enforcement("customer_managed"),
            _enforcement("customer_supplied"),
        ),
    ),
    Field(
        "requester_pays",
        "billing",
        expand=_billing,
        flatten=lambda answer, _: bool((answer or {}).get("requesterPays")),
    ),
    Field("rpo"),
    Field("autoclass", fields=(_ENABLED,)),
    Field(
        "soft_delete_policy",
        fields=(
            Field(
                "retention_duration_seconds",
                kind=Kind.INT64,
                send=Send.ALWAYS,
                expand=lambda value, _: str(value or 0),
            ),
            Field("effective_time", send=Send.NEVER),
        ),
    ),
    Field(
        "ip_filter",
        fields=(
            Field("allow_all_service_agent_access", send=Send.ALWAYS),
            Field("allow_cross_org_vpcs", send=Send.ALWAYS),
        ),
    ),
)
FIELDS = Table(
    "google_storage_bucket",
    Field("name"),
    Field("location"),
    *MUTABLE.given,
    Field("custom_placement_config"),
    Field("hierarchical_namespace", fields=(_ENABLED,)),
    Field("effective_labels", "labels"),
    Field("project_number", send=Send.NEVER),
    Field("self_link", send=Send.NEVER),
    Field("time_created", send=Send.NEVER),
    Field("updated", send=Send.NEVER),
    Field(
        "enable_object_retention",
        "objectRetention",
        send=Send.NEVER,
        flatten=lambda answer, _: (answer or {}).get("mode") == "Enabled",
    ),
)
