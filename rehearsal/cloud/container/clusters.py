"""Clusters: their making, reading and deletion."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.container import (
    cluster_defaults,
    cluster_networks,
    node_pools,
    operations,
    records,
    rules,
    versions,
)
from rehearsal.cloud.container.records import CLUSTERS, POOLS, ROOT, Record
from rehearsal.cloud.instants import rfc3339
from rehearsal.cloud.kubernetes import google, kinds
from rehearsal.cloud.wire import GoogleError, Reply

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?")


def create(request: Request, store: Store, project: str, location: str) -> Reply:
    """Make a cluster with its first pools."""
    body = dict(request.json().get("cluster") or {})
    where = records.place(store, project, location)
    if not _NAME.fullmatch(str(body.get("name", ""))):
        raise GoogleError(400, f'Invalid value for field "cluster.name": "{body.get("name")}".')
    name = f"{where}/clusters/{body['name']}"
    if records.find(request, store, CLUSTERS, name) is not None:
        raise GoogleError(409, f"Already exists: {name}.", status=None)
    rules.check_cluster(body)
    pools = _first_pools(body)
    busy = operations.name(request, store)
    record = {
        **cluster_networks.attached(request, store, where, _completed(body, location)),
        **_identity(request, name),
        "_ready": operations.end(request, "CREATE_CLUSTER"),
        "_busy": busy,
    }
    record = records.keep(store, CLUSTERS, name, record)
    errors = [node_pools.make(request, store, name, pool, record["_ready"]) for pool in pools]
    kinds.make_cluster(request, store, name, record)
    error = next((it for it in errors if it is not None), None)
    return operations.start(request, store, "CREATE_CLUSTER", name, named=busy, error=error)


def _first_pools(body: Record) -> list[Record]:
    """The pools that a new cluster has."""
    if body.get("nodePools"):
        return [dict(pool) for pool in body.pop("nodePools")]
    count = body.get("initialNodeCount", 0)
    if count < 1:
        raise GoogleError(400, "Cluster.initial_node_count must be greater than zero.", status=None)
    config = dict(body.get("nodeConfig") or {})
    return [{"name": "default-pool", "initialNodeCount": count, "config": config}]


def _completed(body: Record, location: str) -> Record:
    """A cluster as Google completes it, apart from its networks."""
    result = records.completed(body, cluster_defaults.CLUSTER)
    result["addonsConfig"] = records.completed(
        result.get("addonsConfig") or {}, cluster_defaults.ADDONS
    )
    channel = (result.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
    version = versions.resolve(body.get("initialClusterVersion", ""), channel)
    policy = {"resourceVersion": records.digest(result.get("maintenancePolicy"))[:8]}
    return {
        **result,
        "autoscaling": records.completed(
            result.get("autoscaling") or {}, {"autoscalingProfile": "BALANCED"}
        ),
        "initialClusterVersion": version,
        "currentMasterVersion": version,
        "currentNodeVersion": version,
        "location": location,
        "zone": location,
        "locations": body.get("locations") or records.zones_of(location),
        "labelFingerprint": records.digest(result.get("resourceLabels"))[:8],
        "maintenancePolicy": {**(result.get("maintenancePolicy") or {}), **policy},
    }


def _identity(request: Request, name: str) -> Record:
    return {
        "id": hashlib.sha256(f"{name} {request.now}".encode()).hexdigest(),
        "createTime": rfc3339(request.now),
        "selfLink": ROOT + name,
    }


def view(request: Request, store: Store, name: str, record: Record) -> Record:
    """A cluster as it is answered, with its pools."""
    pools = [
        node_pools.view(request, store, pool)
        for _, pool in records.each(request, store, POOLS, f"{name}/nodePools/")
    ]
    of_pools: dict[str, Any] = {
        "nodePools": pools,
        "instanceGroupUrls": [url for pool in pools for url in pool["instanceGroupUrls"]],
        "currentNodeCount": node_pools.nodes(store, pools),
    }
    return {
        **records.show(record),
        "status": records.status(record, request.now),
        **{key: value for key, value in of_pools.items() if value},
    }


def get(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """One cluster."""
    name = f"{records.place(store, project, location)}/clusters/{cluster}"
    return Reply(body=view(request, store, name, records.require(request, store, CLUSTERS, name)))


def every(request: Request, store: Store, project: str, location: str) -> Reply:
    """The clusters of a location, or of all for "-"."""
    prefix = records.within(store, project, location)
    found = [
        view(request, store, name, record)
        for name, record in records.each(request, store, CLUSTERS, prefix)
    ]
    return Reply(body={"clusters": found} if found else {})


def delete(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """Delete a cluster with all its nodes."""
    name = f"{records.place(store, project, location)}/clusters/{cluster}"
    record = records.require_idle(request, store, CLUSTERS, name)
    pools = list(records.each(request, store, POOLS, f"{name}/nodePools/"))
    for _, pool in pools:
        records.check_idle(request, CLUSTERS, pool)
    gone = operations.end(request, "DELETE_CLUSTER")
    busy = operations.name(request, store)
    for pool_name, pool in pools:
        node_pools.remove(request, store, pool_name, pool, gone, busy)
    records.keep(store, CLUSTERS, name, {**record, "_gone": gone, "_busy": busy})
    google.forget_cluster(request, store, record)
    return operations.start(request, store, "DELETE_CLUSTER", name, named=busy)
