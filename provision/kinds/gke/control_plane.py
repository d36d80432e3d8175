"""A deployment's cluster as Google has it: its state, its Kubernetes API, facts, and node pools.

Terraform replaces a node pool for another run of its nodes, and all that is in a network for
another place of it in the configuration. The settings say none of it, so it is looked up. So are
pools without nodes that have stayed behind their control plane: nothing of theirs is lost by an
upgrade, and GKE makes none, as upgrades of nodes are held. And the service accounts of its nodes
and pods: whether they are there, and can act. Of a node nobody says with which number of its
account it began, so another account that was made by the same address can't be told from the first.
That is why Create makes none while nodes stand.
"""

from __future__ import annotations

import dataclasses
import enum
import re
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import accounts, gke_versions, names
from provision.codes import Code
from provision.deployment.kind import Stranded
from provision.errors import ClusterError, Problem, StateError
from provision.google import resources, service_accounts
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.lists import Lists
from provision.google.resources import CLUSTER, NETWORK
from provision.kinds import machines
from provision.kinds.gke import variables
from provision.kinds.gke.kubernetes import client
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.status import NOT_THERE
from provision.lifecycle import phases
from provision.lifecycle.phases import Phase
from provision.spec.capacity import Mode
from provision.spec.pools import Group, Pool, Size
from provision.state.objects import Stored, Writer
from provision.terraform.plan import SHORT_LIVED, Creation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.catalogue.fabrics import Network
    from provision.context import Cloud, Context
    from provision.deployment.deployment import Deployment
    from provision.deployment.workspace import Workspace
    from provision.spec.cluster import GkeSpec
    from provision.state.folder import StateFolder
    from provision.state.location import Place
    from provision.state.record import Record

_FACTS: Final = Stored(
    "cluster.json",
    Writer.PROGRAM,
    ClusterFacts.parse,
    fix="run Create again: it rewrites that file",
)


class State(enum.StrEnum):
    """A cluster's or a node pool's `status` in the container API (v1, discovery of 2026-10-27)."""

    UNSPECIFIED = "STATUS_UNSPECIFIED"
    PROVISIONING = "PROVISIONING"
    RUNNING = "RUNNING"
    RUNNING_WITH_ERROR = "RUNNING_WITH_ERROR"
    RECONCILING = "RECONCILING"
    STOPPING = "STOPPING"
    ERROR = "ERROR"
    DEGRADED = "DEGRADED"

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> State:
        """The state of a cluster or a pool; one that this version does not know is no state."""
        return next((it for it in cls if it == document.get("status")), cls.UNSPECIFIED)


KEPT: Final = frozenset({State.RUNNING, State.RUNNING_WITH_ERROR, State.RECONCILING})
"""States of a pool that is worth keeping; a pool in the state ERROR has to be replaced."""

ANSWERING: Final = KEPT | {State.DEGRADED}
"""States of a cluster in which its Kubernetes API answers."""


def find(api: GoogleApi, place: Place, lists: Lists | None = None) -> dict[str, Any] | None:
    """The cluster of a deployment as Google has it; None if it does not exist."""
    name = names.CLUSTER.of(place.name_prefix)
    path = CLUSTER.path(project=place.project_id, location=place.region, name=name)
    return (lists or Lists(api)).find(CLUSTER.look, place.project_id, path)


def node_pools(cluster: Mapping[str, Any] | None) -> dict[str, dict[str, Any]]:
    """The node pools of a cluster as Google has it, by name; none where there is no cluster."""
    return {pool["name"]: pool for pool in (cluster or {}).get("nodePools", [])}


def require(cluster: Mapping[str, Any], pools: Iterable[str]) -> list[Problem]:
    """See that a cluster ({} for none) and its pools can be worked with; notes on their state."""
    there = node_pools(cluster)
    parts = {"The cluster": cluster}
    parts |= {f"The node pool {name}": there.get(name, {}) for name in pools}
    lost = {State.STOPPING, State.ERROR}
    failures = [problem(what, it) for what, it in parts.items() if not it or State.of(it) in lost]
    if failures:
        raise ClusterError.of(failures)
    return [note for what, it in parts.items() if (note := _note(what, it))]


def _note(what: str, part: Mapping[str, Any]) -> Problem | None:
    match State.of(part):
        case State.RUNNING | State.STOPPING | State.ERROR:
            return None
        case State.PROVISIONING | State.RECONCILING:
            # GKE repairs and upgrades without a word, at any time.
            words = f"{what} is being changed by GKE"
            return Problem(code=Code.STILL_RUNNING, what=words, why=said(part))
        case State.RUNNING_WITH_ERROR | State.DEGRADED | State.UNSPECIFIED:
            return problem(what, part)


def problem(what: str, part: Mapping[str, Any]) -> Problem:
    """What is to be said of "The cluster" or a pool ({} for none) that is not in order."""
    if not part:
        return Problem(
            code=Code.MACHINES_GONE,
            what=f"{what} does not exist",
            why=NOT_THERE,
            fix="run Create again",
        )
    return Problem(
        code=Code.NOT_IN_ORDER,
        what=f"{what} is not in order",
        why=said(part),
        fix="Status shows it; Create repairs what the settings describe",
    )


