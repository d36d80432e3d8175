"""What is broken in a GKE cluster and on its nodes, what fixes it, and what is only under way.

GKE repairs nodes that are not ready, where a pool has auto-repair, and never a GPU: it only marks
some of them. What a person can do depends on how the pool gets its nodes ("Manage AI-optimized GKE
clusters", read 2026-11-23: a fault is reported by label on nodes that are bound to a reservation).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, TypedDict

from provision import words
from provision.codes import Code
from provision.documents import gke_status
from provision.documents.gke_status import JobState, NodeRequest, RequestState, Workload
from provision.documents.status import About, End, EndedBy, PoolMode, PoolNow, Trouble, Waiting
from provision.errors import Problem
from provision.google import refusals
from provision.google.api import GoogleApi, GoogleApiError
from provision.kinds import machines, status
from provision.kinds.gke import control_plane
from provision.kinds.gke.control_plane import State
from provision.kinds.status import alike, who
from provision.screens.layout import counted
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node, Nodes
    from provision.kinds.gke.kubernetes.status import Status
    from provision.state.record import Record
    from provision.time.clock import Clock

_PASSING: Final = frozenset({State.PROVISIONING, State.RECONCILING})
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
    counted: bool  # whether Kubernetes has told which nodes there are
    # name of a pool that lacks nodes -> what Google refuses, where it says so
    refused: Mapping[str, Sequence[Problem]]
    told: Status  # what Kubernetes has told
    gpus: Mapping[str, int]  # GPU pool that Create made -> how many GPUs each of its nodes has
    clock: Clock  # the clock of Google Cloud
    lost: tuple[Problem, ...] = ()  # accounts of nodes and pods that are not there any more


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
    for one in case.lost:
        yield status.trouble(one, About.CLUSTER)
    yield from _nodes(case)
    yield from case.told.faults
    given_up = [work for work in case.told.workloads if work.state is JobState.GIVEN_UP]
    for (_, message, advice), jobs in alike(given_up, _words).items():
        yield Trouble(
            about=About.JOB,
            what=_of_jobs(jobs, "given up"),
            **who(jobs),
            why=(message,) if message else (),
            fix=advice,
        )
    for it in case.told.requests:
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
    said = {request.message for request in case.told.requests}
    for is_outside, works in enumerate((case.told.workloads, case.told.outside)):
        waits = [work for work in works if work.state in _WAITING]
        for (state, message, advice), jobs in alike(waits, _words).items():
            tries = min((job.next_try for job in jobs if job.next_try), default=None)
            place = jobs[0].place if len(jobs) == 1 else None
            yield Waiting(
                about=About.JOB,
                what=_of_jobs(jobs, _WAITING[state][is_outside])
                + (f", number {place:,} in its queue" if place else ""),
                **who(jobs),
                seconds=_age([job.created for job in jobs], case.clock),
                why=(message,) if message and message not in said else (),
                advice=advice,
                **_until(tries, "Kueue asks for nodes again", case.clock),
            )
    for it in case.told.requests:
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
    for nodes in case.told.nodes:
        yield from doing(nodes)


def _parts(case: Case) -> Iterator[tuple[str, About, Mapping[str, Any]]]:
    """The cluster and its pools, those that are missing too: in words, and as Google has them."""
    yield "The cluster", About.CLUSTER, case.document
    there = control_plane.node_pools(case.document)
    for name in dict.fromkeys([*there, *(case.gpus if case.document else ())]):
        yield f"The node pool {name}", About.POOL, there.get(name, {})


def _nodes(case: Case) -> Iterator[Trouble]:
    """Nodes that are missing, not ready or have a fault."""
    documents = control_plane.node_pools(case.document)
    there = {nodes.pool: nodes for nodes in case.told.nodes}
    for pool in case.machines:
        count, refused = missing(pool), case.refused.get(pool.name, ())
        # Of one that is deleted, or was, nobody makes nodes; that has been told.
        part = documents.get(pool.name, {})
        is_made = bool(part) and State.of(part) is not State.STOPPING
        if not refused and case.counted and is_made:
            what = f"{pool.there} of {(pool.there or 0) + count} nodes of {pool.name} exist"
            wait = "wait: GKE goes on trying to make them"
            refused = [Problem(code=Code.WAITING, what=what, fix=wait)]
        for problem in refused if count else ():
            yield status.trouble(problem, About.POOL, count=count, passes=True)
        if pool.name in there:
            document, gpus = documents.get(pool.name, {}), case.gpus.get(pool.name, 0)
            yield from troubles(there[pool.name], gpus, document, pool.mode, case.clock)


def missing(pool: PoolNow) -> int:
    """How many nodes a pool lacks, of its least number if it scales; 0 where that is not known."""
    least = pool.asked if pool.asked is not None else pool.least or 0
    return 0 if pool.there is None else max(0, least - pool.there)


def _why(request: NodeRequest) -> tuple[str, ...]:
    told = ": ".join(filter(None, [request.reason, request.message]))
    return (told,) if told else ()


def _words(job: Workload) -> tuple[JobState, str, str]:
    """What jobs are told together by."""
    return job.state, job.message, job.advice


def _of_jobs(jobs: Sequence[Workload], state: str) -> str:
    return f"{jobs[0].name} {state}" if len(jobs) == 1 else f"{len(jobs):,} jobs {state}"


def _age(moments: Sequence[str | None], clock: Clock) -> int | None:
    """For how long the oldest has been there, in seconds of cloud time; None if not known."""
    created = min(filter(None, moments), default=None)
    return int(status.age(created, clock)) if created else None


class _Until(TypedDict, total=False):
    until: str | None
    until_seconds: int
    then: str


def _until(moment: str | None, then: str, clock: Clock) -> _Until:
    """Until when something waits, and what happens then; nothing for a moment that is over."""
    left = status.until(moment, clock) if moment else 0
    return _Until(until=moment, until_seconds=left, then=then) if left else {}


# ------------------------------------------------------------------ as the groups of VMs tell it


def refused(
    api: GoogleApi, record: Record, document: Mapping[str, Any], pools: Sequence[PoolNow]
) -> dict[str, list[Problem]]:
    """Name of a pool that lacks nodes -> what Google refuses."""
    found: dict[str, list[Problem]] = {pool.name: [] for pool in pools if missing(pool)}
    there = control_plane.node_pools(document)
    for pool in filter(missing, pools):
        for url in there.get(pool.name, {}).get("instanceGroupUrls", []):
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
                continue  # these credentials may not read it
            errors = refusals.of_instances(members)
            found[pool.name] += machines.explain_standing(group, errors, _run(members), api)
    return found


def running(api: GoogleApi, record: Record, document: Mapping[str, Any]) -> dict[str, int | None]:
    """Name of a pool -> how many of its nodes run, by their groups; None if these may not be read.

    It is for when Kubernetes can't be asked: a node that runs need not be ready.
    """
    found: dict[str, int | None] = {}
    for name, pool in control_plane.node_pools(document).items():
        try:
            found[name] = sum(
                _run(api.managed_instances(record.project_id, *_place(url)))
                for url in pool.get("instanceGroupUrls", [])
            )
        except GoogleApiError:
            found[name] = None
    return found


def _run(members: Sequence[Mapping[str, Any]]) -> int:
    return sum(one.get("instanceStatus") == "RUNNING" for one in members)


def _place(url: str) -> tuple[str, str]:
    """The zone and the name of a group."""
    return url.partition("/zones/")[2].partition("/")[0], url.rpartition("/")[2]


# ------------------------------------------------------------------ nodes: when they end

_DRIVER_SECONDS: Final = 900
"""How long a new node may take until its GPUs are counted: its driver is installed meanwhile."""
_IN_COMMAND: Final = 8
_IN_TEXT: Final = 3
"""The number of nodes that are named."""
_BEGIN_NOW: Final = "cloud.google.com/perform-maintenance=true"
_FLEX: Final = frozenset({PoolMode.FLEX_START, PoolMode.FLEX_START_QUEUED})


def all_ends(facts: ClusterFacts | None, nodes: Sequence[Nodes], clock: Clock) -> Iterator[End]:
    """When the nodes of each GPU pool end; those of the others never do."""
    others = {one.pool: one for one in nodes}
    free = 0
    for pool in facts.pools if facts else ():
        there = others.pop(pool.name, None)
        left = remaining(pool, there, clock)
        if there is not None and left is not None:
            (end,) = status.run_ends(left, "node", clock)
            yield replace(end, what=_named(there.each, pool.name))
        elif pool.max_run_seconds:
            yield End(
                what=f"each node of {pool.name}",
                how=EndedBy.RUN,
                words=f"{words.duration(pool.max_run_seconds)} after it came"
                + (", or when its job says" if pool.queued else ""),
            )
        elif there is not None:
            free += len(there.each)
    free += sum(len(one.each) for one in others.values())
    if free:
        yield status.never_ends(free, "node")
    for one in nodes:
        yield from _maintained(one, clock)


def remaining(pool: GpuPool | None, nodes: Nodes | None, clock: Clock) -> tuple[int, int] | None:
    """Seconds of cloud time until Google deletes the nodes of a pool that go first and last.

    GKE says on a node when that is. Without that, the pool's run duration counts (rule F7); in a
    queued pool each request has its own.
    """
    if pool is None or nodes is None:
        return None
    # All timestamps end with Z, so they sort as text.
    if ends := sorted(node.ends for node in nodes.each if node.ends):
        return status.until(ends[0], clock), status.until(ends[-1], clock)
    created = [node.created for node in nodes.each if node.created]
    if pool.queued or not (pool.max_run_seconds and created):
        return None
    run, ages = pool.max_run_seconds, [status.age(it(created), clock) for it in (min, max)]
    first, last = (max(0, int(run - it)) for it in ages)
    return first, last


def _maintained(nodes: Nodes, clock: Clock) -> Iterator[End]:
    """The announced maintenance of the hosts of a pool's nodes."""
    told = [
        (it.maintenance.begins, it)
        for it in nodes.each
        if it.maintenance and it.maintenance.begins and not it.maintenance.is_ongoing
    ]
    if not told:
        return
    told.sort(key=lambda it: it[0])
    names, first, last = [node.name for _, node in told], told[0][0], told[-1][0]
    early = _able(node for _, node in told)[:_IN_TEXT]
    more = f", or as soon as you say: kubectl label node {' '.join(early)} {_BEGIN_NOW}"
    some = ", ".join(names[:_IN_TEXT]) + (", ..." if len(names) > _IN_TEXT else "")
    yield End(
        what=f"{_named(names, nodes.pool)} ({some})",
        how=EndedBy.MAINTENANCE,
        first=first,
        last=last,
        first_seconds=status.until(first, clock),
        last_seconds=status.until(last, clock),
        words="Google maintains the host, which ends the pods on it" + (more if early else ""),
    )


