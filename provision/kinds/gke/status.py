"""The status of a GKE cluster: its pools and nodes, queued jobs, and ProvisioningRequests."""

from __future__ import annotations

import collections
import dataclasses
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.catalogue import gke_versions, names
from provision.catalogue.zones import region_of
from provision.codes import Code
from provision.documents import gke_status
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.documents.status import About, PoolMode, PoolNow, Trouble
from provision.errors import ClusterError
from provision.google import refusals
from provision.kinds import gpus as gpu_words
from provision.kinds import machines as shortage
from provision.kinds import spending as prices
from provision.kinds.gke import (
    control_plane,
    node_ends,
    node_faults,
    refused,
    spending,
    states,
    trouble,
)
from provision.kinds.gke.kubernetes import job_logs, status
from provision.kinds.gke.states import State
from provision.lifecycle import pricing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.state.record import Record
    from provision.time.clock import Clock

_WORDS: Final = "GKE cluster"
_ANSWER_TIMEOUT: Final = 30.0
"""The longest wait for the control plane, in seconds of cloud time; it may be under repair."""
_POLL: Final = 2.0
_Waiting = TypeVar("_Waiting", NodeRequest, Workload)
_Counts = dict[str, tuple[int | None, int | None]]
"""Name of a pool -> how many of its nodes exist, and are ready; None for what is not known."""
_NOTHING: Final = status.Status(nodes=(), workloads=(), requests=())


def look(context: Context, cloud: Cloud, record: Record) -> gke_status.GkeCluster:
    """Look at a cluster; a part that can't be read is left out, and told as a trouble."""
    document = control_plane.find(cloud.api, record)
    facts = control_plane.kept(cloud.folder, record)
    answers = document is not None and State.of(document) in states.ANSWERING
    told, unknown = _NOTHING, list[Trouble]()
    if answers and facts is not None:
        told, unknown = _ask(context, cloud, document)
    counts = _counts(cloud, record, document or {}) if unknown else _told(told)
    places = Places(document or {}, facts, cloud.api)
    works = [_with_log(places.added(one), facts) for one in told.workloads]
    outside = [_with_log(places.added(one), facts) for one in told.outside]
    requests = [places.added(one) for one in told.requests]
    pools = _pools(document or {}, facts, told, counts, context.clock)
    machines = tuple(_machines(document or {}, facts, counts))
    gpus = {pool.name: pool.gpus for pool in facts.pools} if facts else {}
    case = trouble.Case(
        document=document or {},
        pools=tuple(pools),
        machines=machines,
        counted=answers and facts is not None and not unknown,
        refused=refused.of(cloud.api, record, document or {}, machines),
        expected=tuple(pool.name for pool in facts.pools) if facts else (),
        works=tuple(works),
        requests=tuple(requests),
        clock=context.clock,
        outside=tuple(outside),
        nodes=told.nodes,
        gpus=gpus,
    )
    runs = spending.existing(record, document, facts, told, context.clock)
    if unknown and runs is not None:
        # Since when they run, a group does not say.
        ages = {name: [0.0] * count for name, (count, _) in counts.items() if count is not None}
        runs = dataclasses.replace(runs, ages=ages) if len(ages) == len(counts) else None
    cost, so_far = prices.of(runs, pricing.known(context, cloud))
    return gke_status.GkeCluster(
        words=_WORDS,
        trouble=(*trouble.found(case), *unknown),
        waiting=tuple(trouble.waiting(case)),
        machines=case.machines,
        ends=tuple(node_ends.of(facts, told.nodes, context.clock)),
        cost=cost,
        so_far=None if unknown else so_far,
        cluster=_cluster(document) if document else None,
        node_pools=case.pools,
        nodes=node_faults.nodes(told.nodes, gpus, context.clock),
        jobs={str(state): count for state, count in _counted(works).items()},
        workloads=tuple(sorted(works, key=lambda it: list(JobState).index(it.state))),
        outside=tuple(sorted(outside, key=lambda it: list(JobState).index(it.state))),
        requests=tuple(sorted(requests, key=lambda it: list(RequestState).index(it.state))),
    )


def _with_log(job: Workload, facts: ClusterFacts | None) -> Workload:
    """A job with the command for its log."""
    if facts is None:
        return job
    kind, _, name = job.name.partition(" in ")[0].partition(" ")
    log = job_logs.command(facts.project, facts.name, facts.location, kind, name)
    return dataclasses.replace(job, log=log)


def _counted(works: list[Workload]) -> dict[JobState, int]:
    counts = collections.Counter(work.state for work in works)
    return {state: counts[state] for state in JobState if counts[state]}


