"""What a Test of VMs came to, in words: the faults, whose they are, and what mends them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import bandwidths
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.documents.checks import BandwidthTry, VmBandwidth
from provision.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.checks import VmCheck
    from provision.kinds.vms import faults
    from provision.kinds.vms.bandwidth import Outcome, Plan
    from provision.kinds.vms.instances import Vm

_MOST: Final = 5
"""The number of VMs that are reported one by one."""


class Measured:
    """All measurements between the VMs of a group.

    Args:
        plan: What was to be measured.
        outcomes: What came of each, the first being of all VMs.
        blamed: VMs that have failed by themselves, each with why.
        finding: What the search came to.
    """

    def __init__(
        self,
        plan: Plan,
        outcomes: Sequence[Outcome],
        blamed: Mapping[str, str],
        finding: faults.Finding,
    ) -> None:
        self.plan = plan
        self.outcomes = outcomes
        self.blamed = blamed
        self.finding = finding

    @property
    def document(self) -> VmBandwidth:
        """It for the report."""
        first, reference = self.outcomes[0], self.plan.reference
        return VmBandwidth(
            vms=len(first.vms),
            gpus=len(first.vms) * self.plan.gpus,
            collective=str(self.plan.collective),
            not_measured=self.not_measured,
            size=self.plan.size,
            bandwidth=first.bandwidth,
            expected=reference.peak if reference else None,
            least=self.plan.least,
            source=reference.source if reference else "",
            networks=first.networks,
            nccl=first.nccl,
            rows=first.rows,
            tries=tuple(
                BandwidthTry(vms=it.vms, passed=it.passed, bandwidth=it.bandwidth, why=it.why)
                for it in self.outcomes
            ),
            faulty=(*self.blamed, *self.finding.faulty),
            suspects=self.finding.suspects,
        )

    @property
    def not_measured(self) -> str:
        """Why no VM could measure, where none has to be able to; "" otherwise."""
        first = self.outcomes[0]
        lacking = [why for why in first.blamed.values() if why.startswith("can't measure")]
        if self.plan.fabric is Fabric.TCP and len(lacking) == len(first.vms):
            return lacking[0]
        return ""


def of_vms(vms: Sequence[Vm], checked: Mapping[str, VmCheck], where: str) -> list[Problem]:
    """What is wrong with single VMs.

    Args:
        vms: All VMs.
        checked: What each found.
        where: Their group in gcloud's arguments: "NAME --zone Z --project P".
    """
    problems = [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{vm.name}: {'; '.join(checked[vm.name].faults)}",
            why=f"its machine type is {vm.machine_type}",
            fix=_recreate(vm.name, where),
        )
        for vm in vms
        if checked[vm.name].faults
    ]
    if len(problems) <= _MOST:
        return problems
    rest = [problem.what.partition(":")[0] for problem in problems[_MOST:]]
    return [
        *problems[:_MOST],
        Problem(
            code=Code.TEST_FAILED,
            what=f"{len(rest)} more: {words.listed(rest)}",
            fix="the JSON (--output json) has all of them",
        ),
    ]


def _recreate(vm: str, where: str) -> str:
    return (
        "let Google recreate it with: gcloud compute instance-groups managed recreate-instances"
        f" {where} --instances={vm}"
    )


def between(measured: Measured | None, where: str) -> list[Problem]:
    """What is wrong between the VMs.

    Args:
        measured: What was measured; None where there is nothing to measure.
        where: Their group in gcloud's arguments: "NAME --zone Z --project P".
    """
    if measured is None or measured.not_measured:
        return []
    first, finding = measured.outcomes[0], measured.finding
    bar = _bar(measured.plan)
    problems = []
    if len(measured.blamed) == len(first.vms):
        problems.append(_of_all(measured))
    else:
        problems += [
            Problem(
                code=Code.TEST_FAILED,
                what=f"{name}: {why}",
                why="the others were measured without it",
                fix=_recreate(name, where),
            )
            for name, why in measured.blamed.items()
        ]
    problems += [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{name} is at fault: {_worst(measured, name)}",
            why=f"it failed with nobody but VMs that passed with others; {bar}",
            fix=_recreate(name, where),
        )
        for name in finding.faulty
    ]
    if finding.suspects:
        problems.append(
            Problem(
                code=Code.TEST_FAILED,
                what=f"between {words.listed(finding.suspects)}: {_last(measured)}",
                why=f"which of them is at fault shows only beside two that are not; {bar}",
                fix=f"{_recreate(','.join(finding.suspects), where)}; or set INSTANCE_COUNT to"
                " more, run Create, and Test again",
            )
        )
    problems += [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{len(vms)} VMs together: {_why(measured, vms)}",
            why=f"parts of them are as fast as they should be; {bar}",
            fix="set ENABLE_COMPACT_PLACEMENT=yes, so that new VMs stand close to each other, and"
            " run Create with --replace-vms",
        )
        for vms in finding.together
    ]
    return problems


def _of_all(measured: Measured) -> Problem:
    """What all VMs have in common that is wrong."""
    why = next(iter(measured.blamed.values()))
    return Problem(
        code=Code.TEST_FAILED,
        what=f"all {len(measured.blamed)} VMs: {why}",
        why="it is the same on each, so no single VM is at fault: their image, or the step fabric"
        " of their start-up",
        fix="read the step fabric of Status --full; an image that can is named in"
        " docs/how-to/boot-image.md",
    )


def _bar(plan: Plan) -> str:
    """What the measurements are judged by."""
    if plan.reference is None or plan.least is None:
        return f"there is no published figure for {_machine(plan)}"
    return (
        f"{plan.reference.tolerance:.0%} of the {plan.reference.peak:g} GB/s published for"
        f" {bandwidths.MACHINES} x {_machine(plan)} is {plan.least:.1f} GB/s"
    )


def _machine(plan: Plan) -> str:
    return next(iter(plan.vms.values())).machine_type


def _worst(measured: Measured, name: str) -> str:
    """Why the smallest group with a VM failed."""
    failed = [it for it in measured.outcomes if name in it.vms and not it.passed]
    return min(failed, key=lambda it: len(it.vms)).why


def _last(measured: Measured) -> str:
    suspects = set(measured.finding.suspects)
    failed = [it for it in measured.outcomes if suspects & set(it.vms) and not it.passed]
    return failed[-1].why


def _why(measured: Measured, vms: faults.Vms) -> str:
    return next(it.why for it in measured.outcomes if it.vms == vms and not it.passed)


def not_measured(found: VmBandwidth) -> Problem:
    """A note on a bandwidth that no VM could measure, and need not be able to."""
    return Problem(
        code=Code.TEST_FAILED,
        what=f"the bandwidth between the VMs was not measured: {found.not_measured}",
        why="NCCL's library is all that it takes, and this image has none where it is looked for",
        fix="install it (apt-get install libnccl2, from NVIDIA's repository), or choose an image"
        " with PyTorch; the VMs themselves are tested",
    )


def passed(checked: Mapping[str, VmCheck], measured: VmBandwidth | None) -> str:
    """The verdict on VMs without faults, in one sentence.

    Args:
        checked: What each VM found.
        measured: The bandwidth between them; None where there is nothing to measure.
    """
    gpus = sum(it.gpus or 0 for it in checked.values())
    well = f"{len(checked)} VMs" if len(checked) > 1 else "The VM"
    text = f"{well} with {gpus} GPUs: no faults"
    if measured is None or measured.not_measured:
        return f"{text}; bandwidth not measured" if measured else text
    reached = f"{measured.collective} reaches {measured.bandwidth:.1f} GB/s"
    if measured.expected is None or measured.bandwidth is None:
        return f"{text}; {reached}, without a verdict: no figure is published for this machine"
    part = measured.bandwidth / measured.expected
    more = "" if measured.vms <= bandwidths.MACHINES else " (none is for more)"
    return (
        f"{text}; {reached}, {part:.0%} of the {measured.expected:g} GB/s published for"
        f" {bandwidths.MACHINES}{more}: good"
    )
