"""What a cluster asks of Compute Engine and of Filestore for itself, as any client does."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rehearsal.cloud import compute, filestore
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_NOT_FOUND = 404


def call(
    request: Request,
    store: Store,
    method: str,
    path: str,
    body: Object | None = None,
    **query: str,
) -> dict[str, Any]:
    """One request to Compute Engine, or to Filestore, whose things are in locations."""
    asked = replace(
        request,
        method=method,
        path=path,
        query=query,
        parameters=(),
        body=b"" if body is None else json.dumps(body).encode(),
    )
    reply = (filestore if "/locations/" in path else compute).service(asked, store)
    return reply.body if isinstance(reply.body, dict) else {}


def has(world: World, path: str) -> bool:
    """Whether there is a resource of that path."""
    try:
        call(world.request, world.store, "GET", path)
    except GoogleError as error:
        if error.code == _NOT_FOUND:
            return False
        raise
    return True


def make(world: World, collection: str, body: Object) -> None:
    """Make a resource, unless there is one of its name."""
    if not has(world, f"{collection}/{body['name']}"):
        call(world.request, world.store, "POST", collection, body)


def remove(world: World, path: str) -> None:
    """Delete a resource that may be gone already."""
    if has(world, path):
        call(world.request, world.store, "DELETE", path)
