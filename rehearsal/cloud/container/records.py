"""What is kept of clusters and pools, and when it is there.

A record is the document that a GET answers, plus fields that begin with "_" and are never shown:
`_ready` and `_gone`, the moments (Unix epoch) at which its making and its deletion end; `_busy`,
the name of the operation that goes on until `_ready`; `_error`, what has gone wrong.
"""

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.cloud import projects
from rehearsal.cloud.facts import places
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

Record = dict[str, Any]

CLUSTERS = "container/clusters"
POOLS = "container/nodePools"
ROOT = "https://container.googleapis.com/v1/"


def place(store: Store, project: str, location: str) -> str:
    """The name of a location ("projects/p/locations/l")."""
    owner = projects.permitted(project, store)
    if location not in places.ZONES and not places.is_zone(location):
        raise GoogleError(400, f'Location "{location}" does not exist.', status=None)
    return f"projects/{owner.id}/locations/{location}"


def within(store: Store, project: str, location: str) -> str:
    """What the names of all things of a location begin with, of all locations for "-"."""
    if location == "-":
        return f"projects/{projects.permitted(project, store).id}/locations/"
    return f"{place(store, project, location)}/"


def zones_of(location: str) -> list[str]:
    """The zones in which nodes of a location are made unless somebody says where."""
    return list(places.ZONES[location][:3]) if location in places.ZONES else [location]


def find(request: Request, store: Store, collection: str, name: str) -> Record | None:
    """The record of that name, if it is there at the moment of the request."""
    found = store.get(collection, name)
    if found is None or found.get("_gone", request.now + 1) <= request.now:
        return None
    return found


def require(request: Request, store: Store, collection: str, name: str) -> Record:
    """The record of that name."""
    found = find(request, store, collection, name)
    if found is None:
        raise GoogleError(404, f"Not found: {name}.", status=None)
    return found


def require_idle(request: Request, store: Store, collection: str, name: str) -> Record:
    """The record of that name, on which nothing works."""
    found = require(request, store, collection, name)
    check_idle(request, collection, found)
    return found


def check_idle(request: Request, collection: str, found: Record) -> None:
    """Refuse a request while an operation on a record is under way."""
    if "_gone" in found or found["_ready"] > request.now:
        what = "Cluster" if collection == CLUSTERS else "Node pool"
        raise GoogleError(
            400,
            f"{what} is running incompatible operation {found['_busy']}.",
            reason="failedPrecondition",
            status="FAILED_PRECONDITION",
        )


def each(
    request: Request, store: Store, collection: str, prefix: str
) -> Iterator[tuple[str, Record]]:
    """Names and records that are there and whose names begin so."""
    for name, found in store.list(collection, prefix):
        if found.get("_gone", request.now + 1) > request.now:
            yield name, found


def keep(store: Store, collection: str, name: str, record: Record) -> Record:
    """Keep a record under a new etag; the record as it is then."""
    shown = {key: value for key, value in show(record).items() if key != "etag"}
    kept = {**record, "etag": digest(shown)}
    store.put(collection, name, kept)
    return kept


def show(record: Mapping[str, Any]) -> Record:
    """What is answered of a record."""
    return {key: value for key, value in record.items() if not key.startswith("_")}


def status(record: Mapping[str, Any], now: float) -> str:
    """What Google says a cluster or pool is doing."""
    if "_gone" in record:
        return "STOPPING"
    if record["_ready"] > now:
        return str(record.get("_doing", "PROVISIONING"))
    if "_error" in record:
        return str(record["_error"]["status"])
    return "RUNNING"


def digest(value: Any) -> str:
    """A short text that tells versions of a document apart."""
    raw = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return base64.b64encode(raw[:8]).decode()


def completed(given: Record, defaults: Mapping[str, Any]) -> Record:
    """A document with defaults for blocks that were not sent: what a sent one lacks is zero."""
    return {**defaults, **{key: value for key, value in given.items() if value is not None}}
