"""Test for VM groups: each VM checks itself, and all of them measure NCCL's bandwidth.

The VMs measure (`aiinfra_vm.tasks.bandwidth`); here are the sizes and the figures to judge by. All
bandwidths are NCCL's bus bandwidth in GB/s. Where it is too low, halves of the group are tried
until the VMs at fault are known.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import bandwidths, fabrics, machines, names
from provision.catalogue.bandwidths import GIB, MIB, Collective, Reference
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.documents import json_object
from provision.documents.checks import BandwidthRow, BandwidthTry, VmBandwidth, VmCheck
from provision.documents.job import JobState
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, Problem, StillWaiting
from provision.google.resources import GROUP
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Finding, Members, Remedies, Tried, failed
from provision.kinds.vms import agent, flex_start, instances, out_of_date
from provision.kinds.vms.jobs import VmJobs
from provision.kinds.vms.startup import Reader, Startup
from provision.lifecycle import plan_document
from provision.screens import checks as screen
from provision.settings.choices import KIND
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.kinds.vms.instances import Vm
    from provision.state.folder import StateFolder
    from provision.state.record import Record
    from provision.time.stages import OpenStage

_CHECK_SECONDS: Final = 600
"""The most that a VM's check of itself may take; DCGM's diagnostic takes most of it."""
_MOST: Final = 5
"""The number of VMs that are reported one by one."""


def run(context: Context, cloud: Cloud, record: Record) -> str:
    """Test all VMs, and what is between them."""
    seen = instances.see(cloud.api, record)
    found = seen.vms(context.clock)
    require_all(cloud, record, found)
    out_of_date.require_accounts(cloud, record, seen.documents)
    older = out_of_date.among(cloud.api, record, seen)
    plan_document.tell_of_older(context, older)
    if older:
        raise ClusterError.of([plan_document.note_of_older(older)])
    if record.settings.get(KIND) == "slurm":
        _require_idle(VmJobs(cloud.folder, context.clock))
    group = names.GROUP.of(record.name_prefix)
    with context.progress.stage(StageName.TEST, OnInterrupt.NOTHING) as stage:
        checked = _check(context, cloud, record, found, stage)
        context.report.checks = checked
        # Somebody's work is neither measured with nor disturbed.
        well = [vm for vm in found if not (checked[vm.name].faults or checked[vm.name].users)]
        planned = plan(well)
        measured = measure(cloud.folder, planned, stage) if planned else None
        stage.counts(counted(len(found), "VM") + (", bandwidth" if measured else ""))
    if measured is not None:
        context.report.checks = {**checked, group: measured.document}
    context.console.show(screen.lines(context.report.checks, context.console.width), as_result=True)
    where = f"{group} --zone {record.zone} --project {record.project_id}"
    bad = [*of_vms(found, checked, where), *(problems(measured, where) if measured else ())]
    used = {vm.name: checked[vm.name].users for vm in found if checked[vm.name].users}
    used |= dict.fromkeys(measured.busy if measured else (), ())
    if len(used) == len(found):
        bad.append(left_out(used, all_of_them=True))
    if bad:
        raise ClusterError.of(bad)
    if used:
        context.note([left_out(used, all_of_them=False)])
    if measured is not None:
        context.note(list(notes(measured)))
    return passed(checked, measured.document if measured else None)


def require_all(cloud: Cloud, record: Record, found: Sequence[Vm]) -> None:
    """See that as many VMs run as Create was to make: a part would say nothing of the rest."""
    running = sum(vm.status == "RUNNING" for vm in found)
    asked = json_object.inner(cloud.folder.outputs().get("group"))
    wanted = json_object.whole(asked.get("size")) or record.settings.get("INSTANCE_COUNT") or 1
    if running == wanted:
        return
    name = names.GROUP.of(record.name_prefix)
    have = f"{running} of {counted(wanted, 'VM')} of {name} run"
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
        why="somebody changed the size of the group or deleted VMs, or the last Create has not come"
        " so far as to make them",
        fix=f"run Create to have {wanted} again; or set INSTANCE_COUNT to what you want, and run"
        " Create",
        setting="INSTANCE_COUNT",
    )


def _require_idle(jobs: VmJobs) -> None:
    """See that Slurm runs nothing: it knows nothing of a test, and VMs are tested together."""
    ours = filter(None, map(jobs.find, jobs.unfinished(every=True)))
    if running := [it.name for it in (*ours, *jobs.others()) if it.state is JobState.RUNNING]:
        job, are = ("job", "it is") if len(running) == 1 else ("jobs", "they are")
        raise ClusterError.of(
            [
                failed(
                    f"nothing was tested: Slurm runs the {job} {words.listed(running)}",
                    why="a test takes all GPUs of all VMs together",
                    fix=f"run Test again when {are} over; on a VM, sudo"
                    " scontrol update nodename=ALL state=drain reason=test keeps others from"
                    " beginning, and state=resume lets them",
                )
            ]
        )


def _check(
    context: Context, cloud: Cloud, record: Record, vms: Sequence[Vm], stage: OpenStage
) -> dict[str, VmCheck]:
    """What each VM found about itself, judged."""
    stage.counts(f"{counted(len(vms), 'VM')} asked what they found at start-up")
    # A request for each VM, and a quota for requests: a thousand take some minutes.
    told = Reader(cloud.api, record, context.clock).read(vm.name for vm in vms)
    asked = {vm.name: vm.id for vm in vms if _hears(told[vm.name])}
    stage.counts("each VM checks itself")
    answers: dict[str, agent.Answer] = {}
    if asked:
        answers = agent.ask(cloud.folder, stage, "check", {}, vms=asked, seconds=_CHECK_SECONDS)
    return {vm.name: _judged(vm, told[vm.name], answers.get(vm.name)) for vm in vms}


def _hears(startup: Startup) -> bool:
    """Whether a VM can hear of a task; one that reports nothing at all may."""
    return not startup.state or agent.STEP in startup.steps


def _judged(vm: Vm, startup: Startup, answer: agent.Answer | None) -> VmCheck:
    """What a VM has found, or what its start-up says where that has not come to the agent."""
    if answer is not None:
        if answer.failure:
            return VmCheck(faults=(f"it {answer.failure}",))
        return instances.judge(vm, answer.answer)
    state = f"it can't be asked: it {startup.words}"
    if startup.state == "done":
        state += ", by a version of this tool whose VMs hear of nothing; run Create --replace-vms"
    return instances.reported(vm, startup.gpu_check, state)


# ------------------------------------------------------------------ in words


def of_vms(vms: Sequence[Vm], checked: Mapping[str, VmCheck], where: str) -> Iterator[Problem]:
    """What is wrong with single VMs; `where` as `instances.another_host` has it."""
    by_name = {vm.name: vm for vm in vms}

    def fix(name: str) -> str:
        users = checked[name].users
        freed = f"end {words.listed(users)}, or let them end; then " if users else ""
        return freed + instances.another_host(
            [name], where, bound=by_name[name].bound, fault=instances.Fault.GPU
        )

    in_order = {vm.name: checked[vm.name] for vm in vms}
    found = diagnosis.of_single(in_order, lambda name: by_name[name].machine_type, fix)
    yield from found[:_MOST]
    if login := {name: it.login for name, it in checked.items() if it.login}:
        has = words.listed(next(iter(login.values())))
        yield failed(
            f"a login shell on {words.listed(login)} has {has}",
            why="NCCL then looks for another network in what people start there than in jobs",
            fix="remove it from what login shells read after /etc/profile.d/zz-aiinfra-nccl.sh,"
            " such as /root/.profile",
        )
    if rest := [it.what.partition(":")[0] for it in found[_MOST:]]:
        what = f"{len(rest)} more: {words.listed(rest)}"
        yield failed(what, fix="the JSON (--output json) has all of them")


def left_out(used: Mapping[str, Sequence[str]], *, all_of_them: bool) -> Problem:
    """What is said of VMs whose GPUs these programs use: they are looked at, and not measured."""
    named = [f"{name} ({', '.join(its)})" if its else name for name, its in used.items()]
    more = f", and {len(named) - _MOST} more" if len(named) > _MOST else ""
    what = "nothing was measured" if all_of_them else "not measured"
    return failed(
        f"{what}: the GPUs of {words.listed(named[:_MOST])}{more} are in use",
        why="NCCL's measurement would take 8.5 GB of each GPU from what runs there",
        fix="run Test again when that has ended",
    )


def passed(checked: Mapping[str, VmCheck], measured: VmBandwidth | None) -> str:
    """The verdict on VMs without faults, in one sentence."""
    gpus = sum(it.gpus or 0 for it in checked.values())
    well = f"{len(checked)} VMs" if len(checked) > 1 else "The VM"
    text = f"{well} with {counted(gpus, 'GPU')}: no faults"
    if measured is None or measured.not_measured:
        return f"{text}; bandwidth not measured" if measured else text
    reached = diagnosis.reached(measured.bandwidth, measured.vms, measured.expected)
    return f"{text}; {measured.collective} reaches {reached}"


# ------------------------------------------------------------------ what is measured

SECONDS: Final = 480
"""The most that one measurement may take: NCCL's start, and large sizes on a bad network."""
_PORT: Final = 29650
"""Where the first VM of a group waits for the others; torchrun's own is 29500."""
_SMALLEST: Final = MIB
_LARGEST: Final = GIB
"""The largest message where no published figure says another."""
_LEAST: Final = 1e-9
"""Seconds; a VM that tells of less has measured nothing."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to measure between the VMs of a group."""

    vms: Mapping[str, Vm]
    gpus: int  # the number of GPUs of each
    fabric: Fabric  # what NCCL should send messages with
    reference: Reference | None  # the published figures; None if there are none
    collective: Collective  # what the GPUs do together
    size: int  # the size of message that counts, in bytes: the largest

    @property
    def wanted(self) -> str:
        """What NCCL calls the network that it should use; plain TCP is "Socket"."""
        return "Socket" if self.fabric is Fabric.TCP else fabrics.STACKS[self.fabric].logged

    @property
    def least(self) -> float | None:
        """What is enough; None if there is no published figure."""
        return None if self.reference is None else self.reference.least

    def arguments(self, groups: Sequence[Members]) -> dict[str, Any]:
        """The arguments of the task for groups that measure at the same time."""
        sizes = [_SMALLEST]
        while sizes[-1] < self.size:
            sizes.append(sizes[-1] * 2)
        return {
            "groups": [
                [{"name": name, "address": self.vms[name].address} for name in group]
                for group in groups
            ],
            "port": _PORT,
            "word": secrets.token_hex(16),
            "gpus": self.gpus,
            "collective": str(self.collective),
            "sizes": sizes,
        }


