"""What is wrong with single nodes: by what a pod of the test found there, and by Kubernetes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import machines
from provision.documents.checks import NodeCheck
from provision.kinds import gpu_faults
from provision.kinds.gke.kubernetes.kueue import GPU
from provision.kinds.gke.kubernetes.objects import conditions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

_XID: Final = "XidCriticalError"
"""The condition by which GKE's device plugin names a node whose GPU has failed; jobs.md, 6.

Its reason has the driver's error numbers (XIDs) as JSON.
"""

# What the program of the test writes (`test_program`).
_INTERFACES: Final = re.compile(r"^aiinfra-interfaces \S+ (\d+)\s*$", re.MULTILINE)
_GPU: Final = re.compile(r"^aiinfra-gpu (.*?)\s*$", re.MULTILINE)


def of_log(log: str, pool: GpuPool) -> NodeCheck:
    """What a pod of the test found on its node, judged by what the pool's machines have.

    Args:
        log: The pod's log.
        pool: The pool.
    """
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
        faults += gpu_faults.of(gpus, told, pool.gpus, _kind(pool))
    if interfaces is not None and interfaces < pool.interfaces:
        faults.append(
            f"its pod has {interfaces} of {pool.interfaces} network interfaces: see kubectl get"
            " networks,gkenetworkparamsets"
        )
    return NodeCheck(
        gpus=len(gpus),
        names=tuple(str(gpu["name"]) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus), None),
        ecc_errors=gpu_faults.counted(gpus),
        interfaces=interfaces,
        faults=tuple(faults),
    )


def of_node(node: Object, pool: GpuPool) -> tuple[str, ...]:
    """What Kubernetes says is wrong with a node's GPUs; a test can't run on such a node.

    A node that is not ready yet is none: it may be starting.

    Args:
        node: The node.
        pool: Its pool.
    """
    return tuple(_told(node, pool))


def _told(node: Object, pool: GpuPool) -> Iterator[str]:
    told = conditions(node)
    failed = told.get(_XID, {})
    if failed.get("status") == "True":
        yield f"a GPU has failed: {_xids(failed.get('reason', ''))} ({_XID})"
    offered = ((node.get("status") or {}).get("allocatable") or {}).get(GPU)
    ready = told.get("Ready", {}).get("status") == "True"
    # GPUs that the driver has not told of yet are none that are missing.
    if ready and offered is not None and 0 < int(offered) < pool.gpus:
        yield f"it offers {offered} GPUs instead of {pool.gpus}"


def _xids(reason: str) -> str:
    """The error numbers in a reason, which GKE writes as JSON; the reason itself otherwise."""
    try:
        found = json.loads(reason)
    except ValueError:
        return reason or "no reason is given"
    numbers = list(found) if isinstance(found, dict | list) else [found]
    return f"XID {words.listed([str(it) for it in numbers])}"


def _count(cell: str) -> int | None:
    """A number as nvidia-smi writes it; None for "[N/A]"."""
    return int(cell) if cell.isdigit() else None


def _kind(pool: GpuPool) -> machines.Gpu | None:
    if pool.attached_gpu:
        return machines.GPUS.get(pool.attached_gpu)
    machine = machines.lookup(pool.machine_type)
    return machine.family.gpu if machine else None