def said(part: Mapping[str, Any]) -> str:
    """The state of a cluster or a pool with GKE's words about it, as a sentence."""
    state = part.get("status") or State.UNSPECIFIED
    told = part.get("statusMessage") or "; ".join(
        one.get("message", "") for one in part.get("conditions", [])
    )
    return f"its state is {state}" + (f": {told}" if told else "")


def reach(
    document: Mapping[str, Any] | None, api: GoogleApi, environ: Mapping[str, str]
) -> client.Cluster:
    """The API of a cluster at its DNS endpoint, where the IAM roles of the credentials apply.

    Google says where that is: a host that the bucket names would get the token.
    """
    if not document:
        raise ClusterError.of([problem("The cluster", {})])
    config = (document.get("controlPlaneEndpointsConfig") or {}).get("dnsEndpointConfig") or {}
    return client.Cluster(client.endpoint(str(config.get("endpoint", "")), environ), api.token)


def get_credentials(name: str, location: str, project: str) -> str:
    """The command that configures kubectl for a cluster."""
    return (
        f"gcloud container clusters get-credentials {name} --location {location}"
        f" --project {project} --dns-endpoint"
    )


# ------------------------------------------------------------------ the facts of the last Create


def keep(folder: StateFolder, facts: ClusterFacts) -> None:
    """Store the facts of the cluster, for actions that run without its settings."""
    folder.write(_FACTS.name, facts.document(), "application/json")


def kept(folder: StateFolder, record: Record) -> ClusterFacts | None:
    """The facts that the last Create stored; None if no Create has stored any."""
    return folder.read_once(_FACTS, record=record)


def finished(folder: StateFolder, record: Record) -> ClusterFacts:
    """The facts, of a cluster that is to be worked with."""
    facts = kept(folder, record)
    if facts is None:
        raise StateError(
            f"The cluster in {folder.location.url} is not ready",
            code=Code.NO_CLUSTER,
            why="no Create has finished creating it",
            fix="run Create again",
        )
    return facts


def require_settings(folder: StateFolder, record: Record) -> None:
    """Make sure that the record says what new pods fetch, mount and read."""
    if not record.settings:
        raise StateError(
            "It is not known where pods get their images from, nor their secrets and mounts",
            code=Code.STATE_UNREADABLE,
            why=f"{folder.location.url}/deployment.json was lost or damaged",
            fix="run Create again: it writes the settings there",
        )


_FIRST: Final = re.compile(r'module\.gpu_networks\.[\w.]+\["(\d+)"\]')
_MORE: Final = re.compile(r'module\.more_gpu_networks\["(\w+)"\]\..+')

# ------------------------------------------------------------------ as a specification has them


def made(document: Mapping[str, Any] | None, facts: ClusterFacts) -> Mapping[str, Pool]:
    """The pools that run jobs, by their names, as prices are looked up for them."""
    there = node_pools(document)
    return {it.name: as_spec(there[it.name], it) for it in facts.pools if it.name in there}


def stranded(
    api: GoogleApi, record: Record, facts: ClusterFacts, machine_type: str
) -> Stranded | None:
    """What the pools of a fixed size lack whose zone Create may change, and Google refuses there.

    Other nodes come for each job, and are asked for in the zone of their pool. With a pool go all
    that are in its zone.
    """
    document, found, left, own = find(api, record), None, 0, 0
    there = node_pools(document)
    for name, pool in made(document, facts).items():
        if pool.zone != record.zone:
            continue
        is_own = pool.machine_type == machine_type
        for url in there[name].get("instanceGroupUrls", []):
            group = Group.of(record.project_id, pool, resources.last(url))
            members = api.managed_instances(group.project, group.zone, group.name)
            running = machines.running(members)
            left, own = left + running, own + running * is_own
            if is_own and pool.size.count is not None and found is None:
                found = machines.elsewhere(group, members, api)
    mine = [it.name for it in facts.pools if it.machine_type == machine_type]
    if document and mine and there.keys().isdisjoint(mine):
        # A run that was killed between the end of one and the next has left it so.
        what = f"{record.name_prefix} has no pool {mine[0]}"
        found = Stranded(what=what, left=left, here=True)
    return found and dataclasses.replace(found, left=left, own=own)


