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

_MOST: Final = 3
"""Failures of DCGM's that are named."""


def judge(vm: Vm, found: Mapping[str, Any]) -> VmCheck:
    """What a VM found, and what of that is wrong."""
    # The errors of each GPU as a number that can be added.
    gpus = [
        it | {"ecc_volatile": json_object.whole(it.get("ecc_volatile"))}
        for it in json_object.objects(found.get("gpus"))
    ]
    diagnostic = json_object.inner(found.get("diagnostic"))
    failures = json_object.items(diagnostic.get("failures"))
    ran = "failed" if failures else "passed"
    return VmCheck(
        gpus=len(gpus),
        names=tuple(str(gpu.get("name")) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus if gpu.get("driver")), None),
        ecc_errors=gpu_words.memory_errors(gpus),
        diagnostic=ran if diagnostic.get("ran") else "not run",
        interfaces=len(json_object.objects(found.get("interfaces"))),
        local_ssds=json_object.whole(json_object.inner(found.get("local_ssd")).get("disks")),
        users=tuple(json_object.texts(found.get("users"))),
        login=tuple(json_object.texts(found.get("login"))),
        faults=tuple(_faults(vm, found, gpus, failures)),
    )


def reported(vm: Vm, found: Mapping[str, Any] | None, state: str = "") -> VmCheck:
    """What a VM reported at its start-up, judged likewise; `state`: why it can't be asked."""
    more = (state,) if state else ()
    if found is None:
        return VmCheck(faults=more)
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
        faults=(*faults, *more),
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


def _faults(
    vm: Vm, found: Mapping[str, Any], gpus: Sequence[Mapping[str, Any]], failures: Sequence[Any]
) -> Iterator[str]:
    count, kind = due(vm)
    if count != 0:
        yield from gpu_words.faults(gpus, json_object.text(found.get("error")), count, kind)
    if failures:
        named = "; ".join(map(str, failures[:_MOST]))
        more = f"; and {len(failures) - _MOST} more" if len(failures) > _MOST else ""
        yield f"DCGM's diagnostic failed: {named}{more}"
    fabric = json_object.inner(found.get("fabric"))
    wrong = json_object.items(fabric.get("faults"))
    yield from (f"the fabric {fabric.get('kind')}: {it}" for it in wrong)
    machine = machines.lookup(vm.machine_type)
    yield from _of_interfaces(vm, json_object.objects(found.get("interfaces")), machine)
    if machine is None or vm.attached:
        return
    ssds, wanted = json_object.inner(found.get("local_ssd")), machine.local_ssds
    if ssds.get("disks") != wanted:
        yield f"{ssds.get('disks')} local SSDs instead of {wanted}"
    if ssds.get("disks") and not ssds.get("mounted"):
        yield "its local SSDs are not mounted at /mnt/localssd"


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
