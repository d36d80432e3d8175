"""The one builder of pods on GPU nodes: everything that a pod needs to use GPUs and their network.

Bandwidth test, sample jobs, torchrun and Ray give it their container and get the whole template.
What the network of a machine takes stands in `nccl`.
"""

from __future__ import annotations

import enum
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machine_sizes, machines
from provision.kinds.gke.kubernetes import nccl, stages
from provision.kinds.gke.kubernetes.kueue import GPU, GPU_TOLERATION, POOL_LABEL, placement
from provision.kinds.gke.kubernetes.objects import Object, mount, variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

JOB_SET_API: Final = "jobset.x-k8s.io/v1alpha2"
SET_LABEL: Final = "jobset.sigs.k8s.io/jobset-name"
"""The label of a JobSet's pods with its name."""
RANK_LABEL: Final = "batch.kubernetes.io/job-completion-index"
REPLICATED_JOB: Final = "w"
"""The one Job of each JobSet; the names of its pods have it."""
FLEX_LABEL: Final = "cloud.google.com/gke-flex-start"
STAYS: Final = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
"""The annotation of pods whose node the autoscaler does not empty to fill others better.

It takes pods that a controller makes again for replaceable, also those of Jobs and the head of a
Ray cluster (cluster-autoscaler 9910004, drainability/rules/replicated/rule.go; ray#64907). GKE says
so itself of the pods of a ProvisioningRequest alone.
"""

_NOTHING: Final[Mapping[str, Any]] = {}
_SHARED_MEMORY: Final = "/dev/shm"  # noqa: S108 - where the system has it
_GPU_DEVICES: Final = ("/dev/nvidiactl", "/dev/nvidia-uvm")
# Without it NCCL would use sockets, and nobody would know why.
_CHECK: Final = (
    "[ -r {script} ] ||"
    ' { echo "{script} is missing: is NCCL installed on this node?" >&2; exit 1; }'
)
_TORCH: Final = (
    """case "$(python3 -c 'import torch' 2>&1)" in *"undefined symbol: nccl"*)"""
    " echo \"this image's PyTorch needs a newer NCCL than GPUDirect-TCPX has, which is 2.19.4:"
    ' take one of PyTorch 2.6 or older, such as nvcr.io/nvidia/pytorch:25.01-py3" >&2;'
    " exit 1;; esac"
)
# As the init container gpu-healthcheck of Cluster Toolkit's examples: NCCL waits for ever for a GPU
# that is not there. A driver that does not answer may never do, so it is waited for a minute.
_HEALTH: Final = """\
if type nvidia-smi >/dev/null 2>&1; then
  own_errors="$(timeout 60 nvidia-smi --format=csv,noheader,nounits \\
    --query-gpu=ecc.errors.uncorrected.volatile.total)" ||
    { echo "the GPU driver of this node does not answer: ${own_errors}" >&2; exit 1; }
  [ "$(wc -l <<<"${own_errors}")" -ge {gpus} ] ||
    { echo "this node has fewer than the {gpus} GPUs of its machine type" >&2; exit 1; }
  [[ ! "${own_errors}" =~ [1-9] ]] ||
    { echo "a GPU of this node has memory errors that were not corrected: reset it" >&2; exit 1; }
fi"""
# GKE mounts the driver and leaves it to the image to look there, which not every one does (NVIDIA's
# since CUDA 12.8.1 do not): programs then see no GPUs. What an image has set itself stays.
_PROGRAMS: Final = f'export PATH="${{PATH}}:{nccl.NVIDIA}/bin" LD_LIBRARY_PATH='
_DRIVER: Final = f'{_PROGRAMS}"${{LD_LIBRARY_PATH:+${{LD_LIBRARY_PATH}}:}}{nccl.LIBRARIES}"'
# Before an image's own NCCL, or its plugin for another network.
_NCCL: Final = f'{_PROGRAMS}"{nccl.LIBRARIES}${{LD_LIBRARY_PATH:+:${{LD_LIBRARY_PATH}}}}"'
# An image's own libraries come first: those of another image are built for another system.
_LIBRARIES: Final = (
    "{ {load} 2>/dev/null"
    ' || { export LD_LIBRARY_PATH="${LD_LIBRARY_PATH}:{folder}" && {load}; }'
    ' || echo "{names} are missing: NCCL may not find its network" >&2; }'
)
_LOAD: Final = "python3 -c 'import ctypes, sys; [ctypes.CDLL(it) for it in sys.argv[1:]]' {names}"

