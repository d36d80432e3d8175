"""The node pools of a cluster that exists: what a plan keeps of them, and which go first.

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
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.google.resources import CLUSTER, NETWORK
from provision.kinds.gke import control_plane, variables
from provision.kinds.gke.control_plane import State
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.catalogue.gpu_networks import Network
    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.spec.cluster import GkeSpec
    from provision.terraform.plan import Creation

_FIRST: Final = re.compile(r'module\.gpu_networks\.[\w.]+\["(\d+)"\]')
_MORE: Final = re.compile(r'module\.more_gpu_networks\["(\w+)"\]\..+')

# ------------------------------------------------------------------ as a specification has them


def made(document: Mapping[str, Any] | None, facts: ClusterFacts) -> Mapping[str, Pool]:
    """The pools that run jobs, by their names, as prices are looked up for them."""
    mine = {pool.name: pool for pool in facts.pools}
    there = (document or {}).get("nodePools", [])
    return {it["name"]: as_spec(it, mine[it["name"]]) for it in there if it["name"] in mine}


def as_spec(pool: Mapping[str, Any], mine: GpuPool | None) -> Pool:
    """A node pool as a specification has it, by what Google says of it.

    `mine`: what Create has kept of it; None for a pool that runs no jobs.
    """
    config = pool["config"]
    least, most = scale(pool)
    usual = Mode.SPOT if config.get("spot") else Mode.STANDARD
    count = mine.max_nodes if mine else int(pool.get("initialNodeCount", 0))
    return Pool(
        name=pool["name"],
        machine_type=config["machineType"],
        zone=next(iter(pool.get("locations", [])), ""),
        gpu_type=mine.accelerator if mine else None,
        gpu_count=mine.gpus if mine else None,
        mode=Mode(mine.mode) if mine else usual,
        max_run_seconds=mine.max_run_seconds if mine else None,
        size=Size(count=count) if most is None else Size(min=least, max=most),
        disk_size_gb=int(config.get("diskSizeGb", 100)),
        disk_type=str(config.get("diskType", "pd-balanced")),
    )


def scale(pool: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """The least and the greatest number of nodes; None for a pool that does not autoscale."""
    scaling = pool.get("autoscaling") or {}
    if not scaling.get("enabled"):
        return None, None
    return scaling.get("totalMinNodeCount", 0), scaling.get("totalMaxNodeCount")


# ------------------------------------------------------------------ what a plan keeps


def prepare(
    cloud: Cloud, target: Deployment[GkeSpec], workspace: Workspace
) -> tuple[Deployment[GkeSpec], int]:
    """The deployment, with what it keeps of what exists; its variables are rewritten."""
    first = first_kind(target.spec.network_kinds, cloud.folder.of_type(NETWORK.type))
    scales = any(pool.size.count is None for pool in target.spec.gpu_pools)
    cluster = (control_plane.find(cloud.api, target.spec) or {}) if scales else {}
    # How long nodes of queued pools run, in seconds, where Google says so of the pool. No pool is
    # made so, as each request says it; Google may answer its own limit.
    runs = {
        pool["name"]: int(run.removesuffix("s"))
        for pool in cluster.get("nodePools", [])
        if (pool.get("queuedProvisioning") or {}).get("enabled")
        and (run := (pool.get("config") or {}).get("maxRunDuration"))
    }
    late = behind(cloud, target.spec, cluster)
    if first is None and not runs and not late:
        return target, 0
    spec = dataclasses.replace(target.spec, first_networks=first)
    inputs = dataclasses.replace(target.inputs, node_runs=runs, pool_versions=late)
    made = variables.variables(spec, target.owner, target.location, inputs)
    shown = {name: made[name] for name in ("node_pools", "gpu_networks", "more_gpu_networks")}
    kept = dataclasses.replace(
        target,
        spec=spec,
        inputs=inputs,
        variables=made,
        masked_variables={**target.masked_variables, **shown},
    )
    workspace.tell(kept)
    return kept, 0


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
    made = {
        (int(found[1]), one.get("mtu"), bool(one.get("network_profile")))
        for address, one in there.items()
        if (found := _FIRST.fullmatch(address))
    }
    free = {
        kind: {(n, it.mtu, it.profile is not None) for n, it in enumerate(networks, start=1)}
        for kind, networks in asked.items()
        if kind not in more
    }
    same = [kind for kind, whole in free.items() if made == whole]
    # Where a run was killed, there is only a part of them: the first kind that has it.
    same += [kind for kind, whole in free.items() if made and made <= whole]
    nothing_left = next(iter(free), "") if more else None
    return next(iter(same), nothing_left)


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


# ------------------------------------------------------------------ what Terraform gives up or lost


def to_untaint(cloud: Cloud, replaced: Sequence[Creation]) -> list[str]:
    """The addresses of the tainted pools that exist and only lack nodes.

    The provider fails if a new pool lacks nodes when its operation ends (a stock-out, a quota).
    Terraform marks the pool as tainted and would replace it, although Google keeps the pool and
    goes on trying to get the nodes.

    Raises:
        GoogleApiError: Google does not say how the pools are.
    """
    look, kept = resources.NODE_POOL.look, []
    for pool in replaced:
        there = (cloud.api.find(look.service, look.at(pool.values)) or {}).get(look.part, [])
        states = {one["name"]: State.of(one) for one in there}
        if states.get(pool.values["name"]) in control_plane.KEPT:
            kept.append(pool.address)
    return kept


def delete_lost(context: Context, cloud: Cloud) -> int:
    """Delete the pools of the state's cluster that are not in the state; how many there were.

    A run was killed, or somebody made them. They go with their cluster. But Terraform deletes what
    it made for a pool, such as its placement policy, before the cluster, and Google refuses that as
    long as the pool uses it.

    Raises:
        TerraformError: One can't be deleted.
    """
    known = cloud.folder.known()
    deleted = 0
    for cluster in cloud.folder.of_type(CLUSTER.type).values():
        there = cloud.api.find(Service.CONTAINER, cluster["id"]) or {}
        for pool in there.get("nodePools", []):
            path = f"{cluster['id']}/nodePools/{pool['name']}"
            if path in known:
                continue
            what = f"The node pool {pool['name']} could not be deleted"
            with phases.during(Phase.REMOVING, cloud, what):
                cloud.api.delete(Service.CONTAINER, path)
            context.console.progress(f"Removed {path}: it is not in the state, and goes first")
            deleted += 1
    return deleted