def _named(nodes: Sequence[object], pool: str) -> str:
    return f"{counted(len(nodes), 'node')} of {pool}"


# ------------------------------------------------------------------ what is wrong with them


def nodes(
    pools: Sequence[Nodes], gpus: Mapping[str, int], clock: Clock
) -> tuple[gke_status.Node, ...]:
    """All nodes as Status tells them, those that need a look first, then those that end first."""
    found = [_told(node, it.pool, gpus.get(it.pool, 0), clock) for it in pools for node in it.each]
    return tuple(sorted(found, key=lambda it: (it.is_in_order, it.ends or "9", it.pool, it.name)))


def _told(node: Node, pool: str, gpus: int, clock: Clock) -> gke_status.Node:
    begins = node.maintenance.begins if node.maintenance else ""
    return gke_status.Node(
        name=node.name,
        pool=pool,
        ready=not node.unready,
        ends=node.ends or None,
        remaining_seconds=status.until(node.ends, clock) if node.ends else None,
        gpus=gpus or node.gpus,
        usable_gpus=node.usable,
        faults=faults(node, gpus, clock),
        cordoned=node.cordoned,
        maintenance=begins or None,
        maintenance_seconds=status.until(begins, clock) if begins else None,
    )


def faults(node: Node, gpus: int, clock: Clock) -> tuple[str, ...]:
    """What is wrong with a node that is ready or may be; () for nothing."""
    is_new = bool(node.created) and status.age(node.created, clock) < _DRIVER_SECONDS
    lacks = not node.unready and node.gpus < gpus and not is_new
    repair = node.maintenance if _is_repaired(node) else None
    recent = f"a GPU told of an error in the last hour (XID {', '.join(node.recent)})"
    found = (
        node.xids and f"a GPU is broken (XID {', '.join(node.xids)})",
        node.recent and recent,
        lacks and f"{node.gpus} of {counted(gpus, 'GPU')} there",
        node.usable < node.gpus and f"{node.usable} of {counted(node.gpus, 'GPU')} usable",
        repair and f"Google found a fault ({', '.join(repair.reasons)})",
        node.reported and f"reported to Google ({node.reported})",
    )
    return tuple(it for it in found if it)


