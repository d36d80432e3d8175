"""The bandwidth test as a JobSet: NCCL's own all-gather test, for each kind of GPU network.

There is one pod per node, each with an ssh server, and each tells what its node has. The first one
uses MPI to start one process per GPU on all nodes, and where that is too slow, on pairs of them, in
rounds that are known beforehand: each node with two others, so that the one at fault is known
(`diagnosis.pairs`). Whatever comes of it, the pods end well: what failed is in their logs, which
`bandwidth` judges. The images and paths are those of Google's published tests for the same
machines.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics
from provision.catalogue.bandwidths import GIB, KIB, MIB
from provision.catalogue.machines import GpuNetwork
from provision.kinds import diagnosis
from provision.kinds.gke.kubernetes import bandwidth, fabric_pods, kueue, nccl, pod_fabrics
from provision.kinds.gke.kubernetes.objects import labelled, mount, variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

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


# Built with MPI: without it each process would measure its own GPU.
_WITH_MPI: Final = "/third_party/nccl-tests-mpi/build/all_gather_perf"
# The only build in gIB's image, with MPI.
_OF_GIB: Final = "/third_party/nccl-tests/build/all_gather_perf"

FABRICS: Final[Mapping[GpuNetwork | None, tuple[str, str]]] = {
    None: (_OF_GIB, "1G"),
    GpuNetwork.RDMA: (_OF_GIB, "8G"),
    GpuNetwork.TCPXO: (_WITH_MPI, "8G"),
    GpuNetwork.TCPX: (_WITH_MPI, "8G"),
}
"""Kind of GPU network -> the test's program in the image, and its largest message where no
published figure says another; None: over the first interface."""

_SOCKETS: Final = fabrics.STACKS[fabrics.Fabric.GIB]
"""What brings NCCL and its tests to nodes that have no plugin."""

_PROGRAM: Final = """\
set -eu
nodes=@nodes@
gpus=@gpus@
# The plain interfaces are eth0 and so on, whatever they are used for.
echo "aiinfra-interfaces ${HOSTNAME} $(find /sys/class/net -name 'eth*' | wc -l)"
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
    stack = nccl.software(facts, pool)
    env = [labelled("JOB_SET", fabric_pods.SET_LABEL)]
    if stack is None:
        env += variables({"NCCL_NET": "Socket", "LD_LIBRARY_PATH": f"{pod_fabrics.GIB}/lib64"})
    return {
        "name": CONTAINER,
        "image": (stack or _SOCKETS).test.pinned,
        "command": ["bash", "-c", program(pool, nodes)],
        "env": env,
    }


def program(pool: GpuPool, nodes: int) -> str:
    """What the test's pods run, for bash."""
    path, largest = FABRICS[pool.gpu_network]
    smallest, bars, figures = "1K", bandwidth.bars(pool, nodes), pool.bandwidth
    if figures:
        # Peaks and averages of other sizes are others.
        smallest, largest = map(_size, figures.averaged or (KIB, figures.size))
    rounds = [" ".join(f"{one}-{other}" for one, other in it) for it in diagnosis.pairs(nodes)]
    values = {
        "nodes": nodes,
        "gpus": pool.gpus,
        "job": fabric_pods.REPLICATED_JOB,
        "program": path,
        "smallest": smallest,
        "largest": largest,
        "least_out": f"{bars.out_of_place:.2f}",
        "least_in": f"{bars.in_place:.2f}",
        "least_average": f"{bars.average:.2f}",
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
            "image": _SOCKETS.plugin.pinned,
            "command": ["/bin/sh", "-c", unpack],
            "volumeMounts": [mount("gib", "/gib")],
        }
    ]
    mounts = pod["containers"][0].setdefault("volumeMounts", [])
    mounts.append(mount("gib", pod_fabrics.GIB))
