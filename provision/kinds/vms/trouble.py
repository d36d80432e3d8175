"""What is broken in a group of VMs, and what is only under way."""

from __future__ import annotations

import collections
import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.documents.status import About, Trouble, Waiting
from provision.documents.vm_status import StartupState
from provision.google import refusals
from provision.kinds import shortage
from provision.kinds.ends import counted
from provision.kinds.vms import health, idle, roster, startup

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from provision.documents.vm_status import Vm
    from provision.errors import Problem
    from provision.google.api import GoogleApi
    from provision.kinds.vms.interruptions import Interruption, Member
    from provision.kinds.vms.lost_accounts import LostAccount
    from provision.kinds.vms.resize_requests import ResizeRequest
    from provision.spec.pools import Group
    from provision.time.clock import Clock

_NOTHING: Final = frozenset({"", "NONE"})
"""What a group does with a VM that it leaves alone."""
_LEFT: Final = 5
"""The VMs that one command names at most."""
_LINES: Final = 3
"""The last lines of output of a step that failed."""
_SILENT: Final = (
    "a VM that reports nothing may lack Google's guest agent in its image, or access to Google's"
    " APIs in its network"
)


@dataclass(frozen=True, kw_only=True)
class Case:
    """What a look at a group of VMs has found."""

    group: Group  # the group, with the machines that were asked for
    exists: bool  # whether the group exists
    wanted: int | None  # INSTANCE_COUNT; None if not known
    limit: int | None  # MAX_RUN_DURATION in seconds; None for none
    there: int  # the number of VMs that the group says are its own
    vms: tuple[Vm, ...]
    down: tuple[Member, ...]  # those of the group that do not run
    known: Mapping[str, Interruption]  # what Google did to VMs of its own accord, by name
    requests: tuple[ResizeRequest, ...]
    errors: Sequence[Mapping[str, Any]]  # Google's errors about VMs that do not come
    clock: Clock  # the clock of Google Cloud
    api: GoogleApi  # Google, for the places that have such machines
    bound: bool = False  # whether its VMs are bound to their reservation
    # whether the group, which is not of flex start, makes no VM again that fails
    unrepaired: bool = False
    idles: bool = False  # whether VMs of the group have powered themselves off
    lost: Sequence[LostAccount] = ()  # accounts that VMs act as, and that are not there any more

    @property
    def missing(self) -> int:
        """How many VMs neither exist nor are asked for."""
        asked = sum(one.count for one in self.requests if one.is_open)
        return max(0, (self.wanted or 0) - self.there - asked)


def found(case: Case) -> Iterator[Trouble]:
    """What is broken, the worst first."""
    if not case.exists:
        yield Trouble(
            about=About.MACHINES,
            what=f"the group {case.group.name} does not exist",
            why=("somebody deleted it after it was created",),
            fix="run Create to make it again, or Destroy if you are done",
        )
        return
    for one in case.lost:
        yield _of_problem(one.problem, About.MACHINES, one.vms)
    yield from _refused(case)
    yield from _down(case)
    yield from _missing(case)
    yield from _unrepaired(case)
    yield from _silent(case)
    yield from _unhealthy(case)
    yield from _failed(case)
    yield from _failing(case)
    yield from _late(case)
    yield from _partly(case)


def _silent(case: Case) -> Iterator[Trouble]:
    """VMs that run, and say nothing any more: what they told of their start-up is history."""
    mute = {name for one in case.lost for name in one.vms}
    alike: dict[str, list[Vm]] = collections.defaultdict(list)
    for vm in case.vms:
        if vm.silence and vm.name not in mute:
            alike[vm.silence].append(vm)
    for what, them in alike.items():
        yield Trouble(
            about=About.MACHINES,
            what=_said(what, _names(them)),
            count=len(them),
            names=_names(them),
            why=(roster.WHY_SILENT,),
            fix=roster.another_start(them[0].name, case.group),
        )


