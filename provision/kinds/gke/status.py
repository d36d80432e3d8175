"""The status of a GKE cluster: its pools and nodes, queued jobs, and ProvisioningRequests."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision import words
from provision.catalogue import names
from provision.catalogue.zones import region_of
from provision.codes import Code
from provision.errors import ClusterError, Problem
from provision.google import refusals
from provision.google.resources import CLUSTER
from provision.kinds import shortage
from provision.kinds.gke import control_plane, states
from provision.kinds.gke.kubernetes import status
from provision.kinds.gke.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.state.record import Record
    from provision.time.clock import Clock

_ANSWER_TIMEOUT: Final = 30.0
"""The longest wait for the control plane, in seconds of cloud time; it may be under repair."""
_POLL: Final = 2.0
_NODES: Final = 10
"""The number of nodes that are not ready in the text of a pool; the JSON has all of them."""
_Waiting = TypeVar("_Waiting", status.ProvisioningRequest, status.Workload)
_NOTHING: Final = status.Status(nodes=(), workloads=(), requests=())


def look(context: Context, cloud: Cloud, record: Record) -> dict[str, Any]:
    """Collect the status of a cluster; a part that can't be read is omitted, with a note.

    Args:
        context: The run.
        cloud: Google and the state folder.
        record: The deployment.
    """
    name = names.CLUSTER.of(record.name_prefix)
    path = CLUSTER.path(project=record.project_id, location=record.region, name=name)
    document = cloud.api.find(CLUSTER.look.service, path)
    facts = control_plane.kept(cloud.folder)
    answers = document is not None and State.of(document) in states.ANSWERING
    told = _ask(context, cloud, facts) if answers and facts is not None else _NOTHING
    places = Places(document or {}, facts, cloud.api)
    return {
        "cluster": _cluster(document) if document else None,
        "node_pools": _pools(document or {}, facts, told, context.clock),
        "workloads": [dataclasses.asdict(places.added(one)) for one in told.workloads],
        "requests": [dataclasses.asdict(places.added(one)) for one in told.requests],
    }


def lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The status as text.

    Args:
        found: What `look` returned.
    """
    cluster = found["cluster"]
    if cluster is None:
        yield "The cluster does not exist"
        return
    where = f"{cluster['name']} in {cluster['location']}"
    yield f"Cluster {where}: {cluster['status']}, GKE {cluster['version']}"
    if cluster["message"]:
        yield f"  {cluster['message']}"
    yield f"{len(found['node_pools'])} node pools:"
    for pool in found["node_pools"]:
        yield f"  {_pool_line(pool)}"
        if pool["message"]:
            yield f"    {pool['message']}"
        yield from (f"    {line}" for line in pool["unready"][:_NODES])
    for title, key in (("Jobs in the queue", "workloads"), ("Requests for nodes", "requests")):
        if found[key]:
            yield f"{title}:"
            yield from _waiting_lines(found[key])


class Places:
    """Other zones and regions, for what got no nodes because of a stock-out.

    Neither a request nor Google's message has the machine type. It is only known if all pools that
    the request may be for have the same one: the queued pools in the zone of the message.

    Args:
        document: The cluster as Google's API returns it.
        facts: The facts of the cluster; None if there are none.
        api: Google, to find other zones that have such machines.
    """

    def __init__(
        self, document: Mapping[str, Any], facts: ClusterFacts | None, api: GoogleApi
    ) -> None:
        self._pools = document.get("nodePools", [])
        self._facts = facts
        self._api = api
        self._asked: dict[tuple[str, str, str | None], list[str]] = {}

    def added(self, thing: _Waiting) -> _Waiting:
        """The request or workload, with the places in its advice if they are known."""
        queued = {pool.name: pool for pool in self._facts.queued_pools} if self._facts else {}
        wanted = {
            (zone, queued[pool["name"]].machine_type, queued[pool["name"]].attached_gpu)
            for pool in self._pools
            for zone in pool.get("locations", [])
            if pool["name"] in queued and refusals.zone(thing.message) in {"", zone}
        }
        if self._facts is None or not thing.is_out_of_stock or len(wanted) != 1:
            return thing
        one: tuple[str, str, str | None] = next(iter(wanted))
        if one not in self._asked:
            zone, machine_type, gpu = one
            zones = shortage.other_zones(self._facts.project, zone, machine_type, gpu, self._api)
            self._asked[one] = list(shortage.places_in_words(region_of(zone), zones))
        advice = "\n".join([*self._asked[one], *thing.advice.splitlines()[1:]])
        first = thing.advice.partition("\n")[0]
        return dataclasses.replace(thing, advice="\n".join(filter(None, [first, advice])))


