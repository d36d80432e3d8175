"""The bandwidth between VMs: what is measured, what came of it, and whose fault that is.

The VMs measure (`aiinfra_vm.tasks.bandwidth`); here are the sizes and the figures to judge by. All
bandwidths are NCCL's bus bandwidth in GB/s. Where it is too low, halves of the group are tried
until the VMs at fault are known.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import bandwidths, fabrics, machines
from provision.catalogue.bandwidths import GIB, MIB, Collective
from provision.catalogue.fabrics import Fabric
from provision.documents import json_object
from provision.documents.checks import BandwidthRow, BandwidthTry, VmBandwidth
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Remedies, Tried, failed
from provision.kinds.vms import agent, health

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.bandwidths import Reference
    from provision.errors import Problem
    from provision.kinds.diagnosis import Finding, Members
    from provision.kinds.vms.agent import Answer
    from provision.kinds.vms.instances import Vm
    from provision.state.folder import StateFolder
    from provision.time.stages import OpenStage

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
    gpus, _ = health.due(vms[0])
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


def outcome(plan: Plan, group: Members, answers: Mapping[str, Answer]) -> Outcome:
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


def _own_failure(answer: Answer) -> str:
    """Why a VM has failed whatever the others did; "" if that can't be said."""
    if answer.state in {"silent", "refused", "cut-off", "stopped"}:
        return answer.failure
    if answer.answer.get("measured") is False:
        return f"can't measure: {answer.answer.get('why')}"
    return ""


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
        return f"round {number + 1} of at most {most}, each {at_most}: {len(groups)} groups"
    what = f"{plan.collective} between {len(groups[0])} VMs, at most {at_most}"
    more = f"; if it is too slow, up to {most - 1} rounds more find out where"
    return what + more * (most > 1)


def problems(measured: Measured, where: str) -> list[Problem]:
    """What is wrong between the VMs; `where` as `health.another_host` has it."""
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
                fix=health.another_host([name], where, bound=bound),
            )
            for name, why in blamed.items()
        ]
    bar = diagnosis.bar(next(iter(plan.vms.values())).machine_type, plan.reference)
    remedies = Remedies(
        members="VMs",
        another=lambda vms: health.another_host(vms, where, bound=bound),
        more="set INSTANCE_COUNT to more, run Create, and Test again",
        closer="set ENABLE_COMPACT_PLACEMENT=yes, so that new VMs stand close to each other, and"
        " run Create with --replace-vms",
    )
    return [*alone, *diagnosis.problems(measured.finding, measured.outcomes, bar, remedies)]


def notes(measured: Measured) -> list[Problem]:
    """What is said beside a bandwidth that is good, or that no VM has to be able to measure."""
    found, said = measured.document, []
    if found.not_measured and not measured.busy:
        said.append(
            failed(
                f"the bandwidth between the VMs was not measured: {found.not_measured}",
                why="NCCL's library is all that it takes, and this image has none where it is"
                " looked for",
                fix="install it (apt-get install libnccl2, from NVIDIA's repository), or choose an"
                " image with PyTorch; the VMs themselves are tested",
            )
        )
    if found.plugin_nccl and found.nccl and found.plugin_nccl != found.nccl:
        said.append(
            failed(
                f"jobs load NCCL {found.nccl}, and the network's plugin came with"
                f" {found.plugin_nccl}",
                why="PyTorch's packages have an NCCL of their own, which LD_LIBRARY_PATH does not"
                " change; it was measured",
                fix=f"nothing while it is fast enough; LD_PRELOAD={found.plugin} gives a job the"
                " plugin's",
            )
        )
    return said
