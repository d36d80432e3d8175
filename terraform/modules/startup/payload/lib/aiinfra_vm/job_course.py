"""What follows for a job from what is known: pure, so that tests give it histories.

All VMs of an attempt begin together or none does: each says that it is ready, and then the leader
says that it runs. One that fails ends it on all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Iterable, Mapping

from aiinfra_vm.jobs import Course, Doubt, Failure, Node, Phase, Report, Spec, State

if TYPE_CHECKING:
    from aiinfra_vm.roster import Roster

_PREPARING = 900.0  # seconds until a VM that does not get ready is given up
_PULLING = 2700.0  # the same of one that may have to install docker, and to pull an image
STOPPING = 150.0
"""Seconds until nobody waits any longer for VMs that were told to end; they kill after 120."""
ALONE = 60.0
"""Seconds until machines that have not met look wrong: launchers meet first, and then load."""
NO_GPU = 300.0
"""Seconds until GPUs that nobody uses do: before its first use a program loads weights and data."""
_MOST_EVENTS = 50
_LONG = 600.0  # seconds after which a failure of the program's own may be another one next time
_NEVER_RUNS = (126, 127)  # a shell's exit codes for what can't be executed, or is not there
_PAUSE = 10.0  # seconds until the first restart after such a failure; it doubles with each
_LONGEST_PAUSE = 300.0


def follow(  # noqa: PLR0913 - all that is known
    course: Course,
    spec: Spec,
    known: Roster,
    reports: Mapping[str, Report],
    now: float,
    *,
    cancelled: bool,
    host: str | None = None,
) -> Course:
    """The course that follows; the same if nothing is new.

    `reports`: what VMs say of this job, by name; may be of earlier attempts. `host`: the number of
    the one VM that a job that waits is to run on, "" if there is none at present; None for all VMs.
    """
    told = of_attempt(course, reports)
    lost = [node for node in course.nodes if not _is_there(node, known)]
    if course.state is State.WAITING:
        return _waiting(course, spec, known, now, host, cancelled=cancelled)
    if course.state is State.PREPARING:
        return _preparing(course, spec, told, lost, now, cancelled=cancelled)
    if course.state is State.RUNNING:
        return _running(course, told, lost, now, cancelled=cancelled)
    if course.state is State.STOPPING:
        return _stopping(course, spec, told, lost, now, cancelled=cancelled)
    return course


def of_attempt(course: Course, reports: Mapping[str, Report]) -> dict[str, Report]:
    """What the VMs of this attempt say of it."""
    found = ((node, reports.get(node.name)) for node in course.nodes)
    return {
        node.name: it
        for node, it in found
        if it and (it.attempt, it.instance_id) == (course.attempt, node.instance_id)
    }


def _is_there(node: Node, known: Roster) -> bool:
    seat = known.seat(node.name)
    return seat is not None and seat.present and seat.member.instance_id == node.instance_id


def _waiting(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    known: Roster,
    now: float,
    host: str | None,
    *,
    cancelled: bool,
) -> Course:
    held = kept_waiting(course, spec, known, now, cancelled=cancelled)
    if held is not None:
        return held
    wanted = spec.nodes or known.nnodes
    there = [seat for seat in known.seats if seat.present][:wanted]
    if host is not None:
        there = [it for it in known.seats if it.present and it.member.instance_id == host]
        if not there:
            return course._replace(why="Ray's head is not there")
    elif len(there) < wanted:
        return course._replace(why=f"{len(there)} of {wanted} VMs are there")
    nodes = tuple(
        Node(rank, seat.member.name, seat.member.instance_id, seat.member.address)
        for rank, seat in enumerate(there)
    )
    found = to(course, State.PREPARING, now, "the VMs get ready")
    return found._replace(attempt=course.attempt + 1, nodes=nodes, failure=None)


def kept_waiting(
    course: Course, spec: Spec, known: Roster, now: float, *, cancelled: bool
) -> Course | None:
    """The course of one that waits and is not to begin now, whatever is free; None if it may."""
    if cancelled:
        return to(course, State.CANCELLED, now, "it was cancelled")
    if course.ends is not None and now >= course.ends:
        return event(to(course, State.FAILED, now), "--time is over")
    wanted, why = spec.nodes or known.nnodes, _pausing(course, now)
    if wanted > known.nnodes:
        why = f"it wants {wanted} VMs, and the group is to have {known.nnodes}"
    return course._replace(why=why) if why else None


def _pausing(course: Course, now: float) -> str:
    """Why a program that has failed is not begun again yet; "" if it may be."""
    if course.failure is None or course.failure.ran is None:
        return ""
    pause = min(_LONGEST_PAUSE, _PAUSE * 2 ** min(course.failures - 1, 5))
    is_over = now >= course.since + pause
    return "" if is_over else f"it begins again {pause:.0f} s after its last failure"


def _preparing(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    told: Mapping[str, Report],
    lost: list[Node],
    now: float,
    *,
    cancelled: bool,
) -> Course:
    if cancelled:
        return to(course, State.STOPPING, now, "it was cancelled")
    for node in course.nodes:
        found = told.get(node.name)
        if found is not None and found.is_over:
            return to(course, State.STOPPING, now, failure=failure_of(node, found))
    late = (
        []
        if now - course.since < (_PULLING if spec.image else _PREPARING)
        else [node for node in course.nodes if node.name not in told]
    )
    if lost or late:
        # Nothing has begun, so nothing has failed.
        why = f"{_named(lost)} was lost" if lost else f"{_named(late)} did not get ready in time"
        return to(course, State.STOPPING, now, f"{why} before it began")
    return course if len(told) < len(course.nodes) else running(course, spec, now)


def running(course: Course, spec: Spec, now: float) -> Course:
    """The course from when all have begun."""
    began = now if course.began is None else course.began
    ends = None if spec.seconds is None else began + spec.seconds
    course = to(course, State.RUNNING, now)
    return course._replace(began=began, ends=ends, failure=None, gpu_use=None)


def _running(
    course: Course,
    told: Mapping[str, Report],
    lost: list[Node],
    now: float,
    *,
    cancelled: bool,
) -> Course:
    if cancelled:
        return to(course, State.STOPPING, now, "it was cancelled")
    ended = [(node, told[node.name]) for node in course.nodes if _has_ended(node, told)]
    failed = [(node, it) for node, it in ended if it.code != 0 or it.why]
    if failed:
        # The first that is heard of; `_first` knows better, once all have ended.
        return to(course, State.STOPPING, now, failure=failure_of(*min(failed, key=_turn)))
    gone = [node for node in lost if not _has_ended(node, told)]
    if gone:
        return to(course, State.STOPPING, now, failure=_loss(gone[0], told))
    if len(ended) == len(course.nodes):
        return to(course, State.SUCCEEDED, now)
    return _doubted(measured(course, told.values()), told)


def measured(course: Course, told: Iterable[Report], step: int = 1) -> Course:
    """It with how busy its GPUs are, by those that say so; a change of less than `step` is none."""
    used = [it.gpu_use for it in told if it.gpu_use is not None]
    if not used:
        return course
    mean = round(sum(used) / len(used))
    is_new = course.gpu_use is None or abs(mean - course.gpu_use) >= step
    return course._replace(gpu_use=mean) if is_new else course


_DOUBTS = {
    Doubt.ALONE: (
        "have not connected to each other",
        (
            f"after {ALONE:.0f} s {{}}: does each train alone? Which variables a launcher reads:"
            " docs/how-to/launchers.md"
        ),
        "its processes have connected to each other now",
    ),
    Doubt.NO_GPU: (
        "uses a GPU",
        # Not which machines: those that see it too are heard of one after the other.
        (
            f"after {NO_GPU:.0f} s it has machines on which no process uses a GPU (Jobs names"
            " them): does it still load, or does its framework see none?"
            " docs/how-to/look-after-a-cluster.md"
        ),
        "its machines use their GPUs now",
    ),
    Doubt.SOCKETS: (
        "not by the network of the GPUs",
        (
            "{}, at a fraction of the bandwidth: the program has replaced NCCL's variables, or"
            " LD_LIBRARY_PATH: docs/how-to/gpu-network.md"
        ),
        "",
    ),
}
"""By what each is known in words, what is told of it, and what where it is over."""


def _doubted(course: Course, told: Mapping[str, Report]) -> Course:
    """What looks wrong with one that runs: an event when it is seen, and when it no longer is."""
    seen = {
        doubt: [it for it in course.nodes if it.name in told and doubt in told[it.name].doubts]
        for doubt in Doubt
    }
    # Where some have met, the others come late.
    if len(seen[Doubt.ALONE]) < len(course.nodes):
        seen[Doubt.ALONE] = []
    words = {
        Doubt.ALONE: f"its processes on {len(course.nodes)} machines have not connected to each"
        " other",
        Doubt.NO_GPU: f"no process on {_few(seen[Doubt.NO_GPU], course)} uses a GPU",
        Doubt.SOCKETS: "NCCL goes by sockets, not by the network of the GPUs",
    }
    before = course.why
    course = course._replace(why="; ".join(words[it] for it in Doubt if seen[it]))
    for doubt, (mark, what, over) in _DOUBTS.items():
        if seen[doubt] and mark not in before:
            course = event(course, what.format(words[doubt]))
        if over and mark in before and not seen[doubt]:
            course = event(course, over)
    return course


def _few(nodes: list[Node], course: Course) -> str:
    """Machines of a job in a few words, whose number may grow."""
    if len(nodes) == len(course.nodes):
        return "its machines"
    return _named(nodes[:1]) + (f" and {len(nodes) - 1} more" if nodes[1:] else "")


def _stopping(  # noqa: PLR0913 - as above
    course: Course,
    spec: Spec,
    told: Mapping[str, Report],
    lost: list[Node],
    now: float,
    *,
    cancelled: bool,
) -> Course:
    silent = [node for node in course.nodes if not _has_ended(node, told)]
    if now - course.since < STOPPING and any(node not in lost for node in silent):
        return course
    if cancelled:
        return to(course, State.CANCELLED, now, "it was cancelled")
    if course.failure is None:  # it never began
        return event(to(course, State.WAITING, now), course.why)
    failure = _first(course, course.failure, told, silent)
    return failed(course, spec, failure, f"attempt {course.attempt} failed: {words(failure)}", now)


def failed(course: Course, spec: Spec, failure: Failure, what: str, now: float) -> Course:
    """What follows an attempt that failed: another one, or the end."""
    failures = course.failures + 1
    course = course._replace(failures=failures, failure=failure)
    if failure.final or failures > spec.restarts:
        return event(to(course, State.FAILED, now), what)
    none = why_not(spec, failure)
    if none:
        return event(to(course, State.FAILED, now), f"{what}; {none}")
    again = f"{what}; restart {failures} of {spec.restarts}"
    return event(to(course, State.WAITING, now), again)


def why_not(spec: Spec, failure: Failure) -> str:
    """Why no restart follows a failure of the program's own; "" if one does.

    A machine that was lost says nothing of the program, and a bug is there again next time.
    """
    if failure.ran is None or spec.restart_on == "any":
        return ""
    is_bug = failure.ran < _LONG or failure.code in _NEVER_RUNS
    if not is_bug and spec.restart_on != "lost":
        return ""
    return (
        f"no restart: it failed after {failure.ran:.0f} s with all of its machines there, and"
        f" {'another attempt would do the same' if is_bug else '--restart-on is lost'};"
        " --restart-on any begins it again all the same"
    )


def _has_ended(node: Node, told: Mapping[str, Report]) -> bool:
    found = told.get(node.name)
    return found is not None and found.is_over


def _first(
    course: Course, so_far: Failure, told: Mapping[str, Report], silent: list[Node]
) -> Failure:
    """What failed first, now that all is known: a VM that is gone makes the others fail."""
    if so_far.final:
        return so_far
    if silent:
        return _loss(silent[0], told)
    own = [(node, told[node.name]) for node in course.nodes if not told[node.name].told]
    failed = [(node, it) for node, it in own if it.code != 0 or it.why]
    return failure_of(*min(failed, key=_turn)) if failed else so_far


def _turn(one: tuple[Node, Report]) -> tuple[bool, float]:
    """What comes first of failures: that of a VM that was told of its end makes its peers fail."""
    _, told = one
    return not told.why, told.at


def _loss(node: Node, told: Mapping[str, Report]) -> Failure:
    """A VM that went without a word, or after a notice of its end."""
    noticed = told[node.name].why if node.name in told else ""
    cause = noticed or f"the VM {node.name} was lost, or does not answer"
    return Failure(node.name, node.rank, None, cause, "", final=False)


def failure_of(node: Node, found: Report) -> Failure:
    """What a VM says of its part, as a failure."""
    cause = "; ".join(filter(None, [found.why, found.cause]))
    final = found.final or found.phase is Phase.REFUSED
    ran = None if found.why else found.ran
    return Failure(node.name, node.rank, found.code, cause, found.tail, final, ran)


def words(failure: Failure) -> str:
    """What happened, in a few words."""
    code = "" if failure.code is None else f"exit code {failure.code}"
    what = ": ".join(filter(None, [code, failure.cause])) or "it did not begin"
    return f"rank {failure.rank} ({failure.vm}), {what}"


def to(
    course: Course, state: State, now: float, why: str = "", failure: Failure | None = None
) -> Course:
    """The course in another state, from now on."""
    return course._replace(state=state, since=now, why=why, failure=failure or course.failure)


def event(course: Course, what: str) -> Course:
    """The course with one more thing that has happened."""
    return course._replace(events=(*course.events, what)[-_MOST_EVENTS:])


def _named(nodes: Iterable[Node]) -> str:
    return ", ".join(node.name for node in nodes)