class Places:
    """Other zones and regions, for what got no nodes because of a stock-out.

    Neither a request nor Google's message has the machine type. It is only known if all pools that
    the request may be for have the same one: the queued pools in the zone of the message.
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
        if self._facts is None or not status.is_out_of_stock(thing) or len(wanted) != 1:
            return thing
        one: tuple[str, str, str | None] = next(iter(wanted))
        if one not in self._asked:
            zone, machine_type, gpu = one
            zones = shortage.other_zones(self._facts.project, zone, machine_type, gpu, self._api)
            self._asked[one] = list(shortage.places_in_words(region_of(zone), zones))
        advice = "\n".join([*self._asked[one], *thing.advice.splitlines()[1:]])
        first = thing.advice.partition("\n")[0]
        return dataclasses.replace(thing, advice="\n".join(filter(None, [first, advice])))


def _ask(
    context: Context, cloud: Cloud, document: Mapping[str, Any] | None
) -> tuple[status.Status, list[Trouble]]:
    """The status from Kubernetes; an empty one and why, if it does not answer or refuses."""
    cluster = control_plane.reach(document, cloud.api, context.environ)
    try:
        found = context.progress.deadline(_ANSWER_TIMEOUT, _POLL).retry(
            lambda: status.read(cluster, context.clock), "look at the cluster"
        )
    except ClusterError as error:
        (problem,) = error.problems
        is_silent = problem.code is Code.NOT_IN_TIME
        return _NOTHING, [
            Trouble(
                about=About.KUBERNETES,
                what="it is not known what runs in the cluster: Kubernetes could not be asked",
                why=(f"{problem.what}: {problem.why}",),
                fix=refusals.AGAIN if is_silent else problem.fix,
                by_itself=is_silent,
            )
        ]
    return found, []


def _told(told: status.Status) -> _Counts:
    return {one.pool: (one.count, one.ready) for one in told.nodes}


def _counts(cloud: Cloud, record: Record, document: Mapping[str, Any]) -> _Counts:
    """What the groups of the pools tell, where Kubernetes does not."""
    running = refused.running(cloud.api, record, document)
    return {name: (count, None) for name, count in running.items()}


def _cluster(document: Mapping[str, Any]) -> gke_status.ClusterNow:
    return gke_status.ClusterNow(
        name=document["name"],
        location=document["location"],
        status=document.get("status"),
        message=document.get("statusMessage"),
        version=document.get("currentMasterVersion"),
        supported_until=gke_versions.supported_until(str(document.get("currentMasterVersion"))),
    )


# ------------------------------------------------------------------ pools


def _pools(
    document: Mapping[str, Any],
    facts: ClusterFacts | None,
    told: status.Status,
    counts: _Counts,
    clock: Clock,
) -> list[gke_status.NodePool]:
    known = {pool.name: pool for pool in facts.pools} if facts else {}
    nodes = {one.pool: one for one in told.nodes}
    found = []
    for pool in document.get("nodePools", []):
        mine, there = known.get(pool["name"]), nodes.get(pool["name"])
        least, most = spending.scale(pool)
        remaining = node_ends.remaining(mine, there, clock)
        count, ready = counts.get(pool["name"], (0, 0))
        found.append(
            gke_status.NodePool(
                name=pool["name"],
                machine_type=pool["config"]["machineType"],
                mode=_mode(pool["name"], mine),
                status=pool.get("status"),
                message=pool.get("statusMessage"),
                min=least,
                max=most,
                nodes=count,
                ready=ready,
                unready=there.unready if there else (),
                remaining_seconds=remaining[0] if remaining else None,
            )
        )
    return found


def _machines(
    document: Mapping[str, Any], facts: ClusterFacts | None, counts: _Counts
) -> list[PoolNow]:
    known = {pool.name: pool for pool in facts.pools} if facts else {}
    found = []
    for pool in document.get("nodePools", []):
        mine, (count, ready) = known.get(pool["name"]), counts.get(pool["name"], (0, 0))
        zones = pool.get("locations", [])
        least, most = spending.scale(pool)
        machine_type = pool["config"]["machineType"]
        attached = mine.attached_gpu if mine else None
        found.append(
            PoolNow(
                name=pool["name"],
                machine_type=machine_type,
                zone=zones[0] if len(zones) == 1 else "",
                mode=_mode(pool["name"], mine),
                gpus=gpu_words.named(machine_type, attached, mine.gpus if mine else 0),
                asked=_wanted(pool, mine),
                least=least,
                most=most,
                there=count,
                ready=ready,
            )
        )
    return found


def _mode(name: str, pool: GpuPool | None) -> PoolMode | None:
    """How the nodes of a pool are got; None of a GPU pool whose Create did not get to its end."""
    if pool is not None:
        return PoolMode(pool.mode)
    return PoolMode.SYSTEM if name.endswith(names.SYSTEM_POOL.of("")) else None


def _wanted(pool: Mapping[str, Any], mine: GpuPool | None) -> int | None:
    """The number of nodes asked for; None of a pool that scales automatically."""
    if _scales(pool):
        return None
    return mine.max_nodes if mine else int(pool.get("initialNodeCount", 0))


def _scales(pool: Mapping[str, Any]) -> bool:
    return spending.scale(pool)[1] is not None
