"""What NCCL's all-gather test writes: a table as it would be for the machines of the pool.

The times are those published for two A3 Ultra machines. Other machines get them stretched in
proportion to what their network can carry, and so does NCCL on plain sockets; nothing is measured,
and the log says so. What NCCL says of its network was judged when the pod started.

What a pod says of its node, where its script looks: interfaces, and GPUs by nvidia-smi.

Nothing is run. Whatever the script asks nvidia-smi for is answered in its form, "csv,noheader".
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Self

from rehearsal.cloud.compute.startup import DRIVER
from rehearsal.cloud.facts import fabrics, machines
from rehearsal.cloud.kubernetes import claims, fabric, installed, nodes, pools
from rehearsal.cloud.kubernetes.objects import Object, World

PROGRAM: Final = "all_gather_perf"  # the test, as it stands in commands

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
_LATENCY: Final = 50.0  # microseconds of each time that no network makes shorter or longer

_REFERENCE: Final = "a3-ultragpu-8g"
_WITHIN_A_NODE: Final = 1.3
_WITH_MPI: Final = "/third_party/nccl-tests/build/"
_PATH: Final = re.compile(r"(\S*/)all_gather_perf")
_FLOAT_BYTES: Final = 4
_HALF: Final = 0.5
_JOB_SET: Final = "jobset.sigs.k8s.io/jobset-name"
_INDEX: Final = "batch.kubernetes.io/job-completion-index"
_UNITS: Final = {"K": 2**10, "M": 2**20, "G": 2**30}
_BEGIN: Final = re.compile(r"-b\s+(\d+)([KMG])")
_LARGEST: Final = re.compile(r"-e\s+(\d+)([KMG])")

_HEAD: Final = """\
# A rehearsal: nothing was measured, the table is made from published figures.
#
#       size         count      type   redop    root     time   algbw   busbw #wrong     time   \
algbw   busbw #wrong
#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  \
(GB/s)  (GB/s)
"""


def log(world: World, pod: Object, script: str) -> str:
    """What a pod of the test writes; the table is in that of the first one."""
    lines = list(_of_node(world, pod, script))
    if pod["metadata"]["labels"].get(_INDEX, "0") != "0":
        return "".join(lines)
    lines.append(fabric.words(pod))
    if pod["status"]["phase"] == "Succeeded":
        lines += _measured(world, pod, script)
    return "".join(lines)


def _measured(world: World, pod: Object, script: str) -> Iterator[str]:
    """The table of all nodes, and where the script finds that too slow, those of its pairs."""
    slow = [nodes.strikes(world, nodes.SLOW, it) for it in _pods(world, pod)]
    gpus = max(pools.gpus_of(pod["spec"]), 1)
    part = _part(pod, pod["_nccl"]) if len(slow) > 1 else _WITHIN_A_NODE
    smallest, largest = _sizes(script)
    if not _has_mpi(pod, script):
        # Each process that MPI starts believes that it is the only one.
        single = Table.of(1, _WITHIN_A_NODE, smallest, largest)
        yield from [single.text] * (len(slow) * gpus)
        return

    def table(members: Sequence[int]) -> Table:
        share = part * (_HALF if any(slow[number] for number in members) else 1.0)
        return Table.of(len(members) * gpus, share, smallest, largest)

    whole = table(range(len(slow)))
    yield whole.text
    if _searches_pairs(script, whole.out_of_place, whole.in_place, whole.average):
        for one, other in _pairs_of(script):
            yield f"{_word_of_pairs(script)} {one} {other}\n"
            yield table((one, other)).text


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


def _pods(world: World, pod: Object) -> list[Object]:
    """The test's pods, in the order of their numbers."""
    labels = pod["metadata"]["labels"]
    if _JOB_SET not in labels:
        return [pod]
    mates = [
        it
        for it in world.each(world.own("v1", "pods"), pod["metadata"]["namespace"])
        if it["metadata"]["labels"].get(_JOB_SET) == labels[_JOB_SET]
    ]
    return sorted(mates, key=lambda it: int(it["metadata"]["labels"].get(_INDEX, "0")))


def _sizes(script: str) -> tuple[int, int]:
    smallest, largest = _BEGIN.search(script), _LARGEST.search(script)
    return (
        int(smallest.group(1)) * _UNITS[smallest.group(2)] if smallest else _SMALLEST,
        int(largest.group(1)) * _UNITS[largest.group(2)]
        if largest
        else _SMALLEST << len(_TIMES) - 1,
    )


