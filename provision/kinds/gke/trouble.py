"""What is broken in a GKE cluster, and what is only under way."""

from __future__ import annotations

import collections
import datetime as dt
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, assert_never

from provision.documents.gke_status import JobState, RequestState
from provision.documents.status import About, Trouble, Waiting
from provision.kinds.gke import node_ends, node_faults, states
from provision.kinds.gke.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.documents.gke_status import NodePool, NodeRequest, Workload
    from provision.documents.status import PoolNow
    from provision.errors import Problem
    from provision.kinds.gke.kubernetes.nodes import Nodes
    from provision.time.clock import Clock


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a look at a cluster has found."""

    document: Mapping[str, Any]  # the cluster as Google's API returns it; {} if it does not exist
    pools: tuple[NodePool, ...]
    machines: tuple[PoolNow, ...]  # the same with what was asked for
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
            problem = states.problem(what, part)
            yield Trouble(
                about=about,
                what=problem.what[0].lower() + problem.what[1:],
                names=(part.get("name", ""),) if part else (),
                why=(problem.why,),
                fix="run Create: it repairs what the settings describe" if part else problem.fix,
            )
    if case.document:
        yield from _nodes(case)
        yield from _jobs(case)
        yield from _requests(case)


def waiting(case: Case) -> Iterator[Waiting]:
    """What is under way or waits."""
    for what, about, part in _parts(case):
        if part and State.of(part) in _PASSING:
            yield Waiting(
                about=about,
                what=f"{what[0].lower()}{what[1:]} is being changed by GKE",
                why=(states.said(part),),
            )
    # Kueue passes on what the autoscaler says of a job's request: once is enough.
    said = {request.message for request in case.requests}
    for works in (case.works, case.outside):
        waits = [work for work in works if _waits(work.state)]
        for (state, message, advice), jobs in _alike(waits).items():
            tries = min((job.next_try for job in jobs if job.next_try), default=None)
            left = _left(tries, case.clock)
            yield Waiting(
                about=About.JOB,
                what=_of_jobs(jobs, _where(state, is_queued=works is case.works)) + _place(jobs),
                count=len(jobs),
                names=tuple(job.name for job in jobs),
                seconds=_age([job.created for job in jobs], case.clock),
                why=(message,) if message and message not in said else (),
                advice=advice,
                until=tries if left else None,
                until_seconds=left,
                then="Kueue asks for nodes again" if left else "",
            )
    for request in case.requests:
        what = _under_way(request)
        if what:
            left = _left(request.until, case.clock)
            yield Waiting(
                about=About.REQUEST,
                what=what,
                names=(request.name,),
                seconds=_age([request.since or request.created], case.clock),
                why=_why(request),
                advice=request.advice,
                until=request.until if left else None,
                until_seconds=left,
                then=request.then if left else "",
            )
    for nodes in case.nodes:
        yield from node_faults.waiting(nodes)


_PASSING = frozenset({State.PROVISIONING, State.RECONCILING})


def _parts(case: Case) -> Iterator[tuple[str, About, Mapping[str, Any]]]:
    """The cluster and its pools, those that are missing too: in words, and as Google has them."""
    yield "The cluster", About.CLUSTER, case.document
    there = {pool["name"]: pool for pool in case.document.get("nodePools", [])}
    missing = [name for name in case.expected if name not in there] if case.document else []
    for name in [*there, *missing]:
        yield f"The node pool {name}", About.POOL, there.get(name, {})


def _nodes(case: Case) -> Iterator[Trouble]:
    """Nodes that are missing, not ready or have a fault."""
    documents = {pool["name"]: pool for pool in case.document.get("nodePools", [])}
    there = {nodes.pool: nodes for nodes in case.nodes}
    for pool in case.machines:
        refused = case.refused.get(pool.name, ())
        if missing(pool) and (refused or case.counted):
            yield from _missing(pool, refused)
        if pool.name in there:
            document, gpus = documents.get(pool.name, {}), case.gpus.get(pool.name, 0)
            yield from node_faults.troubles(there[pool.name], gpus, document, pool.mode, case.clock)


def missing(pool: PoolNow) -> int:
    """How many nodes a pool lacks; 0 where that is not known.

    `pool`: the pool; of one that scales automatically its least number counts.
    """
    least = pool.asked if pool.asked is not None else pool.least or 0
    return 0 if pool.there is None else max(0, least - pool.there)


def _missing(pool: PoolNow, refused: Sequence[Problem]) -> Iterator[Trouble]:
    count = missing(pool)
    for problem in refused:
        yield Trouble(
            about=About.POOL,
            what=problem.what,
            count=count,
            why=tuple(dict.fromkeys(problem.why.splitlines())),
            fix=problem.fix,
            by_itself=True,
        )
    if not refused:
        yield Trouble(
            about=About.POOL,
            what=f"{pool.there} of {(pool.there or 0) + count} nodes of {pool.name} exist",
            count=count,
            fix="wait: GKE goes on trying to make them",
            by_itself=True,
        )


def _jobs(case: Case) -> Iterator[Trouble]:
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


def _requests(case: Case) -> Iterator[Trouble]:
    for request in case.requests:
        if request.state is RequestState.FAILED:
            yield Trouble(
                about=About.REQUEST,
                what=f"the request {request.name} failed"
                + (f" for lack of {request.waits_for}" if request.waits_for else ""),
                names=(request.name,),
                why=_why(request),
                fix=request.advice,
            )


def _why(request: NodeRequest) -> tuple[str, ...]:
    told = ": ".join(filter(None, [request.reason, request.message]))
    return (told,) if told else ()


def _under_way(request: NodeRequest) -> str:
    """What a request waits for; "" if it waits no longer."""
    match request.state:
        case RequestState.PENDING:
            return f"the request {request.name} waits for {request.waits_for}"
        case RequestState.ACCEPTED | RequestState.WAITING:
            return f"the request {request.name} waits in Google's queue for {request.waits_for}"
        case RequestState.PROVISIONED:
            return f"the nodes of the request {request.name} have come, its job is to start"
        case (
            RequestState.FAILED
            | RequestState.RUNNING
            | RequestState.EXPIRED
            | RequestState.DONE
            | RequestState.ENDED
        ):
            return ""
        case _:
            assert_never(request.state)


def _waits(state: JobState) -> bool:
    return state in {JobState.PENDING, JobState.WAITING_FOR_NODES, JobState.STARTING}


def _where(state: JobState, *, is_queued: bool) -> str:
    """What a job that waits is doing, in words."""
    if not is_queued:
        doing = "waits for nodes" if state is JobState.PENDING else "is starting"
        return f"{doing}, in no queue"
    return "queued" if state is JobState.PENDING else str(state)


def _place(jobs: Sequence[Workload]) -> str:
    """The place of a job that waits alone; "" for several, or if it is not known."""
    return f", number {jobs[0].place:,} in its queue" if len(jobs) == 1 and jobs[0].place else ""


def _alike(
    works: Sequence[Workload],
) -> dict[tuple[JobState, str, str], list[Workload]]:
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
    if created is None:
        return None
    return int(clock.since(dt.datetime.fromisoformat(created).timestamp()))


def _left(moment: str | None, clock: Clock) -> int | None:
    """How long it is until a moment, in seconds of cloud time; None for one that is over."""
    return (moment and node_ends.until(moment, clock)) or None
