"""The program of the bandwidth test: what each of its pods looks at, and what the first measures.

Each pod tells what its node has. The first one starts NCCL's all-gather test on all nodes by MPI
and ssh, and where that is too slow, on pairs of them, in rounds that are known beforehand: each
node with two others, so that the one at fault is known (`diagnosis.pairs`). Whatever comes of it,
the pods end well: what failed is in their logs, which `bandwidth` and `node_checks` judge.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue.bandwidths import GIB, KIB, MIB
from provision.kinds import diagnosis
from provision.kinds.gke.kubernetes import bandwidth

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool

ANSWER_SECONDS: Final = 600
"""How long a node may take, from the start of the first pod on, until it answers."""
WHOLE_SECONDS: Final = 500
"""The most that the measurement between all nodes may take."""
ROUND_SECONDS: Final = 200
"""The most that a round of pairs may take; they measure at the same time."""

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
"""What follows the measurement of more than two nodes."""


def text(pool: GpuPool, nodes: int, *, job: str, program: str, largest: str) -> str:
    """The program, for bash.

    `job`: the name of the replicated job, which is part of the pods' names. `program`: the path of
    NCCL's all-gather test in the image, built with MPI. `largest`: the largest message where no
    published figure says another, such as "8G".
    """
    bars = bandwidth.bars(pool, nodes)
    sizes = _sizes(pool)
    rounds = [" ".join(f"{one}-{other}" for one, other in it) for it in diagnosis.pairs(nodes)]
    values = {
        "nodes": str(nodes),
        "gpus": str(pool.gpus),
        "job": job,
        "program": program,
        "smallest": sizes[0] if sizes else "1K",
        "largest": sizes[1] if sizes else largest,
        "least_out": f"{bars.out_of_place:.2f}",
        "least_in": f"{bars.in_place:.2f}",
        "least_average": f"{bars.average:.2f}",
        "rounds": " ".join(f'"{it}"' for it in rounds),
        "answer_seconds": str(ANSWER_SECONDS),
        "whole_seconds": str(WHOLE_SECONDS),
        "round_seconds": str(ROUND_SECONDS),
    }
    found = _PROGRAM.replace("@search@", _SEARCH if rounds else "\n")
    for name, value in values.items():
        found = found.replace(f"@{name}@", value)
    return found


def _sizes(pool: GpuPool) -> tuple[str, str] | None:
    """The smallest and the largest message of the published figures; None if there are none.

    Peaks and averages of other sizes are others.
    """
    figures = pool.bandwidth
    if figures is None:
        return None
    smallest, largest = figures.averaged or (KIB, figures.size)
    return _written(smallest), _written(largest)


def _written(size: int) -> str:
    """A size as NCCL's tests read it."""
    for unit, letter in ((GIB, "G"), (MIB, "M"), (KIB, "K")):
        if size % unit == 0:
            return f"{size // unit}{letter}"
    return str(size)