GCLOUD: Final = "gcr.io/google.com/cloudsdktool/google-cloud-cli:578.0.0-slim"
SECRETS: Final = "/run/aiinfra-secrets"
"""Where a job finds its secrets, one file for each variable; in memory."""
SECRETS_MOUNT: Final = mount("secrets", SECRETS)
READS_SECRETS: Final = "read-secrets"
_EXPORT: Final = f'for file in {SECRETS}/*; do export "${{file##*/}}=$(cat "${{file}}")"; done'
# GKE's metadata server takes some seconds until it knows a new pod.
_READ: Final = """\
set -eu
read_secret() {{
  for _ in 1 2 3 4 5 6; do
    if gcloud secrets versions access "$4" --project="$2" --secret="$3" \\
      --out-file="{folder}/$1"; then
      return
    fi
    sleep 10
  done
  echo "could not read projects/$2/secrets/$3:$4 for $1: is there such a version? Its owner lets" \\
    "pods read it by: gcloud secrets add-iam-policy-binding $3 --project $2" \\
    "--role roles/secretmanager.secretAccessor --member serviceAccount:{account}" >&2
  exit 1
}}
{calls}
"""


class Kind(enum.Enum):
    """What a pod is to its node.

    `PART`: It has some of the node's GPUs, for which its container asks, and no GPU network.
    `WHOLE`: It has all GPUs and their network, unless it is told how many. Its container must have
    a command. `RAY`: As WHOLE, for a worker of Ray: KubeRay starts Ray and brings the shared
    memory. `HEAD`: The head of Ray, on a node without GPUs: KubeRay starts Ray.
    """

    PART = enum.auto()
    WHOLE = enum.auto()
    RAY = enum.auto()
    HEAD = enum.auto()


