"""Node pools: their making, reading and deletion."""

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from rehearsal.cloud import policies
from rehearsal.cloud.container import cluster_networks, groups, operations, records, rules
from rehearsal.cloud.container.records import CLUSTERS, POOLS, ROOT, Record
from rehearsal.cloud.facts.gke_versions import numbers
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_NAME: Final = re.compile(r"[a-z](?:[-a-z0-9]{0,38}[a-z0-9])?")
_PRIVATE: Final = "defaultEnablePrivateNodes"

_CONFIG: Final[Record] = {
    "machineType": "e2-medium",
    "diskSizeGb": 100,
    "diskType": "pd-balanced",
    "imageType": "COS_CONTAINERD",
    "oauthScopes": [
        "https://www.googleapis.com/auth/devstorage.read_only",
        "https://www.googleapis.com/auth/logging.write",
        "https://www.googleapis.com/auth/monitoring",
    ],
    "serviceAccount": "default",
    "metadata": {"disable-legacy-endpoints": "true"},
    "shieldedInstanceConfig": {"enableIntegrityMonitoring": True},
    "windowsNodeConfig": {},
    "effectiveCgroupMode": "EFFECTIVE_CGROUP_MODE_V2",
}
_UPGRADES: Final[Record] = {"maxSurge": 1, "strategy": "SURGE"}
# Of pools of flex start, and of queues from this version on: nodes run until their end, new ones
# are made as the pool is then (GKE, "Node upgrade strategies", 2026-04-13).
_SHORT_LIVED: Final[Record] = {"strategy": "SHORT_LIVED"}
_SHORT_LIVED_QUEUES: Final = "1.32.2-gke.1652000"
_MARK: Final = "goog-gke-node-pool-provisioning-model"


