"""What is broken in a group of VMs, and what is only under way."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines as machine_types
from provision.catalogue import xids
from provision.deployment.kind import Stranded
from provision.documents.status import About, Trouble, Waiting
from provision.documents.vm_status import SlurmNow, StartupState, Vm
from provision.google import refusals
from provision.kinds import machines, status
from provision.kinds.status import alike, seconds_of, who
from provision.kinds.vms import agent, flex_start, instances, startup
from provision.kinds.vms.instances import Interruption, Member, Seen, arguments
from provision.spec.capacity import ASKING, Mode
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud
    from provision.google.api import GoogleApi
    from provision.kinds.vms.out_of_date import LostAccount
    from provision.spec.pools import Group
    from provision.state.record import Record
    from provision.time.clock import Clock

_DAY: Final = 24 * 3600
_FIRMWARE: Final = "a fault of their firmware interrupts work"
_NO_HEAD: Final = 300
"""Seconds without a word of Slurm's head, which has one each minute, that are too long."""
_LEFT: Final = 5
"""The VMs that one command names at most."""
_SILENT: Final = (
    "a VM that reports nothing may lack Google's guest agent in its image, or access to Google's"
    " APIs in its network"
)
_DISKS: Final = {
    "% full": (
        "jobs, containers, logs and checkpoints fail on a full disk",
        (
            "see `df --human-readable`, and what takes the room by `sudo du --one-file-system"
            " --max-depth=2 --human-readable /`; a larger boot disk is DISK_SIZE_GB with Create"
            " --replace-vms"
        ),
    ),
    "few more files": (
        "a disk without room for files is full, however many bytes it has left",
        "see `df --inodes`, and remove many small files",
    ),
    "its clock is": (
        "tokens and certificates are refused by a wrong clock, and logs are in the wrong order",
        "see `timedatectl`, which takes the time of metadata.google.internal",
    ),
    "": (
        "what reads or writes there hangs or fails",
        "see `findmnt` and `journalctl --boot`; another start of the VM mounts it again",
    ),
}
"""What a VM says of its disks, mounts and clock has these words -> why that matters, what to do."""


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
    requests: tuple[flex_start.ResizeRequest, ...]
    errors: Sequence[Mapping[str, Any]]  # Google's errors about VMs that do not come
    clock: Clock  # the clock of Google Cloud
    api: GoogleApi  # Google, for the places that have such machines
    bound: bool = False  # whether its VMs are bound to their reservation
    # whether the group, which is not of flex start, makes no VM again that fails
    unrepaired: bool = False
    idles: bool = False  # whether VMs of the group have powered themselves off
    lost: Sequence[LostAccount] = ()  # accounts that VMs act as, and that are not there any more
    slurm: SlurmNow | None = None  # what its Slurm says; None where there is none, or not yet

    @property
    def missing(self) -> int:
        """How many VMs neither exist nor are asked for."""
        asked = sum(one.count for one in self.requests if one.is_open)
        return max(0, (self.wanted or 0) - self.there - asked)

    @property
    def running(self) -> list[Vm]:
        """Those that run."""
        return [vm for vm in self.vms if vm.status == "RUNNING"]

    def age(self, vm: Vm) -> int:
        """Seconds of cloud time since its last start; 0 if not known."""
        started = seconds_of(vm.started)
        return 0 if started is None else int(self.clock.since(started))


def found(case: Case) -> Iterator[Trouble]:
    """What is broken, the worst first."""
    if not case.exists:
        yield Trouble(
            about=About.MACHINES,
            what=f"the group {case.group.name} does not exist",
            why=(status.NOT_THERE,),
            fix="run Create to make it again, or Destroy if you are done",
        )
        return
    for one in case.lost:
        yield status.trouble(one.problem, About.MACHINES, one.vms)
    yield from _refused(case)
    yield from _down(case)
    if case.missing:
        yield _missing(case)
    if case.unrepaired:
        yield Trouble(
            about=About.MACHINES,
            what=f"the group {case.group.name} makes no VM again that fails or is preempted",
            why=("its defaultActionOnFailure is DO_NOTHING, as it is for flex start",),
            fix="run Create: it sets the group right",
        )
    # VMs that run, and say nothing any more: what they told of their start-up is history.
    mute = {name for one in case.lost for name in one.vms}
    silent = [vm for vm in case.vms if vm.silence and vm.name not in mute]
    for what, them in alike(silent, lambda vm: vm.silence).items():
        fix = agent.another_start(them[0].name, case.group)
        yield _of(them, what, why=(agent.WHY_SILENT,), fix=fix)
    yield from complaints({vm.name: vm for vm in case.running}, case.group, bound=case.bound)
    yield from _slurm(case)
    yield from _starts(case)
    yield from _partly(case)
    yield from _without_reset(case)


