"""What a plan keeps of a cluster that stands: names of networks, and runs of queued pools.

Terraform replaces a node pool for another run of its nodes, and all that is in a network for
another place of it in the configuration. The settings say none of it, so it is looked up. So are
pools without nodes that have stayed behind their control plane: nothing of theirs is lost by an
upgrade, and GKE makes none, as upgrades of nodes are held.
"""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import gke_versions
from provision.google.api import GoogleApiError, Service
from provision.google.resources import NETWORK
from provision.kinds.gke import control_plane, variables

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.gpu_networks import Network
    from provision.context import Cloud
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.spec.cluster import GkeSpec

_KEPT: Final = ("node_pools", "gpu_networks", "more_gpu_networks")
_FIRST: Final = re.compile(r'module\.gpu_networks\.[\w.]+\["(\d+)"\]')
_MORE: Final = re.compile(r'module\.more_gpu_networks\["(\w+)"\]\..+')


def keep(cloud: Cloud, target: Deployment[GkeSpec], workspace: Workspace) -> Deployment[GkeSpec]:
    """The deployment, with what it keeps of what stands; its variables are rewritten."""
    first = first_kind(target.spec.network_kinds, cloud.folder.of_type(NETWORK.type))
    cluster = _cluster(cloud, target.spec)
    runs, late = _runs(cluster), behind(cloud, target.spec, cluster)
    if first is None and not runs and not late:
        return target
    spec = dataclasses.replace(target.spec, first_networks=first)
    inputs = dataclasses.replace(target.inputs, node_runs=runs, pool_versions=late)
    made = variables.variables(spec, target.owner, target.location, inputs)
    kept = dataclasses.replace(
        target,
        spec=spec,
        inputs=inputs,
        variables=made,
        masked_variables={**target.masked_variables, **_shown(made)},
    )
    workspace.tell(kept)
    return kept


def first_kind(
    asked: Mapping[str, Sequence[Network]], there: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """The kind of GPU network that has the names without a kind.

    `asked`: the kinds that the settings ask for, in the order of the pools -> their networks.
    `there`: the networks in the state: address -> attributes. Returns the kind that has these
    names; None where the first asked for is to get them, and "" where nothing is, as all have names
    of their own.
    """
    more = {found[1] for address in there if (found := _MORE.fullmatch(address))}
    first: dict[int, tuple[object, bool]] = {
        int(found[1]): (one.get("mtu"), bool(one.get("network_profile")))
        for address, one in there.items()
        if (found := _FIRST.fullmatch(address))
    }
    stays = _like(first, {kind: its for kind, its in asked.items() if kind not in more})
    if stays is not None or not more:
        return stays
    return next((kind for kind in asked if kind not in more), "")


def _like(
    made: Mapping[int, tuple[object, bool]], kinds: Mapping[str, Sequence[Network]]
) -> str | None:
    """The kind whose networks equal those that are made; else the first that has them all."""
    for kind, networks in kinds.items():
        whole = {n: (it.mtu, it.profile is not None) for n, it in enumerate(networks, start=1)}
        if made == whole:
            return kind
    for kind, networks in kinds.items():
        whole = {n: (it.mtu, it.profile is not None) for n, it in enumerate(networks, start=1)}
        if made and made.items() <= whole.items():
            return kind
    return None


def _cluster(cloud: Cloud, spec: GkeSpec) -> Mapping[str, Any]:
    """The cluster as Google's API returns it; {} where no pool scales, or it is not there."""
    if all(pool.size.count is not None for pool in spec.gpu_pools):
        return {}
    return control_plane.find(cloud.api, spec) or {}


def behind(cloud: Cloud, spec: GkeSpec, cluster: Mapping[str, Any]) -> dict[str, str]:
    """The pools that are to get their control plane's version, and that version.

    Those with nodes are left as they are: an upgrade replaces their nodes. `cluster`: the cluster
    as Google's API returns it; {} for none.
    """
    if not cluster:
        return {}
    target = gke_versions.newest(filter(None, [spec.version, cluster["currentMasterVersion"]]))
    scaling = {pool.name for pool in spec.gpu_pools if pool.size.count is None}
    return {
        pool["name"]: target
        for pool in cluster.get("nodePools", [])
        if pool["name"] in scaling and pool.get("version") != target and _is_empty(cloud, pool)
    }


def _is_empty(cloud: Cloud, pool: Mapping[str, Any]) -> bool:
    """Whether a pool has no node, and none is on its way; False where Google does not say."""
    try:
        groups = [
            cloud.api.find(Service.COMPUTE, url.partition("/compute/v1/")[2])
            for url in pool.get("instanceGroupUrls", [])
        ]
    except GoogleApiError:
        return False
    return bool(groups) and all(it is not None and it.get("targetSize") == 0 for it in groups)


def _runs(cluster: Mapping[str, Any]) -> dict[str, int]:
    """How long nodes of queued pools run, in seconds, where Google says so of the pool.

    No pool is made so, as each request says it; Google may answer its own limit.
    """
    return {
        pool["name"]: int(run.removesuffix("s"))
        for pool in cluster.get("nodePools", [])
        if (pool.get("queuedProvisioning") or {}).get("enabled")
        and (run := (pool.get("config") or {}).get("maxRunDuration"))
    }


def _shown(made: Mapping[str, Any]) -> dict[str, Any]:
    return {name: made[name] for name in _KEPT}
