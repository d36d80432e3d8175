"""Service Usage: which APIs a project has enabled."""

import re
from collections.abc import Sequence
from typing import Any

from rehearsal.cloud import paging, projects
from rehearsal.cloud.projects import Project
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_STATES = "serviceusage/services"
_OPERATIONS = "serviceusage/operations"
_SECONDS = 10.0  # of cloud time; enabling takes between some seconds and a minute
_PAGE = 200
_TYPE = "type.googleapis.com/google.api.serviceusage.v1."
_NAME = re.compile(r"[a-z][a-z0-9-]*(?:\.[a-z0-9-]+)*\.googleapis\.com")

ENABLED = tuple(
    f"{name}.googleapis.com"
    for name in (
        "cloudbilling",
        "cloudquotas",
        "cloudresourcemanager",
        "compute",
        "container",
        "file",
        "iam",
        "iamcredentials",
        "logging",
        "monitoring",
        "networkmanagement",
        "orgpolicy",
        "oslogin",
        "secretmanager",
        "serviceusage",
        "storage",
    )
)
"""What a project has from the start: a rehearsal needs no preparation."""


def require(request: Request, store: Store, project: Project, name: str, title: str) -> None:
    """Refuse a request to an API ("compute.googleapis.com") that a project has not enabled."""
    if _state(request, store, project, name) == "ENABLED":
        return
    page = f"https://console.developers.google.com/apis/api/{name}/overview"
    raise GoogleError(
        403,
        f"{title} has not been used in project {project.number} before or it is disabled. Enable"
        f" it by visiting {page}?project={project.number} then retry. If you enabled this API"
        " recently, wait a few minutes for the action to propagate to our systems and retry.",
        reason="accessNotConfigured",
        status="PERMISSION_DENIED",
    )


def _get(request: Request, store: Store, project: str, name: str) -> Reply:
    found = projects.permitted(project, store)
    _check(name)
    return Reply(body=_service(request, store, found, name))


def _list(request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    wanted = request.query.get("filter", "")
    touched = {key.removeprefix(f"{found.id}/") for key, _ in store.list(_STATES, f"{found.id}/")}
    every = ((name, _service(request, store, found, name)) for name in sorted({*ENABLED, *touched}))
    entries = [
        (name, service)
        for name, service in every
        if service["state"] == (wanted.removeprefix("state:") or service["state"])
    ]
    items, token = paging.page(entries, request.query, size="pageSize", limit=_PAGE)
    return Reply(body={**({"services": items} if items else {}), **token})


def _enable(request: Request, store: Store, project: str, name: str) -> Reply:
    return _switch_one(request, store, project, name, "Enable")


def _disable(request: Request, store: Store, project: str, name: str) -> Reply:
    return _switch_one(request, store, project, name, "Disable")


def _switch_one(request: Request, store: Store, project: str, name: str, verb: str) -> Reply:
    found = projects.permitted(project, store)
    [service], ready = _switch(request, store, found, [name], f"{verb.upper()}D")
    response = {"@type": f"{_TYPE}{verb}ServiceResponse", "service": service}
    return _answer(request, store, ready, response)


def _batch_enable(request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    names = request.json().get("serviceIds") or []
    services, ready = _switch(request, store, found, names, "ENABLED")
    response = {"@type": f"{_TYPE}BatchEnableServicesResponse", "services": services}
    return _answer(request, store, ready, response)


def _switch(
    request: Request, store: Store, project: Project, names: Sequence[str], state: str
) -> tuple[list[dict[str, Any]], float]:
    """Put services into a state; returns them as they will be, and when that is (Unix epoch)."""
    ready = request.now
    for name in names:
        _check(name)
        if _state(request, store, project, name) != state:
            ready = request.after(_SECONDS)
            store.put(_STATES, f"{project.id}/{name}", {"state": state, "from": ready})
    return [_document(project, name, state) for name in names], ready


def _answer(request: Request, store: Store, ready: float, response: dict[str, Any]) -> Reply:
    """A new operation, as the caller first sees it."""
    operation = f"acat.p2-{store.count(_OPERATIONS):016x}"
    store.put(_OPERATIONS, operation, {"ready": ready, "response": response})
    return _get_operation(request, store, operation)


def _get_operation(request: Request, store: Store, operation: str) -> Reply:
    kept = store.get(_OPERATIONS, operation)
    name = f"operations/{operation}"
    if kept is None:
        raise GoogleError(404, f"Operation {name} not found.", status=None)
    if request.now < kept["ready"]:
        return Reply(body={"name": name})
    return Reply(body={"name": name, "done": True, "response": kept["response"]})


def _check(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise GoogleError(
            403, f"Not found or permission denied for service(s): {name}.", status=None
        )


def _state(request: Request, store: Store, project: Project, name: str) -> str:
    before = "ENABLED" if name in ENABLED else "DISABLED"
    switched = store.get(_STATES, f"{project.id}/{name}")
    if switched is None:
        return before
    # What was switched stays as it was until the operation is done.
    other = {"ENABLED": "DISABLED", "DISABLED": "ENABLED"}[switched["state"]]
    return str(switched["state"] if request.now >= switched["from"] else other)


def _service(request: Request, store: Store, project: Project, name: str) -> dict[str, Any]:
    return _document(project, name, _state(request, store, project, name))


def _document(project: Project, name: str, state: str) -> dict[str, Any]:
    return {
        "name": f"projects/{project.number}/services/{name}",
        "config": {"name": name, "title": name},
        "state": state,
        "parent": f"projects/{project.number}",
    }


_ONE = "projects/{project}/services/{name}"

service = Routes(
    {
        "GET operations/{operation}": _get_operation,
        "POST projects/{project}/services:batchEnable": _batch_enable,
        "GET projects/{project}/services": _list,
        f"POST {_ONE}:enable": _enable,
        f"POST {_ONE}:disable": _disable,
        f"GET {_ONE}": _get,
    },
    api="serviceusage.v1",
)
