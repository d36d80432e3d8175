"""What a pod says of its node, where its script looks: interfaces, and GPUs by nvidia-smi.

Nothing is run. Whatever the script asks nvidia-smi for is answered in its form, "csv,noheader".
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.compute.startup_checks import DRIVER, GPU_NAMES
from rehearsal.cloud.kubernetes import node_faults, pools

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rehearsal.cloud.kubernetes.objects import Object, World

_INTERFACES: Final = "networking.gke.io/interfaces"
_HOST: Final = re.compile(r"\$\{?HOSTNAME\}?")
_COUNTING: Final = re.compile(r'echo "([^"]*)\$\(find /sys/class/net[^"]*"')
_QUERY: Final = re.compile(r"nvidia-smi --query-gpu=([\w.,]+).*?sed 's/\^/([^/]*)/'", re.DOTALL)
_ERRORS: Final = 17
_NOT_COUNTED: Final = frozenset({"nvidia-tesla-p4", "nvidia-tesla-p100"})
"""GPUs whose memory has no counter of such errors; nvidia-smi says so."""


def lines(world: World, pod: Object, script: str) -> Iterator[str]:
    """What a pod writes of its node."""
    counted = _COUNTING.search(script)
    if counted:
        annotations = pod["metadata"].get("annotations") or {}
        count = len(json.loads(annotations.get(_INTERFACES, "[0]")))
        count -= node_faults.strikes(world, node_faults.NO_INTERFACE, pod)
        yield f"{_HOST.sub(pod['metadata']['name'], counted.group(1))}{count}\n"
    asked = _QUERY.search(script)
    if asked:
        bad = node_faults.strikes(world, node_faults.BAD_GPU, pod)
        for number in range(pools.gpus_of(pod["spec"])):
            values = _gpu(pod["_gpu"], bad=bad and number == 0)
            cells = [values.get(name, "[N/A]") for name in asked.group(1).split(",")]
            yield f"{asked.group(2)}{', '.join(cells)}\n"


def _gpu(kind: str, *, bad: bool) -> dict[str, str]:
    errors = "[N/A]" if kind in _NOT_COUNTED else str(_ERRORS if bad else 0)
    return {
        "name": GPU_NAMES.get(kind, kind),
        "driver_version": DRIVER,
        "ecc.errors.uncorrected.volatile.total": errors,
    }
