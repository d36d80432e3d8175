"""Changes to node pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.container import (
    cluster_networks,
    groups,
    node_pools,
    operations,
    records,
    rules,
)
from rehearsal.cloud.container.records import CLUSTERS, POOLS, Record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Reply, Request

# Fields of an update that are not fields of the node's configuration of the same name.
_OF_POOL: Final[Mapping[str, str]] = {
    "locations": "locations",
    "maintenancePolicy": "maintenancePolicy",
    "nodeDrainConfig": "nodeDrainConfig",
    "nodeNetworkConfig": "networkConfig",
    "nodeVersion": "version",
    "queuedProvisioning": "queuedProvisioning",
    "upgradeSettings": "upgradeSettings",
}
# Field of an update -> what it wraps its value in.
_WRAPPED: Final[Mapping[str, str]] = {
    "labels": "labels",
    "resourceLabels": "labels",
    "tags": "tags",
    "taints": "taints",
}
_MEANS: Final = frozenset({"name", "nodePoolId", "clusterId", "projectId", "zone", "etag"})


def update(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """Change what a pool's nodes are made of; nodes are replaced by and by."""
    name, record = _idle(request, store, project, location, cluster, pool)
    changed = dict(record)
    config = dict(record["config"])
    for key, value in request.json().items():
        if key in _OF_POOL and value is not None:
            changed[_OF_POOL[key]] = value
        elif key not in _MEANS | _OF_POOL.keys():
            config[key] = value[_WRAPPED[key]] if key in _WRAPPED and value else value
    size = config.get("diskSizeGb")
    config["diskSizeGb"] = int(size) if size else size
    changed["config"] = {key: value for key, value in config.items() if value is not None}
    if set(changed["locations"]) == set(record["locations"]):
        return _changed(request, store, name, changed, "UPDATE_NODE_POOL")
    owner = records.require(request, store, CLUSTERS, name.partition("/nodePools/")[0])
    made = groups.move(request, store, owner, changed)
    changed["instanceGroupUrls"] = made.urls
    return _lacking(request, store, name, changed, "UPDATE_NODE_POOL", made.error)


def set_management(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """Change whether nodes are repaired and upgraded."""
    name, record = _idle(request, store, project, location, cluster, pool)
    changed = {**record, "management": request.json().get("management") or {}}
    return _changed(request, store, name, changed, "SET_NODE_POOL_MANAGEMENT")


def set_autoscaling(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """Change a pool's limits."""
    name, record = _idle(request, store, project, location, cluster, pool)
    changed = {**record, "autoscaling": request.json().get("autoscaling") or {}}
    return _changed(request, store, name, changed, "UPDATE_NODE_POOL")


def set_size(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """Give a pool another number of nodes in each of its zones."""
    name, record = _idle(request, store, project, location, cluster, pool)
    count = int(request.json().get("nodeCount") or 0)
    errors = [groups.resize(request, store, url, count) for url in record["instanceGroupUrls"]]
    error = next((it for it in errors if it is not None), None)
    error = error or cluster_networks.refusal(request, store, name.partition("/nodePools/")[0])
    return _lacking(request, store, name, record, "SET_NODE_POOL_SIZE", error)


def _lacking(  # noqa: PLR0913, PLR0917 - a pool, how it has changed, and what it lacks
    request: Request, store: Store, name: str, record: Record, kind: str, error: Record | None
) -> Reply:
    """Change a pool whose nodes come, or do not."""
    record.pop("_error", None)
    if error is not None:
        record["_error"] = {**error, "status": "RUNNING_WITH_ERROR"}
    return _changed(request, store, name, record, kind, error)


def _idle(request: Request, store: Store, *path: str) -> tuple[str, Record]:
    name = node_pools.named(store, *path)
    return name, records.require_idle(request, store, POOLS, name)


def _changed(  # noqa: PLR0913, PLR0917 - a pool, and how it has changed
    request: Request,
    store: Store,
    name: str,
    record: Record,
    kind: str,
    error: Record | None = None,
) -> Reply:
    cluster = records.require(request, store, CLUSTERS, name.partition("/nodePools/")[0])
    rules.check_pool(cluster, record, request.scenarios)
    busy = operations.name(request, store)
    under_way = {"_ready": operations.end(request, kind), "_busy": busy, "_doing": "RECONCILING"}
    records.keep(store, POOLS, name, {**record, **under_way})
    return operations.start(request, store, kind, name, named=busy, error=error)