def _unhealthy(case: Case) -> Iterator[Trouble]:
    """VMs that run with faulty GPUs: Google moves them to another host only when a person asks."""
    where = f"{case.group.name} --zone {case.group.zone} --project {case.group.project}"
    for vm in case.vms:
        if vm.status == "RUNNING" and vm.faults:
            yield Trouble(
                about=About.MACHINES,
                what=f"the GPUs of {vm.name} complain: {vm.faults[0]}",
                names=(vm.name,),
                why=vm.faults[1:],
                fix="when nobody needs what runs there, "
                + health.another_host([vm.name], where, bound=case.bound),
            )


def _unrepaired(case: Case) -> Iterator[Trouble]:
    if case.unrepaired:
        yield Trouble(
            about=About.MACHINES,
            what=f"the group {case.group.name} makes no VM again that fails or is preempted",
            why=("its defaultActionOnFailure is DO_NOTHING, as it is for flex start",),
            fix="run Create: it sets the group right",
        )


def waiting(case: Case) -> Iterator[Waiting]:
    """What is under way or waits, the longest first."""
    for request in case.requests:
        if request.is_open:
            yield Waiting(
                about=About.REQUEST,
                what=request.words,
                names=(request.name,),
                seconds=int(case.clock.since(request.created)),
                why=request.reasons,
                advice=_advice(case, request),
            )
    coming = [one for one in case.down if _is_coming(one)]
    if coming:
        yield Waiting(
            about=About.MACHINES,
            what=f"{counted(len(coming), 'VM')} {_are(coming)} being made",
            count=len(coming),
            names=_names(coming),
        )
    under_way: dict[str, list[Vm]] = collections.defaultdict(list)
    for vm in case.vms:
        if _is_starting(vm) and not _is_late(vm, case.clock) and not _is_failing(vm):
            under_way[vm.startup.words].append(vm)
    for what, them in under_way.items():
        yield Waiting(
            about=About.START_UP,
            what=_said(what, [vm.name for vm in them]),
            count=len(them),
            names=_names(them),
            seconds=max(_age(vm, case.clock) for vm in them),
        )


def rank(vm: Vm) -> tuple[int, str]:
    """Where a VM stands in a list: those that need a look first."""
    if vm.status != "RUNNING":
        return 0, vm.name
    if vm.silence or vm.startup.state is StartupState.FAILED:
        return 1, vm.name
    if vm.startup.state is not StartupState.DONE:
        return 2, vm.name
    needs = vm.faults or vm.maintenance_seconds is not None or vm.interruption is not None
    return (3 if needs else 4), vm.name


# ------------------------------------------------------------------ machines


def _refused(case: Case) -> Iterator[Trouble]:
    """What Google refuses: VMs of the group, and requests that ended without them."""
    refused = [one.name for one in case.down if one.reasons]
    running = sum(vm.status == "RUNNING" for vm in case.vms)
    texts = shortage.RefusalTexts(
        words=f"{running} of {case.group.size} VMs run",
        after_stockout="wait: Google goes on trying, and machines may become available",
        after_quota="once it is granted, Google makes the VMs",
        end="",
    )
    for problem in shortage.explain(case.group, case.errors, texts, case.api):
        yield _of_problem(problem, About.MACHINES, refused, by_itself=True)
    if not case.missing:
        return  # a request that failed before the VMs came is history
    for request in case.requests:
        if request.state in {"FAILED", "CANCELLED"}:
            yield from _of_request(case, request)


def _of_request(case: Case, request: ResizeRequest) -> Iterator[Trouble]:
    texts = shortage.RefusalTexts(
        words=request.words,
        after_stockout="run Create again for a new request: machines may become available",
        after_quota="once it is granted, run Create again for a new request",
        end="",
    )
    explained = shortage.explain(case.group, request.errors, texts, case.api)
    for problem in explained:
        yield _of_problem(problem, About.REQUEST, [request.name])
    if not explained:
        yield Trouble(
            about=About.REQUEST,
            what=request.words,
            names=(request.name,),
            why=request.reasons,
            fix="run Create again for a new request",
        )


def _of_problem(
    problem: Problem, about: About, names: Sequence[str], *, by_itself: bool = False
) -> Trouble:
    return Trouble(
        about=about,
        what=problem.what,
        count=max(1, len(names)),
        names=tuple(names),
        why=tuple(dict.fromkeys(problem.why.splitlines())),
        fix=problem.fix,
        by_itself=by_itself,
    )


