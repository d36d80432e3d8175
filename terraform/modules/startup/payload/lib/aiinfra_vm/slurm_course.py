"""What follows for a job of Run that goes through Slurm: pure, so that tests give it histories.

Slurm says which VMs a job has, and when; its order is Slurm's. What an attempt comes to is told by
the VMs' own reports, as without Slurm (`job_course`): it knows of no cause, and forgets.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Mapping, NamedTuple, Sequence

from aiinfra_vm import job_course, jobs
from aiinfra_vm.jobs import Course, Failure, Node, State
from aiinfra_vm.slurm_queue import SHORTEST, SIGNALLED

if TYPE_CHECKING:
    from aiinfra_vm.jobs import Report, Spec
    from aiinfra_vm.roster import Roster
    from aiinfra_vm.slurm_queue import Entry

_ENDING = 30.0  # seconds that a job may stay in Slurm's queue when all of it has ended
_OURS = f"{SHORTEST}:00"
_UNABLE = ("FAILED", "TIMEOUT", "OUT_OF_MEMORY", "DEADLINE", "COMPLETED")
_COUNTS = ("waiting", "running", "succeeded", "failed", "cancelled")
NEW = "Slurm has not looked at it yet"
_KEPT = "its VMs end before it would, or another job has them next: a shorter --time may begin"
_REASONS = {
    "JobArrayTaskLimit": "as many of its tasks run as may at once",
    "BeginTime": "it begins again in a moment",
    "ReqNodeNotAvail, Reserved": _KEPT,
    "ReqNodeNotAvail, May be reserved": _KEPT,
    "ReqNodeNotAvail": "it waits for VMs that are down or drained (Status names them)",
    "Nodes required for job are": "it waits for VMs that are down or drained (Status names them)",
}


class World(NamedTuple):
    """What is known beside the job itself."""

    queue: list[Entry]
    known: Roster
    joined: int  # how many VMs Slurm knows
    now: float


class Turn(NamedTuple):
    """What follows: the course, and what Slurm is to be asked for."""

    course: Course
    submit: bool = False  # the next attempt
    tasks: tuple[int, ...] = ()  # of an array, which of them
    cancel: tuple[str, ...] = ()
    lengthen: tuple[str, ...] = ()


def follow(
    course: Course, spec: Spec, reports: Mapping[str, Report], world: World, *, cancelled: bool
) -> Turn:
    """What follows; the same course if nothing is new."""
    own = [it for it in world.queue if it.job == course.name]
    if course.state.is_over:
        turn = Turn(course)
    elif spec.array is None:
        turn = _whole(course, spec, own, reports, world, cancelled=cancelled)
    else:
        turn = _array(course, spec, own, reports, world, cancelled=cancelled)
    after = turn.course
    wanted = after.attempt + (after.state is State.WAITING)
    # One that is over may still be on its way out; of an attempt that failed, a VM may be lost.
    is_late = not after.state.is_over or world.now - after.since > _ENDING
    stale = [
        it.number
        for it in own
        if not it.is_over and is_late and (it.attempt != wanted or after.state.is_over)
    ]
    short = () if spec.seconds else (it.number for it in own if _is_short(it))
    cancel = dict.fromkeys((*turn.cancel, *stale))
    return turn._replace(cancel=tuple(cancel), lengthen=tuple(short))


def _is_short(entry: Entry) -> bool:
    return entry.state == "RUNNING" and entry.limit == _OURS


def _whole(  # noqa: PLR0913 - all that is known
    course: Course,
    spec: Spec,
    own: Sequence[Entry],
    reports: Mapping[str, Report],
    world: World,
    *,
    cancelled: bool,
) -> Turn:
    now = world.now
    if course.state is State.WAITING:
        entry, more = _one(own, course.attempt + 1)
        if entry is None:
            return _asked_for(course, spec, reports, world, cancelled=cancelled)
        if entry.is_pending or (entry.state == "CANCELLED" and not entry.nodes):
            return _queued(course, spec, entry, more, world, cancelled=cancelled)
        course = job_course.to(course, State.PREPARING, now, "the VMs get ready")
        course = course._replace(attempt=course.attempt + 1, failure=None)
    entry, more = _one(own, course.attempt)
    if entry is not None:
        # Of one that ends Slurm names the VMs alone that still clean up, until it is over.
        if entry.nodes and course.state is State.PREPARING and entry.state != "COMPLETING":
            course = course._replace(nodes=_nodes(entry, world.known))
        if _is_unsure(course, entry, now):
            return Turn(course, cancel=more)
    told = job_course.of_attempt(course, reports)
    course = course._replace(nodes=_ranked(course.nodes, told))
    ended = [it for it in told.values() if it.is_over]
    if course.state is State.PREPARING and not told and entry and entry.state in _UNABLE:
        return Turn(_unable(course, spec, entry, now))
    # What Slurm does not know, it ends; of one without VMs nobody tells how it ended.
    lost = len([it for it in ended if it.why != SIGNALLED]) < max(len(course.nodes), 1)
    is_gone = entry is None or not course.nodes
    if is_gone and course.state is not State.STOPPING and lost:
        what = f"Slurm has lost attempt {course.attempt} with its head: it is begun again"
        return Turn(job_course.event(job_course.to(course, State.WAITING, now), what))
    if course.state is State.PREPARING and (ended or len(told) == len(course.nodes)):
        course = job_course.running(course, spec, now)
    # Who has not told of its end when all of the job is over does so no more.
    is_over = entry is None or entry.is_over
    known = world.known._replace(seats=()) if is_over else world.known
    # One that no VM has begun, Slurm itself has cancelled: a VM was not fit for it.
    off = cancelled or (entry is not None and entry.state == "CANCELLED" and bool(told))
    return Turn(job_course.follow(course, spec, known, reports, now, cancelled=off), cancel=more)


def _is_unsure(course: Course, entry: Entry, now: float) -> bool:
    """Whether Slurm does not say yet which VMs it has, or whether somebody cancels what it ends."""
    if course.state is State.PREPARING:
        return not course.nodes and not entry.is_over
    is_signalled = course.failure is not None and course.failure.cause.startswith(SIGNALLED)
    is_ending = course.state is State.STOPPING and entry.state == "COMPLETING"
    return is_ending and is_signalled and now - course.since < job_course.STOPPING


def _queued(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    entry: Entry,
    more: tuple[str, ...],
    world: World,
    *,
    cancelled: bool,
) -> Turn:
    """One that Slurm has not begun."""
    if entry.is_over:
        why = "somebody has cancelled it in Slurm"
        return Turn(job_course.to(course, State.CANCELLED, world.now, why))
    held = job_course.kept_waiting(course, spec, world.known, world.now, cancelled=cancelled)
    if held is not None and held.state.is_over:
        return Turn(held, cancel=(entry.number, *more))
    return Turn(course._replace(why=waits_for(entry, world.queue)), cancel=more)


def _one(own: Sequence[Entry], attempt: int) -> tuple[Entry | None, tuple[str, ...]]:
    """The job of an attempt, and those that it is there as once more: one was sent twice."""
    found = [it for it in own if it.attempt == attempt]
    alive = [it for it in found if not it.is_over]
    # The one that runs, else the first that was sent.
    order = sorted(alive or found, key=lambda it: (it.is_pending, it.since, it.number))
    first = next(iter(order), None)
    return first, tuple(it.number for it in alive if it is not first)


def _nodes(entry: Entry, known: Roster) -> tuple[Node, ...]:
    """The VMs of a job; of one that has no rank in the group, its name alone."""
    seats = ((rank, name, known.seat(name)) for rank, name in enumerate(entry.nodes))
    return tuple(
        Node(rank, name, seat.member.instance_id, seat.member.address)
        if seat
        else Node(rank, name, "0", "0.0.0.0")  # noqa: S104 - no address
        for rank, name, seat in seats
    )


def _ranked(nodes: tuple[Node, ...], told: Mapping[str, Report]) -> tuple[Node, ...]:
    """The VMs by the ranks that they have told: squeue has them in another order."""
    ranks = {name: it.rank for name, it in told.items() if it.rank is not None}
    free = iter(sorted(set(range(len(nodes))) - set(ranks.values())))
    # Of two that tell the same one is wrong: a program on a VM may write what it likes.
    if len(set(ranks.values())) < len(ranks) or not all(it < len(nodes) for it in ranks.values()):
        return nodes
    found = (it._replace(rank=ranks[it.name] if it.name in ranks else next(free)) for it in nodes)
    return tuple(sorted(found, key=lambda it: it.rank))


def _asked_for(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    reports: Mapping[str, Report],
    world: World,
    tasks: tuple[int, ...] = (),
    *,
    cancelled: bool,
) -> Turn:
    """One that is not in the queue, and is to be as soon as it may."""
    # More than there ever was: a runner tells of each attempt once.
    last = max((it.attempt for it in reports.values()), default=0)
    course = course._replace(attempt=max(course.attempt, last))
    held = job_course.kept_waiting(course, spec, world.known, world.now, cancelled=cancelled)
    if held is not None:
        return Turn(held)
    wanted = 1 if spec.array else spec.nodes or world.known.nnodes
    if world.joined < wanted:
        return Turn(course._replace(why=f"{world.joined} of {wanted} VMs are there"))
    return Turn(course, submit=True, tasks=tasks)


def _unable(course: Course, spec: Spec, entry: Entry, now: float) -> Course:
    """One of which Slurm could not begin the program that tells how far it is."""
    cause = f"it could not begin: {entry.state} {entry.reason} (Slurm)"
    vm = next(iter(entry.nodes), "")
    failure = Failure(vm, 0, None, cause, "", final=False)
    what = f"attempt {course.attempt} failed: {job_course.words(failure)}"
    return job_course.failed(course, spec, failure, what, now)


def waits_for(entry: Entry, queue: Sequence[Entry]) -> str:
    """Why a job waits, in words."""
    reason = entry.reason.replace("_", " ")
    if reason == "Resources":
        return f"it waits for {'GPUs' if entry.gpus else 'VMs'} that are in use"
    if reason == "Priority":
        before = {
            it.job or f"job {it.number.partition('_')[0]} of {it.user}": None
            for it in sorted(queue, key=lambda it: it.turn)
            if it.is_pending and not it.is_hopeless and it.turn < entry.turn
        }
        first, *others = before or [""]
        more = f" and {len(others)} more are" if others else " is"
        return f"{first}{more} before it" if first else "others are before it"
    if reason.startswith("JobHeld"):
        return f"somebody holds it: scontrol release {entry.number}"
    found = (words for begins, words in _REASONS.items() if reason.startswith(begins))
    return next(found, f"Slurm: {reason}" if reason else NEW)


def _array(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    own: Sequence[Entry],
    reports: Mapping[str, Report],
    world: World,
    *,
    cancelled: bool,
) -> Turn:
    tasks = _Tasks(course, spec, own, reports, world.known)
    if course.state is State.WAITING and not tasks.entries and tasks.open:
        turn = _asked_for(course, spec, reports, world, tasks.open, cancelled=cancelled)
    elif course.state is State.WAITING and all(it.is_pending for it in tasks.entries):
        held = job_course.kept_waiting(course, spec, world.known, world.now, cancelled=cancelled)
        if tasks.entries and held is not None and held.state.is_over:
            turn = Turn(held, cancel=tuple(it.number for it in tasks.entries))
        elif tasks.entries:
            turn = Turn(course._replace(why=waits_for(tasks.entries[0], world.queue)))
        else:
            turn = Turn(tasks.through(world.now))
    else:
        turn = _begun(course, tasks, world.now, cancelled=cancelled)
    after = turn.course
    return turn._replace(course=after._replace(tasks=tasks.counted(after.state)))


def _begun(course: Course, tasks: _Tasks, now: float, *, cancelled: bool) -> Turn:
    """An array of which a task has begun."""
    if course.state is State.WAITING:
        began = now if course.began is None else course.began
        course = job_course.to(course, State.RUNNING, now)
        course = course._replace(attempt=tasks.attempt, began=began, failure=None)
    waiting = tuple(it.number for it in tasks.live.values() if it.is_pending)
    if course.state is State.RUNNING and cancelled:
        course = job_course.to(course, State.STOPPING, now, "it was cancelled")
    if course.state is State.RUNNING:
        return Turn(course if tasks.live else tasks.through(now, course))
    # Each runner reads that, and ends its program; those that have not begun do not.
    if tasks.live and now - course.since < job_course.STOPPING:
        return Turn(course, cancel=waiting)
    return Turn(job_course.to(course, State.CANCELLED, now, "it was cancelled"))


class _Tasks:
    """The tasks of an array, by what Slurm has of the attempt and by what they have told."""

    def __init__(
        self,
        course: Course,
        spec: Spec,
        own: Sequence[Entry],
        reports: Mapping[str, Report],
        known: Roster,
    ) -> None:
        assert spec.array is not None  # noqa: S101 - for mypy
        self._course, self._spec, self._known = course, spec, known
        self._indices = spec.array.indices
        told = ((index, reports.get(jobs.task(index))) for index in self._indices)
        self._told = {index: report for index, report in told if report is not None}
        self.attempt = course.attempt + (course.state is State.WAITING)
        self.entries = [it for it in own if it.attempt == self.attempt]
        self._by_index = {it.task: it for it in self.entries if it.task is not None}
        self.live = {index: it for index, it in self._by_index.items() if not it.is_over}

    @property
    def open(self) -> tuple[int, ...]:
        """Those that are to be begun, or begun again."""
        return tuple(it for it in self._indices if not self._is_settled(it))

    def _is_settled(self, index: int) -> bool:
        """Whether no other attempt follows for a task: it is through, or it would fail again."""
        found = self._told.get(index)
        if found is None or not found.is_over:
            return False
        return found.is_good or self._is_final(self._failure(index))

    def _is_final(self, failure: Failure) -> bool:
        return failure.final or bool(job_course.why_not(self._spec, failure))

    def _failure(self, index: int) -> Failure:
        found = self._told.get(index)
        node = self._node(index)
        if found is None or not found.is_over:
            cause = (found.why if found else "") or f"the VM {node.name} was lost"
            return Failure(node.name, index, None, cause, "", final=False)
        return job_course.failure_of(node, found)

    def _node(self, index: int) -> Node:
        """The VM of a task, with the task's number as its rank."""
        entry, told = self._by_index.get(index), self._told.get(index)
        ids = {it.member.instance_id: it.member.name for it in self._known.seats}
        name = (
            entry.nodes[0]
            if entry and entry.nodes
            else ids.get(told.instance_id if told else "", "")
        )
        return Node(index, name, told.instance_id if told else "0", "")

    def through(self, now: float, course: Course | None = None) -> Course:
        """What follows when nothing of the attempt waits or runs."""
        course = course or self._course
        failures = [self._failure(it) for it in self._indices if self._has_failed(it)]
        if failures:
            first = min(
                [it for it in failures if not self._is_final(it)] or failures,
                key=lambda it: self._told[it.rank].at if it.rank in self._told else now,
            )
            what = (
                f"attempt {course.attempt}: {len(failures)} of {len(self._indices)} tasks failed,"
                f" first {job_course.words(first).replace('rank', 'task', 1)}"
            )
            return job_course.failed(course, self._spec, first, what, now)
        bad = [it for it in self._told if not self._told[it].is_good]
        is_off = any(it.state == "CANCELLED" and not it.nodes for it in self.entries)
        if self.open and not is_off:
            what = (
                f"{len(self.open)} tasks did not begin (their VM was not fit, or Slurm has lost"
                " them with its head): they are begun again"
            )
            return job_course.event(job_course.to(course, State.WAITING, now), what)
        if self.open:
            return job_course.to(course, State.CANCELLED, now, "somebody has cancelled it in Slurm")
        if bad:
            failure = self._failure(min(bad, key=lambda it: self._told[it].at))
            return job_course.to(course, State.FAILED, now, failure=failure)
        return job_course.to(course, State.SUCCEEDED, now)

    def _has_failed(self, index: int) -> bool:
        """Whether a task has failed in this attempt; one that Slurm has lost has not."""
        found, entry = self._told.get(index), self._by_index.get(index)
        if found is not None and found.attempt == self.attempt and found.is_over:
            return not found.is_good and (bool(self.entries) or found.why != SIGNALLED)
        if entry is None or not entry.is_over or not entry.nodes or entry.state == "CANCELLED":
            return False
        return found is None or not found.is_good

    def counted(self, state: State) -> dict[str, int]:
        """How many are how far."""
        found = Counter(self._word(index, state) for index in self._indices)
        return {word: found[word] for word in _COUNTS}

    def _word(self, index: int, state: State) -> str:
        told, entry = self._told.get(index), self.live.get(index)
        if told is not None and told.is_good:
            return "succeeded"
        if entry is not None and not state.is_over:
            return "waiting" if entry.is_pending else "running"
        if state is State.WAITING and not self._is_settled(index):
            return "waiting"
        if told is not None and (told.is_over or state is State.FAILED):
            return "failed"
        return "cancelled" if state.is_over or state is State.STOPPING else "waiting"
