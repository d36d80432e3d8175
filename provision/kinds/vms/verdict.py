"""What a Test of VMs came to, in words: the faults, whose they are, and what fixes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.documents.checks import BandwidthTry, VmBandwidth
from provision.errors import Problem
from provision.kinds import diagnosis
from provision.kinds.diagnosis import Remedies
from provision.kinds.vms import health

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.documents.checks import VmCheck
    from provision.kinds.vms.bandwidth import Outcome, Plan
    from provision.kinds.vms.instances import Vm

_MOST: Final = 5
"""The number of VMs that are reported one by one."""


class Measured:
    """All measurements between the VMs of a group."""

    def __init__(
        self,
        plan: Plan,
        outcomes: Sequence[Outcome],
        blamed: Mapping[str, str],
        finding: diagnosis.Finding,
    ) -> None:
        self.busy = tuple(dict.fromkeys(name for it in outcomes for name in it.busy))
        self.plan = plan
        self.outcomes = outcomes
        self.blamed = blamed
        self.finding = finding

    @property
    def document(self) -> VmBandwidth:
        """It for the report: the first measurement of VMs that nobody used meanwhile."""
        reference = self.plan.reference
        first = next((it for it in self.outcomes if not it.busy), self.outcomes[0])
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
            plugin=first.plugin[0],
            plugin_nccl=first.plugin[1],
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
        if all(it.busy for it in self.outcomes):
            return first.why
        lacking = [why for why in first.blamed.values() if why.startswith("can't measure")]
        if self.plan.fabric is Fabric.TCP and len(lacking) == len(first.vms):
            return lacking[0]
        return ""


def of_vms(vms: Sequence[Vm], checked: Mapping[str, VmCheck], where: str) -> list[Problem]:
    """What is wrong with single VMs.

    `where`: their group in gcloud's arguments: "NAME --zone Z --project P".
    """
    problems = [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{vm.name}: {'; '.join(checked[vm.name].faults)}",
            why=f"its machine type is {vm.machine_type}",
            fix=_freed(checked[vm.name]) + health.another_host([vm.name], where, bound=vm.bound),
        )
        for vm in vms
        if checked[vm.name].faults
    ]
    login = [_of_login(checked)] if any(it.login for it in checked.values()) else []
    if len(problems) <= _MOST:
        return problems + login
    rest = [problem.what.partition(":")[0] for problem in problems[_MOST:]]
    return [
        *problems[:_MOST],
        *login,
        Problem(
            code=Code.TEST_FAILED,
            what=f"{len(rest)} more: {words.listed(rest)}",
            fix="the JSON (--output json) has all of them",
        ),
    ]


def _of_login(checked: Mapping[str, VmCheck]) -> Problem:
    has = {name: it.login for name, it in checked.items() if it.login}
    return Problem(
        code=Code.TEST_FAILED,
        what=f"a login shell on {words.listed(has)} has {words.listed(next(iter(has.values())))}",
        why="NCCL then looks for another network in what people start there than in jobs",
        fix="remove it from what login shells read after /etc/profile.d/zz-aiinfra-nccl.sh, such as"
        " /root/.profile",
    )


def _freed(found: VmCheck) -> str:
    """What comes before a VM is recreated on which somebody works."""
    return f"end {words.listed(found.users)}, or let them end; then " if found.users else ""


def left_out(used: Mapping[str, Sequence[str]], *, all_of_them: bool) -> Problem:
    """What is said of VMs that somebody works on: they are looked at, and not measured.

    `used`: the VMs, each with the programs that have its GPUs in use, as far as they are known.
    """
    named = [f"{name} ({', '.join(its)})" if its else name for name, its in used.items()]
    more = f", and {len(named) - _MOST} more" if len(named) > _MOST else ""
    what = "nothing was measured" if all_of_them else "not measured"
    return Problem(
        code=Code.TEST_FAILED,
        what=f"{what}: the GPUs of {words.listed(named[:_MOST])}{more} are in use",
        why="NCCL's measurement would take 8.5 GB of each GPU from what runs there",
        fix="run Test again when that has ended",
    )


def other_nccl(found: VmBandwidth) -> Problem | None:
    """A note where the plugin came with another NCCL than the one that jobs load."""
    if not found.plugin_nccl or not found.nccl or found.plugin_nccl == found.nccl:
        return None
    return Problem(
        code=Code.TEST_FAILED,
        what=f"jobs load NCCL {found.nccl}, and the network's plugin came with {found.plugin_nccl}",
        why="PyTorch's packages have an NCCL of their own, which LD_LIBRARY_PATH does not change;"
        " it was measured",
        fix=f"nothing while it is fast enough; LD_PRELOAD={found.plugin} gives a job the plugin's",
    )


def between(measured: Measured | None, where: str) -> list[Problem]:
    """What is wrong between the VMs.

    `measured`: what was measured; None where there is nothing to measure. `where`: their group in
    gcloud's arguments: "NAME --zone Z --project P".
    """
    if measured is None or measured.not_measured:
        return []
    first, bound = measured.outcomes[0], any(vm.bound for vm in measured.plan.vms.values())
    if len(measured.blamed) == len(first.vms):
        alone = [_of_all(measured)]
    else:
        alone = [
            Problem(
                code=Code.TEST_FAILED,
                what=f"{name}: {why}",
                why="the others were measured without it",
                fix=health.another_host([name], where, bound=bound),
            )
            for name, why in measured.blamed.items()
        ]
    tried = [it.tried for it in measured.outcomes]
    bar = diagnosis.bar(_machine(measured.plan), measured.plan.reference)
    return [
        *alone,
        *diagnosis.problems(measured.finding, tried, bar, _remedies(where, bound=bound)),
    ]


def _remedies(where: str, *, bound: bool) -> Remedies:
    return Remedies(
        members="VMs",
        another=lambda vms: health.another_host(vms, where, bound=bound),
        more="set INSTANCE_COUNT to more, run Create, and Test again",
        closer="set ENABLE_COMPACT_PLACEMENT=yes, so that new VMs stand close to each other, and"
        " run Create with --replace-vms",
    )


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


def _machine(plan: Plan) -> str:
    return next(iter(plan.vms.values())).machine_type


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

    `measured`: the bandwidth between them; None where there is nothing to measure.
    """
    gpus = sum(it.gpus or 0 for it in checked.values())
    well = f"{len(checked)} VMs" if len(checked) > 1 else "The VM"
    text = f"{well} with {gpus} GPUs: no faults"
    if measured is None or measured.not_measured:
        return f"{text}; bandwidth not measured" if measured else text
    reached = diagnosis.reached(measured.bandwidth, measured.vms, measured.expected)
    return f"{text}; {measured.collective} reaches {reached}"
