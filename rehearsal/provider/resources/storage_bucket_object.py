"""google_storage_bucket_object."""

from __future__ import annotations

import base64
import binascii
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import links, media
from rehearsal.provider.resources.fields import (
    Field,
    Scope,
    Send,
    Table,
    expand,
    flatten,
    is_zero,
)
from rehearsal.provider.resources.rest import NOT_FOUND, is_deletable, kept, present, scope
from rehearsal.provider.resources.storage_bucket import object_path

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

# What is changed without sending the content again.
_HOLDS = Table(
    "google_storage_bucket_object",
    Field("event_based_hold"),
    Field("temporary_hold"),
    Field("retention"),
)


def _contexts(blocks: list[State], _: Scope) -> dict[str, Any] | None:
    if not blocks:
        return None
    return {"custom": {it["key"]: {"value": it["value"]} for it in blocks[0].get("custom") or []}}


def _read_contexts(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    custom = (answer or {}).get("custom") or {}
    entries = [
        {
            "key": key,
            "value": it.get("value"),
            "create_time": it.get("createTime"),
            "update_time": it.get("updateTime"),
        }
        for key, it in sorted(custom.items())
    ]
    return [{"custom": entries}] if entries else []


def _hex(md5: str | None, _: Scope) -> str:
    try:
        return base64.b64decode(md5 or "").hex()
    except binascii.Error:
        return ""


_FIELDS = Table(
    "google_storage_bucket_object",
    Field("bucket"),
    Field("cache_control"),
    Field("content_disposition"),
    Field("content_encoding"),
    Field("content_language"),
    Field("content_type"),
    Field("metadata"),
    Field("storage_class"),
    Field("kms_key_name"),
    *_HOLDS.given,
    Field("contexts", expand=_contexts, flatten=_read_contexts),
    Field("md5hash", "md5Hash", send=Send.NEVER),
    Field("detect_md5hash", "md5Hash", send=Send.NEVER),
    Field("md5hexhash", "md5Hash", send=Send.NEVER, flatten=_hex),
    Field("crc32c", send=Send.NEVER),
    Field("self_link", send=Send.NEVER),
    Field("media_link", send=Send.NEVER),
    Field("generation", send=Send.NEVER),
    Field("output_name", "name", send=Send.NEVER),
)

# Attributes of which a change sends the content again.
_CONTENT = ("content", "detect_md5hash", "source_md5hash")
_DERIVED = ("md5hash", "md5hexhash", "crc32c", "generation", "media_link")
# Google doesn't know these.
_KEPT = (
    "content",
    "source",
    "source_md5hash",
    "customer_encryption",
    "force_empty_content_type",
    "timeouts",
)


def _unchanged(prior: Any, wanted: Any, state: State) -> bool:
    """Whether the file on disk is what was uploaded; the attribute's own value says nothing."""
    del wanted
    source = state.get("source")
    if not source:
        return True
    try:
        return bool(_md5(Path(source).read_bytes()) == prior)
    except OSError:
        return False


class StorageBucketObject:
    """An object; a change of its content writes a new one over it."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "detect_md5hash": _unchanged,
        # Google names the version of the key that it used.
        "kms_key_name": lambda prior, wanted, _: bool(
            prior and wanted and prior.startswith(f"{wanted}/cryptoKeyVersions/")
        ),
        "bucket": links.same_name,
    }

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """New content means new hashes."""
        if plan.get("deletion_policy") in (None, UNKNOWN):
            plan["deletion_policy"] = api.deletion_policy
        if prior is not None and any(plan.get(name) != prior.get(name) for name in _CONTENT):
            plan.update(dict.fromkeys(_DERIVED, UNKNOWN))
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Upload the content."""
        bucket, name = links.name(plan["bucket"]), plan["name"]
        about = expand(_FIELDS, {**plan, "bucket": bucket}, scope(api, plan))
        try:
            media.upload(api, bucket, name, about, _content(plan))
        except GoogleApiError as error:
            raise ProviderError(f"Error uploading object {name}: {error}") from error
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The object's description; its content is not read."""
        bucket, name = links.name(state["bucket"]), state["name"]
        try:
            answer = api.client("storage", "GET", object_path(f"b/{bucket}", name))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Storage Bucket Object "{name}": {error}'
            ) from error
        return {
            **{each: kept(state, each, None) for each in _KEPT},
            **flatten(_FIELDS, answer, scope(api, state)),
            "id": f"{bucket}-{answer['name']}",
            "name": name,
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Upload new content, or change the holds of the object as it is."""
        if any(plan.get(name) != prior.get(name) for name in _CONTENT):
            return self.create(api, plan)
        where = scope(api, plan, prior)
        changed = (*_HOLDS, next(each for each in _FIELDS if each.name == "contexts"))
        path = object_path(f"b/{links.name(plan['bucket'])}", plan["name"])
        try:
            now = api.client("storage", "GET", path)
            for each in changed:
                if plan.get(each.name) != prior.get(each.name):
                    now[each.key] = each.to_wire(plan.get(each.name), where)
            api.client("storage", "PUT", path, now)
        except GoogleApiError as error:
            raise ProviderError(f"Error updating object {plan['name']}: {error}") from error
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the object."""
        if not is_deletable(state, "StorageBucketObject"):
            return
        name = state["name"]
        try:
            path = object_path(f"b/{links.name(state['bucket'])}", name)
            api.client("storage", "DELETE", path)
        except GoogleApiError as error:
            if error.code != NOT_FOUND:
                raise ProviderError(f"Error deleting contents of object {name}: {error}") from error

    def import_state(self, api: Api, import_id: str) -> State:
        """Objects cannot be imported; an upload writes over what is there."""
        del api, import_id
        raise ValueError("resource google_storage_bucket_object doesn't support import")


def _content(plan: State) -> bytes:
    """The bytes to upload."""
    if is_zero(plan.get("source")):
        content = plan.get("content")
        if content is None or content is UNKNOWN:
            raise ProviderError('Error, either "content" or "source" must be specified')
        return str(content).encode()
    try:
        return Path(plan["source"]).read_bytes()
    except OSError as error:
        raise ProviderError(f"open {plan['source']}: {error.strerror}") from error


def _md5(content: bytes) -> str:
    digest = hashlib.md5(content, usedforsecurity=False).digest()
    return base64.b64encode(digest).decode()


RESOURCE = StorageBucketObject()