def plan(vms: Sequence[Vm]) -> Plan | None:
    """What to measure between VMs; None where there is nothing between them to measure."""
    if len(vms) < bandwidths.MACHINES:
        return None
    gpus, _ = instances.due(vms[0])
    if not gpus:
        return None
    machine = machines.lookup(vms[0].machine_type)
    has_all = machine is not None and vms[0].interfaces == machine.nics
    fabric = (fabrics.on_vms(machine) if has_all else None) or Fabric.TCP
    network = machine.gpu_network if machine and fabric is not Fabric.TCP else None
    reference = bandwidths.find(vms[0].machine_type, network)
    return Plan(
        vms={vm.name: vm for vm in vms},
        gpus=gpus,
        fabric=fabric,
        reference=reference,
        collective=reference.collective if reference else Collective.ALL_GATHER,
        size=reference.size if reference else _LARGEST,
    )


# ------------------------------------------------------------------ what came of it


@dataclass(frozen=True)
class Outcome(Tried):
    """What came of one measurement: the bandwidth is that of the size that counts."""

    rows: tuple[BandwidthRow, ...] = ()  # the results by size
    # VMs that have failed on their own, each with why
    blamed: Mapping[str, str] = field(default_factory=dict)
    networks: tuple[str, ...] = ()  # the networks that NCCL used
    nccl: str = ""  # NCCL's version
    plugin: str = ""  # the NCCL that came with the plugin
    plugin_nccl: str = ""  # its version
    busy: Members = ()  # VMs whose GPUs are in use, so that nothing was measured


