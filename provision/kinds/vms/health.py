"""Whether a VM is as its machine type promises: what it found about itself, judged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines
from provision.documents import json_object
from provision.documents.checks import VmCheck
from provision.kinds import gpus as gpu_words

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
    """What a VM found, and what of that is wrong."""
    gpus = _gpus(found)
    return VmCheck(
        gpus=len(gpus),
        names=tuple(str(gpu.get("name")) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus if gpu.get("driver")), None),
        ecc_errors=gpu_words.memory_errors(gpus),
        diagnostic=_diagnostic(found),
        interfaces=len(json_object.objects(found.get("interfaces"))),
        local_ssds=json_object.whole(json_object.inner(found.get("local_ssd")).get("disks")),
        users=tuple(json_object.texts(found.get("users"))),
        login=tuple(json_object.texts(found.get("login"))),
        faults=tuple(_faults(vm, found)),
    )


def reported(vm: Vm, found: Mapping[str, Any]) -> VmCheck:
    """What a VM that can't be asked reported at its start-up, judged likewise."""
    count, kind = due(vm)
    gpus, errors, interfaces = (
        json_object.whole(found.get(name)) for name in ("gpus", "ecc_errors", "interfaces")
    )
    names = tuple(json_object.texts(found.get("names")))
    faults = []
    if count is not None and gpus != count:
        faults.append(f"{gpus} GPUs instead of {count}")
    faults += gpu_words.strange(names, kind)
    if errors:
        faults.append(f"{errors} uncorrected memory (ECC) errors")
    if interfaces != vm.interfaces:
        faults.append(f"{interfaces} network interfaces instead of {vm.interfaces}")
    return VmCheck(
        gpus=gpus,
        names=names,
        driver=json_object.text(found.get("driver")) or None,
        ecc_errors=errors,
        interfaces=interfaces,
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


def another_host(names: Sequence[str], where: str, *, bound: bool) -> str:
    """How VMs get another host.

    A bound VM that is recreated may come back to the same host; Google takes such a VM to another
    one if its host is reported ("Report faulty host", AI Hypercomputer, 2026). `where`: their group
    in gcloud's arguments: "NAME --zone Z --project P".
    """
    if not bound:
        return (
            "let Google recreate it with: gcloud compute instance-groups managed recreate-instances"
            f" {where} --instances={','.join(names)}"
        )
    return (
        "report its host, which stops the VM and takes it to another host where it can: gcloud"
        f" compute instances report-host-as-faulty {' or '.join(names)} {where.partition(' ')[2]}"
        " --disruption-schedule=IMMEDIATE --fault-reasons=behavior=UNRECOVERABLE_GPU_ERROR"
    )


def _faults(vm: Vm, found: Mapping[str, Any]) -> Iterator[str]:
    count, kind = due(vm)
    if count != 0:
        yield from gpu_words.faults(_gpus(found), json_object.text(found.get("error")), count, kind)
    if failures := _failures(found):
        named = "; ".join(map(str, failures[:_MOST]))
        more = f"; and {len(failures) - _MOST} more" if len(failures) > _MOST else ""
        yield f"DCGM's diagnostic failed: {named}{more}"
    fabric = json_object.inner(found.get("fabric"))
    wrong = json_object.items(fabric.get("faults"))
    yield from (f"the fabric {fabric.get('kind')}: {it}" for it in wrong)
    machine = machines.lookup(vm.machine_type)
    yield from _of_interfaces(vm, json_object.objects(found.get("interfaces")), machine)
    if machine is not None and not vm.attached:
        yield from _of_local_ssds(json_object.inner(found.get("local_ssd")), machine)


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
    wide = sum((json_object.whole(it.get("mtu")) or 0) >= network.mtu for it in found)
    wanted = network.vpcs * network.subnets
    if wide < wanted and len(found) == vm.interfaces:
        yield f"{wide} interfaces have the MTU {network.mtu} instead of the {wanted} of its GPUs"


def _of_local_ssds(found: Mapping[str, Any], machine: MachineType) -> Iterator[str]:
    wanted, disks = machine.local_ssds, found.get("disks")
    if disks != wanted:
        yield f"{disks} local SSDs instead of {wanted}"
    if disks and not found.get("mounted"):
        yield "its local SSDs are not mounted at /mnt/localssd"


def _diagnostic(found: Mapping[str, Any]) -> str:
    if not json_object.inner(found.get("diagnostic")).get("ran"):
        return NOT_RUN
    return FAILED if _failures(found) else PASSED


def _failures(found: Mapping[str, Any]) -> list[Any]:
    return json_object.items(json_object.inner(found.get("diagnostic")).get("failures"))


def _gpus(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each GPU, its errors as a number that can be added."""
    gpus = json_object.objects(found.get("gpus"))
    return [it | {"ecc_volatile": json_object.whole(it.get("ecc_volatile"))} for it in gpus]