def _down(case: Case) -> Iterator[Trouble]:
    """VMs that do not run, those alike together; new ones that are refused have been told."""
    alike: dict[str, list[Member]] = collections.defaultdict(list)
    off = [one for one in case.down if case.idles and idle.is_off(one)]
    if off:
        yield Trouble(
            about=About.MACHINES,
            what=_said("powered off as they were idle (IDLE_TIMEOUT)", _names(off)),
            count=len(off),
            names=_names(off),
            why=("disks are billed, and a reservation",),
            fix="run Create, which starts what is off; or Destroy, if you are done",
        )
    for one in case.down:
        if not (one in off or _is_coming(one) or _is_refused(case, one)):
            met = case.known.get(one.name)
            event = f"{met.event.words}; it " if met else ""
            alike[event + one.words].append(one)
    for what, them in alike.items():
        left = all(one.action in _NOTHING and not one.restarts for one in them)
        yield Trouble(
            about=About.MACHINES,
            what=_said(what, _names(them)),
            count=len(them),
            names=_names(them),
            why=tuple(dict.fromkeys(reason for one in them for reason in one.reasons)),
            fix=_take_out(case, them) if left else "",
            by_itself=not left,
        )


def _take_out(case: Case, them: Sequence[Member]) -> str:
    place = f"{case.group.name} --zone {case.group.zone} --project {case.group.project}"
    return (
        "start it in the console; or take it out of the group, and run Create for a new one:\n"
        f"gcloud compute instance-groups managed delete-instances {place}"
        f" --instances={','.join(_names(them)[:_LEFT])}"
    )


def _is_coming(one: Member) -> bool:
    """Whether a VM is being made, and Google has said nothing against it."""
    return one.action == "CREATING" and not one.reasons


def _is_refused(case: Case, one: Member) -> bool:
    """Whether a VM never came, since Google refuses it for a reason that is known."""
    known = refusals.CAPACITY | refusals.PERMANENT
    refused = {refusals.words(it) for it in case.errors if refusals.of_error(it) in known}
    return one.action == "CREATING" and not refused.isdisjoint(one.reasons)


def _missing(case: Case) -> Iterator[Trouble]:
    """VMs that the group no longer has, such as those whose run is over."""
    if not case.missing:
        return
    over = case.limit is not None
    why = (
        f"Google deletes a VM when its run duration of {words.duration(float(case.limit or 0))} is"
        " over, and its group makes no new one"
    )
    yield Trouble(
        about=About.MACHINES,
        what=f"{case.missing} of {case.wanted} VMs are no longer part of the group",
        count=case.missing,
        why=(why if over else "somebody deleted VMs or changed the size of the group",),
        fix="run Create to get new VMs, or Destroy if you are done",
    )


# ------------------------------------------------------------------ start-up


def _failed(case: Case) -> Iterator[Trouble]:
    alike: dict[str, list[Vm]] = collections.defaultdict(list)
    for vm in case.vms:
        if vm.status == "RUNNING" and vm.startup.state is StartupState.FAILED:
            alike[vm.startup.words].append(vm)
    for what, them in alike.items():
        yield Trouble(
            about=About.START_UP,
            what=_said(what, _names(them)),
            count=len(them),
            names=_names(them),
            why=tuple(them[0].startup.detail.splitlines()[-_LINES:]),
            fix=_again(case, them[0]),
        )


def _failing(case: Case) -> Iterator[Trouble]:
    """VMs whose command fails and is begun again."""
    failing = [vm for vm in case.vms if vm.status == "RUNNING" and _is_failing(vm)]
    if not failing:
        return
    often = max(failing, key=lambda vm: vm.startup.steps[startup.COMMAND].failures or 0)
    step = often.startup.steps[startup.COMMAND]
    times = counted(step.failures or 1, "time")
    yield Trouble(
        about=About.START_UP,
        what=_said(
            f"failed in STARTUP_COMMAND, up to {times} in a row, and begins it again",
            _names(failing),
        ),
        count=len(failing),
        names=_names(failing),
        why=tuple(step.detail.splitlines()[-_LINES:]),
        fix=startup.output_of(startup.COMMAND, often.name),
        by_itself=True,
    )