def _is_repaired(node: Node) -> bool:
    """Whether Google itself has found the fault, and will repair the host."""
    return node.maintenance is not None and node.maintenance.is_repair


def troubles(
    pool: Nodes, gpus: int, document: Mapping[str, Any], mode: PoolMode | None, clock: Clock
) -> Iterator[Trouble]:
    """What is broken about the nodes of a pool: GPUs first, then nodes that are not ready."""
    by_faults = alike(pool.each, lambda node: faults(node, gpus, clock))
    by_faults.pop((), None)
    for found, them in by_faults.items():
        is_googles = all(node.reported or _is_repaired(node) for node in them)
        yield Trouble(
            about=About.POOL,
            what=f"{_named(them, pool.pool)} with a fault: {'; '.join(found)}",
            **who(them),
            why=(them[0].name,) if len(them) == 1 else (),
            fix=_sooner(them) if is_googles else _replace(them, document, mode),
            by_itself=is_googles,
        )
    # GKE cordons nodes that it upgrades.
    cordoned = [it for it in pool.each if it.cordoned and not (it.unready or it.is_leaving)]
    if cordoned and State.of(document) is State.RUNNING:
        yield Trouble(
            about=About.POOL,
            what=f"{_named(cordoned, pool.pool)} cordoned: no pod is put there",
            **who(cordoned),
            why=tuple(dict.fromkeys(it.cordon or "somebody has cordoned it" for it in cordoned)),
            fix="once it is to be used again: kubectl uncordon "
            + " ".join(it.name for it in cordoned[:_IN_COMMAND]),
        )
    them = [node for node in pool.each if node.unready]
    if them:
        repairs = (document.get("management") or {}).get("autoRepair")
        commands = [] if repairs else [*_commands(them, document, mode)]
        yield Trouble(
            about=About.POOL,
            what=f"{_named(them, pool.pool)} not ready",
            **who(them),
            why=tuple(node.unready for node in them),
            fix="\n".join(["if it stays so, have its VM replaced:", *commands] if commands else ()),
            by_itself=True,
        )