def template(
    facts: ClusterFacts, pool: GpuPool, container: Object, kind: Kind, gpus: int | None = None
) -> Object:
    """A pod template for a pool, with all that its container needs.

    `gpus`: of a part of a node; it has that part of the rest, too, but nothing of the network of
    the GPUs, whose interfaces and daemon are one pod's.
    """
    part = gpus if gpus is not None and gpus < pool.gpus else None
    volumes, mounts, annotations = stages.pod_volumes(facts)
    spec: Object = {"serviceAccountName": stages.account_name(facts)}
    if kind is not Kind.HEAD:
        flex = {FLEX_LABEL: "true"} if pool.mode.means.flex_start else {}
        spec |= {
            "nodeSelector": {POOL_LABEL: pool.name, **flex},
            "tolerations": [dict(GPU_TOLERATION)],
        }
        annotations |= placement(facts, pool)
    annotations |= STAYS
    # The end of its log is then in the pod, and outlasts the node for a moment.
    wanted = {"terminationMessagePolicy": "FallbackToLogsOnError", **container}
    _extend(wanted, "volumeMounts", mounts)
    if kind is not Kind.PART:
        before, beside, lines = [], [], []
        software = nccl.software(facts, pool)
        if software and part:
            # The node's plugin finds none of its interfaces there; within a node none is needed.
            without, software = variables({"NCCL_NET_PLUGIN": "none"}), None
            wanted["env"] = [*without, *wanted.get("env", [])]
        if kind is not Kind.HEAD:
            annotations |= {} if part else stages.network_annotations(pool)
            _ask(spec, wanted, pool, part)
            lines.append(_NCCL if software else _DRIVER)
        if software and kind is not Kind.HEAD:
            fabric, stack = software
            annotations |= _devices(fabric, pool)
            _join(wanted, fabric, pool)
            volumes += [*_volumes(fabric), *([nccl.READY_VOLUME] if fabric.installer else [])]
            beside_it = {
                f"{nccl.BIN}/nvidia/lib64": nccl.LIBRARIES,
                "/sys": "/hostsysfs",
                "/proc/sys": "/hostprocsysfs",
            }
            mounted = (mount(_volume(path), at) for path, at in beside_it.items())
            sidecar = nccl.daemon(fabric, stack, [*mounted, *_socket_mount(fabric)])
            before.append(nccl.gate(fabric, stack))
            beside += [sidecar] if sidecar else []
            bring = nccl.libraries(fabric, stack) if kind is Kind.RAY else None
            if bring:
                before.append(bring)
                volumes.append({"name": bring["name"], "emptyDir": {}})
                _extend(wanted, "volumeMounts", [dict(nccl.BROUGHT_MOUNT)])
            health = [_HEALTH.replace("{gpus}", str(pool.gpus))] if kind is Kind.WHOLE else []
            lines += [*health, *_lines(fabric, pool, kind)]
        if facts.secrets:
            before.append(_read_secrets(facts))
            memory = {"medium": "Memory", "sizeLimit": "16Mi"}
            volumes.append({"name": SECRETS_MOUNT["name"], "emptyDir": memory})
            _extend(wanted, "volumeMounts", [dict(SECRETS_MOUNT)])
            lines.append(_EXPORT)
        _extend(spec, "initContainers", [*before, *beside])
        _begin_with(wanted, lines, kind)
        if kind is Kind.WHOLE:
            volumes.append(_share_memory(wanted, room_on(pool.machine_type, part, pool.gpus)))
    spec |= {"containers": [wanted], **({"volumes": volumes} if volumes else {})}
    return {"metadata": {"annotations": annotations}, "spec": spec}


def job_set(
    metadata: Object,
    template: Object,
    nodes: int,
    spec: Mapping[str, Any] = _NOTHING,
    job: Mapping[str, Any] = _NOTHING,
) -> Object:
    """A JobSet with one pod on each of so many nodes; `spec`, `job`: what else these two say."""
    pods = {
        "parallelism": nodes,
        "completions": nodes,
        "completionMode": "Indexed",
        # If one node fails, the others wait forever, so all of the job has to fail.
        "backoffLimit": 0,
        **job,
        "template": template,
    }
    return {
        "apiVersion": JOB_SET_API,
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {
            **spec,
            "network": {"enableDNSHostnames": True},
            "replicatedJobs": [{"name": REPLICATED_JOB, "template": {"spec": pods}}],
        },
    }


def restarted(most: int, *rules: Object) -> Object:
    """The part of a JobSet's spec that has all of it begun again, so often at most."""
    # The GPUs of a pod are free when it is gone, not when it is told to go.
    policy = {"maxRestarts": most, "restartStrategy": "BlockingRecreate", "rules": [*rules]}
    return {"failurePolicy": policy}


def failed_by(codes: Object) -> Object:
    """The part of a Job's spec that has it fail at once with a lost pod, or by an exit code."""
    lost = {"type": "DisruptionTarget", "status": "True"}
    rules = [
        {"action": "FailJob", "onPodConditions": [lost]},
        {"action": "FailJob", "onExitCodes": codes},
    ]
    return {"podFailurePolicy": {"rules": rules}}