def _ask(context: Context, cloud: Cloud, facts: ClusterFacts) -> status.Status:
    """The status from Kubernetes; empty, with a note, if it does not answer or refuses."""
    cluster = control_plane.reach(facts, cloud.api, context.environ)
    try:
        return context.progress.deadline(_ANSWER_TIMEOUT, _POLL).retry(
            lambda: status.read(cluster), "look at the cluster"
        )
    except ClusterError as error:
        (problem,) = error.problems
        context.note(
            [
                Problem(
                    code=Code.NOT_CHECKED,
                    what="It is not known what runs in the cluster: Kubernetes could not be asked",
                    why=f"{problem.what}: {problem.why}",
                    fix=problem.fix,
                )
            ]
        )
        return _NOTHING


def _cluster(document: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "name": document["name"],
        "location": document["location"],
        "status": document.get("status"),
        "message": document.get("statusMessage"),
        "version": document.get("currentMasterVersion"),
    }


def _pools(
    document: Mapping[str, Any],
    facts: ClusterFacts | None,
    told: status.Status,
    clock: Clock,
) -> list[dict[str, Any]]:
    known = {pool.name: pool for pool in facts.pools} if facts else {}
    nodes = {one.pool: one for one in told.nodes}
    found = []
    for pool in document.get("nodePools", []):
        mine, there = known.get(pool["name"]), nodes.get(pool["name"])
        scaling = pool.get("autoscaling") or {}
        found.append(
            {
                "name": pool["name"],
                "machine_type": pool["config"]["machineType"],
                "mode": mine.mode if mine else "system",
                "status": pool.get("status"),
                "message": pool.get("statusMessage"),
                "min": scaling.get("totalMinNodeCount", 0) if scaling.get("enabled") else None,
                "max": scaling.get("totalMaxNodeCount") if scaling.get("enabled") else None,
                "nodes": there.count if there else 0,
                "ready": there.ready if there else 0,
                "unready": list(there.unready) if there else [],
                "remaining_seconds": _remaining(mine, there, clock),
            }
        )
    return found


def _remaining(pool: GpuPool | None, nodes: status.Nodes | None, clock: Clock) -> int | None:
    """Seconds of cloud time until Google deletes the node of a pool that goes first.

    GKE says on a node when that is. Without that, the pool's run duration counts (rule F7); in a
    queued pool each request has its own.
    """
    if pool is None or nodes is None:
        return None
    if nodes.ends:
        return int(clock.until(dt.datetime.fromisoformat(nodes.ends).timestamp()))
    if pool.queued or not (pool.max_run_seconds and nodes.oldest):
        return None
    since = dt.datetime.fromisoformat(nodes.oldest).timestamp()
    return max(0, int(pool.max_run_seconds - clock.since(since)))


def _pool_line(pool: Mapping[str, Any]) -> str:
    size = f"{pool['ready']} of {pool['nodes']} nodes ready"
    if pool["max"] is not None:
        size += f", scales from {pool['min']} to {pool['max']}"
    if pool["remaining_seconds"] is not None:
        size += f", the first is deleted in {words.duration(pool['remaining_seconds'])}"
    return f"{pool['name']} {pool['machine_type']}, {pool['mode']}, {pool['status']}: {size}"


def _waiting_lines(things: list[dict[str, Any]]) -> Iterator[str]:
    said = ""
    for thing in things:
        reason = f" ({thing['reason']})" if thing.get("reason") else ""
        message = f": {thing['message']}" if thing["message"] else ""
        yield f"  {thing['name']} {thing['state']}{reason}{message}"
        if thing["advice"] != said:
            said = thing["advice"]
            yield from (f"    {line}" for line in said.splitlines())
