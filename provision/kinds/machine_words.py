"""Machines in a few words for people."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from provision.catalogue import machines

if TYPE_CHECKING:
    from provision.catalogue.machines import MachineType


def is_attached(machine_type: str) -> bool:
    """Whether GPUs are attached to machines of a type, instead of included in it."""
    return machines.takes_gpus(machine_type)


def gpus(machine_type: str, attached: str | None = None, count: int = 0) -> str:
    """The GPUs of each machine, such as "2 x A100 40 GB"; "" for none, or if not known.

    `attached`: the type of GPUs that are attached to each, by its name in the API; None for none.
    """
    if attached and count:
        return f"{count} x {kind(attached)}"
    machine = machines.lookup(machine_type)
    if machine is None or machine.family.gpu is None:
        return ""
    return f"{_number(machine)} x {kind(machine.family.gpu.name)}"


def _number(machine: MachineType) -> str:
    """How many GPUs a machine has; a part of one, such as "1/8"."""
    return machine.shape.part or str(machine.gpus or 0)


def kind(accelerator: str) -> str:
    """A kind of GPU, from its name in the API: "nvidia-h100-mega-80gb" is "H100 80 GB"."""
    short = re.sub(r"^nvidia-|tesla-|-mega", "", accelerator)
    return re.sub(r"-?\b(\d+)gb\b", r" \1 GB", short).upper().replace("-", " ").strip()
