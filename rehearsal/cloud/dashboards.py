"""Monitoring dashboards v1."""

import base64
import hashlib
import json
import uuid
from typing import Any

from rehearsal.cloud import paging, projects
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_COLLECTION = "monitoring/dashboards"
_PAGE = 1000


def _keep(store: Store, name: str, body: dict[str, Any]) -> Reply:
    fields = {**{key: value for key, value in body.items() if key != "etag"}, "name": name}
    digest = hashlib.sha256(json.dumps(fields, sort_keys=True).encode()).digest()
    document = {**fields, "etag": base64.b64encode(digest[:8]).decode()}
    store.put(_COLLECTION, name, document)
    return Reply(body=document)


def _full(store: Store, project: str, name: str) -> str:
    """A dashboard's name, which has the project's number."""
    return f"projects/{projects.permitted(project, store).number}/dashboards/{name}"


def _require(store: Store, name: str) -> dict[str, Any]:
    found = store.get(_COLLECTION, name)
    if found is None:
        raise GoogleError(404, f"Requested entity was not found: {name}", status=None)
    return found


def _create(request: Request, store: Store, project: str) -> Reply:
    body = request.json()
    # As if at random, but the same in every rehearsal.
    short = uuid.uuid5(uuid.NAMESPACE_URL, f"dashboards/{store.count(_COLLECTION)}")
    return _keep(store, _full(store, project, str(short)), body)


def _get(_request: Request, store: Store, project: str, name: str) -> Reply:
    return Reply(body=_require(store, _full(store, project, name)))


def _list(request: Request, store: Store, project: str) -> Reply:
    entries = store.list(_COLLECTION, _full(store, project, ""))
    items, token = paging.page(entries, request.query, size="pageSize", limit=_PAGE)
    return Reply(body={**({"dashboards": items} if items else {}), **token})


def _patch(request: Request, store: Store, project: str, name: str) -> Reply:
    full = _full(store, project, name)
    current, body = _require(store, full), request.json()
    if body.get("etag", current["etag"]) != current["etag"]:
        raise GoogleError(
            409, "The dashboard was edited concurrently.", reason="aborted", status="ABORTED"
        )
    return _keep(store, full, body)


def _delete(_request: Request, store: Store, project: str, name: str) -> Reply:
    full = _full(store, project, name)
    _require(store, full)
    store.delete(_COLLECTION, full)
    return Reply(body={})


_ALL = "projects/{project}/dashboards"
_ONE = f"{_ALL}/{{name}}"

service = Routes(
    {
        f"POST {_ALL}": _create,
        f"GET {_ALL}": _list,
        f"GET {_ONE}": _get,
        f"PATCH {_ONE}": _patch,
        f"DELETE {_ONE}": _delete,
    },
    api="monitoring.v1",
)
