"""The bandwidth test, NCCL's own all-gather for each kind of GPU network, and what it has told.

It is a JobSet. There is one pod per node, each with an ssh server, and each tells what its node
has. The first one uses MPI to start one process per GPU on all nodes, and where that is too slow,
on pairs of them, in rounds that are known beforehand: each node with two others, so that the one at
fault is known (`diagnosis.pairs`). Whatever comes of it, the pods end well: what failed is in their
logs, which are judged here. The images and paths are those of Google's published tests for the same
machines.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import bandwidths, fabrics, machines
from provision.catalogue.bandwidths import GIB, KIB, MIB
from provision.documents.checks import BandwidthRow, NodeCheck
from provision.kinds import diagnosis
from provision.kinds.gke.kubernetes import fabric_pods, kueue, nccl
from provision.kinds.gke.kubernetes.objects import Object, labelled, mount, variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.nodes import Node


@dataclass(frozen=True, kw_only=True)
class Measurement:
    """The results in a log; bus bandwidths in GB/s."""

    rows: tuple[BandwidthRow, ...]  # by message size
    average: float | None  # over all sizes; None if the test did not end
    out_of_bounds: int | None  # the total of wrong values; None if the test did not end
    # host -> the networks that NCCL used there, such as "gIB" or "Socket"
    used: Mapping[str, tuple[str, ...]]
    table: str  # as NCCL printed it

    @property
    def networks(self) -> tuple[str, ...]:
        """The networks that NCCL used on any host."""
        return tuple(dict.fromkeys(it for used in self.used.values() for it in used))

    @property
    def peak(self) -> float:
        """The higher one of the two peaks."""
        return max(self.peak_out_of_place, self.peak_in_place)

    @property
    def peak_out_of_place(self) -> float:
        """The highest bus bandwidth out of place."""
        return max((row.out_of_place for row in self.rows), default=0.0)

    @property
    def peak_in_place(self) -> float:
        """The highest bus bandwidth in place."""
        return max((row.in_place for row in self.rows), default=0.0)


_ROW: Final = re.compile(
    r"^\s*(\d+)\s+\d+\s+\w+\s+\w+\s+-?\d+"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)"
    r"\s+[\d.]+\s+[\d.]+\s+(\d+(?:\.\d+)?)\s+(\d+|N/A)\s*$"
)
_HEADER: Final = re.compile(r"^#\s+(size|\(B\))\s")
_AVERAGE: Final = re.compile(r"^#\s*Avg bus bandwidth\s*:\s*(\d+(?:\.\d+)?)", re.MULTILINE)
_BOUNDS: Final = re.compile(r"^#\s*Out of bounds values\s*:\s*(\d+)", re.MULTILINE)
_NETWORK: Final = re.compile(r"(?:^|(\S+?):\d+:\d+ .*)Using network (\S+)", re.MULTILINE)
_SOCKETS: Final = "Socket"
"""What NCCL calls plain TCP."""
# What the program of the test writes beside NCCL's output (`all_gather`).
_PAIR: Final = re.compile(r"^aiinfra-pair (\d+) (\d+)\s*$", re.MULTILINE)
_SILENT: Final = re.compile(r"^aiinfra-silent (\d+)\s*$", re.MULTILINE)
_INTERFACES: Final = re.compile(r"^aiinfra-interfaces \S+ (\d+)\s*$", re.MULTILINE)
_GPU: Final = re.compile(r"^aiinfra-gpu (.*?)\s*$", re.MULTILINE)
_CELLS: Final = 3
"""Of a line of nvidia-smi: name, driver and errors, as they are asked for."""


def parse(log: str) -> Measurement:
    """Read what one measurement wrote; lines of other programs are ignored."""
    lines = log.replace("\r", "").splitlines()
    average, bounds = _AVERAGE.search(log), _BOUNDS.search(log)
    shown = [line for line in lines if _ROW.match(line) or _HEADER.match(line)]
    shown += [found.group().rstrip() for found in (bounds, average) if found]
    used: dict[str, dict[str, None]] = {}
    for host, network in _NETWORK.findall(log):
        used.setdefault(host, {})[network] = None
    return Measurement(
        rows=tuple(_row(found) for found in map(_ROW.match, lines) if found),
        average=float(average.group(1)) if average else None,
        out_of_bounds=int(bounds.group(1)) if bounds else None,
        used={host: tuple(networks) for host, networks in used.items()},
        table="\n".join(shown),
    )


def _row(found: re.Match[str]) -> BandwidthRow:
    size, out_of_place, wrong_out, in_place, wrong_in = found.groups()
    # Without checks (-c 0) NCCL writes N/A.
    wrong = sum(int(number) for number in (wrong_out, wrong_in) if number.isdigit())
    return BandwidthRow(
        size=int(size), out_of_place=float(out_of_place), in_place=float(in_place), wrong=wrong
    )


@dataclass(frozen=True, kw_only=True)
class Told:
    """What the first pod of a test has told."""

    whole: Measurement  # what was measured between all nodes
    # two nodes, by the numbers of their pods -> what was measured between them
    pairs: Mapping[tuple[int, int], Measurement]
    silent: tuple[int, ...]  # the numbers of the pods that have not answered the first one


def read(log: str) -> Told:
    """Read the log of the pod that measured."""
    whole, *rest = _PAIR.split(log)
    numbered = zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    return Told(
        whole=parse(whole),
        pairs={(int(one), int(other)): parse(text) for one, other, text in numbered},
        silent=tuple(map(int, _SILENT.findall(whole))),
    )


def bars(pool: GpuPool, nodes: int) -> tuple[float, float, float]:
    """What is enough between nodes of a pool, in GB/s; 0 for what is not judged.

    These are the peak out of place, that in place, and the average over all sizes. All published
    figures are of two machines. Between more, small messages take longer and weigh in the average,
    so the peaks alone are judged there; within one there is no network to judge.
    """
    figures = pool.bandwidth
    if figures is None or nodes < bandwidths.MACHINES:
        return 0.0, 0.0, 0.0
    average = (figures.average or 0.0) if nodes == bandwidths.MACHINES else 0.0
    each = figures.tolerance
    return each * figures.out_of_place, each * (figures.in_place or 0.0), each * average


def why_bad(measured: Measurement, pool: GpuPool, nodes: int) -> str:
    """Why a measurement is not as it should be; "" if it is."""
    if not measured.rows or measured.average is None:
        return "the measurement did not end, or failed"
    if wrong := max(measured.out_of_bounds or 0, sum(row.wrong for row in measured.rows)):
        return f"NCCL computed {wrong} wrong values"
    if nodes >= bandwidths.MACHINES and on_sockets(measured, pool):
        return "NCCL used plain sockets instead of the GPU network"
    figures = pool.bandwidth
    if figures is None:
        return ""
    compared = (
        ("peak bus bandwidth out of place", measured.peak_out_of_place),
        ("peak bus bandwidth in place", measured.peak_in_place),
        ("average bus bandwidth", measured.average),
    )
    return "; ".join(
        f"its {name} is {value:.1f} GB/s, {value / (least / figures.tolerance):.0%} of the"
        f" {least / figures.tolerance:g} GB/s published"
        for (name, value), least in zip(compared, bars(pool, nodes), strict=True)
        if value < least
    )


def on_sockets(measured: Measurement, pool: GpuPool) -> frozenset[str]:
    """The hosts on which NCCL used plain sockets, though the GPUs have a network of their own."""
    # Arm machines get no plugin.
    if pool.gpu_network is None or pool.is_arm:
        return frozenset()
    return frozenset(host for host, used in measured.used.items() if _SOCKETS in used)


def of_log(log: str, pool: GpuPool) -> NodeCheck:
    """What a pod of the test found on its node, judged by what the pool's machines have."""
    lines = [line.split(", ") for line in _GPU.findall(log)]
    gpus = [
        {"name": name, "driver": driver, "ecc_volatile": int(ecc) if ecc.isdigit() else None}
        for name, driver, ecc in (cells for cells in lines if len(cells) == _CELLS)
    ]
    error = " ".join(", ".join(cells) for cells in lines if len(cells) != _CELLS)
    found = _INTERFACES.search(log)
    interfaces = int(found.group(1)) if found else None
    if lines:
        told = f"nvidia-smi failed: {error}" if error else ""
        faults = list(diagnosis.faults_of_gpus(gpus, told, pool.gpus, _kind(pool)))
    else:
        faults = ["it has told nothing of its GPUs"]
    if interfaces is not None and interfaces < pool.interfaces:
        kinds = "resourceclaims,resourceslices" if pool.managed else "networks,gkenetworkparamsets"
        faults.append(
            f"its pod has {interfaces} of {pool.interfaces} network interfaces: see kubectl get"
            f" {kinds}"
        )
    return NodeCheck(
        gpus=len(gpus),
        names=tuple(str(gpu["name"]) for gpu in gpus),
        driver=next((str(gpu["driver"]) for gpu in gpus), None),
        ecc_errors=diagnosis.memory_errors(gpus),
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


def _kind(pool: GpuPool) -> machines.Gpu | None:
    if pool.attached_gpu:
        return machines.GPUS.get(pool.attached_gpu)
    machine = machines.lookup(pool.machine_type)
    return machine.family.gpu if machine else None


# ------------------------------------------------------------------------------ the job

SECONDS: Final = 1800
"""The longest run time of the test's pods, in seconds."""
_NODE_SECONDS: Final = 2700
"""For how long it asks for nodes, which count from their start: their drivers come first."""
_ANSWER_SECONDS: Final = 600
"""How long a node may take, from the start of the first pod on, until it answers."""
_WHOLE_SECONDS: Final = 500
"""The most that the measurement between all nodes may take."""
_ROUND_SECONDS: Final = 200
"""The most that a round of pairs may take; they measure at the same time."""

CONTAINER: Final = "nccl"


_GIB_STACK: Final = fabrics.STACKS[fabrics.Fabric.GIB]
"""What brings NCCL and its tests to nodes that have no plugin."""

_PROGRAM: Final = """\
set -eu
nodes=@nodes@
gpus=@gpus@
# The plain interfaces are eth0 and so on, whatever they are used for.
echo "aiinfra-interfaces ${HOSTNAME} $(find /sys/class/net @interfaces@ | wc -l)"
nvidia-smi --query-gpu=name,driver_version,ecc.errors.uncorrected.volatile.total \\
  --format=csv,noheader 2>&1 | sed 's/^/aiinfra-gpu /'
/sbin/ldconfig
/scripts/container_entry.sh daemon &

connect() {
  ssh -p 222 -o LogLevel=ERROR -o ConnectTimeout=10 -o StrictHostKeyChecking=no "$@"
}
peer() {
  echo "${JOB_SET}-@job@-0-$1.${JOB_SET}"
}

if [ "${JOB_COMPLETION_INDEX}" != 0 ]; then
  # The first node's processes run here by ssh; it says when they are done.
  until [ -e /tmp/all-gather-is-done ]; do sleep 2; done
  exit 0
fi

# A node that does not answer is named, and the others are measured without it.
answers() {
  until connect "$(peer "$1")" true; do
    [ "${SECONDS}" -lt @answer_seconds@ ] || return 1
    sleep 5
  done
}
here=()
for number in $(seq 0 $((nodes - 1))); do
  if answers "${number}"; then here+=("${number}"); else echo "aiinfra-silent ${number}"; fi
done

# The environment is that of every job on this network; mpirun forwards what it is told to.
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT
settings=()
for name in $(compgen -e | grep -E '^(NCCL_|CUDA_VISIBLE_DEVICES$|LD_LIBRARY_PATH$|PATH$)'); do
  settings+=(-x "${name}")
done

# measure SECONDS NODE...: what NCCL reaches between these nodes.
measure() {
  local seconds="$1" hosts number
  hosts="$(mktemp)"
  shift
  for number in "$@"; do echo "$(peer "${number}") port=222 slots=${gpus}"; done >"${hosts}"
  timeout --kill-after=10 "${seconds}" \\
    mpirun --allow-run-as-root --hostfile "${hosts}" "${settings[@]}" \\
    --mca plm_rsh_no_tree_spawn 1 --mca orte_keep_fqdn_hostnames 1 \\
    --mca btl self,tcp --mca btl_tcp_if_include eth0 --bind-to none \\
    --mca plm_rsh_agent "ssh -q -p 222 -o LogLevel=ERROR -o StrictHostKeyChecking=no" \\
    @program@ -b @smallest@ -e @largest@ -f 2 -g 1 -w 5 --iters 100 -c 1 ||
    echo "aiinfra-failed $?"
}

measure @whole_seconds@ "${here[@]}" 2>&1 | tee /tmp/whole
@search@# One that is lost can't be told, and the others have to be.
for number in "${here[@]}"; do
  [ "${number}" = 0 ] || connect "$(peer "${number}")" touch /tmp/all-gather-is-done || true
done
"""

# What follows the measurement of more than two nodes.
_SEARCH: Final = """\
# Whether a table has too little in it, or no end.
slow() {
  ! awk '
    /^ *[0-9]+ +[0-9]+ +[a-z]/ { wrong += $9 + $13 }
    /^ *[0-9]+ +[0-9]+ +[a-z]/ && $8 > out { out = $8 }
    /^ *[0-9]+ +[0-9]+ +[a-z]/ && $12 > within { within = $12 }
    /^# Avg bus bandwidth/ { ended = 1; average = $6 }
    END {
      well = out >= @least_out@ && within >= @least_in@ && average >= @least_average@
      exit !(ended && well && !wrong)
    }' "$1"
}

if slow /tmp/whole; then
  for pairs in @rounds@; do
    measuring=()
    for pair in ${pairs}; do
      one="${pair%-*}" other="${pair#*-}"
      [[ " ${here[*]} " = *" ${one} "* && " ${here[*]} " = *" ${other} "* ]] || continue
      measure @round_seconds@ "${one}" "${other}" >"/tmp/pair-${pair}" 2>&1 &
      measuring+=("$!")
    done
    [ "${#measuring[@]}" = 0 ] || wait "${measuring[@]}"
    for pair in ${pairs}; do
      [ -e "/tmp/pair-${pair}" ] || continue
      echo "aiinfra-pair ${pair%-*} ${pair#*-}"
      cat "/tmp/pair-${pair}"
    done
  done
fi

"""


def job_set(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The test on all GPUs of `nodes` nodes of a pool."""
    # Nothing to wait for or to break.
    bare = dataclasses.replace(facts, buckets=(), shares=(), secrets=())
    template = fabric_pods.template(
        bare, pool, container(facts, pool, nodes), fabric_pods.Kind.WHOLE
    )
    template["spec"] |= {"restartPolicy": "Never", "activeDeadlineSeconds": SECONDS}
    if nccl.software(facts, pool) is None:
        _bring_nccl(template["spec"])
    metadata = kueue.job_metadata(facts, pool, "all-gather-", _NODE_SECONDS)
    return fabric_pods.job_set(metadata, template, nodes, {"ttlSecondsAfterFinished": 1200})


def container(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The test's container, the same on each of `nodes` nodes of a pool."""
    software = nccl.software(facts, pool)
    env = [labelled("JOB_SET", fabric_pods.SET_LABEL)]
    if software is None:
        env += variables({"NCCL_NET": "Socket", "LD_LIBRARY_PATH": f"{nccl.GIB}/lib64"})
    return {
        "name": CONTAINER,
        "image": (software[1] if software else _GIB_STACK).test.pinned,
        "command": ["bash", "-c", program(pool, nodes)],
        "env": env,
    }


def program(pool: GpuPool, nodes: int) -> str:
    """What the test's pods run, for bash."""
    network, figures = pool.gpu_network, pool.bandwidth
    out, within, average = (f"{least:.2f}" for least in bars(pool, nodes))
    path = nccl.FABRICS[network].test if network else nccl.TEST_OF_GIB
    smallest, largest = "1K", "8G" if network else "1G"
    if figures:
        # Peaks and averages of other sizes are others.
        smallest, largest = map(_size, figures.averaged or (KIB, figures.size))
    rounds = [" ".join(f"{one}-{other}" for one, other in it) for it in diagnosis.pairs(nodes)]
    values = {
        "nodes": nodes,
        "gpus": pool.gpus,
        # Those that a pod claims keep their names on the node.
        "interfaces": "-name 'eth*'" + " -o -name 'gpu*rdma*'" * pool.managed,
        "job": fabric_pods.REPLICATED_JOB,
        "program": path,
        "smallest": smallest,
        "largest": largest,
        "least_out": out,
        "least_in": within,
        "least_average": average,
        "rounds": " ".join(f'"{it}"' for it in rounds),
        "answer_seconds": _ANSWER_SECONDS,
        "whole_seconds": _WHOLE_SECONDS,
        "round_seconds": _ROUND_SECONDS,
    }
    found = _PROGRAM.replace("@search@", _SEARCH if rounds else "\n")
    for name, value in values.items():
        found = found.replace(f"@{name}@", str(value))
    return found


def _size(size: int) -> str:
    """A size as NCCL's tests read it."""
    units = ((GIB, "G"), (MIB, "M"), (KIB, "K"), (1, ""))
    return next(f"{size // unit}{letter}" for unit, letter in units if size % unit == 0)


def _bring_nccl(pod: Object) -> None:
    """Unpack NCCL in this pod: nodes without a GPU network have no NCCL installer.

    Google's recipes do so in an init container that is not privileged (GPU recipes 2e1fd5e, A3
    Ultra's JobSet).
    """
    unpack = "/scripts/container_entry.sh install --install-nccl && cp -r /var/lib/gib/. /gib"
    pod["volumes"].append({"name": "gib", "emptyDir": {}})
    pod["initContainers"] = [
        {
            "name": "bring-nccl",
            "image": _GIB_STACK.plugin.pinned,
            "command": ["/bin/sh", "-c", unpack],
            "volumeMounts": [mount("gib", "/gib")],
        }
    ]
    mounts = pod["containers"][0].setdefault("volumeMounts", [])
    mounts.append(mount("gib", nccl.GIB))