def complaints(
    said: Mapping[str, Vm | agent.Seat], group: Group, *, bound: bool
) -> Iterator[Trouble]:
    """What VMs that run say is broken on them, by their names."""
    for name, vm in said.items():
        # Google moves a VM to another host only when a person asks.
        if vm.faults:
            yield Trouble(
                about=About.MACHINES,
                what=f"the GPUs of {name} complain: {vm.faults[0]}",
                names=(name,),
                why=(*vm.faults[1:], *xids.meanings(vm.faults)),
                fix="when nobody needs what runs there, "
                + instances.another_host([name], arguments(group), bound=bound),
            )
    for name, vm in said.items():
        if vm.disks:
            told = [next(_DISKS[it] for it in _DISKS if it in words_) for words_ in vm.disks]
            yield Trouble(
                about=About.MACHINES,
                what=f"{name} says: {'; '.join(vm.disks)}",
                names=(name,),
                why=tuple(dict.fromkeys(why for why, _ in told)),
                fix=f"on {name}, " + "; ".join(dict.fromkeys(way for _, way in told)),
            )


def _slurm(case: Case) -> Iterator[Trouble]:
    """Nodes that Slurm gives no jobs, though their VMs run; and a head that says nothing."""
    ready = [vm for vm in case.running if vm.is_ready]
    if case.slurm and ready and case.slurm.silent_seconds > _NO_HEAD:
        yield Trouble(
            about=About.CLUSTER,
            what="Slurm has no head that is heard of, for"
            f" {words.duration(case.slurm.silent_seconds)}; the last was {case.slurm.head}",
            why=("jobs that run go on; no job begins, and sinfo and squeue don't answer",),
            fix=f"see `journalctl -u aiinfra-slurm` on {ready[0].name}, whose VM may lead it too",
            by_itself=True,
        )
        return
    bad = [(it, it.slurm) for it in ready if it.slurm and it.slurm.takes_none]
    for node, pairs in alike(bad, lambda it: dataclasses.replace(it[1], gpus_in_use=0)).items():
        them, reason = [vm for vm, _ in pairs], node.reason
        yield _of(
            them,
            f"gets no jobs from Slurm, which has it as {node.state}",
            why=(reason, *xids.meanings((reason,))) if reason else (),
            fix="see /var/log/slurm there, fix the cause; then, on any VM: sudo scontrol update"
            f" nodename={','.join(vm.name for vm in them[:_LEFT])} state=resume",
            by_itself=node.is_mute,
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
                advice=flex_start.advice(case.group, request, case.api),
            )
    coming = [one for one in case.down if _is_coming(one)]
    if coming:
        are = "is" if len(coming) == 1 else "are"
        yield Waiting(
            about=About.MACHINES,
            what=f"{counted(len(coming), 'VM')} {are} being made",
            **who(coming),
        )
    under_way = [
        vm
        for vm in case.running
        if _is_starting(vm) and not _is_late(case, vm) and not _is_failing(vm)
    ]
    for what, them in alike(under_way, lambda vm: vm.startup.words).items():
        yield Waiting(
            about=About.START_UP,
            what=_said(what, them),
            **who(them),
            seconds=max(map(case.age, them)),
        )


def rank(vm: Vm) -> tuple[int, str]:
    """Where a VM stands in a list: those that need a look first."""
    if vm.status != "RUNNING":
        return 0, vm.name
    if vm.silence or vm.startup.state is StartupState.FAILED:
        return 1, vm.name
    if vm.startup.state is not StartupState.DONE:
        return 2, vm.name
    needs = (
        (vm.slurm and vm.slurm.takes_none)
        or vm.faults
        or vm.disks
        or vm.maintenance_seconds is not None
        or vm.interruption is not None
    )
    return (3 if needs else 4), vm.name


def stranded(cloud: Cloud, record: Record, seen: Seen) -> Stranded | None:
    """What a group lacks that Google has not where it is, or that nobody asks it for."""
    if seen.group is None:
        # A run that was killed between the end of one and the next has left it so.
        return Stranded(what=f"{record.name_prefix} has no group of VMs", left=0, here=True)
    group = instances.group_of(record)
    if refused := machines.elsewhere(group, seen.members, cloud.api):
        return refused
    running = sum(it.get("instanceStatus") == "RUNNING" for it in seen.members)
    missing = group.size - flex_start.present(seen.members, ())
    asked = {name: record.settings.get(name.upper()) for name in ASKING}
    if Mode.asked(asked).means.flex_start:
        why = "Google makes no VM of flex start again, and there is no request for another one"
        if any(it.is_open for it in flex_start.requests(cloud.api, group.path)):
            return None
    elif record.settings.get("IDLE_TIMEOUT") is not None:
        why = "with IDLE_TIMEOUT its group makes no VM again"
        left = (it for it in instances.down(seen.members) if it.is_left and not it.status)
        missing += sum(1 for _ in left)
    else:
        return None
    told = f"{running} of {counted(group.size, 'VM')} run in {group.zone}: {why}"
    return Stranded(what=told, left=running, here=True) if missing > 0 else None


