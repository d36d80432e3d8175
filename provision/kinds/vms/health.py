"""Whether a VM is as its machine type promises: what it found about itself, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines
from provision.documents.checks import VmCheck
from provision.kinds import gpu_faults

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu, MachineType
    from provision.kinds.vms.instances import Vm

PASSED: Final = "passed"
FAILED: Final = "failed"
NOT_RUN: Final = "not run"

_MOST: Final = 3
"""Failures of DCGM's that are named."""


def judge(vm: Vm, found: Mapping[str, Any]) -> VmCheck:
    """What a VM found, and what of that is wrong.

    Args:
        vm: The VM.
        found: The answer to the task `check`.
    """
    gpus = _list(found, "gpus")
    return VmCheck(
        gpus=len(gpus),
        names=tuple(str(gpu.get("name")) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus if gpu.get("driver")), None),
        ecc_errors=gpu_faults.counted(gpus),
        diagnostic=_diagnostic(found),
        interfaces=len(_list(found, "interfaces")),
        local_ssds=_local_ssd(found).get("disks"),
        faults=tuple(_faults(vm, found)),
    )


def reported(vm: Vm, found: Mapping[str, Any]) -> VmCheck:
    """What a VM that can't be asked reported at its start-up, judged likewise.

    Args:
        vm: The VM.
        found: The guest attribute `gpu-check`.
    """
    count, kind = due(vm)
    names = tuple(str(it) for it in found.get("names") or ())
    faults = []
    if count is not None and found.get("gpus") != count:
        faults.append(f"{found.get('gpus')} GPUs instead of {count}")
    faults += gpu_faults.strange(names, kind)
    if found.get("ecc_errors"):
        faults.append(f"{found['ecc_errors']} uncorrected memory (ECC) errors")
    if found.get("interfaces") != vm.interfaces:
        faults.append(f"{found.get('interfaces')} network interfaces instead of {vm.interfaces}")
    return VmCheck(
        gpus=found.get("gpus"),
        names=names,
        driver=found.get("driver"),
        ecc_errors=found.get("ecc_errors"),
        interfaces=found.get("interfaces"),
        faults=tuple(faults),
    )


def due(vm: Vm) -> tuple[int | None, Gpu | None]:
    """The number and the type of the GPUs that a VM should have; None if not known."""
    if vm.attached:
        kind, count = next(iter(vm.attached.items()))
        return count, machines.GPUS.get(kind)
    machine = machines.lookup(vm.machine_type)
    if machine is None:
        return None, None
    return machine.gpus or 0, machine.family.gpu


def without_diagnostic(found: Mapping[str, Any]) -> str:
    """Why DCGM's diagnostic was not run; "" if it was."""
    diagnostic = found.get("diagnostic")
    if not isinstance(diagnostic, dict) or diagnostic.get("ran"):
        return ""
    return str(diagnostic.get("error") or "")


def _faults(vm: Vm, found: Mapping[str, Any]) -> Iterator[str]:
    count, kind = due(vm)
    if count != 0:
        yield from gpu_faults.of(_list(found, "gpus"), str(found.get("error") or ""), count, kind)
    diagnostic = found.get("diagnostic")
    failures = diagnostic.get("failures") if isinstance(diagnostic, dict) else None
    if failures:
        named = "; ".join(map(str, failures[:_MOST]))
        more = f"; and {len(failures) - _MOST} more" if len(failures) > _MOST else ""
        yield f"DCGM's diagnostic failed: {named}{more}"
    fabric = found.get("fabric")
    if isinstance(fabric, dict):
        yield from (f"the fabric {fabric.get('kind')}: {it}" for it in fabric.get("faults") or ())
    machine = machines.lookup(vm.machine_type)
    yield from _of_interfaces(vm, _list(found, "interfaces"), machine)
    if machine is not None and not vm.attached:
        yield from _of_local_ssds(_local_ssd(found), machine)


def _of_interfaces(
    vm: Vm, found: Sequence[Mapping[str, Any]], machine: MachineType | None
) -> Iterator[str]:
    if len(found) != vm.interfaces:
        yield f"{len(found)} network interfaces instead of {vm.interfaces}"
    if down := [str(it.get("name")) for it in found if not it.get("up")]:
        yield f"no link on {words.listed(down)}"
    if machine is None or machine.gpu_network is None or vm.interfaces != machine.nics:
        return
    network = machine.gpu_network
    wide = sum(int(it.get("mtu") or 0) >= network.mtu for it in found)
    wanted = network.vpcs * network.subnets
    if wide < wanted and len(found) == vm.interfaces:
        yield f"{wide} interfaces have the MTU {network.mtu} instead of the {wanted} of its GPUs"


def _of_local_ssds(found: Mapping[str, Any], machine: MachineType) -> Iterator[str]:
    wanted, disks = machine.shape.local_ssds, found.get("disks")
    if disks != wanted:
        yield f"{disks} local SSDs instead of {wanted}"
    if disks and not found.get("mounted"):
        yield "its local SSDs are not mounted at /mnt/localssd"


def _diagnostic(found: Mapping[str, Any]) -> str:
    diagnostic = found.get("diagnostic")
    if not isinstance(diagnostic, dict) or not diagnostic.get("ran"):
        return NOT_RUN
    return FAILED if diagnostic.get("failures") else PASSED


def _list(found: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    value = found.get(key)
    return [it for it in value if isinstance(it, dict)] if isinstance(value, list) else []


def _local_ssd(found: Mapping[str, Any]) -> dict[str, Any]:
    value = found.get("local_ssd")
    return value if isinstance(value, dict) else {}
