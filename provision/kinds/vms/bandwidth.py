"""The bandwidth between VMs: what is to be measured, and what came of it.

The VMs measure (`aiinfra_vm.tasks.bandwidth`); here are the sizes and the figures to judge by. All
bandwidths are NCCL's bus bandwidth in GB/s.
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
from provision.documents.checks import BandwidthRow
from provision.kinds.diagnosis import Tried
from provision.kinds.vms import health

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.bandwidths import Reference
    from provision.kinds.diagnosis import Members
    from provision.kinds.vms.instances import Vm
    from provision.kinds.vms.tasks import Answer

SECONDS: Final = 480
"""The most that one measurement may take: NCCL's start, and large sizes on a bad network."""

_PORT: Final = 29650
"""Where the first VM of a group waits for the others; torchrun's own is 29500."""
_SMALLEST: Final = MIB
_LARGEST: Final = GIB
"""The largest message where no published figure says another."""

_LEAST: Final = 1e-9
"""Seconds; a VM that tells of less has measured nothing."""

_SOCKETS: Final = "Socket"
"""What NCCL calls plain TCP."""


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
        """What NCCL calls the network that it should use."""
        return _SOCKETS if self.fabric is Fabric.TCP else fabrics.STACKS[self.fabric].logged

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


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one measurement."""

    vms: Members  # the VMs that took part
    rows: tuple[BandwidthRow, ...] = ()  # the results by size
    # what was reached at the size that counts; None if the measurement failed
    bandwidth: float | None = None
    why: str = ""  # why that is not good enough; "" if it is
    # VMs that have failed on their own, each with why
    blamed: Mapping[str, str] = field(default_factory=dict)
    networks: tuple[str, ...] = ()  # the networks that NCCL used
    nccl: str = ""  # NCCL's version
    plugin: tuple[str, str] = ("", "")  # the NCCL that came with the plugin, and its version
    busy: Members = ()  # VMs whose GPUs are in use, so that nothing was measured

    @property
    def passed(self) -> bool:
        """Whether it was good enough."""
        return not self.why

    @property
    def tried(self) -> Tried:
        """It for the search for the VMs at fault."""
        return Tried(self.vms, self.passed, self.bandwidth, self.why)


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


def outcome(plan: Plan, group: Members, answers: Mapping[str, Answer]) -> Outcome:
    """Judge what a group measured."""
    busy = tuple(name for name in group if answers[name].answer.get("users"))
    if busy:
        return Outcome(vms=group, why=f"the GPUs of {words.listed(busy)} are in use", busy=busy)
    blamed = {name: why for name in group if (why := _own_failure(answers[name]))}
    failed = {name: answers[name].failure for name in group if answers[name].failure}
    found = {name: answers[name].answer for name in group}
    networks = tuple(
        dict.fromkeys(it for name in group for it in json_object.texts(found[name].get("networks")))
    )
    if blamed or failed:
        name, why = next(iter((blamed or failed).items()))
        return Outcome(vms=group, why=f"{name} {why}", blamed=blamed, networks=networks)
    first = found[group[0]]
    rows = tuple(_rows(plan, first, len(group) * plan.gpus))
    counted = rows[-1] if rows else None
    if counted is None or counted.size < plan.size // 2:
        return Outcome(vms=group, why=f"{group[0]} has told no result", networks=networks)
    reached = max(counted.out_of_place, counted.in_place)
    return Outcome(
        vms=group,
        rows=rows,
        bandwidth=reached,
        why=_why(plan, rows, reached, networks),
        blamed=_on_sockets(plan, found),
        networks=networks,
        nccl=json_object.text(first.get("nccl")),
        plugin=(json_object.text(first.get("plugin")), json_object.text(first.get("plugin_nccl"))),
    )


def _own_failure(answer: Answer) -> str:
    """Why a VM has failed whatever the others did; "" if that can't be said."""
    if answer.state in {"silent", "refused", "cut-off", "stopped"}:
        return answer.failure
    if answer.answer.get("measured") is False:
        return f"can't measure: {answer.answer.get('why')}"
    return ""


def _on_sockets(plan: Plan, found: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The VMs on which NCCL did not use the network that it should."""
    if plan.fabric is Fabric.TCP:
        return {}
    wanted = plan.wanted
    return {
        name: f"NCCL used {words.listed(used)} there instead of {wanted}"
        for name, it in found.items()
        if (used := _networks(it)) and wanted not in used
    }


def _why(plan: Plan, rows: Sequence[BandwidthRow], reached: float, networks: Sequence[str]) -> str:
    if wrong := sum(row.wrong for row in rows):
        return f"NCCL computed {wrong} wrong values"
    if plan.fabric is not Fabric.TCP and plan.wanted not in networks:
        used = words.listed(networks) or "an unknown network"
        return f"NCCL used {used} instead of {plan.wanted}"
    if plan.reference is not None and plan.least is not None and reached < plan.least:
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
        # Less than a nanosecond is no measurement.
        if size is None or wrong is None or min(out_of_place, in_place) < _LEAST:
            continue
        yield BandwidthRow(
            size=size,
            out_of_place=size * factor / out_of_place / 1e9,
            in_place=size * factor / in_place / 1e9,
            wrong=wrong,
        )