@dataclass(frozen=True, kw_only=True)
class Table:
    """What the test writes of one measurement."""

    text: str
    # the highest bus bandwidth in it, in GB/s, with the results in another buffer
    out_of_place: float
    in_place: float  # the same with the results in the same buffer
    average: float  # the average of all, in GB/s

    @classmethod
    def of(cls, ranks: int, part: float, smallest: int, largest: int) -> Self:
        """Make it for a network that carries a part of what that of A3 Ultra does."""
        lines, reached = [_HEAD], list[list[float]]()
        for number, times in enumerate(_TIMES):
            size = _SMALLEST << number
            if not smallest <= size <= largest:
                continue
            cells, row = [], list[float]()
            for reference in times:
                time = _LATENCY + (reference - _LATENCY) / part
                algorithm = size / time / 1000
                row.append(algorithm * (ranks - 1) / ranks)
                cells.append(f"{_rounded(time):>9} {algorithm:7.2f} {row[-1]:7.2f} {0:6d}")
            reached.append(row)
            count = size // _FLOAT_BYTES // ranks
            lines.append(f"{size:12d} {count:13d}     float    none      -1{cells[0]}{cells[1]}\n")
        average = sum(map(sum, reached)) / (2 * len(reached))
        lines.append(f"# Out of bounds values : 0 OK\n# Avg bus bandwidth    : {average:g}\n")
        return cls(
            text="".join(lines),
            out_of_place=max(row[0] for row in reached),
            in_place=max(row[1] for row in reached),
            average=average,
        )


def _rounded(time: float) -> str:
    """Microseconds with as many digits as the test writes."""
    for least, digits in ((10000, 0), (100, 1)):
        if time >= least:
            return f"{time:.{digits}f}"
    return f"{time:.2f}"


_LOOP: Final = re.compile(r"for pairs in (.*?); do")
_PAIR: Final = re.compile(r"(\d+)-(\d+)")
_BARS: Final = re.compile(r"out >= ([\d.]+) && within >= ([\d.]+) && average >= ([\d.]+)")
_WORD: Final = re.compile(r'echo "(\S+) \$\{pair%-\*\}')


def _pairs_of(script: str) -> list[tuple[int, int]]:
    """The pairs of all rounds, by the numbers of their nodes."""
    loop = _LOOP.search(script)
    found = _PAIR.findall(loop.group(1)) if loop else []
    return [(int(one), int(other)) for one, other in found]


def _searches_pairs(script: str, out_of_place: float, in_place: float, average: float) -> bool:
    """Whether a script goes on to its pairs, after it has reached this with all nodes."""
    bars = _BARS.search(script)
    if bars is None:
        return False
    least = map(float, bars.groups())
    return any(
        reached < enough
        for reached, enough in zip((out_of_place, in_place, average), least, strict=True)
    )


def _word_of_pairs(script: str) -> str:
    """What a script writes before the output of a pair."""
    found = _WORD.search(script)
    return found.group(1) if found else ""


_INTERFACES: Final = "networking.gke.io/interfaces"
_HOST: Final = re.compile(r"\$\{?HOSTNAME\}?")
_COUNTING: Final = re.compile(r'echo "([^"]*)\$\(find /sys/class/net[^"]*"')
_QUERY: Final = re.compile(r"nvidia-smi --query-gpu=([\w.,]+).*?sed 's/\^/([^/]*)/'", re.DOTALL)
_ERRORS: Final = 17
_NOT_COUNTED: Final = frozenset({"nvidia-tesla-p4", "nvidia-tesla-p100"})
"""GPUs whose memory has no counter of such errors; nvidia-smi says so."""


def _of_node(world: World, pod: Object, script: str) -> Iterator[str]:
    counted = _COUNTING.search(script)
    if counted:
        annotations = pod["metadata"].get("annotations") or {}
        count = len(json.loads(annotations.get(_INTERFACES, "[0]")))
        count += claims.held(pod) if "rdma" in counted.group() else 0
        count -= nodes.strikes(world, nodes.NO_INTERFACE, pod)
        yield f"{_HOST.sub(pod['metadata']['name'], counted.group(1))}{count}\n"
    asked = _QUERY.search(script)
    if asked:
        bad = nodes.strikes(world, nodes.BAD_GPU, pod)
        for number in range(pools.gpus_of(pod["spec"])):
            values = _gpu(pod["_gpu"], bad=bad and number == 0)
            cells = [values.get(name, "[N/A]") for name in asked.group(1).split(",")]
            yield f"{asked.group(2)}{', '.join(cells)}\n"


def _gpu(kind: str, *, bad: bool) -> dict[str, str]:
    errors = "[N/A]" if kind in _NOT_COUNTED else str(_ERRORS if bad else 0)
    return {
        "name": machines.GPUS.get(kind, {}).get("nvidia_smi", kind),
        "driver_version": DRIVER,
        "ecc.errors.uncorrected.volatile.total": errors,
    }
