"""Operations of Kubernetes Engine: what is under way, how far it is, how it ended.

An operation knows from its start when it will end, and with what.
"""

from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud import projects
from rehearsal.cloud.container import records
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

_COLLECTION: Final = "container/operations"

SECONDS: Final[Mapping[str, float]] = {
    "CREATE_CLUSTER": 480.0,
    "DELETE_CLUSTER": 240.0,
    "UPDATE_CLUSTER": 60.0,
    "CREATE_NODE_POOL": 120.0,
    "DELETE_NODE_POOL": 120.0,
    "UPDATE_NODE_POOL": 60.0,
    "SET_NODE_POOL_SIZE": 60.0,
    "SET_NODE_POOL_MANAGEMENT": 5.0,
    "SET_LABELS": 5.0,
    "SET_MAINTENANCE_POLICY": 5.0,
    "UPGRADE_MASTER": 600.0,
}
"""How long each kind takes, in seconds of cloud time; about what Google takes."""

# The stages of a cluster's making, and how many steps Google counts in each.
_STAGES: Final = (("CONFIGURING", 4), ("DEPLOYING", 9), ("HEALTHCHECKING", 3))


def end(request: Request, kind: str) -> float:
    """When an operation of that kind ends that begins now (Unix epoch)."""
    return request.after(SECONDS[kind])


def name(request: Request, store: Store) -> str:
    """The name of the next operation."""
    return f"operation-{int(request.now * 1000)}-{store.count(_COLLECTION):013x}"


def start(  # noqa: PLR0913 - an operation, and what it is about
    request: Request,
    store: Store,
    kind: str,
    target: str,
    *,
    named: str = "",
    error: Mapping[str, Any] | None = None,
) -> Reply:
    """Begin an operation, which may end with a `google.rpc.Status`; what is answered at once."""
    _, project, _, location = target.split("/")[:4]
    at = f"projects/{projects.number(project)}/locations/{location}"
    short = named or name(request, store)
    kept: dict[str, Any] = {
        "name": short,
        "operationType": kind,
        "startTime": rfc3339(request.now),
        "location": location,
        "zone": location,
        "selfLink": f"{records.ROOT}{at}/operations/{short}",
        "targetLink": records.ROOT + target.replace(f"projects/{project}/locations/{location}", at),
        "_start": request.now,
        "_end": end(request, kind),
        "_error": error,
    }
    store.put(_COLLECTION, f"projects/{project}/locations/{location}/operations/{short}", kept)
    return Reply(body=_view(kept, request.now))


def get(request: Request, store: Store, project: str, location: str, operation: str) -> Reply:
    """One operation."""
    full = f"{records.place(store, project, location)}/operations/{operation}"
    kept = store.get(_COLLECTION, full)
    if kept is None:
        raise GoogleError(404, f"Not found: {full}.", status=None)
    return Reply(body=_view(kept, request.now))


def every(request: Request, store: Store, project: str, location: str) -> Reply:
    """The operations of a location, or of all for "-"."""
    prefix = records.within(store, project, location)
    found = [_view(kept, request.now) for _, kept in store.list(_COLLECTION, prefix)]
    return Reply(body={"operations": found} if found else {})


def _view(kept: Mapping[str, Any], now: float) -> dict[str, Any]:
    shown = records.show(kept)
    if kept["_end"] > now:
        return {**shown, "status": "RUNNING", "progress": _progress(kept, now)}
    ended = {**shown, "status": "DONE", "endTime": rfc3339(kept["_end"])}
    if kept["_error"] is not None:
        ended |= {"error": kept["_error"], "statusMessage": kept["_error"]["message"]}
    return ended


def _progress(kept: Mapping[str, Any], now: float) -> dict[str, Any]:
    """How far an operation is, in Google's steps."""
    part = max(0.0, now - kept["_start"]) / (kept["_end"] - kept["_start"])
    done = int(part * sum(steps for _, steps in _STAGES))
    word = "CLUSTER" if kept["operationType"].endswith("CLUSTER") else "NODE_POOL"
    metrics = []
    for stage, steps in _STAGES:
        metrics += [
            {"name": f"{word}_{stage}", "intValue": str(min(done, steps))},
            {"name": f"{word}_{stage}_TOTAL", "intValue": str(steps)},
        ]
        done = max(0, done - steps)
    return {"name": kept["name"], "status": "RUNNING", "metrics": metrics}