def _read_secrets(facts: ClusterFacts) -> Object:
    """The init container that reads secrets of Secret Manager, as variables of a job.

    It reads them as the pods' service account, into the pod's memory alone; no object and no
    Terraform state has a value, and a secret's new version reaches the next pod. GKE's add-on for
    it would need a cluster setting and kinds of its own, and gives files all the same.
    """
    calls = [f"read_secret {it.name} {it.project} {it.secret} {it.version}" for it in facts.secrets]
    script = _READ.format(folder=SECRETS, account=facts.workload_account, calls="\n".join(calls))
    return {
        "name": READS_SECRETS,
        "image": GCLOUD,
        "command": ["/bin/bash", "-c", script],
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [dict(SECRETS_MOUNT)],
    }


def _ask(pod: Object, container: Object, pool: GpuPool, part: int | None) -> None:
    """Ask for all GPUs and interfaces of a node and nearly all else, or for a part of that.

    There is no limit of vCPUs, which would only slow it down.
    """
    asked, limits = {GPU: str(part or pool.gpus)}, {GPU: str(part or pool.gpus)}
    room = room_on(pool.machine_type, part, pool.gpus)
    if room is not None:
        milli, memory = room.milli_cpus, {"memory": _quantity(room.mib)}
        asked |= {"cpu": f"{milli}m" if milli % 1000 else str(milli // 1000), **memory}
        limits |= memory
    container["resources"] = {"requests": asked, "limits": limits}
    if pool.claimed and not part:
        claim = stages.claim(pool)
        pod["resourceClaims"] = [claim]
        container["resources"]["claims"] = [{"name": claim["name"]}]


def _share_memory(container: Object, room: Room | None) -> Object:
    """Give a job's container shared memory; the volume that it is."""
    _extend(container, "volumeMounts", [mount("shared-memory", _SHARED_MEMORY)])
    size = {"sizeLimit": room.shared_memory} if room else {}
    return {"name": "shared-memory", "emptyDir": {"medium": "Memory", **size}}


def _join(container: Object, fabric: nccl.PodFabric, pool: GpuPool) -> None:
    """Give a job's container the variables, mounts and rights of a network."""
    own = {entry["name"] for entry in container.get("env", [])}
    found = {**fabric.variables, **nccl.of_family(fabric, pool.machine_type)}
    _extend(container, "env", variables({it: found[it] for it in found if it not in own}))
    inside = [mount(_volume(path), at) for path, at in fabric.mounts.items()]
    _extend(container, "volumeMounts", [*inside, *_socket_mount(fabric)])
    if fabric.capabilities:
        added = {"capabilities": {"add": list(fabric.capabilities)}}
        container["securityContext"] = {**container.get("securityContext", {}), **added}


def _lines(fabric: nccl.PodFabric, pool: GpuPool, kind: Kind) -> list[str]:
    """What sets the variables that only a script of the network knows, in the shell."""
    if not fabric.script:
        return [_TORCH] if fabric.old_nccl else []
    check = _CHECK.replace("{script}", fabric.script)
    # The script sets them as well, so Google's recipe for A4 sets its own after it.
    own = nccl.of_family(fabric, pool.machine_type)
    kept = [f'own_{name}="${{{name}}}"' for name in own]
    again = [f'export {name}="${{own_{name}}}"' for name in own]
    if kind is not Kind.RAY:
        return [check, *kept, f". {fabric.script}", *again]
    # How the script ends says nothing, and KubeRay goes on by &&.
    lines = [check, *kept, f"{{ . {fabric.script} || true; }}", *again]
    if fabric.libraries:
        with_load = _LIBRARIES.replace("{load}", _LOAD).replace("{folder}", nccl.BROUGHT)
        lines.append(with_load.replace("{names}", " ".join(fabric.libraries)))
    return lines


def _begin_with(container: Object, lines: list[str], kind: Kind) -> None:
    """Let a container run lines of bash before its command, in the same process."""
    if not lines:
        return
    if kind in {Kind.RAY, Kind.HEAD}:
        # KubeRay makes it `this && ulimit ...; ray start ...`, in one shell (pod.go).
        container["command"] = [" && ".join(lines)]
        return
    command = [*container.get("command", []), *container.pop("args", [])]
    if not command:
        raise ValueError(f"container {container['name']}: no command to set the environment for")
    script = "\n".join([*lines, 'exec "$@"', ""])
    container["command"] = ["bash", "-c", script, "bash", *command]


def _devices(fabric: nccl.PodFabric, pool: GpuPool) -> dict[str, str]:
    """What GKE's device injector gives the daemon: only the job's container asks for GPUs."""
    if fabric.daemon is None:
        return {}
    gpus = [f"/dev/nvidia{number}" for number in range(pool.gpus)]
    paths = [*gpus, *_GPU_DEVICES, *fabric.daemon.devices]
    listed = "".join(f"- path: {path}\n" for path in paths)
    return {f"{nccl.DEVICES}{fabric.daemon.name}": listed}


def _volumes(fabric: nccl.PodFabric) -> list[Object]:
    paths = [*fabric.mounts, *(("/sys", "/proc/sys") if fabric.daemon else ())]
    found: list[Object] = [{"name": _volume(path), "hostPath": {"path": path}} for path in paths]
    if fabric.socket:
        found.append({"name": _volume(fabric.socket), "emptyDir": {}})
    return found


def _socket_mount(fabric: nccl.PodFabric) -> list[Object]:
    return [mount(_volume(fabric.socket), fabric.socket)] if fabric.socket else []


def _volume(path: str) -> str:
    return path.removeprefix(f"{nccl.BIN}/").strip("/").replace("/", "-").replace("_", "-")


def _extend(thing: Object, key: str, entries: list[Object]) -> None:
    """Add entries to a list of an object; none is added for nothing."""
    together = [*thing.get(key, []), *entries]
    if together:
        thing[key] = together


# ------------------------------------------------------------------------------ room on a node

# GKE's own pods run on each node too, and the containers that mount buckets. A published Ray
# cluster on A3 Ultra asks for 220 of its 224 vCPUs and 2800 of its 2952 GiB (seed 001).
_SYSTEM_CPUS: Final = 3.0
_SYSTEM_GIB: Final = 1.0
_SYSTEM_SHARE: Final = 1 / 32

_MIB: Final = 1024  # in a GiB
_MOST_SHARED_GIB: Final = 250
"""What Google's recipes give a job (container-engine-accelerators, GPU recipes)."""


@dataclass(frozen=True, kw_only=True)
class Room:
    """What one pod can ask for that has a node for itself."""

    milli_cpus: int  # thousandths of a vCPU
    mib: int

    @property
    def shared_memory(self) -> str:
        """The size of /dev/shm, which counts as the pod's memory, as a quantity of Kubernetes."""
        return _quantity(min(_MOST_SHARED_GIB * _MIB, self.mib // 2))


def room_on(machine_type: str, part: int | None = None, gpus: int = 1) -> Room | None:
    """What a pod with a `part` of a node's GPUs can ask for; None if the size is not known."""
    machine, memory = machines.lookup(machine_type), machine_sizes.memory(machine_type)
    if machine is None or memory is None:
        return None
    cpus, gib = machine_sizes.allocatable(machine.vcpus, float(memory))
    cpus -= min(_SYSTEM_CPUS, cpus / 2)
    gib -= min(_SYSTEM_GIB, gib / 2) + gib * _SYSTEM_SHARE
    share = part / gpus if part else 1
    return Room(
        milli_cpus=math.floor((math.floor(cpus) * 1000 if cpus >= 1 else cpus * 1000) * share),
        mib=math.floor(gib * _MIB * share),
    )


def _quantity(mib: int) -> str:
    """Whole GiB where it is that much, as a quantity of Kubernetes."""
    return f"{mib // _MIB}Gi" if mib >= _MIB else f"{mib}Mi"
