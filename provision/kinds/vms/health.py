"""Whether a VM is as its machine type promises: what it found about itself, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines
from provision.documents.checks import VmCheck

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
    counted = [gpu["ecc_volatile"] for gpu in gpus if gpu.get("ecc_volatile") is not None]
    return VmCheck(
        gpus=len(gpus),
        names=tuple(str(gpu.get("name")) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus if gpu.get("driver")), None),
        ecc_errors=sum(counted) if counted else None,
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
    faults += _strange(names, kind)
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
        yield from _of_gpus(_list(found, "gpus"), str(found.get("error") or ""), count, kind)
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


def _of_gpus(
    gpus: Sequence[Mapping[str, Any]], error: str, count: int | None, kind: Gpu | None
) -> Iterator[str]:
    if error:
        yield error
    if count is not None and len(gpus) != count:
        yield f"{len(gpus)} GPUs instead of {count}"
    yield from _strange([str(gpu.get("name")) for gpu in gpus], kind)
    numbered = list(enumerate(gpus))
    errors = {number: gpu["ecc_volatile"] for number, gpu in numbered if gpu.get("ecc_volatile")}
    if errors:
        yield (
            f"{sum(errors.values())} uncorrected memory (ECC) errors since its boot, on"
            f" {_named(errors)}"
        )
    if broken := [number for number, gpu in numbered if gpu.get("repair_failed")]:
        yield f"{_named(broken)} can't repair its memory any more"
    if pending := [number for number, gpu in numbered if gpu.get("repair_pending")]:
        yield f"{_named(pending)} waits for a restart to repair its memory"


def _named(numbers: Mapping[int, int] | Sequence[int]) -> str:
    return words.listed([f"GPU {number}" for number in numbers])


def _strange(names: Sequence[str], kind: Gpu | None) -> list[str]:
    if kind is None:
        return []
    # A part of an RTX PRO 6000 calls itself "RTX Pro 6000".
    other = sorted({it for it in names if kind.model.casefold() not in it.casefold()})
    return [f"{', '.join(other)} instead of {kind.model}"] if other else []


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
