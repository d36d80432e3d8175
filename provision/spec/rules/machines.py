"""Rules about machine types, GPUs, disks and network interfaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import fabrics, machines, suggestions
from provision.catalogue.fabrics import Fabric
from provision.codes import Code
from provision.settings.choices import NetworkConfig, asking_for
from provision.spec.rules.findings import Case, Finding, Rules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.catalogue.machines import MachineType

RULES: Final = Rules()


def gpu_findings(
    vm_type: str, gpu_count: int | None, accelerator_type: str | None
) -> Iterator[Finding]:
    """Check the number and type of GPUs for a machine type.

    Nothing is reported for a type that the tool does not know: the online check decides.
    """
    machine = machines.lookup(vm_type)
    if machine is None:
        return
    if machine.gpus is None:
        yield from _attached(machine, gpu_count, accelerator_type)
    else:
        yield from _built_in(machine, machine.gpus, gpu_count, accelerator_type)


def disk_finding(vm_type: str, disk_type: str) -> Iterator[Finding]:
    """Check the boot disk type for a machine type."""
    family = machines.family(vm_type)
    if family is not None and disk_type not in family.boot_disks:
        yield Finding(
            field="disk_type",
            what=f"can't be the boot disk of {vm_type}",
            why=f"{family.name} machines boot from {', '.join(family.boot_disks)}",
            fix=f"DISK_TYPE={family.boot_disks[0]}",
        )


def _built_in(
    machine: MachineType, gpus: int, gpu_count: int | None, accelerator_type: str | None
) -> Iterator[Finding]:
    has = f"{machine.name} has exactly {gpus} x {machine.accelerator}"
    if accelerator_type not in {None, machine.accelerator}:
        others = machines.carrying(accelerator_type or "")
        elsewhere = f", or VM_TYPE={others[0]}" if others else ""
        yield Finding(
            field="accelerator_type",
            what=f"is not the GPU of {machine.name}",
            why=has,
            fix=f"ACCELERATOR_TYPE={machine.accelerator}{elsewhere}",
        )
    if gpu_count not in {None, gpus}:
        kin = [
            other.name
            for other in machines.MACHINE_TYPES.values()
            if other.family is machine.family and other.gpus == gpu_count and not other.part
        ]
        elsewhere = f", or VM_TYPE={kin[0]}" if kin else ""
        yield Finding(
            field="gpu_count",
            what=f"is not the number of GPUs of {machine.name}",
            why=has,
            fix=f"GPU_COUNT={gpus}{elsewhere}",
        )


def _attached(
    machine: MachineType, gpu_count: int | None, accelerator_type: str | None
) -> Iterator[Finding]:
    takes, usual = ", ".join(machines.ATTACHMENTS), next(iter(machines.ATTACHMENTS))
    without = f"{machine.family.title} machines do not include GPUs"
    if accelerator_type is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="accelerator_type",
            what=f"is required for {machine.name}",
            why=f"{without}; you can attach {takes}",
            fix=f"ACCELERATOR_TYPE={usual}",
        )
    if gpu_count is None:
        yield Finding(
            code=Code.MISSING_SETTING,
            field="gpu_count",
            what=f"is required for {machine.name}",
            why=without,
            fix="GPU_COUNT=1",
        )
    gpu = machines.ATTACHMENTS.get(accelerator_type or "")
    if accelerator_type is not None and gpu is None:
        close = suggestions.accelerator(accelerator_type)
        yield Finding(
            field="accelerator_type",
            what=f"can't be attached to {machine.name}",
            why=f"{machine.family.title} machines support {takes}",
            fix=f"ACCELERATOR_TYPE={close if close in machines.ATTACHMENTS else usual}",
        )
    if gpu is not None and gpu_count is not None:
        yield from _attached_count(machine, gpu, gpu_count)


def _attached_count(machine: MachineType, gpu: machines.Gpu, gpu_count: int) -> Iterator[Finding]:
    counts = [count for count, most in gpu.max_vcpus.items() if machine.vcpus <= most]
    if gpu_count in counts:
        return
    some = ", ".join(map(str, counts))
    yield Finding(
        field="gpu_count",
        what=f"is not a number of {gpu.name} that {machine.name} supports",
        why=f"with its {words.counted(machine.vcpus, 'vCPU')} it supports {some}",
        fix=f"GPU_COUNT={counts[0]}",
    )


@RULES.on("vm_type", "gpu_count", "accelerator_type")
def _gpus(case: Case) -> Iterator[Finding]:
    # GKE_NODE_POOLS has machine types of its own; another rule refuses these settings then.
    if not case.asked("gke_node_pools"):
        settings = case.settings
        yield from gpu_findings(settings.vm_type, settings.gpu_count, settings.accelerator_type)


@RULES.on("vm_type", "disk_type")
def _disk(case: Case) -> Iterator[Finding]:
    if case.asked("disk_type") and not case.asked("gke_node_pools"):
        yield from disk_finding(case.settings.vm_type, case.settings.disk_type.value)


@RULES.on("vm_type")
def _unknown_machine(case: Case) -> Iterator[Finding]:
    name = case.settings.vm_type
    if machines.lookup(name) is not None:
        return
    series = machines.plain_series(name)
    if series is not None:
        yield Finding(
            code=Code.WITHOUT_GPU,
            field="vm_type",
            what="has no GPU: is that meant?",
            why=f"{series.name.upper()} machines have none, and none can be attached",
            fix="a machine type with GPUs, such as VM_TYPE=g2-standard-8; else leave it",
            note=True,
        )
        return
    title = machines.NOT_SET_UP.get(name.partition("-")[0])
    if title is not None:
        yield Finding(
            field="vm_type",
            what=f"is of {title}, which this tool does not set up",
            why=f"{title} machines are Arm and bare metal, bound to a reservation, and their GPUs"
            " have a network of a kind that it does not make",
            fix="VM_TYPE=a4x-highgpu-4g and RESERVATION_NAME=<one of these>; or Cluster Toolkit",
        )
        return
    like = suggestions.like(name)
    yield Finding(
        code=Code.NOT_CHECKED,
        field="vm_type",
        what="is a machine type that this tool does not know",
        why="the online check decides whether it exists and has GPUs",
        fix=f"did you mean {' or '.join(like)}?" if like else "",
        note=True,
        guess=True,
    )


@RULES.on("vm_type", "network_config", "instance_count")
def _interfaces(case: Case) -> Iterator[Finding]:
    machine = machines.lookup(case.settings.vm_type)
    # A GKE cluster always gets the networks that its machine types need.
    if machine is None or case.is_gke:
        return
    if case.settings.network_config is not NetworkConfig.MULTI_NIC:
        yield from _gpus_without_network(case, machine)
    elif machine.gpu_network is None and machine.max_nics < fabrics.USUAL_INTERFACES:
        yield Finding(
            field="network_config",
            what=f"gives each VM {fabrics.USUAL_INTERFACES} network interfaces, more than"
            f" {machine.name} supports",
            why=f"with its {words.counted(machine.vcpus, 'vCPU')} it supports {machine.max_nics}: 2"
            " for up to 2 vCPUs, otherwise one for each vCPU, up to 8",
            fix=f"NETWORK_CONFIG=new_network, or VM_TYPE={_with_interfaces(machine)}",
        )
    elif machine.gpu_network is None:
        yield Finding(
            code=Code.NOTE,
            field="network_config",
            what=f"gives each VM {fabrics.USUAL_INTERFACES - 1} more network interfaces, which"
            " nothing uses unless your programs do",
            why=f"{machine.name} has no network for its GPUs: NCCL is told the first interface",
            fix="NETWORK_CONFIG=new_network",
            note=True,
        )


@RULES.on("vm_type")
def _second_interface(case: Case) -> Iterator[Finding]:
    if case.settings.vm_type in machines.TWO_INTERFACES:
        yield Finding(
            code=Code.SLOWER,
            field="vm_type",
            what="has two network interfaces, of which NCCL uses the first",
            why="Google's blueprint gives these nodes a second gVNIC on a network of its own, this"
            " tool does not: between machines it is about half the bandwidth",
            fix="nothing for work on one machine; for more, Cluster Toolkit's gke-g4",
            note=True,
        )


def _with_interfaces(machine: MachineType) -> str:
    """The smallest machine type of the family that supports the usual number of interfaces."""
    kin = (other for other in machines.MACHINE_TYPES.values() if other.family is machine.family)
    fit = (other for other in kin if other.max_nics >= fabrics.USUAL_INTERFACES)
    return min(fit, key=lambda other: other.vcpus).name


def _gpus_without_network(case: Case, machine: MachineType) -> Iterator[Finding]:
    """What GPUs of several VMs lack with one interface each, and whether a setting gives it."""
    settings, fabric = case.settings, fabrics.of_machine(machine)
    if fabric is None or settings.gpu_subnetworks or settings.instance_count == 1:
        return
    stack = fabrics.STACKS[fabric]
    if not stack.on_vms and stack.measured:
        yield Finding(
            code=Code.SLOWER,
            field="vm_type",
            what=f"has no {stack.title} on VMs: NCCL goes over TCP, at about {stack.measured.tcp:g}"
            f" GB/s between two of them instead of {stack.measured.fabric:g}",
            why="it needs Container-Optimized OS, which the nodes of GKE have; NETWORK_CONFIG"
            " changes nothing about it",
            fix=f"nothing for work on one machine; for more, a GKE cluster ({asking_for('gke')}),"
            " or VM_TYPE=a3-megagpu-8g, which has GPUDirect-TCPXO",
            note=True,
        )
        return
    fix = "NETWORK_CONFIG=multi_nic_network"
    if settings.network_config is NetworkConfig.EXISTING:
        fix = f"GPU_SUBNETWORKS=<{machine.nics - 1} subnetworks of the network's team>"
    elif settings.secure_boot and fabric is Fabric.TCPXO:
        fix += " and SECURE_BOOT=no"
    yield Finding(
        code=Code.SLOWER,
        field="network_config",
        what=f"leaves each {machine.name} with one network interface instead of {machine.nics}",
        why=f"the GPUs of different VMs then communicate only over the first interface, without"
        f" {stack.title}",
        fix=fix,
        note=True,
    )
