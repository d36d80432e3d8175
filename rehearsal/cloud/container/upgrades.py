"""Upgrades that Kubernetes Engine makes automatically, as the scenario `upgrades` has them.

Google upgrades a control plane, and then the nodes of each pool, to a newer version of the
cluster's channel at a time of its own. A maintenance exclusion keeps it from some of that (GKE,
"Maintenance windows and exclusions", scopes of an exclusion).
"""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.container import operations, records, versions
from rehearsal.cloud.container.records import CLUSTERS, POOLS, Record
from rehearsal.cloud.facts import gke_versions

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

SCENARIO: Final = "upgrades"


class _Scope(enum.StrEnum):
    """What a maintenance exclusion forbids."""

    ALL = "NO_UPGRADES"
    MINOR = "NO_MINOR_UPGRADES"
    MINOR_OR_NODES = "NO_MINOR_OR_NODE_UPGRADES"


def catch_up(request: Request, store: Store) -> None:
    """Begin each upgrade that is due; while it goes on, its cluster or pool is busy."""
    if SCENARIO not in request.scenarios:
        return
    for name, cluster in list(records.each(request, store, CLUSTERS, "")):
        if _is_idle(request, cluster):
            _upgrade(request, store, name, cluster)


def _upgrade(request: Request, store: Store, name: str, cluster: Record) -> None:
    scopes = _scopes(cluster)
    target = _target(cluster, scopes)
    if target != cluster["currentMasterVersion"]:
        changed = {**cluster, "currentMasterVersion": target}
        _begin(request, store, CLUSTERS, name, changed, "UPGRADE_MASTER")
        return
    if scopes & {_Scope.ALL, _Scope.MINOR_OR_NODES}:
        return
    for pool_name, pool in list(records.each(request, store, POOLS, f"{name}/nodePools/")):
        upgrades = (pool.get("management") or {}).get("autoUpgrade")
        if upgrades and pool["version"] != target and _is_idle(request, pool):
            changed = {**pool, "version": target}
            _begin(request, store, POOLS, pool_name, changed, "UPDATE_NODE_POOL")


def _begin(  # noqa: PLR0913, PLR0917 - what changes, and how it is called
    request: Request, store: Store, collection: str, name: str, changed: Record, kind: str
) -> None:
    busy = operations.name(request, store)
    under_way = {"_ready": operations.end(request, kind), "_busy": busy, "_doing": "RECONCILING"}
    records.keep(store, collection, name, {**changed, **under_way})
    operations.start(request, store, kind, name, named=busy)


def _is_idle(request: Request, record: Record) -> bool:
    return "_gone" not in record and record["_ready"] <= request.now


def _scopes(cluster: Record) -> set[str]:
    """The scopes of the exclusions in force; one that names none forbids all."""
    window = (cluster.get("maintenancePolicy") or {}).get("window") or {}
    exclusions = (window.get("maintenanceExclusions") or {}).values()
    return {
        (it.get("maintenanceExclusionOptions") or {}).get("scope", _Scope.ALL) for it in exclusions
    }


def _target(cluster: Record, scopes: set[str]) -> str:
    """The version that the control plane is to have: the newest of its channel that it may."""
    present = str(cluster["currentMasterVersion"])
    channel = (cluster.get("releaseChannel") or {}).get("channel", "UNSPECIFIED")
    if _Scope.ALL in scopes or channel == "UNSPECIFIED":
        return present
    offered = [it for it in versions.offered(channel) if _is_newer(it, present)]
    if scopes & {_Scope.MINOR, _Scope.MINOR_OR_NODES}:
        minor = gke_versions.numbers(present)[:2]
        offered = [it for it in offered if gke_versions.numbers(it)[:2] == minor]
    return max([present, *offered], key=gke_versions.numbers)


def _is_newer(version: str, present: str) -> bool:
    return gke_versions.numbers(version) > gke_versions.numbers(present)