def outcome(plan: Plan, group: Members, answers: Mapping[str, agent.Answer]) -> Outcome:
    """Judge what a group measured."""
    found = {name: answers[name].answer for name in group}
    if busy := tuple(name for name in group if found[name].get("users")):
        why = f"the GPUs of {words.listed(busy)} are in use"
        return Outcome(group, passed=False, why=why, busy=busy)
    networks = tuple(dict.fromkeys(it for one in found.values() for it in _networks(one)))
    blamed = {name: why for name in group if (why := _own_failure(answers[name]))}
    if bad := blamed or {name: why for name in group if (why := answers[name].failure)}:
        why = " ".join(next(iter(bad.items())))
        return Outcome(group, passed=False, why=why, blamed=blamed, networks=networks)
    first = found[group[0]]
    rows = tuple(_rows(plan, first, len(group) * plan.gpus))
    if not rows or rows[-1].size < plan.size // 2:
        return Outcome(group, passed=False, why=f"{group[0]} has told no result", networks=networks)
    reached = max(rows[-1].out_of_place, rows[-1].in_place)
    why = _why(plan, rows, reached, networks)
    # The VMs on which NCCL did not use the network that it should.
    strayed = {
        name: f"NCCL used {words.listed(used)} there instead of {plan.wanted}"
        for name, it in found.items()
        if plan.fabric is not Fabric.TCP and (used := _networks(it)) and plan.wanted not in used
    }
    return Outcome(
        group,
        passed=not why,
        bandwidth=reached,
        why=why,
        rows=rows,
        blamed=strayed,
        networks=networks,
        nccl=json_object.text(first.get("nccl")),
        plugin=json_object.text(first.get("plugin")),
        plugin_nccl=json_object.text(first.get("plugin_nccl")),
    )