def doing(pool: Nodes) -> Iterator[Waiting]:
    """What Google is doing with the nodes of a pool."""
    maintained = [it for it in pool.each if it.maintenance and it.maintenance.is_ongoing]
    leaving = [it for it in pool.each if it.is_leaving and it not in maintained]
    for them, how in (
        (maintained, "under maintenance by Google"),
        (leaving, "about to be stopped"),
    ):
        if them:
            what = f"{_named(them, pool.pool)} {how}"
            why = (them[0].name,) if len(them) == 1 else ()
            yield Waiting(about=About.POOL, what=what, why=why, **who(them))


def _able(nodes: Iterable[Node]) -> list[str]:
    """The nodes whose maintenance one may have begin earlier."""
    return [it.name for it in nodes if it.maintenance and it.maintenance.can_begin_now]


def _sooner(them: Sequence[Node]) -> str:
    """How to have Google repair hosts earlier than it says; "" where it does not let one."""
    able = " ".join(_able(them)[:_IN_COMMAND])
    how = "Google repairs the host; to have it begin now, which ends the jobs on the node:"
    return f"{how}\nkubectl label node {able} {_BEGIN_NOW}" if able else ""


def _replace(them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None) -> str:
    """What to do about nodes with broken GPUs."""
    names = " ".join(node.name for node in them[:_IN_COMMAND])
    lines = [
        "keep new pods off it; the jobs on it end with its VM, and lose what is not saved:",
        f"kubectl cordon {names}",
    ]
    if mode is PoolMode.RESERVATION_BOUND:
        fault = "XID" if any(node.xids or node.recent for node in them) else "unspecified"
        lines += [
            "then report the fault, for another host of the reservation:",
            f"kubectl label node {names} cloud.google.com/fault-behavior={fault}",
        ]
    else:
        lines += ["then have its VM replaced:", *_commands(them, document, mode)]
    if mode in _FLEX:
        lines.append("with flex start only your account team can report the host to Google")
    return "\n".join(lines)


def _commands(
    them: Sequence[Node], document: Mapping[str, Any], mode: PoolMode | None
) -> Iterator[str]:
    """What has the VMs of nodes replaced, through the groups of their pool.

    A node that kubectl deletes may leave its VM behind, which is billed. In a pool of a fixed size
    the group recreates the VM; one that scales gets another node when pods want one, and VMs of
    flex start can't be recreated.
    """
    scales = (document.get("autoscaling") or {}).get("enabled")
    verb = "delete-instances" if scales or mode in _FLEX else "recreate-instances"
    for url in document.get("instanceGroupUrls") or []:
        project, _, zone, _, group = url.partition("/projects/")[2].split("/")
        names = [node.name for node in them if node.zone == zone][:_IN_COMMAND]
        if names:
            yield (
                f"gcloud compute instance-groups managed {verb} {group}"
                f" --zone {zone} --project {project} --instances={','.join(names)}"
            )
