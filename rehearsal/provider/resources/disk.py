"""The disks of an instance template."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import image, links
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

if TYPE_CHECKING:
    from rehearsal.provider.resource import State

_SCRATCH_SIZE_GB = 375
"""The size of a local SSD for which Google answers none."""

_KEY = (Field("kms_key_self_link", "kmsKeyName"),)


def _names(values: list[str], _: Scope) -> list[str]:
    """A template takes the names of resource policies, not their links."""
    return [links.name(value) for value in values]


def _features(values: list[str], _: Scope) -> list[dict[str, str]]:
    return [{"type": value} for value in values]


_PARAMS = Table(
    "google_compute_instance_template.disk",
    Field("disk_name"),
    Field("disk_size_gb", kind=Kind.INT64),
    Field("disk_type", expand=lambda kind, _: kind or "pd-standard"),
    Field("provisioned_iops", kind=Kind.INT64),
    Field("provisioned_throughput", kind=Kind.INT64),
    Field("architecture"),
    Field("labels"),
    Field("resource_manager_tags"),
    Field("resource_policies", expand=_names),
    Field("source_image"),
    Field("source_image_encryption_key", fields=_KEY),
    Field("source_snapshot"),
    Field("source_snapshot_encryption_key", fields=_KEY),
    Field("storage_pool"),
)
_DISK = Table(
    "google_compute_instance_template.disk",
    Field("auto_delete"),
    Field("boot"),
    Field("device_name"),
    Field("disk_encryption_key", fields=_KEY),
    Field("disk_size_gb", kind=Kind.INT64),
    Field(
        "guest_os_features",
        expand=_features,
        flatten=lambda features, _: [each["type"] for each in features or []],
    ),
    Field("interface"),
    Field("mode"),
    Field("source", flatten=lambda link, _: links.v1(link or "")),
    Field("type"),
)

# Google doesn't answer these: they stay as the configuration has them.
_UNANSWERED = ("source_image_encryption_key", "source_snapshot", "source_snapshot_encryption_key")


def _expand_all(disks: list[State], scope: Scope) -> list[dict[str, Any]]:
    return [_expand(index, disk, scope) for index, disk in enumerate(disks)]


def _expand(index: int, disk: State, scope: Scope) -> dict[str, Any]:
    """One disk; the first is the one to boot from."""
    boot = index == 0 or disk.get("boot") is True
    body = expand(_DISK, {**disk, "boot": boot}, scope)
    if not is_zero(disk.get("source")):
        return body
    params = expand(_PARAMS, disk, scope)
    if source := params.get("sourceImage"):
        try:
            params["sourceImage"] = image.resolve(scope.api, scope.project, source)
        except (GoogleApiError, ProviderError) as error:
            raise ProviderError(f"Error resolving image name '{source}': {error}") from error
    return {**body, "initializeParams": params}


def _flatten_all(disks: list[dict[str, Any]] | None, scope: Scope) -> list[State]:
    before: list[State] = scope.state.get("disk") or []
    befores = [*before, *[{}] * len(disks or [])]
    return [_flatten(disk, known, scope) for disk, known in zip(disks or [], befores, strict=False)]


def _flatten(disk: dict[str, Any], known: State, scope: Scope) -> State:
    params = disk.get("initializeParams") or {}
    state = {**flatten(_PARAMS, params, scope), **flatten(_DISK, disk, scope)}
    if not state["disk_size_gb"]:
        state["disk_size_gb"] = int(params.get("diskSizeGb", 0))
    if not state["disk_size_gb"] and state["type"] == "SCRATCH":
        state["disk_size_gb"] = _SCRATCH_SIZE_GB
    if state["source_image"]:
        state["source_image"] = image.relative(scope.project, state["source_image"])
    for name in _UNANSWERED:
        value = known.get(name)
        state[name] = None if value is UNKNOWN else value
    return state


DISKS = Field("disk", "disks", send=Send.FILLED, expand=_expand_all, flatten=_flatten_all)
