"""Objects and their generations."""

import base64
import hashlib
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import google_crc32c

from rehearsal.cloud import policies
from rehearsal.cloud.storage import buckets
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request, moment, rfc3339

Object = dict[str, Any]

_COLLECTION = "storage/objects"
_WRITABLE = frozenset(
    {
        "cacheControl", "contentDisposition", "contentEncoding", "contentLanguage", "contentType",
        "customTime", "metadata", "storageClass",
    }
)  # fmt: skip
_LONGEST_NAME = 1024  # bytes of UTF-8


def create(
    request: Request, store: Store, bucket: str, metadata: Mapping[str, Any], content: bytes
) -> Object:
    """Make a new live generation of an object with its name and what the caller says of it."""
    owner = buckets.find(store, bucket, "storage.objects.create")
    if owner.get("defaultEventBasedHold"):
        raise GoogleError(501, "Held objects are not part of the simulated cloud.", status=None)
    name = metadata.get("name") or ""
    _check_name(name)
    buckets.check(request.query, live(store, bucket, name))
    checksums = _checksums(content)
    _retire(request, store, owner, name)
    generation = str(buckets.generation(request, store))
    now = rfc3339(request.now)
    document = {
        "contentType": "application/octet-stream",
        "storageClass": owner.get("storageClass", "STANDARD"),
        **{key: value for key, value in metadata.items() if key in _WRITABLE and value},
        **checksums,
        "kind": "storage#object",
        "id": f"{bucket}/{name}/{generation}",
        "name": name,
        "bucket": bucket,
        "generation": generation,
        "size": str(len(content)),
        "timeCreated": now,
        "timeStorageClassUpdated": now,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{bucket}/o/{quote(name, safe='')}",
    }
    store.put_content(_COLLECTION, _key(bucket, name, generation), content)
    return _keep(request, store, document, metageneration=1)


def shown(request: Request, found: Object) -> Object:
    """The object as it is answered: Google's Python client follows the link to its content."""
    host = request.base_url or "https://storage.googleapis.com"
    path = f"{found['bucket']}/o/{quote(found['name'], safe='')}"
    query = f"generation={found['generation']}&alt=media"
    return found | {"mediaLink": f"{host}/download/storage/v1/b/{path}?{query}"}


def live(store: Store, bucket: str, name: str) -> Object | None:
    """The object's live generation, or None."""
    generations = (found for _, found in store.list(_COLLECTION, f"{bucket}\n{name}\n"))
    return next(filter(_is_live, generations), None)


def require(store: Store, bucket: str, name: str, generation: str | None = None) -> Object:
    """The object's live generation, or the one asked for."""
    if generation is None:
        found = live(store, bucket, name)
    else:
        found = store.get(_COLLECTION, _key(bucket, name, generation))
    if found is None:
        raise GoogleError(404, f"No such object: {bucket}/{name}")
    return found


def content(store: Store, found: Object) -> bytes:
    """What an object holds."""
    key = _key(found["bucket"], found["name"], found["generation"])
    return store.content(_COLLECTION, key) or b""


def of_bucket(store: Store, bucket: str, prefix: str, *, versions: bool) -> Iterator[Object]:
    """The objects of a bucket in the order of their names, then generations."""
    for _, found in store.list(_COLLECTION, f"{bucket}\n{prefix}"):
        if versions or _is_live(found):
            yield found


def is_empty(store: Store, bucket: str) -> bool:
    """Whether the bucket holds no generation of anything."""
    return next(store.list(_COLLECTION, f"{bucket}\n"), None) is None


def change(request: Request, store: Store, bucket: str, name: str) -> Object:
    """Change an object's metadata: what is given is merged into what is there."""
    found = require(store, bucket, name, request.query.get("generation"))
    buckets.check(request.query, found)
    body = {key: value for key, value in request.json().items() if key in _WRITABLE}
    if isinstance(body.get("metadata"), dict):
        merged = {**found.get("metadata", {}), **body["metadata"]}
        body["metadata"] = {key: value for key, value in merged.items() if value is not None}
    changed = {key: value for key, value in {**found, **body}.items() if value is not None}
    return _keep(request, store, changed, metageneration=int(found["metageneration"]) + 1)


def delete(request: Request, store: Store, bucket: str, name: str) -> None:
    """Delete an object: its live generation, which versioning keeps, or one by number, for good."""
    owner = buckets.find(store, bucket, "storage.objects.delete")
    generation = request.query.get("generation")
    found = require(store, bucket, name, generation)
    buckets.check(request.query, found)
    if generation is None:
        _retire(request, store, owner, name)
    else:
        _check_kept(request, owner, found)
        store.delete(_COLLECTION, _key(bucket, name, generation))


def _retire(request: Request, store: Store, bucket: buckets.Bucket, name: str) -> None:
    """The live generation is live no more: kept as noncurrent, or gone without versioning."""
    current = live(store, bucket["name"], name)
    if current is None:
        return
    key = _key(bucket["name"], name, current["generation"])
    if bucket["versioning"].get("enabled"):
        current["timeDeleted"] = rfc3339(request.now)
        store.put(_COLLECTION, key, current)
    else:
        _check_kept(request, bucket, current)
        store.delete(_COLLECTION, key)


def _check_kept(request: Request, bucket: buckets.Bucket, found: Object) -> None:
    """Refuse to lose what the bucket's retention policy keeps."""
    what = f"Object '{found['bucket']}/{found['name']}' is"
    period = float((bucket.get("retentionPolicy") or {}).get("retentionPeriod") or 0)
    until = moment(found["timeCreated"]) + period
    if period and request.now < until:
        raise GoogleError(
            403,
            f"{what} subject to bucket's retention policy or object retention and cannot be deleted"
            f" or overwritten until {rfc3339(until)}",
            reason="retentionPolicyNotMet",
        )


def _keep(request: Request, store: Store, document: Object, *, metageneration: int) -> Object:
    version = int(document["generation"])
    tag = b"\x08" + policies.varint(version) + b"\x10" + policies.varint(metageneration)
    document |= {
        "metageneration": str(metageneration),
        "etag": base64.b64encode(tag).decode(),
        "updated": rfc3339(request.now),
    }
    key = _key(document["bucket"], document["name"], document["generation"])
    store.put(_COLLECTION, key, document)
    return document


def _key(bucket: str, name: str, generation: str) -> str:
    # No name holds a line feed, and it sorts before all that a name can hold.
    return f"{bucket}\n{name}\n{generation.zfill(20)}"


def _is_live(found: Object) -> bool:
    return "timeDeleted" not in found


def _check_name(name: str) -> None:
    if not name:
        raise GoogleError(400, "Required parameter: name", reason="required")
    bad = name in (".", "..") or "\r" in name or "\n" in name
    if bad or len(name.encode()) > _LONGEST_NAME or name.startswith(".well-known/acme-challenge/"):
        raise GoogleError(400, f"Invalid object name: '{name}'")


def _checksums(content: bytes) -> dict[str, str]:
    md5 = hashlib.md5(content, usedforsecurity=False).digest()
    crc32c = google_crc32c.value(content).to_bytes(4, "big")
    return {
        "md5Hash": base64.b64encode(md5).decode(),
        "crc32c": base64.b64encode(crc32c).decode(),
    }
