"""What is broken in a GKE cluster, and what is only under way."""

from __future__ import annotations

import collections
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict

from provision.documents.gke_status import JobState, RequestState
from provision.documents.status import About, Trouble, Waiting
from provision.google import refusals
from provision.google.api import GoogleApiError
from provision.kinds import machines
from provision.kinds.gke import control_plane, health
from provision.kinds.gke.control_plane import State
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.documents.gke_status import NodeRequest, Workload
    from provision.documents.status import PoolNow
    from provision.errors import Problem
    from provision.google.api import GoogleApi
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.state.record import Record
    from provision.time.clock import Clock

_PASSING: Final = frozenset({State.PROVISIONING, State.RECONCILING})
_REFUSED: Final = machines.RefusalTexts(
    words="",
    after_stockout="wait: Google goes on trying, and machines may become available",
    after_quota="once it is granted, Google makes the nodes",
    end="",
)
_IN_QUEUE: Final = "the request {0.name} waits in Google's queue for {0.waits_for}"
_UNDER_WAY: Final = {
    RequestState.PENDING: "the request {0.name} waits for {0.waits_for}",
    RequestState.ACCEPTED: _IN_QUEUE,
    RequestState.WAITING: _IN_QUEUE,
    RequestState.PROVISIONED: "the nodes of the request {0.name} have come, its job is to start",
}
"""What a request waits for; those in other states wait no longer."""
_WAITING: Final = {
    JobState.PENDING: ("queued", "waits for nodes, in no queue"),
    JobState.WAITING_FOR_NODES: (str(JobState.WAITING_FOR_NODES), "is starting, in no queue"),
    JobState.STARTING: (str(JobState.STARTING), "is starting, in no queue"),
}
"""What a job that waits is doing, in a queue and in none."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a look at a cluster has found."""

    document: Mapping[str, Any]  # the cluster as Google's API returns it; {} if it does not exist
    machines: tuple[PoolNow, ...]
    expected: tuple[str, ...]  # the names of the GPU pools that Create made
    counted: bool  # whether Kubernetes has told which nodes there are
    # name of a pool that lacks nodes -> what Google refuses, where it says so
    refused: Mapping[str, Sequence[Problem]]
    works: tuple[Workload, ...]  # the jobs in the queue
    requests: tuple[NodeRequest, ...]
    clock: Clock  # the clock of Google Cloud
    outside: tuple[Workload, ...] = ()  # the jobs that no queue knows
    nodes: tuple[Nodes, ...] = ()  # the nodes of each pool
    # how many GPUs each node of a GPU pool has
    gpus: Mapping[str, int] = field(default_factory=dict)


def found(case: Case) -> Iterator[Trouble]:
    """What is broken, the worst first."""
    for what, about, part in _parts(case):
        if not part or State.of(part) not in _PASSING | {State.RUNNING}:
            problem = control_plane.problem(what, part)
            yield Trouble(
                about=about,
                what=problem.what[0].lower() + problem.what[1:],
                names=(part.get("name", ""),) if part else (),
                why=(problem.why,),
                fix="run Create: it repairs what the settings describe" if part else problem.fix,
            )
    if not case.document:
        return
    yield from _nodes(case)
    given_up = [work for work in case.works if work.state is JobState.GIVEN_UP]
    for (_, message, advice), jobs in _alike(given_up).items():
        yield Trouble(
            about=About.JOB,
            what=_of_jobs(jobs, "given up"),
            count=len(jobs),
            names=tuple(job.name for job in jobs),
            why=(message,) if message else (),
            fix=advice,
        )
    for it in case.requests:
        if it.state is RequestState.FAILED:
            lack = f" for lack of {it.waits_for}" if it.waits_for else ""
            yield Trouble(
                about=About.REQUEST,
                what=f"the request {it.name} failed{lack}",
                names=(it.name,),
                why=_why(it),
                fix=it.advice,
            )


def waiting(case: Case) -> Iterator[Waiting]:
    """What is under way or waits."""
    for what, about, part in _parts(case):
        if part and State.of(part) in _PASSING:
            words = f"{what[0].lower()}{what[1:]} is being changed by GKE"
            yield Waiting(about=about, what=words, why=(control_plane.said(part),))
    # Kueue passes on what the autoscaler says of a job's request: once is enough.
    said = {request.message for request in case.requests}
    for is_outside, works in enumerate((case.works, case.outside)):
        waits = [work for work in works if work.state in _WAITING]
        for (state, message, advice), jobs in _alike(waits).items():
            tries = min((job.next_try for job in jobs if job.next_try), default=None)
            place = jobs[0].place if len(jobs) == 1 else None
            yield Waiting(
                about=About.JOB,
                what=_of_jobs(jobs, _WAITING[state][is_outside])
                + (f", number {place:,} in its queue" if place else ""),
                count=len(jobs),
                names=tuple(job.name for job in jobs),
                seconds=_age([job.created for job in jobs], case.clock),
                why=(message,) if message and message not in said else (),
                advice=advice,
                **_until(tries, "Kueue asks for nodes again", case.clock),
            )
    for it in case.requests:
        if it.state in _UNDER_WAY:
            yield Waiting(
                about=About.REQUEST,
                what=_UNDER_WAY[it.state].format(it),
                names=(it.name,),
                seconds=_age([it.since or it.created], case.clock),
                why=_why(it),
                advice=it.advice,
                **_until(it.until, it.then, case.clock),
            )
    for nodes in case.nodes:
        yield from health.waiting(nodes)


