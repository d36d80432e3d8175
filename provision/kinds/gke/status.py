"""The status of a GKE cluster: its pools and nodes, queued jobs, and ProvisioningRequests."""

from __future__ import annotations

import collections
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from provision.catalogue import gke_versions, names
from provision.catalogue.zones import region_of
from provision.codes import Code
from provision.documents import gke_status
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.documents.status import About, PoolMode, PoolNow, Status, Trouble
from provision.errors import ClusterError
from provision.google import refusals
from provision.kinds import happened, machines
from provision.kinds import status as common
from provision.kinds.gke import control_plane, trouble
from provision.kinds.gke.control_plane import State
from provision.kinds.gke.kubernetes import pods, status
from provision.lifecycle import pricing
from provision.settings.choices import NetworkConfig

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.context import Cloud, Context
    from provision.google.api import GoogleApi
    from provision.kinds.gke.kubernetes.facts import ClusterFacts
    from provision.state.record import Record
    from provision.time.clock import Clock

_ANSWER_TIMEOUT: Final = 30.0
"""The longest wait for the control plane, in seconds of cloud time; it may be under repair."""
_POLL: Final = 2.0
_Waiting = TypeVar("_Waiting", NodeRequest, Workload)
_Machines = tuple[str, str, str | None]
"""A zone, a machine type, and the GPU that is attached."""
_Counts = dict[str, tuple[int | None, int | None]]
"""Name of a pool -> how many of its nodes exist, and are ready; None for what is not known."""
_NOTHING: Final = status.Status(nodes=(), workloads=(), requests=())


def look(
    context: Context, cloud: Cloud, record: Record, before: Status | None
) -> gke_status.GkeCluster:
    """Look at a cluster; a part that can't be read is left out, and told as a trouble."""
    del before
    there = control_plane.find(cloud.api, record, cloud.lists)
    document, facts, clock = there or {}, control_plane.kept(cloud.folder, record), context.clock
    answers = facts is not None and State.of(document) in control_plane.ANSWERING
    told, unknown = _ask(context, cloud, document, facts) if answers else (_NOTHING, ())
    counts: _Counts = {
        one.pool: (len(one.each), sum(not node.unready for node in one.each)) for one in told.nodes
    }
    if unknown:
        running = trouble.running(cloud.api, record, document)
        counts = {name: (count, None) for name, count in running.items()}
    places = Places(document, facts, cloud.api)
    told = replace(
        told,
        workloads=tuple(_with_log(places.added(one), facts) for one in told.workloads),
        outside=tuple(_with_log(places.added(one), facts) for one in told.outside),
        requests=tuple(map(places.added, told.requests)),
    )
    found = list(_pools(document, facts, told, counts, clock))
    now = tuple(it for _, it in found)
    gpus = {pool.name: pool.gpus for pool in facts.pools} if facts else {}
    case = trouble.Case(
        document=document,
        machines=now,
        counted=answers and not unknown,
        refused=trouble.refused(cloud.api, record, document, now),
        told=told,
        gpus=gpus,
        clock=clock,
        lost=tuple(control_plane.lost_accounts(cloud, record, document)),
    )
    runs = existing(record, there, facts, told, clock)
    if unknown and runs is not None:
        # Since when they run, a group does not say.
        ages = {name: [0.0] * count for name, (count, _) in counts.items() if count is not None}
        runs = replace(runs, ages=ages) if len(ages) == len(counts) else None
    cost, so_far = common.cost_of(runs, pricing.known(context, cloud))
    states = collections.Counter(work.state for work in told.workloads)
    nodes = trouble.nodes(told.nodes, gpus, clock)
    groups = {node.name.rpartition("-")[0] for node in nodes}
    happenings = (
        happened.look(
            happened.operations(cloud.api, record, cloud.lists),
            lambda it: it.rpartition("-")[0] in groups,
        )
        if groups
        else []
    )
    version = (document or {}).get("currentMasterVersion")
    until = gke_versions.supported_until(str(version))
    return gke_status.GkeCluster(
        words="GKE cluster",
        trouble=(*trouble.found(case), *unknown, *happened.storms(happenings, clock)),
        happened=happened.within_a_day(happenings, clock, "node"),
        waiting=tuple(trouble.waiting(case)),
        machines=now,
        ends=tuple(trouble.all_ends(facts, told.nodes, clock)),
        cost=cost,
        so_far=None if unknown else so_far,
        cluster=gke_status.ClusterNow(
            name=document["name"],
            location=document["location"],
            status=document.get("status"),
            message=document.get("statusMessage"),
            version=version,
            supported_until=until,
            support_is_over=until is not None and until < context.today.isoformat(),
        )
        if document
        else None,
        node_pools=tuple(it for it, _ in found),
        nodes=nodes,
        jobs={str(state): states[state] for state in JobState if states[state]},
        workloads=tuple(sorted(told.workloads, key=lambda it: list(JobState).index(it.state))),
        outside=tuple(sorted(told.outside, key=lambda it: list(JobState).index(it.state))),
        requests=tuple(sorted(told.requests, key=lambda it: list(RequestState).index(it.state))),
    )


def _with_log(job: Workload, facts: ClusterFacts | None) -> Workload:
    """A job with the command for its log."""
    if facts is None:
        return job
    kind, _, name = job.name.partition(" in ")[0].partition(" ")
    return replace(job, log=pods.log_command(facts.project, facts.name, facts.location, kind, name))