def _own_failure(answer: agent.Answer) -> str:
    """Why a VM has failed whatever the others did; "" if that can't be said."""
    if answer.state in {"silent", "refused", "cut-off", "stopped"}:
        return answer.failure
    lacks = answer.answer.get("measured") is False
    return f"can't measure: {answer.answer.get('why')}" if lacks else ""


def _why(plan: Plan, rows: Sequence[BandwidthRow], reached: float, networks: Sequence[str]) -> str:
    if wrong := sum(row.wrong for row in rows):
        return f"NCCL computed {wrong} wrong values"
    if plan.fabric is not Fabric.TCP and plan.wanted not in networks:
        used = words.listed(networks) or "an unknown network"
        return f"NCCL used {used} instead of {plan.wanted}"
    if plan.reference is not None and reached < plan.reference.least:
        part = reached / plan.reference.peak
        return f"{reached:.1f} GB/s, {part:.0%} of the {plan.reference.peak:g} GB/s published"
    return ""


def _networks(found: Mapping[str, Any]) -> list[str]:
    return json_object.texts(found.get("networks"))


def _rows(plan: Plan, found: Mapping[str, Any], ranks: int) -> Iterator[BandwidthRow]:
    """The results as bus bandwidths; a VM tells seconds."""
    factor = plan.collective.factor(ranks)
    for row in json_object.objects(found.get("rows")):
        size, wrong = json_object.whole(row.get("size")), json_object.whole(row.get("wrong"))
        out_of_place, in_place = (
            json_object.number(row.get(name)) or 0.0 for name in ("out_of_place", "in_place")
        )
        if size is None or wrong is None or min(out_of_place, in_place) < _LEAST:
            continue
        yield BandwidthRow(
            size=size,
            out_of_place=size * factor / out_of_place / 1e9,
            in_place=size * factor / in_place / 1e9,
            wrong=wrong,
        )


# ------------------------------------------------------------------ all measurements


@dataclass(frozen=True)
class Measured:
    """All measurements between the VMs of a group."""

    plan: Plan
    outcomes: Sequence[Outcome]
    blamed: Mapping[str, str]
    finding: Finding

    @property
    def busy(self) -> Members:
        """VMs that somebody used meanwhile."""
        return tuple(dict.fromkeys(name for it in self.outcomes for name in it.busy))

    @property
    def document(self) -> VmBandwidth:
        """It for the report: the first measurement of VMs that nobody used meanwhile."""
        plan, reference = self.plan, self.plan.reference
        first = next((it for it in self.outcomes if not it.busy), self.outcomes[0])
        return VmBandwidth(
            vms=len(first.members),
            gpus=len(first.members) * plan.gpus,
            collective=str(plan.collective),
            not_measured=self.not_measured,
            size=plan.size,
            bandwidth=first.bandwidth,
            expected=reference.peak if reference else None,
            least=plan.least,
            source=reference.source if reference else "",
            networks=first.networks,
            nccl=first.nccl,
            plugin=first.plugin,
            plugin_nccl=first.plugin_nccl,
            rows=first.rows,
            tries=tuple(
                BandwidthTry(vms=it.members, passed=it.passed, bandwidth=it.bandwidth, why=it.why)
                for it in self.outcomes
            ),
            faulty=(*self.blamed, *self.finding.faulty),
            suspects=self.finding.suspects,
        )

    @property
    def not_measured(self) -> str:
        """Why no VM could measure, where none has to be able to; "" otherwise."""
        first = self.outcomes[0]
        if all(it.busy for it in self.outcomes):
            return first.why
        lacking = [why for why in first.blamed.values() if why.startswith("can't measure")]
        if self.plan.fabric is Fabric.TCP and len(lacking) == len(first.members):
            return lacking[0]
        return ""