def _is_failing(vm: Vm) -> bool:
    step = vm.startup.steps.get(startup.COMMAND)
    return bool(step and step.is_failing)


def _late(case: Case) -> Iterator[Trouble]:
    """VMs that should have started up by now; STARTUP_COMMAND may take as long as it likes."""
    alike: dict[str, list[Vm]] = collections.defaultdict(list)
    for vm in case.vms:
        if _is_starting(vm) and _is_late(vm, case.clock):
            alike[vm.startup.words].append(vm)
    for what, them in alike.items():
        oldest = words.duration(max(_age(vm, case.clock) for vm in them))
        late = f"that is late: {oldest} have passed since the start"
        yield Trouble(
            about=About.START_UP,
            what=_said(what, _names(them)),
            count=len(them),
            names=_names(them),
            why=(late, _SILENT) if them[0].startup.state is None else (late,),
            fix=_again(case, them[0]),
            by_itself=True,
        )


def _partly(case: Case) -> Iterator[Trouble]:
    """Steps that failed in start-ups that went on without them."""
    alike: dict[str, list[Vm]] = collections.defaultdict(list)
    for vm in case.vms:
        for name, step in vm.startup.steps.items():
            if step.state == "failed" and vm.startup.state is not StartupState.FAILED:
                alike[name].append(vm)
    for name, them in alike.items():
        output = them[0].startup.steps[name].detail
        yield Trouble(
            about=About.START_UP,
            what=f"the step {name} failed on {counted(len(them), 'VM')}; the rest of the start-up"
            " continued",
            count=len(them),
            names=_names(them),
            why=tuple(output.splitlines()[-_LINES:]),
            fix=startup.output_of(name, them[0].name),
        )


def _again(case: Case, vm: Vm) -> str:
    seen = startup.output_of(vm.startup.step or "", vm.name)
    if vm.startup.step == startup.COMMAND:
        return f"{seen}; {startup.COMMAND_AGAIN}"
    return (
        f"{seen}; fix the cause, restart the VM, and run Create again; what restarts it:\n"
        f"gcloud compute instances reset {vm.name} --zone {case.group.zone}"
        f" --project {case.group.project}"
    )


def _is_starting(vm: Vm) -> bool:
    is_not_done = vm.startup.state in {None, StartupState.RUNNING}
    return vm.status == "RUNNING" and is_not_done and not vm.silence


def _is_late(vm: Vm, clock: Clock) -> bool:
    return vm.startup.step != startup.COMMAND and _age(vm, clock) > startup.AT_MOST


def _age(vm: Vm, clock: Clock) -> int:
    """Seconds of cloud time since its last start; 0 if not known."""
    if not vm.started:
        return 0
    return int(clock.since(dt.datetime.fromisoformat(vm.started).timestamp()))


# ------------------------------------------------------------------ words


def _advice(case: Case, request: ResizeRequest) -> str:
    """What can be done about a request that waits."""
    lines = ["nothing but waiting; Destroy gives it up, and Create waits for it again"]
    if any(refusals.of_error(it) in refusals.CAPACITY for it in request.errors):
        group = case.group
        free = refusals.zones_available(request.errors)
        if free:
            lines.append(
                f"or set ZONE={free[0]}, where Google says that some are available now, and run"
                " Create --yes, which moves the group there"
            )
        zones = shortage.other_zones(
            group.project, group.zone, group.machine_type, group.gpu, case.api
        )
        lines += shortage.places_in_words(group.region, zones)
    return "\n".join(lines)


def _said(what: str, names: Sequence[str]) -> str:
    """A sentence about VMs, from its end about one of them."""
    return f"{names[0]} {what}" if len(names) == 1 else f"{len(names):,} VMs: each {what}"


def _are(things: Sequence[object]) -> str:
    return "is" if len(things) == 1 else "are"


def _names(things: Iterable[Vm | Member]) -> tuple[str, ...]:
    return tuple(thing.name for thing in things)
