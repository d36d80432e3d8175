"""Long-running operations of the newer APIs, which have one form for all of them.

An operation knows from its start when it will end, as those of Compute Engine do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_VERBS = {"POST": "create", "PATCH": "update", "DELETE": "delete"}
_METADATA = "type.googleapis.com/google.cloud.common.OperationMetadata"


def start(  # noqa: PLR0913 - the parts of an operation, by name
    request: Request,
    store: Store,
    collection: str,
    target: str,
    seconds: float,
    *,
    made: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Begin an operation, and answer it as the request that begins it is answered.

    `made`: what it answers in the end, "@type" included; None after a deletion.
    """
    place = "/".join(target.split("/")[:4])
    number = store.count(collection)
    name = f"{place}/operations/operation-{int(request.now * 1000)}-{number:013x}"
    metadata = {
        "@type": _METADATA,
        "createTime": rfc3339(request.now),
        "target": target,
        "verb": _VERBS[request.method],
        "apiVersion": "v1",
    }
    kept = {
        "name": name,
        "metadata": metadata,
        "_end": request.after(seconds),
        "_made": made or {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }
    store.put(collection, name, kept)
    return _view(kept, request.now)


def get(request: Request, store: Store, collection: str, name: str) -> dict[str, Any]:
    """The operation of that name."""
    kept = store.get(collection, name)
    if kept is None:
        raise GoogleError(404, f"Resource '{name}' was not found", status=None)
    return _view(kept, request.now)


def _view(kept: dict[str, Any], now: float) -> dict[str, Any]:
    shown = {key: value for key, value in kept.items() if not key.startswith("_")}
    if kept["_end"] > now:
        return {**shown, "done": False}
    ended = {**kept["metadata"], "endTime": rfc3339(kept["_end"])}
    return {**shown, "metadata": ended, "done": True, "response": kept["_made"]}