def measure(folder: StateFolder, plan: Plan, stage: OpenStage) -> Measured:
    """Measure between all VMs, and where that is not good enough, between parts of them."""
    outcomes, blamed, tried = list[Outcome](), dict[str, str](), list[Outcome]()
    left = tuple(sorted(plan.vms))
    groups = [left]
    most = diagnosis.most_rounds(len(left))
    for number in range(most):
        stage.counts(_round(plan, groups, number, most))
        answers = agent.ask(
            folder,
            stage,
            "bandwidth",
            plan.arguments(groups),
            vms={name: plan.vms[name].id for group in groups for name in group},
            seconds=SECONDS,
        )
        now = [outcome(plan, group, answers) for group in groups]
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
            tried += now
            groups = diagnosis.next_round(tried)
        if not groups:
            break
    return Measured(plan, outcomes, blamed, diagnosis.find(tried))


def _round(plan: Plan, groups: Sequence[Members], number: int, most: int) -> str:
    """What is measured now, and how long it and what may follow take at most."""
    at_most = words.duration(SECONDS)
    if number:
        return (
            f"round {number + 1} of at most {most}, each {at_most}: {counted(len(groups), 'group')}"
        )
    what = f"{plan.collective} between {len(groups[0])} VMs, at most {at_most}"
    more = f"; if it is too slow, up to {most - 1} rounds more find out where"
    return what + more * (most > 1)


def problems(measured: Measured, where: str) -> list[Problem]:
    """What is wrong between the VMs; `where` as `instances.another_host` has it."""
    if measured.not_measured:
        return []
    plan, blamed = measured.plan, measured.blamed
    bound = any(vm.bound for vm in plan.vms.values())
    if len(blamed) == len(measured.outcomes[0].members):
        alone = [
            failed(
                f"all {len(blamed)} VMs: {next(iter(blamed.values()))}",
                why="it is the same on each, so no single VM is at fault: their image, or the step"
                " fabric of their start-up",
                fix="read the step fabric of Status --full; an image that can is named in"
                " docs/how-to/boot-image.md",
            )
        ]
    else:
        alone = [
            failed(
                f"{name}: {why}",
                why="the others were measured without it",
                fix=instances.another_host([name], where, bound=bound, fault=instances.Fault.GPU),
            )
            for name, why in blamed.items()
        ]
    bar = diagnosis.bar(next(iter(plan.vms.values())).machine_type, plan.reference)
    remedies = Remedies(
        members="VMs",
        another=lambda vms: instances.another_host(
            vms, where, bound=bound, fault=instances.Fault.SLOW
        ),
        more="set INSTANCE_COUNT to more, run Create, and Test again",
        closer="set ENABLE_COMPACT_PLACEMENT=yes, so that new VMs stand close to each other, and"
        " run Create with --replace-vms",
    )
    return [*alone, *diagnosis.problems(measured.finding, measured.outcomes, bar, remedies)]


def notes(measured: Measured) -> Iterator[Problem]:
    """What is said beside a bandwidth that is good, or that no VM has to be able to measure."""
    found = measured.document
    if found.not_measured and not measured.busy:
        yield failed(
            f"the bandwidth between the VMs was not measured: {found.not_measured}",
            why="NCCL's library is all that it takes, and this image has none where it is looked"
            " for",
            fix="install it (apt-get install libnccl2, from NVIDIA's repository), or choose an"
            " image with PyTorch; the VMs themselves are tested",
        )
    if found.plugin_nccl and found.nccl and found.plugin_nccl != found.nccl:
        yield failed(
            f"jobs load NCCL {found.nccl}, and the network's plugin came with {found.plugin_nccl}",
            why="PyTorch's packages have an NCCL of their own, which LD_LIBRARY_PATH does not"
            " change; it was measured",
            fix=f"nothing while it is fast enough; LD_PRELOAD={found.plugin} gives a job the"
            " plugin's",
        )