# ------------------------------------------------------------------ machines


def _refused(case: Case) -> Iterator[Trouble]:
    """What Google refuses: VMs of the group, and requests that ended without them."""
    refused = [one.name for one in case.down if one.reasons]
    running = len(case.running)
    for problem in machines.explain_standing(case.group, case.errors, running, case.api):
        yield status.trouble(problem, About.MACHINES, refused, passes=True)
    if not case.missing:
        return  # a request that failed before the VMs came is history
    for request in case.requests:
        if request.is_refused:
            explained = flex_start.explain(case.group, request, case.api, end="")
            for problem in explained:
                yield status.trouble(problem, About.REQUEST, [request.name])
            if not explained:
                yield Trouble(
                    about=About.REQUEST,
                    what=request.words,
                    names=(request.name,),
                    why=request.reasons,
                    fix="run Create again for a new request",
                )


def _down(case: Case) -> Iterator[Trouble]:
    """VMs that do not run, those alike together; new ones that are refused have been told."""
    off = [one for one in case.down if case.idles and one.is_off]
    if off:
        yield _of(
            off,
            "powered off as they were idle (IDLE_TIMEOUT)",
            why=("disks are billed, and a reservation",),
            fix="run Create, which starts what is off; or Destroy, if you are done",
        )
    known = refusals.CAPACITY | refusals.PERMANENT
    refused = {refusals.words(it) for it in case.errors if refusals.of_error(it) in known}
    told = [
        one
        for one in case.down
        if not (
            one in off
            or _is_coming(one)
            # It never came, since Google refuses it for a reason that is known.
            or (one.is_made and not refused.isdisjoint(one.reasons))
        )
    ]
    for what, them in alike(told, lambda one: one.story(case.known)).items():
        is_left = all(one.is_left for one in them)
        take_out = (
            "start it in the console; or take it out of the group, and run Create for a new one:\n"
            f"gcloud compute instance-groups managed delete-instances {arguments(case.group)}"
            f" --instances={','.join(who(them)['names'][:_LEFT])}"
        )
        yield _of(
            them,
            what,
            why=tuple(dict.fromkeys(reason for one in them for reason in one.reasons)),
            fix=take_out if is_left else "",
            by_itself=not is_left,
        )


def _is_coming(one: Member) -> bool:
    """Whether a VM is being made, and Google has said nothing against it."""
    return one.is_made and not one.reasons


def _missing(case: Case) -> Trouble:
    """VMs that the group no longer has, such as those whose run is over."""
    there = {vm.name for vm in case.vms} | {one.name for one in case.down}
    gone = sorted((it.ago, name) for name, it in case.known.items() if name not in there)
    taken = [f"{name} {case.known[name].words}" for _, name in gone[: min(case.missing, _LEFT)]]
    if case.limit is not None:
        why = (
            f"Google deletes a VM when MAX_RUN_DURATION, here {words.duration(float(case.limit))},"
            " is over, and its group makes no new one"
        )
    elif taken:
        why = f"{words.listed(taken)}, and the group makes no VM again"
    else:
        why = "somebody deleted VMs or changed the size of the group"
    return Trouble(
        about=About.MACHINES,
        what=f"{case.missing} of {counted(case.wanted or 0, 'VM')}"
        f" {'is' if case.missing == 1 else 'are'} gone",
        count=case.missing,
        why=(why,),
        fix="run Create to get new VMs, or Destroy if you are done",
    )


def _without_reset(case: Case) -> Iterator[Trouble]:
    """VMs that run for longer than their GPUs' firmware is good for."""
    old: dict[int, list[Vm]] = {}
    for vm in case.running:
        machine = machine_types.lookup(vm.machine_type)
        days = machine.family.reset_days if machine is not None else 0
        if days and case.age(vm) > days * _DAY:
            old.setdefault(days, []).append(vm)
    for days, them in old.items():
        names = [vm.name for vm in them][:_LEFT]
        again = instances.another_host(names, arguments(case.group), bound=False)
        yield _of(
            them,
            f"has not been started for {max(map(case.age, them)) // _DAY} days",
            why=(f"Google advises to reset GPUs of their kind every {days} days ({_FIRMWARE})",),
            fix=f"when nobody needs what runs there, {again}\nor reset the GPUs there, which"
            " Status does not see: sudo nvidia-smi --gpu-reset",
        )


