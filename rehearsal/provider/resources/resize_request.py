"""google_compute_resize_request: VMs asked for once, never changed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.fields import Field, Kind, Scope, Send, Table
from rehearsal.provider.resources.rest import NOT_FOUND, Rest

_OPEN = ("CREATING", "ACCEPTED")

_DETAIL = (
    Field(
        "error_info",
        kind=Kind.BLOCK,
        fields=(Field("reason"), Field("domain"), Field("metadatas", kind=Kind.MAP)),
    ),
    Field(
        "quota_info",
        kind=Kind.BLOCK,
        fields=(
            Field("metric_name"),
            Field("limit_name"),
            Field("dimensions", kind=Kind.MAP),
            # Whole numbers in the schema, while Google may answer fractions.
            Field("limit", kind=Kind.NUMBER, flatten=lambda value, _: int(value or 0)),
            Field("future_limit", kind=Kind.NUMBER, flatten=lambda value, _: int(value or 0)),
            Field("rollout_status"),
        ),
    ),
    Field(
        "help",
        kind=Kind.BLOCK,
        fields=(Field("links", kind=Kind.BLOCKS, fields=(Field("description"), Field("url"))),),
    ),
    Field("localized_message", kind=Kind.BLOCK, fields=(Field("locale"), Field("message"))),
)
_ERROR = Field(
    "error",
    kind=Kind.BLOCK,
    fields=(
        Field(
            "errors",
            kind=Kind.BLOCKS,
            fields=(
                Field("code"),
                Field("location"),
                Field("message"),
                Field("error_details", kind=Kind.BLOCKS, fields=_DETAIL),
            ),
        ),
    ),
)


def _zone(_: Any, where: Scope) -> str:
    """A zone's link as the provider's generated code has it, however odd."""
    return f"projects/{where.project}/global/zones/{where.zone}"


@dataclass(frozen=True, kw_only=True)
class ResizeRequest(Rest):
    """A resize request; one that has not ended is cancelled before it is deleted."""

    def _remove(self, where: Scope) -> None:
        limit = operations.timeout(where.state, "delete", "google_compute_resize_request")
        if where.state.get("state") in _OPEN:
            try:
                answer = where.api.plain("compute", "POST", f"{self.path(where)}/cancel")
            except GoogleApiError as error:
                if error.code == NOT_FOUND:
                    return
                raise ProviderError(
                    f"Error when reading or editing ResizeRequest: {error}"
                ) from error
            activity = "Cancelling the resize request"
            operations.compute(where.api, answer, where.project, activity, limit)
        super()._remove(where)


RESOURCE = ResizeRequest(
    label="ResizeRequest",
    collection=(
        "projects/{project}/zones/{zone}/instanceGroupManagers/{instance_group_manager}"
        "/resizeRequests"
    ),
    fields=Table(
        "google_compute_resize_request",
        Field("name"),
        Field("description"),
        Field("resize_by"),
        Field("requested_run_duration"),
        Field("zone", expand=_zone, flatten=lambda link, where: links.name(link or where.zone)),
        Field("creation_timestamp", send=Send.NEVER),
        Field("state", send=Send.NEVER),
        Field(
            "status",
            kind=Kind.BLOCK,
            send=Send.NEVER,
            fields=(_ERROR, Field("last_attempt", kind=Kind.BLOCK, fields=(_ERROR,))),
        ),
        Field(
            "instance_group_manager",
            send=Send.NEVER,
            # It is part of the path alone.
            flatten=lambda _, where: where.state.get("instance_group_manager"),
        ),
    ),
    suppress={"zone": links.same_object, "instance_group_manager": links.same_object},
)
