"""What NCCL's all-gather test writes: a table as it would be for the machines of the pool.

The times are those published for two A3 Ultra machines. Other machines get them stretched in
proportion to what their network can carry, and so does NCCL on plain sockets; nothing is measured,
and the log says so. What NCCL says of its network was judged when the pod started.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.facts import fabrics
from rehearsal.cloud.kubernetes import fabric, installed, pools

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.cloud.kubernetes.objects import Object, World

PROGRAM: Final = "all_gather_perf"
"""The test, as it stands in commands."""

_SMALLEST: Final = 1024
# For each size from 1 KiB on, doubled from row to row: microseconds out of place, and in place.
_TIMES: Final = (
    (54.07, 55.80),
    (55.46, 55.31),
    (55.59, 55.38),
    (56.05, 55.92),
    (57.08, 57.75),
    (57.49, 57.22),
    (59.20, 59.20),
    (59.58, 63.57),
    (63.87, 63.61),
    (64.83, 64.40),
    (79.74, 76.66),
    (78.41, 79.05),
    (83.21, 81.25),
    (94.35, 99.07),
    (122.9, 121.7),
    (184.2, 178.1),
    (294.7, 277.7),
    (495.4, 488.8),
    (877.5, 861.3),
    (1589.8, 1576.2),
    (3105.7, 3069.2),
    (6161.7, 6070.7),
    (12305.0, 12053.0),
    (24489.0, 23991.0),
)
_LATENCY: Final = 50.0
"""Microseconds of each time that no network makes shorter or longer."""

_REFERENCE: Final = "a3-ultragpu-8g"
_WITHIN_A_NODE: Final = 1.3
_WITH_MPI: Final = "/third_party/nccl-tests/build/"
_PATH: Final = re.compile(r"(\S*/)all_gather_perf")
_FLOAT_BYTES: Final = 4
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_INTERFACES: Final = "networking.gke.io/interfaces"
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
_LARGEST: Final = re.compile(r"-e\s+(\d+)([KMG])")
# The script may count its interfaces, under a word of its own.
_COUNTING: Final = re.compile(r'echo "(\S+) \$\{HOSTNAME\} \$\(find /sys/class/net')

_HEAD: Final = """\
# A rehearsal: nothing was measured, the table is made from published figures.
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)
"""


def log(world: World, pod: Object, script: str) -> str:
    """What a pod of the test writes; the table is in that of the first one.

    Args:
        world: The cluster.
        pod: The pod, which has started.
        script: Its command.
    """
    names = _pods(world, pod)
    count = len(json.loads((pod["metadata"].get("annotations") or {}).get(_INTERFACES, "[0]")))
    word = _COUNTING.search(script)
    own = pod["metadata"]["labels"].get(_INDEX, "0") == "0"
    reported = names if own else [pod["metadata"]["name"]]
    lines = [f"{word.group(1)} {name} {count}\n" for name in reported] if word else []
    if not own:
        return "".join(lines)
    verdict = pod["_nccl"]
    lines.append(fabric.words(pod))
    if pod["status"]["phase"] == "Succeeded":
        gpus = max(pools.gpus_of(pod["spec"]), 1)
        if not _has_mpi(pod, script):
            # Each process that MPI starts believes that it is the only one.
            for _ in range(len(names) * gpus):
                lines += _table(1, _WITHIN_A_NODE, _largest(script))
        else:
            part = _part(pod, verdict) if len(names) > 1 else _WITHIN_A_NODE
            lines += _table(len(names) * gpus, part, _largest(script))
    return "".join(lines)


def _has_mpi(pod: Object, script: str) -> bool:
    """Whether the test that a pod runs is one that was built with MPI, in its image."""
    image, _ = installed.image_of(fabric.main_container(pod["spec"]).get("image", ""))
    right = next((it.with_mpi for it in fabrics.STACKS.values() if it.plugin == image), _WITH_MPI)
    found = _PATH.search(script)
    return found is None or found.group(1) == right


def _part(pod: Object, verdict: Mapping[str, Any]) -> float:
    """What the network carries, as a part of what that of A3 Ultra does."""
    carried = fabrics.bandwidth(pod["_machine"], on_fabric=verdict["on_fabric"])
    whole = fabrics.bandwidth(_REFERENCE, on_fabric=True)
    return float(carried * verdict["share"] / whole)


def _pods(world: World, pod: Object) -> list[str]:
    """The names of the test's pods, the given one first."""
    name, labels = pod["metadata"]["name"], pod["metadata"]["labels"]
    kind = world.kind("v1", "pods")
    if kind is None or _JOB_SET not in labels:
        return [name]
    others = (
        it["metadata"]["name"]
        for it in world.each(kind, pod["metadata"]["namespace"])
        if it["metadata"]["labels"].get(_JOB_SET) == labels[_JOB_SET]
    )
    return [name, *(it for it in others if it != name)]


def _largest(script: str) -> int:
    found = _LARGEST.search(script)
    return int(found.group(1)) * _UNITS[found.group(2)] if found else _SMALLEST << len(_TIMES) - 1


def _table(ranks: int, part: float, largest: int) -> Iterator[str]:
    yield _HEAD
    total, values = 0.0, 0
    for number, times in enumerate(_TIMES):
        size = _SMALLEST << number
        if size > largest:
            break
        cells = []
        for reference in times:
            time = _LATENCY + (reference - _LATENCY) / part
            algorithm = size / time / 1000
            bus = algorithm * (ranks - 1) / ranks
            cells.append(f"{_rounded(time):>9} {algorithm:7.2f} {bus:7.2f} {0:6d}")
            total, values = total + bus, values + 1
        count = size // _FLOAT_BYTES // ranks
        yield f"{size:12d} {count:13d}     float    none      -1{cells[0]}{cells[1]}\n"
    yield f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {total / values:g}\n"


def _rounded(time: float) -> str:
    """Microseconds with as many digits as the test writes."""
    for least, digits in ((10000, 0), (100, 1)):
        if time >= least:
            return f"{time:.{digits}f}"
    return f"{time:.2f}"
