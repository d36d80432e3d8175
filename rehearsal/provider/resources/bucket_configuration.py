"""What a bucket is configured with."""

from __future__ import annotations

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send
from rehearsal.provider.resources.lifecycle import LIFECYCLE

_ENABLED = Field("enabled", kind=Kind.BOOL, send=Send.ALWAYS)


def _enforcement(name: str) -> Field:
    return Field(
        f"{name}_encryption_enforcement_config",
        kind=Kind.BLOCK,
        fields=(Field("restriction_mode"), Field("effective_time", send=Send.NEVER)),
    )


def _ranges(name: str, *more: Field) -> tuple[Field, ...]:
    return (*more, Field(name, kind=Kind.STRINGS))


def _billing(pays: bool | None, _: Scope) -> dict[str, bool] | None:  # noqa: FBT001 - an attribute's value
    return {"requesterPays": True} if pays else None


def _seconds(text: str, _: Scope) -> str | None:
    return str(text) if text else None


# Each is one attribute and, by its JSON name, one part of a PATCH.
MUTABLE = (
    LIFECYCLE,
    Field("storage_class"),
    Field("versioning", kind=Kind.BLOCK, fields=(_ENABLED,)),
    Field(
        "website",
        kind=Kind.BLOCK,
        fields=(Field("main_page_suffix"), Field("not_found_page")),
    ),
    Field(
        "retention_policy",
        kind=Kind.BLOCK,
        fields=(
            Field("is_locked", kind=Kind.BOOL),
            Field("retention_period", expand=_seconds, flatten=lambda v, _: str(v or "")),
        ),
    ),
    Field(
        "cors",
        kind=Kind.BLOCKS,
        fields=(
            Field("origin", kind=Kind.STRINGS),
            Field("method", kind=Kind.STRINGS),
            Field("response_header", kind=Kind.STRINGS),
            Field("max_age_seconds", kind=Kind.NUMBER),
        ),
    ),
    Field("default_event_based_hold", kind=Kind.BOOL),
    Field(
        "logging",
        kind=Kind.BLOCK,
        fields=(Field("log_bucket"), Field("log_object_prefix")),
    ),
    Field(
        "encryption",
        kind=Kind.BLOCK,
        fields=(
            Field("default_kms_key_name"),
            _enforcement("google_managed"),
            _enforcement("customer_managed"),
            _enforcement("customer_supplied"),
        ),
    ),
    Field(
        "requester_pays",
        "billing",
        kind=Kind.BOOL,
        expand=_billing,
        flatten=lambda answer, _: bool((answer or {}).get("requesterPays")),
    ),
    Field("rpo"),
    Field(
        "autoclass",
        kind=Kind.BLOCK,
        fields=(_ENABLED, Field("terminal_storage_class")),
    ),
    Field(
        "soft_delete_policy",
        kind=Kind.BLOCK,
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
        kind=Kind.BLOCK,
        fields=(
            Field("mode"),
            Field("allow_all_service_agent_access", kind=Kind.BOOL, send=Send.ALWAYS),
            Field("allow_cross_org_vpcs", kind=Kind.BOOL, send=Send.ALWAYS),
            Field(
                "public_network_source",
                kind=Kind.BLOCK,
                fields=_ranges("allowed_ip_cidr_ranges"),
            ),
            Field(
                "vpc_network_sources",
                kind=Kind.BLOCKS,
                fields=_ranges("allowed_ip_cidr_ranges", Field("network")),
            ),
        ),
    ),
)
FIELDS = (
    Field("name"),
    Field("location"),
    *MUTABLE,
    Field(
        "custom_placement_config",
        kind=Kind.BLOCK,
        fields=(Field("data_locations", kind=Kind.SET),),
    ),
    Field("hierarchical_namespace", kind=Kind.BLOCK, fields=(_ENABLED,)),
    Field("effective_labels", "labels", kind=Kind.MAP),
    Field("project_number", kind=Kind.NUMBER, send=Send.NEVER),
    Field("self_link", send=Send.NEVER),
    Field("time_created", send=Send.NEVER),
    Field("updated", send=Send.NEVER),
    Field(
        "enable_object_retention",
        "objectRetention",
        kind=Kind.BOOL,
        send=Send.NEVER,
        flatten=lambda answer, _: (answer or {}).get("mode") == "Enabled",
    ),
)
