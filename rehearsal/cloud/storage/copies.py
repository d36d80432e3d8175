"""Objects made of objects: copied, rewritten, composed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.storage import buckets, objects, preconditions
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_COMPONENTS = 32


def copy(  # noqa: PLR0913 - the path has four names
    request: Request, store: Store, *, source_bucket: str, source: str, bucket: str, name: str
) -> Reply:
    """Copy an object; what the request says of the copy replaces what is said of the original."""
    buckets.find(store, source_bucket, "storage.objects.get")
    found = objects.require(store, source_bucket, source, request.query.get("sourceGeneration"))
    preconditions.check(request.query, found, source=True)
    checksums = {key: found[key] for key in ("md5Hash", "crc32c")}
    metadata = {**found, **request.json(), **checksums, "name": name}
    content = objects.content(store, found)
    made = objects.create(request, store, bucket, metadata, content)
    return Reply(body=objects.shown(request, made))


def rewrite(  # noqa: PLR0913 - the path has four names
    request: Request, store: Store, *, source_bucket: str, source: str, bucket: str, name: str
) -> Reply:
    """Copy an object, in one go whatever its size."""
    made = copy(
        request, store, source_bucket=source_bucket, source=source, bucket=bucket, name=name
    ).body
    size = made["size"] if isinstance(made, dict) else "0"
    return Reply(
        body={
            "kind": "storage#rewriteResponse",
            "totalBytesRewritten": size,
            "objectSize": size,
            "done": True,
            "resource": made,
        }
    )


def compose(request: Request, store: Store, bucket: str, name: str) -> Reply:
    """Put objects of a bucket one behind the other."""
    body = request.json()
    sources = body.get("sourceObjects") or []
    if not 0 < len(sources) <= _COMPONENTS:
        raise GoogleError(
            400, f"The number of source components must be between 1 and {_COMPONENTS}."
        )
    parts = [
        # A 64-bit number comes as a string or as a number.
        objects.require(store, bucket, part["name"], str(part.get("generation") or "") or None)
        for part in sources
    ]
    metadata = {
        "contentType": parts[0]["contentType"],
        **(body.get("destination") or {}),
        "name": name,
    }
    content = b"".join(objects.content(store, part) for part in parts)
    made = objects.create(request, store, bucket, metadata, content)
    return Reply(body=objects.shown(request, made))