def _parts(case: Case) -> Iterator[tuple[str, About, Mapping[str, Any]]]:
    """The cluster and its pools, those that are missing too: in words, and as Google has them."""
    yield "The cluster", About.CLUSTER, case.document
    there = {pool["name"]: pool for pool in case.document.get("nodePools", [])}
    for name in dict.fromkeys([*there, *(case.expected if case.document else ())]):
        yield f"The node pool {name}", About.POOL, there.get(name, {})


def _nodes(case: Case) -> Iterator[Trouble]:
    """Nodes that are missing, not ready or have a fault."""
    documents = {pool["name"]: pool for pool in case.document.get("nodePools", [])}
    there = {nodes.pool: nodes for nodes in case.nodes}
    for pool in case.machines:
        count, refused = missing(pool), case.refused.get(pool.name, ())
        told = [(it.what, tuple(dict.fromkeys(it.why.splitlines())), it.fix) for it in refused]
        if not refused and case.counted:
            what = f"{pool.there} of {(pool.there or 0) + count} nodes of {pool.name} exist"
            told = [(what, (), "wait: GKE goes on trying to make them")]
        for what, why, fix in told if count else ():
            yield Trouble(
                about=About.POOL, what=what, count=count, why=why, fix=fix, by_itself=True
            )
        if pool.name in there:
            document, gpus = documents.get(pool.name, {}), case.gpus.get(pool.name, 0)
            yield from health.troubles(there[pool.name], gpus, document, pool.mode, case.clock)


def missing(pool: PoolNow) -> int:
    """How many nodes a pool lacks; 0 where that is not known.

    Of a pool that scales automatically its least number counts.
    """
    least = pool.asked if pool.asked is not None else pool.least or 0
    return 0 if pool.there is None else max(0, least - pool.there)


def _why(request: NodeRequest) -> tuple[str, ...]:
    told = ": ".join(filter(None, [request.reason, request.message]))
    return (told,) if told else ()


def _alike(works: Sequence[Workload]) -> dict[tuple[JobState, str, str], list[Workload]]:
    """Jobs with the same state, message and advice."""
    alike: dict[tuple[JobState, str, str], list[Workload]] = collections.defaultdict(list)
    for work in works:
        alike[work.state, work.message, work.advice].append(work)
    return alike


def _of_jobs(jobs: Sequence[Workload], state: str) -> str:
    return f"{jobs[0].name} {state}" if len(jobs) == 1 else f"{len(jobs):,} jobs {state}"


def _age(moments: Sequence[str | None], clock: Clock) -> int | None:
    """For how long the oldest has been there, in seconds of cloud time; None if not known."""
    created = min(filter(None, moments), default=None)
    return int(health.age(created, clock)) if created else None


class _Until(TypedDict, total=False):
    until: str | None
    until_seconds: int
    then: str


def _until(moment: str | None, then: str, clock: Clock) -> _Until:
    """Until when something waits, and what happens then; nothing for a moment that is over."""
    left = health.until(moment, clock) if moment else 0
    return _Until(until=moment, until_seconds=left, then=then) if left else {}


# ------------------------------------------------------------------ as the groups of VMs tell it


def refused(
    api: GoogleApi, record: Record, document: Mapping[str, Any], pools: Sequence[PoolNow]
) -> dict[str, list[Problem]]:
    """Name of a pool that lacks nodes -> what Google refuses."""
    urls = {it["name"]: it.get("instanceGroupUrls", []) for it in document.get("nodePools", [])}
    return {
        pool.name: [
            problem
            for url in urls.get(pool.name, [])
            for problem in _refused_group(api, record, pool, url)
        ]
        for pool in pools
        if missing(pool)
    }


def _refused_group(api: GoogleApi, record: Record, pool: PoolNow, url: str) -> list[Problem]:
    """What the group of a pool is refused; nothing if these credentials may not read it."""
    zone, name = _place(url)
    group = Group(
        project=record.project_id,
        zone=zone,
        name=name,
        size=(pool.there or 0) + missing(pool),
        machine_type=pool.machine_type,
        pool=pool.name,
    )
    try:
        members = api.managed_instances(group.project, zone, name)
    except GoogleApiError:
        return []
    texts = replace(_REFUSED, words=f"{_run(members)} of {group.size} {group.members} run")
    return machines.explain(group, refusals.of_instances(members), texts, api)


def running(api: GoogleApi, record: Record, document: Mapping[str, Any]) -> dict[str, int | None]:
    """Name of a pool -> how many of its nodes run, by their groups; None if these may not be read.

    It is for when Kubernetes can't be asked: a node that runs need not be ready.
    """
    found: dict[str, int | None] = {}
    for pool in document.get("nodePools", []):
        try:
            found[pool["name"]] = sum(
                _run(api.managed_instances(record.project_id, *_place(url)))
                for url in pool.get("instanceGroupUrls", [])
            )
        except GoogleApiError:
            found[pool["name"]] = None
    return found


def _run(members: Sequence[Mapping[str, Any]]) -> int:
    return sum(one.get("instanceStatus") == "RUNNING" for one in members)


def _place(url: str) -> tuple[str, str]:
    """The zone and the name of a group."""
    return url.partition("/zones/")[2].partition("/")[0], url.rpartition("/")[2]
