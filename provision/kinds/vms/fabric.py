"""What NCCL uses between the VMs of a group: in words, and whether an image can have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from provision.catalogue import fabrics, images
from provision.catalogue.fabrics import STACKS, Fabric
from provision.codes import Code
from provision.errors import Problem
from provision.preflight.check import Effect, Finding

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.fabrics import Stack
    from provision.spec.cluster import VmSpec


def words(spec: VmSpec) -> str:
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
    return f"TCP over one interface{_cost(stack)}: {_why(spec, built_for)}"


def suits(spec: VmSpec, found: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether NCCL can use the machines' GPU network with a public image.

    What somebody made themselves is taken as it is: the start-up tells. `found`: the image, as
    Google's API returns it.
    """
    project = found.get("selfLink", "").rpartition("/global/")[0].rpartition("/")[2]
    refusal = fabrics.refusal(spec.fabric, project)
    if not refusal and not fabrics.is_unproven(spec.fabric, project):
        return
    verb, line = "can't" if refusal else "may not", images.ACCELERATOR
    problem = Problem(
        code=Code.IMAGE_UNSUITABLE,
        setting="IMAGE_NAME" if spec.image.name else "IMAGE_FAMILY_NAME",
        what=f"NCCL {verb} use the GPU network of {spec.group.machine_type} with the image"
        f" {found['name']}",
        why=refusal or f"no source says that it can; Google's blueprints boot {line.family}",
        fix=f"IMAGE_PROJECT={line.project} and IMAGE_FAMILY_NAME={line.family}, or no IMAGE_* at"
        " all for the newest of these",
    )
    yield Finding(problem, Effect.STOPS if refusal else Effect.NOTE)


def _cost(stack: Stack) -> str:
    if stack.measured is None:
        return ""
    return f", about {stack.measured.tcp:g} GB/s instead of {stack.measured.fabric:g}"


def _why(spec: VmSpec, built_for: Fabric) -> str:
    title = STACKS[built_for].title
    if spec.fabric is None and fabrics.on_vms(spec.group.machine) is built_for:
        return f"NETWORK_CONFIG=multi_nic_network has {title}"
    if spec.group.machine is not None and spec.group.machine.family.arm:
        return f"{title} is not set up on Arm"
    return f"{title} needs Container-Optimized OS, as on GKE, or a private kernel"
