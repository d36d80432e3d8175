"""Test for VM groups: each VM checks itself, and all of them measure NCCL's bandwidth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import names
from provision.codes import Code
from provision.documents import json_object
from provision.documents.checks import VmCheck
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, StillWaiting
from provision.google.resources import GROUP
from provision.kinds import diagnosis
from provision.kinds.vms import agent, bandwidth, flex_start, health, instances, out_of_date, status
from provision.lifecycle import plan_document
from provision.screens import checks as screen

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.documents.checks import VmBandwidth
    from provision.errors import Problem
    from provision.kinds.vms.agent import Answer
    from provision.kinds.vms.instances import Vm
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record
    from provision.time.stages import OpenStage

_CHECK_SECONDS: Final = 600
"""The most that a VM's check of itself may take; DCGM's diagnostic takes most of it."""
_MOST: Final = 5
"""The number of VMs that are reported one by one."""


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test all VMs, and what is between them."""
    found = instances.find(cloud.api, record, context.clock)
    require_all(cloud, record, found)
    out_of_date.require_accounts(cloud, record)
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
        measured = bandwidth.measure(cloud.folder, plan, stage) if plan else None
        stage.counts(f"{len(found)} VMs" + (", bandwidth" if measured else ""))
    if measured is not None:
        context.report.checks = {**checked, group: measured.document}
    context.console.show(screen.lines(context.report.checks, context.console.width), as_result=True)
    where = f"{group} --zone {record.zone} --project {record.project_id}"
    problems = of_vms(found, checked, where)
    problems += bandwidth.problems(measured, where) if measured else []
    used = {vm.name: checked[vm.name].users for vm in found if checked[vm.name].users}
    used |= dict.fromkeys(measured.busy if measured else (), ())
    if len(used) == len(found):
        problems.append(left_out(used, all_of_them=True))
    if problems:
        raise ClusterError.of(problems)
    if used:
        context.note([left_out(used, all_of_them=False)])
    if measured is not None:
        context.note(bandwidth.notes(measured))
    return passed(checked, measured.document if measured else None)


def require_all(cloud: Cloud, record: Record, found: Sequence[Vm]) -> None:
    """See that as many VMs run as Create was to make: a part would say nothing of the rest."""
    running = sum(vm.status == "RUNNING" for vm in found)
    asked = json_object.inner(cloud.folder.outputs().get("group"))
    wanted = json_object.whole(asked.get("size")) or record.settings.get("INSTANCE_COUNT") or 1
    if running == wanted:
        return
    name = names.GROUP.of(record.name_prefix)
    have = f"{running} of {wanted} VMs of {name} run"
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    group = cloud.api.find(GROUP.look.service, path) if running < wanted else None
    if group is not None and (
        int(group.get("targetSize", 0)) >= wanted
        or any(it.is_open for it in flex_start.requests(cloud.api, path))
    ):
        raise StillWaiting(
            f"{have}; Google has not given the rest yet",
            why="a test of a part of them would not say whether all are well",
            fix="run Create again to wait for them, then Test",
        )
    raise ClusterError(
        have,
        code=Code.MACHINES_GONE,
        why="somebody changed the size of the group, or deleted VMs, after the last Create",
        fix=f"run Create to have {wanted} again; or set INSTANCE_COUNT to what you want, and run"
        " Create",
        setting="INSTANCE_COUNT",
    )


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
        answers = agent.ask(cloud.folder, stage, "check", {}, vms=asked, seconds=_CHECK_SECONDS)
    return {vm.name: _judged(vm, told[vm.name], answers.get(vm.name)) for vm in vms}


def _hears(startup: Startup) -> bool:
    """Whether a VM can hear of a task; one that reports nothing at all may."""
    return not startup.state or agent.STEP in startup.steps


def _judged(vm: Vm, startup: Startup, answer: Answer | None) -> VmCheck:
    """What a VM has found, or what its start-up says where that has not come to the agent."""
    if answer is not None:
        if answer.failure:
            return VmCheck(faults=(f"it {answer.failure}",))
        return health.judge(vm, answer.answer)
    state = f"it can't be asked: it {startup.words}"
    if startup.state == "done":
        state += ", by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
    return health.reported(vm, startup.gpu_check, state)


# ------------------------------------------------------------------ in words


def of_vms(vms: Sequence[Vm], checked: Mapping[str, VmCheck], where: str) -> list[Problem]:
    """What is wrong with single VMs; `where` as `health.another_host` has it."""
    by_name = {vm.name: vm for vm in vms}

    def fix(name: str) -> str:
        users = checked[name].users
        freed = f"end {words.listed(users)}, or let them end; then " if users else ""
        return freed + health.another_host([name], where, bound=by_name[name].bound)

    in_order = {vm.name: checked[vm.name] for vm in vms}
    found = diagnosis.of_single(in_order, lambda name: by_name[name].machine_type, fix)
    problems, rest = found[:_MOST], [it.what.partition(":")[0] for it in found[_MOST:]]
    if login := {name: it.login for name, it in checked.items() if it.login}:
        has = words.listed(next(iter(login.values())))
        problems.append(
            diagnosis.failed(
                f"a login shell on {words.listed(login)} has {has}",
                why="NCCL then looks for another network in what people start there than in jobs",
                fix="remove it from what login shells read after"
                " /etc/profile.d/zz-aiinfra-nccl.sh, such as /root/.profile",
            )
        )
    if rest:
        what = f"{len(rest)} more: {words.listed(rest)}"
        problems.append(diagnosis.failed(what, fix="the JSON (--output json) has all of them"))
    return problems


def left_out(used: Mapping[str, Sequence[str]], *, all_of_them: bool) -> Problem:
    """What is said of VMs whose GPUs these programs use: they are looked at, and not measured."""
    named = [f"{name} ({', '.join(its)})" if its else name for name, its in used.items()]
    more = f", and {len(named) - _MOST} more" if len(named) > _MOST else ""
    what = "nothing was measured" if all_of_them else "not measured"
    return diagnosis.failed(
        f"{what}: the GPUs of {words.listed(named[:_MOST])}{more} are in use",
        why="NCCL's measurement would take 8.5 GB of each GPU from what runs there",
        fix="run Test again when that has ended",
    )


def passed(checked: Mapping[str, VmCheck], measured: VmBandwidth | None) -> str:
    """The verdict on VMs without faults, in one sentence."""
    gpus = sum(it.gpus or 0 for it in checked.values())
    well = f"{len(checked)} VMs" if len(checked) > 1 else "The VM"
    text = f"{well} with {gpus} GPUs: no faults"
    if measured is None or measured.not_measured:
        return f"{text}; bandwidth not measured" if measured else text
    reached = diagnosis.reached(measured.bandwidth, measured.vms, measured.expected)
    return f"{text}; {measured.collective} reaches {reached}"