def as_spec(pool: Mapping[str, Any], mine: GpuPool | None) -> Pool:
    """A node pool as a specification has it; `mine`: what Create has kept of one that runs jobs."""
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
        mode=mine.mode if mine else usual,
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
    networks = cloud.folder.of_type(NETWORK.type)
    managed = is_managed(target.spec, networks, cloud.folder.of_type(CLUSTER.type))
    spec = dataclasses.replace(target.spec, managed=managed)
    first = first_kind(spec.network_kinds, networks)
    scales = any(pool.size.count is None for pool in target.spec.gpu_pools)
    cluster = (find(cloud.api, target.spec) or {}) if scales else {}
    # How long nodes of queued pools run, in seconds, where Google says so of the pool. No pool is
    # made so, as each request says it; Google may answer its own limit.
    runs = {
        name: int(run.removesuffix("s"))
        for name, pool in node_pools(cluster).items()
        if (pool.get("queuedProvisioning") or {}).get("enabled")
        and (run := (pool.get("config") or {}).get("maxRunDuration"))
    }
    late = behind(cloud, target.spec, cluster)
    if first is None and not runs and not late and managed == target.spec.managed:
        return target, 0
    spec = dataclasses.replace(spec, first_networks=first)
    inputs = dataclasses.replace(target.inputs, node_runs=runs, pool_versions=late)
    made = variables.variables(spec, target.owner, target.location, inputs)
    changed = ("node_pools", "gpu_networks", "more_gpu_networks", "ip_ranges")
    shown = {name: made[name] for name in changed}
    kept = dataclasses.replace(
        target,
        spec=spec,
        inputs=inputs,
        variables=made,
        masked_variables={**target.masked_variables, **shown},
    )
    workspace.tell(kept)
    return kept, 0


def is_managed(
    spec: GkeSpec,
    networks: Mapping[str, Mapping[str, Any]],
    clusters: Mapping[str, Mapping[str, Any]],
) -> bool:
    """Whether GKE manages the GPU networks: not where networks of ours stand (ADR 87).

    Else the pools in them would be replaced. `networks`, `clusters`: those in the state: address ->
    attributes. A cluster that stands counts by the version that it has.
    """
    if any(_FIRST.fullmatch(it) or _MORE.fullmatch(it) for it in networks):
        return False
    stands = next((str(it["master_version"]) for it in clusters.values()), None)
    return spec.managed if stands is None else spec.managed_by(stands)


def first_kind(
    asked: Mapping[str, Sequence[Network]], there: Mapping[str, Mapping[str, Any]]
) -> str | None:
    """The kind of GPU network that has the names without a kind.

    None where the first that is asked for is to get them, and "" where nothing is, as all have
    names of their own. `there`: the networks in the state: address -> attributes.
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

    Those whose nodes an upgrade would replace are left as they are.
    """
    if not cluster:
        return {}
    target = gke_versions.newest(filter(None, [spec.version, cluster["currentMasterVersion"]]))
    scaling = {pool.name for pool in spec.gpu_pools if pool.size.count is None}
    return {
        name: target
        for name, pool in node_pools(cluster).items()
        if name in scaling
        and pool.get("version") != target
        and (
            (pool.get("upgradeSettings") or {}).get("strategy") == SHORT_LIVED
            or _is_empty(cloud, pool)
        )
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
    """
    look, kept = resources.NODE_POOL.look, []
    for pool in replaced:
        there = (cloud.api.find(look.service, look.at(pool.values)) or {}).get(look.part, [])
        states = {one["name"]: State.of(one) for one in there}
        if states.get(pool.values["name"]) in KEPT:
            kept.append(pool.address)
    return kept


def delete_lost(context: Context, cloud: Cloud) -> int:
    """Delete the pools of the state's cluster that are not in the state; how many there were.

    A run was killed, or somebody made them. They go with their cluster. But Terraform deletes what
    it made for a pool, such as its placement policy, before the cluster, and Google refuses that as
    long as the pool uses it.
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


# ------------------------------------------------------------------------------ its accounts

_NODES: Final = "nodes"
_PODS: Final = "pods"
_DEFAULT: Final = "default"
_LACK: Final = {
    _NODES: "they pull no image, and nobody sees their logs and metrics",
    _PODS: "no bucket, secret or folder of a job is within their reach",
}


def lost_accounts(cloud: Cloud, place: Place, document: Mapping[str, Any]) -> Iterator[Problem]:
    """The accounts that are gone or disabled, as far as these credentials may see them."""
    named = {
        str((pool.get("config") or {}).get("serviceAccount") or _DEFAULT)
        for pool in node_pools(document).values()
    }
    default = accounts.default(cloud.project_number)
    acts = {default if it == _DEFAULT else it: _NODES for it in sorted(named)}
    if acts:
        workload = names.WORKLOAD_ACCOUNT.of(place.name_prefix)
        acts[accounts.of_project(workload, place.project_id)] = _PODS
    for email, who in acts.items():
        project = service_accounts.project_of(email, place.project_id, cloud.project_number)
        if not project:
            continue
        account = (cloud.lists or Lists(cloud.api)).account(email, project)
        if account.is_lost:
            yield Problem(
                code=Code.ACCOUNT_GONE,
                what=f"the {who} act as {email}, a service account that {account.fate}",
                why=f"they get no token: {_LACK[who]}",
                fix=account.back(),
            )


def require_accounts(cloud: Cloud, place: Place) -> None:
    """See that the accounts of nodes and pods are there, before more is built on them."""
    found = list(lost_accounts(cloud, place, find(cloud.api, place) or {}))
    if found:
        raise ClusterError.of(found)
