"""The versions of GKE that are on offer, by release channel.

A snapshot of what Google offers: new ones come every week.

Upgrades that Kubernetes Engine makes automatically, as the scenario `upgrades` has them.

Google upgrades a control plane, and then the nodes of each pool, to a newer version of the
cluster's channel at a time of its own. A maintenance exclusion keeps it from some of that (GKE,
"Maintenance windows and exclusions", scopes of an exclusion).
"""

import enum
from collections.abc import Mapping
from typing import Any, Final

from rehearsal.cloud.container import operations, records
from rehearsal.cloud.container.records import CLUSTERS, POOLS, Record
from rehearsal.cloud.facts import gke_versions
from rehearsal.cloud.facts.gke_versions import numbers
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

# Channel -> its versions, the newest first, and the default among them: minor versions and defaults
# as Google's release notes had them in September 2026, of each minor version a patch or two that
# they name. 1.37 is missing in RAPID: they name none of its versions.
_CHANNELS: Final[Mapping[str, tuple[tuple[str, ...], str]]] = {
    "RAPID": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.34.9-gke.1655001",
        ),
        "1.36.4-gke.1082000",
    ),
    "REGULAR": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.35.6-gke.1250000",
            "1.34.9-gke.1655001",
        ),
        "1.35.7-gke.1222000",
    ),
    "STABLE": (
        ("1.35.6-gke.1250000", "1.34.9-gke.1655001", "1.34.8-gke.1000000"),
        "1.35.6-gke.1250000",
    ),
    "EXTENDED": (
        (
            "1.36.4-gke.1082000",
            "1.35.7-gke.1222000",
            "1.34.9-gke.1655001",
            "1.33.13-gke.1101000",
            "1.32.13-gke.2268000",
            "1.31.14-gke.1986000",
        ),
        "1.35.7-gke.1222000",
    ),
}
_USUAL: Final = "REGULAR"


ALL: Final = tuple(
    sorted({it for on, _ in _CHANNELS.values() for it in on}, key=numbers, reverse=True)
)
"""Every version on offer, the newest first."""


def default(channel: str) -> str:
    """What a cluster on a channel gets that names no version."""
    return _CHANNELS.get(channel, _CHANNELS[_USUAL])[1]


def offered(channel: str) -> tuple[str, ...]:
    """The versions of a channel, the newest first."""
    return _CHANNELS.get(channel, _CHANNELS[_USUAL])[0]


def resolve(asked: str, channel: str) -> str:
    """The version that is meant by a full one, the beginning of one, "latest", "-", or ""."""
    if asked in ("", "-"):
        return default(channel)
    on_offer = offered(channel) if channel in _CHANNELS else ALL
    if asked == "latest":
        return on_offer[0]
    wanted = numbers(asked)
    for version in (*on_offer, *ALL):
        if numbers(version)[: len(wanted)] == wanted:
            return version
    raise GoogleError(400, f'Master version "{asked}" is unsupported.', status=None)


def server_config(_: Request, store: Store, project: str, location: str) -> Reply:
    """What a location offers."""
    records.place(store, project, location)
    return Reply(
        body={
            "defaultClusterVersion": default(_USUAL),
            "validMasterVersions": list(ALL),
            "validNodeVersions": list(ALL),
            "validImageTypes": ["COS_CONTAINERD", "UBUNTU_CONTAINERD"],
            "defaultImageType": "COS_CONTAINERD",
            "channels": [_channel(name) for name in _CHANNELS],
        }
    )


def _channel(name: str) -> dict[str, Any]:
    on_offer, usual = _CHANNELS[name]
    return {
        "channel": name,
        "defaultVersion": usual,
        "validVersions": list(on_offer),
        "upgradeTargetVersion": usual,
    }


SCENARIO: Final = "upgrades"


class _Scope(enum.StrEnum):
    """What a maintenance exclusion forbids."""

    ALL = "NO_UPGRADES"
    MINOR = "NO_MINOR_UPGRADES"
    MINOR_OR_NODES = "NO_MINOR_OR_NODE_UPGRADES"


def upgrade_clusters(request: Request, store: Store) -> None:
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
    number = gke_versions.numbers(present)
    newer = [it for it in offered(channel) if gke_versions.numbers(it) > number]
    if scopes & {_Scope.MINOR, _Scope.MINOR_OR_NODES}:
        newer = [it for it in newer if gke_versions.numbers(it)[:2] == number[:2]]
    return max([present, *newer], key=gke_versions.numbers)
