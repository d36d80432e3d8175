"""Test for VM groups: each VM checks itself, and all of them measure NCCL's bandwidth.

What a VM finds is judged by its machine type, the bandwidth by published figures. Where it is too
low, halves of the group are tried until the VMs at fault are known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import bandwidths, names
from provision.documents.checks import VmCheck
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Tried
from provision.kinds.vms import (
    bandwidth,
    complete,
    health,
    instances,
    lost_accounts,
    out_of_date,
    status,
    tasks,
    verdict,
)
from provision.kinds.vms.verdict import Measured
from provision.lifecycle import plan_document
from provision.screens import checks as screen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Cloud, Context
    from provision.kinds.vms.bandwidth import Outcome, Plan
    from provision.kinds.vms.instances import Vm
    from provision.kinds.vms.startup import Startup
    from provision.kinds.vms.tasks import Answer
    from provision.state.record import Record
    from provision.time.stages import OpenStage

_AGENT: Final = "agent"
"""The step of the start-up from which on a VM hears of tasks."""
_CHECK_SECONDS: Final = 600
"""The most that a VM's check of itself may take; DCGM's diagnostic takes most of it."""


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test all VMs, and what is between them.

    Raises:
        StillWaiting: Google has not given all VMs yet.
        ClusterError: There are faults, or VMs that do not answer; the error has all of them.
    """
    found = instances.find(cloud.api, record, context.clock)
    complete.require(cloud, record, found)
    lost_accounts.require(cloud, record)
    older = out_of_date.find(cloud, record)
    plan_document.tell_of_older(context, older)
    if older:
        raise ClusterError.of([plan_document.note_of_older(older)])
    group = names.GROUP.of(record.name_prefix)
    with context.progress.stage(StageName.TEST, OnInterrupt.NOTHING) as stage:
        checked = _check(context, cloud, record, found, stage)
        context.report.checks = checked
        # Somebody's work is neither measured with nor disturbed.
        well = [vm for vm in found if not (checked[vm.name].faults or checked[vm.name].users)]
        plan = bandwidth.plan(well)
        measured = _measure(cloud, plan, stage) if plan else None
        stage.counts(f"{len(found)} VMs" + (", bandwidth" if measured else ""))
    if measured is not None:
        context.report.checks = {**checked, group: measured.document}
    context.console.show(screen.lines(context.report.checks, context.console.width), as_result=True)
    where = f"{group} --zone {record.zone} --project {record.project_id}"
    problems = [*verdict.of_vms(found, checked, where), *verdict.between(measured, where)]
    used = {vm.name: checked[vm.name].users for vm in found if checked[vm.name].users}
    used |= dict.fromkeys(measured.busy if measured else (), ())
    if len(used) == len(found):
        problems.append(verdict.left_out(used, all_of_them=True))
    if problems:
        raise ClusterError.of(problems)
    if used:
        context.note([verdict.left_out(used, all_of_them=False)])
    if measured is not None and measured.document.not_measured and not measured.busy:
        context.note([verdict.not_measured(measured.document)])
    if measured is not None and (other := verdict.other_nccl(measured.document)):
        context.note([other])
    return verdict.passed(checked, measured.document if measured else None)


def _check(
    context: Context, cloud: Cloud, record: Record, vms: Sequence[Vm], stage: OpenStage
) -> dict[str, VmCheck]:
    """What each VM found about itself, judged."""
    stage.counts(f"{len(vms)} VMs are asked what they found at start-up")
    # A request for each VM, and a quota for requests: a thousand take some minutes.
    told = status.startups(context, cloud, record, [vm.name for vm in vms])
    asked = {vm.name: vm.id for vm in vms if _hears(told[vm.name])}
    stage.counts("each VM checks itself")
    answers: dict[str, Answer] = {}
    if asked:
        answers = tasks.ask(cloud.folder, stage, "check", {}, vms=asked, seconds=_CHECK_SECONDS)
    return {
        vm.name: _answered(vm, answers[vm.name])
        if vm.name in answers
        else _unasked(vm, told[vm.name])
        for vm in vms
    }


def _hears(startup: Startup) -> bool:
    """Whether a VM can hear of a task; one that reports nothing at all may."""
    return not startup.state or _AGENT in startup.steps


def _answered(vm: Vm, answer: Answer) -> VmCheck:
    if answer.failure:
        return VmCheck(faults=(f"it {answer.failure}",))
    return health.judge(vm, answer.answer)


def _unasked(vm: Vm, startup: Startup) -> VmCheck:
    """What is known of a VM whose start-up has not come so far that it hears of tasks."""
    state = f"it can't be asked: it {startup.words}"
    if startup.state == "done":
        state += ", by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
    if startup.gpu_check is None:
        return VmCheck(faults=(state,))
    known = health.reported(vm, startup.gpu_check)
    return VmCheck(
        gpus=known.gpus,
        names=known.names,
        driver=known.driver,
        ecc_errors=known.ecc_errors,
        interfaces=known.interfaces,
        faults=(*known.faults, state),
    )


def _measure(cloud: Cloud, plan: Plan, stage: OpenStage) -> Measured:
    """Measure between all VMs, and where that is not good enough, between parts of them."""
    outcomes: list[Outcome] = []
    blamed: dict[str, str] = {}
    left = tuple(sorted(plan.vms))
    groups, tried = [left], list[Tried]()
    most = diagnosis.most_rounds(len(left))
    for number in range(most):
        stage.counts(_words(plan, groups, number, most))
        members = [name for group in groups for name in group]
        answers = tasks.ask(
            cloud.folder,
            stage,
            "bandwidth",
            plan.arguments(groups),
            vms={name: plan.vms[name].id for name in members},
            seconds=bandwidth.SECONDS,
        )
        now = [bandwidth.outcome(plan, group, answers) for group in groups]
        outcomes += now
        blamed |= {name: why for it in now for name, why in it.blamed.items()}
        apart = {name for it in now for name in (*it.blamed, *it.busy)}
        if apart and len(blamed) < len(left):
            # Who failed on its own, or is used, is known; the others are tried again without it.
            left = tuple(name for name in left if name not in apart)
            tried = []
            groups = [left] if len(left) >= bandwidths.MACHINES else []
        elif apart:
            groups = []
        else:
            tried += [it.tried for it in now]
            groups = diagnosis.next_round(tried)
        if not groups:
            break
    return Measured(plan, outcomes, blamed, diagnosis.find(tried))


def _words(plan: Plan, groups: Sequence[diagnosis.Members], number: int, most: int) -> str:
    """What is measured now, and how long it and what may follow take at most."""
    at_most = words.duration(bandwidth.SECONDS)
    if number == 0:
        what = f"{plan.collective} between {len(groups[0])} VMs, at most {at_most}"
        if most == 1:
            return what
        return f"{what}; if it is too slow, up to {most - 1} rounds more find out where"
    return f"round {number + 1} of at most {most}, each {at_most}: {len(groups)} groups"
