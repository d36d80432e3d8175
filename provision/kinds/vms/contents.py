"""What a group of VMs has beside its machines and networks, and what a change leaves as it is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from provision.catalogue import fabrics, images, prices
from provision.catalogue.fabrics import STACKS
from provision.cost import rates
from provision.documents.plan import Contents, Kept
from provision.kinds import variables
from provision.screens import amounts
from provision.spec.capacity import Mode
from provision.words import duration

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from provision.spec.cluster import VmSpec

_METADATA: Final = "METADATA"
_IN_PLACE: Final = frozenset({"LABELS", _METADATA})
"""The settings whose changes VMs get while they run; see `out_of_date.refresh`."""


def replacing(*, flex_start: bool) -> str:
    """What replaces VMs.

    `flex_start`: whether their group is of flex start: Google gives it VMs only by a request, and
    neither updates nor recreates them, of whatever mode they were before.
    """
    return "Destroy, then Create" if flex_start else "Create --replace-vms"


def of(spec: VmSpec) -> Contents:
    """What it has beside its machines and networks."""
    runs_for_ever = spec.group.max_run_seconds is None and not spec.group.mode.means.bound
    can_end = spec.group.mode in {Mode.STANDARD, Mode.SPOT}
    lacks = images.lacking(spec.image.project)
    name = spec.image.name or f"the newest of {spec.image.family}"
    return Contents(
        words=spec.called,
        place=spec.zone,
        image=f"{name}: {lacks}" if lacks else name,
        software=tuple(_software(spec)),
        identities=(variables.identity(spec, "VMs"),),
        limit="MAX_RUN_DURATION=12h" if runs_for_ever and can_end else "",
        idle=_idle(spec),
        nccl=nccl(spec),
    )


def kept(spec: VmSpec, running: int, changed: Collection[str]) -> Kept:
    """What holds for VMs that run while their template changes."""
    one = running == 1
    stay = "stays as it is" if one else "stay as they are"
    flex_start = spec.group.mode.means.flex_start
    command, new = replacing(flex_start=flex_start), "get the new template"
    if flex_start:
        # Those of before it was asked for have no end of their own.
        deleted = "ENABLE_FLEX_START" in changed
        if one:
            until = "it is deleted" if deleted else "it ends"
        else:
            until = "they are deleted" if deleted else "they end"
        return Kept(machines=running, words=f"{stay} until {until}", new=new, command=command)
    if changed and _IN_PLACE.issuperset(changed):
        gets = "runs on, and gets" if one else "run on, and get"
        but = ", but for what is read at a start alone" if _METADATA in changed else ""
        return Kept(machines=running, words=f"{gets} the change without a restart{but}")
    then = "is billed so, until it is replaced" if one else "are billed so, until they are replaced"
    return Kept(machines=running, words=f"{stay}, and {then}", new=new, command=command)


def nccl(spec: VmSpec) -> str:
    """What NCCL uses, and where it is less than the machines could: why, and what would bring it.

    Returns a few words, such as "GPUDirect-TCPXO 1.0.15"; "" for machines without a GPU network, or
    of which nothing is known.
    """
    machine = spec.group.machine
    built_for = fabrics.of_machine(machine)
    if built_for is None:
        return ""
    stack = STACKS[built_for]
    if spec.fabric is built_for:
        return f"{stack.title} {stack.version}"
    less = ""
    if stack.measured is not None:
        less = f", about {stack.measured.tcp:g} GB/s instead of {stack.measured.fabric:g}"
    if spec.fabric is None and fabrics.on_vms(machine) is built_for:
        why = f"NETWORK_CONFIG=multi_nic_network has {stack.title}"
    elif machine is not None and machine.family.arm:
        why = f"{stack.title} is not set up on Arm"
    else:
        why = f"{stack.title} needs Container-Optimized OS, as on GKE, or a private kernel"
    return f"TCP over one interface{less}: {why}"


def _idle(spec: VmSpec) -> str:
    """What idle VMs do, and what they cost then; "" where they run on."""
    if spec.idle_seconds is None:
        return ""
    each = rates.disk(spec.group, prices.listed()).usd
    cost = f", {amounts.usd(each * spec.group.size.first)}/h" if each is not None else ""
    billed = "; a reservation is billed as before" if spec.group.reservation else ""
    return (
        f"after {duration(spec.idle_seconds)} without a job, a command, GPU work or a login"
        f" VMs power themselves off: then their disks are billed{cost}{billed}; Create starts them."
        " The group recreates no VM"
    )


def _software(spec: VmSpec) -> Iterator[str]:
    if spec.ray_version:
        yield f"Ray {spec.ray_version}"
    if spec.slurm_partition:
        yield f"Slurm, partitions all and {spec.slurm_partition}"
    if spec.notebook:
        # Jupyter, where the image is known to have it.
        image = spec.image
        has = images.has("jupyter", image.family or images.family_of(image.name or ""))
        if has is not False:
            yield "Jupyter" if has else "Jupyter, if the image has it"
    if spec.ops_agent:
        yield "Ops Agent"
    if spec.command:
        yield "your STARTUP_COMMAND"
    yield "OS updates while idle" if spec.os_updates else "no OS updates"
    way = spec.outbound
    if way.proxy:
        yield f"the proxy {urlsplit(way.proxy).netloc}"
    if mirrors := [it for it in (way.apt_mirror, way.pip_index) if it]:
        yield f"packages from {' and '.join(str(urlsplit(it).netloc) for it in mirrors)}"