class Places:
    """Other zones and regions, for what got no nodes because of a stock-out.

    Neither a request nor Google's message has the machine type. It is only known if all pools that
    the request may be for have the same one: the queued pools in the zone of the message.
    """

    def __init__(
        self, document: Mapping[str, Any], facts: ClusterFacts | None, api: GoogleApi
    ) -> None:
        self._facts, self._api = facts, api
        queued = {pool.name: pool for pool in (facts.pools if facts else ()) if pool.queued}
        self._wanted: set[_Machines] = {
            (zone, queued[name].machine_type, queued[name].attached_gpu)
            for name, pool in control_plane.node_pools(document).items()
            for zone in pool.get("locations", [])
            if name in queued
        }
        self._asked: dict[_Machines, list[str]] = {}

    def added(self, thing: _Waiting) -> _Waiting:
        """The request or workload, with the places in its advice if they are known."""
        zone = refusals.zone(thing.message)
        wanted: list[_Machines] = [it for it in self._wanted if zone in {"", it[0]}]
        if self._facts is None or not status.is_out_of_stock(thing) or len(wanted) != 1:
            return thing
        zone, machine_type, gpu = wanted[0]
        if wanted[0] not in self._asked:
            zones = machines.other_zones(self._facts.project, zone, machine_type, gpu, self._api)
            self._asked[wanted[0]] = list(machines.places_in_words(region_of(zone), zones))
        first, *rest = thing.advice.split("\n")
        advice = "\n".join(filter(None, [first, *self._asked[wanted[0]], *rest]))
        return replace(thing, advice=advice)


def _ask(
    context: Context, cloud: Cloud, document: Mapping[str, Any], facts: ClusterFacts | None
) -> tuple[status.Status, tuple[Trouble, ...]]:
    """The status from Kubernetes; an empty one and why, if it does not answer or refuses."""
    cluster = control_plane.reach(document, cloud.api, context.environ)
    deadline = context.progress.deadline(_ANSWER_TIMEOUT, _POLL)
    try:
        return deadline.retry(
            lambda: status.read(cluster, context.clock, facts), "look at the cluster"
        ), ()
    except ClusterError as error:
        (problem,) = error.problems
        is_silent = problem.code is Code.NOT_IN_TIME
        told = Trouble(
            about=About.KUBERNETES,
            what="it is not known what runs in the cluster: Kubernetes could not be asked",
            why=(f"{problem.what}: {problem.why}",),
            fix=refusals.AGAIN if is_silent else problem.fix,
            by_itself=is_silent,
        )
        return _NOTHING, (told,)


def _pools(
    document: Mapping[str, Any],
    facts: ClusterFacts | None,
    told: status.Status,
    counts: _Counts,
    clock: Clock,
) -> Iterator[tuple[gke_status.NodePool, PoolNow]]:
    """Each pool as Google has it, and what was asked for."""
    known = {pool.name: pool for pool in facts.pools} if facts else {}
    nodes = {one.pool: one for one in told.nodes}
    for name, pool in control_plane.node_pools(document).items():
        machine_type = pool["config"]["machineType"]
        mine, there, zones = known.get(name), nodes.get(name), pool.get("locations", [])
        (count, ready), (least, most) = counts.get(name, (0, 0)), control_plane.scale(pool)
        # Of a GPU pool whose Create did not get to its end nothing is known.
        usual = PoolMode.SYSTEM if name.endswith(names.SYSTEM_POOL.of("")) else None
        remaining = trouble.remaining(mine, there, clock)
        attached, gpus = (mine.attached_gpu, mine.gpus) if mine else (None, 0)
        asked = mine.max_nodes if mine else int(pool.get("initialNodeCount", 0))
        now = gke_status.NodePool(
            name=name,
            machine_type=machine_type,
            mode=PoolMode(mine.mode) if mine else usual,
            status=pool.get("status"),
            message=pool.get("statusMessage"),
            min=least,
            max=most,
            nodes=count,
            ready=ready,
            unready=tuple(it.unready for it in there.each if it.unready) if there else (),
            remaining_seconds=remaining[0] if remaining else None,
        )
        asked_for = PoolNow(
            name=name,
            machine_type=machine_type,
            zone=zones[0] if len(zones) == 1 else "",
            mode=now.mode,
            gpus=common.gpus_of(machine_type, attached, gpus),
            asked=asked if most is None else None,
            least=least,
            most=most,
            there=count,
            ready=ready,
        )
        yield now, asked_for


def existing(
    record: Record,
    document: Mapping[str, Any] | None,
    facts: ClusterFacts | None,
    told: status.Status,
    clock: Clock,
) -> common.Existing | None:
    """The cluster as far as its cost goes; None if there is none, or no Create has kept facts."""
    if document is None or facts is None:
        return None
    known = {pool.name: pool for pool in facts.pools}
    there = [
        control_plane.as_spec(it, known.get(name))
        for name, it in control_plane.node_pools(document).items()
    ]
    return common.Existing.of(
        record,
        machines=tuple(pool for pool in there if pool.name in known),
        system_pools=tuple(pool for pool in there if pool.name not in known),
        makes_network=record.settings.get("NETWORK_CONFIG") != NetworkConfig.EXISTING,
        has_control_plane=True,
        ages={
            one.pool: [common.hours(it.created, clock) or 0.0 for it in one.each if it.created]
            for one in told.nodes
        },
        age=common.hours(document.get("createTime"), clock),
    )
