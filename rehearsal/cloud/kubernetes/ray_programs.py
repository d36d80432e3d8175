"""What a program of Ray says of the GPUs that it has used, so far as the simulation knows it.

Nothing is run. A program that asks nvidia-smi for errors of each GPU's memory hears of those that a
scenario has, writes what it found as JSON after a word of its own, and fails.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import node_faults, pods, pools

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import Object, World

_WORD: Final = re.compile(r'print\("(\S+) " \+ json\.dumps\(')
_ASKS: Final = "ecc.errors.uncorrected.volatile.total"
_ERRORS: Final = 17
_WORKERS: Final = "_workers"


def begin(world: World, job: Object, cluster: Object) -> None:
    """Keep on which nodes a RayJob's workers are: its cluster is gone when its log is read."""
    job[_WORKERS] = [
        {
            "node": pod["spec"]["nodeName"],
            "gpus": pools.gpus_of(pod["spec"]),
            "bad": node_faults.strikes(world, node_faults.BAD_GPU, pod),
        }
        for pod in pods.of(world, cluster)
        if pod["metadata"]["labels"]["ray.io/node-type"] == "worker"
    ]


def fails(job: Object) -> bool:
    """Whether a RayJob's program ends with an error."""
    asks = _ASKS in str(job["spec"].get("entrypoint", ""))
    return asks and any(it["bad"] for it in job.get(_WORKERS, ()))


def said(job: Object) -> str:
    """What a RayJob's program has written at its end."""
    word = _WORD.search(str(job["spec"].get("entrypoint", "")))
    if word is None:
        return ""
    workers = job.get(_WORKERS, ())
    faults = [
        f"{it['node']}: GPU 0 has {_ERRORS} uncorrected memory (ECC) errors"
        for it in workers
        if it["bad"]
    ]
    gpus = {it["node"]: it["gpus"] for it in workers}
    return f"{word.group(1)} {json.dumps({'gpus': gpus, 'faults': faults})}\n"