# ------------------------------------------------------------------ start-up


def _starts(case: Case) -> Iterator[Trouble]:
    """Start-ups that failed, whose command fails again and again, and that are late."""
    failed = [vm for vm in case.running if vm.startup.state is StartupState.FAILED]
    for what, them in alike(failed, lambda vm: vm.startup.words).items():
        why = startup.last_lines(them[0].startup.detail)
        meant = xids.meanings(why)
        yield _of(them, what, About.START_UP, why=(*why, *meant), fix=_again(case, them[0]))
    failing = [vm for vm in case.running if _is_failing(vm)]
    if failing:
        often = max(failing, key=lambda vm: vm.startup.steps[startup.COMMAND].failures or 0)
        step = often.startup.steps[startup.COMMAND]
        times = counted(step.failures or 1, "time")
        yield _of(
            failing,
            f"failed in STARTUP_COMMAND, up to {times} in a row, and begins it again",
            About.START_UP,
            why=startup.last_lines(step.detail),
            fix=startup.output_of(startup.COMMAND, often.name),
            by_itself=True,
        )
    late = [vm for vm in case.running if _is_starting(vm) and _is_late(case, vm)]
    for what, them in alike(late, lambda vm: vm.startup.words).items():
        oldest = words.duration(max(map(case.age, them)))
        why = (f"that is late: {oldest} have passed since the start",)
        yield _of(
            them,
            what,
            About.START_UP,
            why=(*why, _SILENT) if them[0].startup.state is None else why,
            fix=_again(case, them[0]),
            by_itself=True,
        )


def _partly(case: Case) -> Iterator[Trouble]:
    """Steps that failed in start-ups that went on without them."""
    partly = [vm for vm in case.vms if vm.startup.state is not StartupState.FAILED]
    every = (
        (name, vm) for vm in partly for name, it in vm.startup.steps.items() if it.state == "failed"
    )
    for name, pairs in alike(every, lambda it: it[0]).items():
        them = [vm for _, vm in pairs]
        yield Trouble(
            about=About.START_UP,
            what=f"the step {name} failed on {counted(len(them), 'VM')}; the rest of the start-up"
            " continued",
            **who(them),
            why=startup.last_lines(them[0].startup.steps[name].detail),
            fix=startup.output_of(name, them[0].name),
        )


def _again(case: Case, vm: Vm) -> str:
    seen = startup.output_of(vm.startup.step or "", vm.name)
    if vm.startup.step == startup.COMMAND:
        return f"{seen}; {startup.COMMAND_AGAIN}"
    if xids.need_another_host(startup.last_lines(vm.startup.detail)):
        host = instances.another_host([vm.name], arguments(case.group), bound=case.bound)
        return f"{seen}; {host}"
    return (
        f"{seen}; fix the cause, restart the VM, and run Create again; what restarts it:\n"
        f"gcloud compute instances reset {vm.name} --zone {case.group.zone}"
        f" --project {case.group.project}"
    )


def _is_failing(vm: Vm) -> bool:
    """Whether its command fails and is begun again."""
    step = vm.startup.steps.get(startup.COMMAND)
    return bool(step and step.is_failing)


def _is_starting(vm: Vm) -> bool:
    return vm.startup.state in {None, StartupState.RUNNING} and not vm.silence


def _is_late(case: Case, vm: Vm) -> bool:
    """Whether it should have started up by now; STARTUP_COMMAND may take as long as it likes."""
    return vm.startup.step != startup.COMMAND and case.age(vm) > startup.AT_MOST


# ------------------------------------------------------------------ words


def _of(  # noqa: PLR0913 - each is a fact of its own
    them: Sequence[Vm | Member],
    what: str,
    about: About = About.MACHINES,
    *,
    why: tuple[str, ...],
    fix: str,
    by_itself: bool = False,
) -> Trouble:
    """A trouble of some VMs; `what`: the end of a sentence about one of them."""
    return Trouble(
        about=about,
        what=_said(what, them),
        **who(them),
        why=why,
        fix=fix,
        by_itself=by_itself,
    )


def _said(what: str, them: Sequence[Vm | Member]) -> str:
    """A sentence about VMs, from its end about one of them."""
    return f"{them[0].name} {what}" if len(them) == 1 else f"{len(them):,} VMs: each {what}"
