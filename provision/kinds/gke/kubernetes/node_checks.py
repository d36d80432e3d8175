"""What is wrong with single nodes: by what a pod of the test found there, and by Kubernetes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import machines
from provision.documents.checks import NodeCheck
from provision.kinds import gpus as gpu_words

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node

# What the program of the test writes (`test_program`).
_INTERFACES: Final = re.compile(r"^aiinfra-interfaces \S+ (\d+)\s*$", re.MULTILINE)
_GPU: Final = re.compile(r"^aiinfra-gpu (.*?)\s*$", re.MULTILINE)


def of_log(log: str, pool: GpuPool) -> NodeCheck:
    """What a pod of the test found on its node, judged by what the pool's machines have."""
    lines = [line.split(", ") for line in _GPU.findall(log)]
    gpus = [
        {"name": cells[0], "driver": cells[1], "ecc_volatile": _count(cells[2])}
        for cells in lines
        if len(cells) == 3  # noqa: PLR2004 - name, driver and errors, as they are asked for
    ]
    error = " ".join(", ".join(cells) for cells in lines if len(cells) != 3)  # noqa: PLR2004 - as above
    found = _INTERFACES.search(log)
    interfaces = int(found.group(1)) if found else None
    faults = []
    if not lines:
        faults.append("it has told nothing of its GPUs")
    else:
        told = f"nvidia-smi failed: {error}" if error else ""
        faults += gpu_words.faults(gpus, told, pool.gpus, _kind(pool))
    if interfaces is not None and interfaces < pool.interfaces:
        faults.append(
            f"its pod has {interfaces} of {pool.interfaces} network interfaces: see kubectl get"
            " networks,gkenetworkparamsets"
        )
    return NodeCheck(
        gpus=len(gpus),
        names=tuple(str(gpu["name"]) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus), None),
        ecc_errors=gpu_words.memory_errors(gpus),
        interfaces=interfaces,
        faults=tuple(faults),
    )


def of_node(node: Node, pool: GpuPool) -> tuple[str, ...]:
    """What Kubernetes says is wrong with a node's GPUs; a test can't run on such a node.

    A node that is not ready, or has not told of its GPUs yet, is none: it may be starting.
    """
    found = []
    if node.xids:
        found.append(f"a GPU has failed: XID {words.listed(node.xids)} (XidCriticalError)")
    if not node.unready and 0 < node.usable < pool.gpus:
        found.append(f"it offers {node.usable} GPUs instead of {pool.gpus}")
    return tuple(found)


def _count(cell: str) -> int | None:
    """A number as nvidia-smi writes it; None for "[N/A]"."""
    return int(cell) if cell.isdigit() else None


def _kind(pool: GpuPool) -> machines.Gpu | None:
    if pool.attached_gpu:
        return machines.GPUS.get(pool.attached_gpu)
    machine = machines.lookup(pool.machine_type)
    return machine.family.gpu if machine else None