def create(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """Make a pool."""
    cluster_name = f"{records.place(store, project, location)}/clusters/{cluster}"
    pool = dict(request.json().get("nodePool") or {})
    records.require_idle(request, store, CLUSTERS, cluster_name)
    name = f"{cluster_name}/nodePools/{pool.get('name', '')}"
    if records.find(request, store, POOLS, name) is not None:
        raise GoogleError(409, f"Already exists: {name}.", status=None)
    busy = operations.name(request, store)
    ready = operations.end(request, "CREATE_NODE_POOL")
    error = make(request, store, cluster_name, pool, ready, busy=busy)
    return operations.start(request, store, "CREATE_NODE_POOL", name, named=busy, error=error)


def make(  # noqa: PLR0913 - a pool, where it belongs, and when it is ready
    request: Request,
    store: Store,
    cluster_name: str,
    given: Record,
    ready: float,
    *,
    busy: str = "",
) -> Record | None:
    """Make a pool with its nodes; the `google.rpc.Status` of what goes wrong with them, or None."""
    cluster = records.require(request, store, CLUSTERS, cluster_name)
    pool = _completed(cluster, given)
    rules.check_pool(cluster, pool, request.scenarios)
    _check_account(request, store, pool["config"]["serviceAccount"])
    name = f"{cluster_name}/nodePools/{pool['name']}"
    pool |= {"selfLink": ROOT + name, "_ready": ready, "_busy": busy or cluster["_busy"]}
    made = groups.make(request, store, cluster, pool)
    pool["instanceGroupUrls"] = made.urls
    pool["_templates"] = made.templates
    if pool["networkConfig"].get("acceleratorNetworkProfile"):
        # GKE's own networks: its VMs are shown with the first interface alone.
        own = {"additionalNodeNetworkConfigs": rules.networks_of(pool)}
        pool["networkConfig"] = {**pool["networkConfig"], **own}
    records.keep(store, POOLS, name, pool)
    error = made.error or cluster_networks.refusal(request, store, cluster_name)
    if error is not None:
        records.keep(
            store, POOLS, name, {**pool, "_error": {**error, "status": "RUNNING_WITH_ERROR"}}
        )
    return error


def _completed(cluster: Record, given: Record) -> Record:
    if not _NAME.fullmatch(str(given.get("name", ""))):
        raise GoogleError(
            400, f'Invalid value for field "node_pool.name": "{given.get("name", "")}".'
        )
    network = cluster["networkConfig"]
    ranges = cluster["ipAllocationPolicy"]
    own = {
        "podRange": ranges.get("clusterSecondaryRangeName", ""),
        "podIpv4CidrBlock": ranges["clusterIpv4Cidr"],
        **({"enablePrivateNodes": True} if network.get(_PRIVATE) else {}),
    }
    most = given.get("maxPodsConstraint") or {"maxPodsPerNode": "110"}
    size = cluster_networks.prefix_of(int(most["maxPodsPerNode"]))
    pool = records.completed(given, {"initialNodeCount": 0, "podIpv4CidrSize": size})
    repairs = not rules.is_flex(pool) and not rules.is_queued(pool)
    return {
        **pool,
        "config": _config(pool.get("config") or {}),
        "locations": pool.get("locations") or cluster["locations"],
        "networkConfig": records.completed(pool.get("networkConfig") or {}, own),
        "upgradeSettings": pool.get("upgradeSettings") or _upgrades(cluster, pool),
        # Upgrades and repairs are on unless somebody says otherwise; repairs not with flex start.
        "management": pool.get("management", {"autoUpgrade": True, "autoRepair": repairs}),
        "maxPodsConstraint": most,
        "version": pool.get("version") or cluster["currentMasterVersion"],
    }


def _upgrades(cluster: Record, pool: Record) -> Record:
    new = numbers(cluster["currentMasterVersion"]) >= numbers(_SHORT_LIVED_QUEUES)
    short = rules.is_flex(pool) or (rules.is_queued(pool) and new)
    return dict(_SHORT_LIVED if short else _UPGRADES)


def _check_account(request: Request, store: Store, email: str) -> None:
    """GKE knows a new account late (sassoftware/viya4-iac-gcp#148 has the sentence)."""
    if policies.is_young(request, store, email):
        raise GoogleError(400, f'Service account "{email}" does not exist.')


def _config(given: Record) -> Record:
    config = records.completed(given, _CONFIG)
    if "metadata" in given:
        config["metadata"] = {**_CONFIG["metadata"], **given["metadata"]}
    model = "spot" if config.get("spot") else "on-demand"
    model = "flex-start" if config.get("flexStart") else model
    config["resourceLabels"] = {**(config.get("resourceLabels") or {}), _MARK: model}
    disk = {"diskType": config["diskType"], "sizeGb": str(config["diskSizeGb"])}
    config["bootDisk"] = records.completed(config.get("bootDisk") or {}, disk)
    return config


def view(request: Request, store: Store, pool: Record) -> Record:
    """A pool as it is answered."""
    del store
    state = records.status(pool, request.now)
    shown = {**records.show(pool), "status": state}
    if state == "RUNNING_WITH_ERROR":
        shown["statusMessage"] = pool["_error"]["message"]
    return shown


def nodes(store: Store, pools: Iterable[Record]) -> int:
    """How many nodes pools are to have now."""
    return sum(groups.size(store, url) for pool in pools for url in pool["instanceGroupUrls"])


def named(store: Store, *path: str) -> str:
    """The name of the pool of a path: project, location, cluster, pool."""
    project, location, cluster, pool = path
    return f"{records.place(store, project, location)}/clusters/{cluster}/nodePools/{pool}"


def get(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """One pool."""
    found = records.require(request, store, POOLS, named(store, project, location, cluster, pool))
    return Reply(body=view(request, store, found))


def every(request: Request, store: Store, project: str, location: str, cluster: str) -> Reply:
    """The pools of a cluster."""
    cluster_name = f"{records.place(store, project, location)}/clusters/{cluster}"
    records.require(request, store, CLUSTERS, cluster_name)
    found: list[Any] = [
        view(request, store, pool)
        for _, pool in records.each(request, store, POOLS, f"{cluster_name}/nodePools/")
    ]
    return Reply(body={"nodePools": found} if found else {})


def delete(  # noqa: PLR0913, PLR0917 - the parts of the path
    request: Request, store: Store, project: str, location: str, cluster: str, pool: str
) -> Reply:
    """Delete a pool with its nodes."""
    name = named(store, project, location, cluster, pool)
    records.require_idle(request, store, CLUSTERS, name.partition("/nodePools/")[0])
    record = records.require_idle(request, store, POOLS, name)
    busy = operations.name(request, store)
    gone = operations.end(request, "DELETE_NODE_POOL")
    remove(request, store, name, record, gone, busy)
    return operations.start(request, store, "DELETE_NODE_POOL", name, named=busy)


def remove(  # noqa: PLR0913, PLR0917 - a pool, and how it goes
    request: Request, store: Store, name: str, record: Record, gone: float, busy: str
) -> None:
    """Let a pool and its nodes go at a moment (Unix epoch)."""
    if "_gone" in record:
        return
    groups.remove(request, store, record)
    records.keep(store, POOLS, name, {**record, "_gone": gone, "_busy": busy})


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
    """Change what a pool's new nodes are made of; that others are replaced is left out."""
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
    owner = records.require(request, store, CLUSTERS, name.partition("/nodePools/")[0])
    if changed["config"] != record["config"]:
        changed["_templates"] = groups.renew(request, store, owner, changed)
    if set(changed["locations"]) == set(record["locations"]):
        return _changed(request, store, name, changed, "UPDATE_NODE_POOL")
    made = groups.move(request, store, owner, changed)
    changed["instanceGroupUrls"] = made.urls
    return _lacking(request, store, name, changed, "UPDATE_NODE_POOL", made.error)


def setting(field: str, kind: str) -> Callable[..., Reply]:
    """The method that changes one field of a pool, and nothing else."""

    def change(  # noqa: PLR0913, PLR0917 - the parts of the path
        request: Request, store: Store, project: str, location: str, cluster: str, pool: str
    ) -> Reply:
        name, record = _idle(request, store, project, location, cluster, pool)
        changed = {**record, field: request.json().get(field) or {}}
        return _changed(request, store, name, changed, kind)

    return change


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
    name = named(store, *path)
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
