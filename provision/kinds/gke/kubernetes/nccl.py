"""What NCCL takes for each kind of GPU network: an installer on nodes, and what pods need.

Where GKE manages RDMA it installs gIB itself, in the same folders, and pods claim their interfaces
(container-engine-accelerators 992db812, gpudirect-rdma/nccl-test-managed-rdma.yaml; ADR 87).

NCCL's daemons need a device injector on H100 machines. The facts of nodes are those of Google's
public installers; the images are those of the catalogue. Sources for pods:
container-engine-accelerators 992db812 (the newest tests of TCPX and TCPXO, the configuration of
TCPX, best practices); the source of TCPXO, 04815d1b; Cluster Toolkit v1.95.0 and GPU recipes
2e1fd5e (gIB, A4).

Pods on a GPU network wait at a gate, an init container, until their node is ready. A node takes
pods as soon as its GPUs are there, and its installer may be done minutes later: the node pulls an
image of some gigabytes. NCCL that finds no plugin fails nothing, and goes on over plain sockets. An
init container works for every kind of job, on nodes that the autoscaler brings too, and needs no
right in the cluster, as taking off a taint would.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics, machines
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes.kueue import ACCELERATOR_LABEL
from provision.kinds.gke.kubernetes.objects import Object, build, field, mount, variables

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool

NAMESPACE: Final = "kube-system"
DEVICES: Final = "devices.gke.io/container."
"""Begins the annotation that the device injector reads; the name of the container follows."""

INJECTOR: Final = "device-injector"
_PAUSE: Final = (
    "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
)

READY: Final = "/run/aiinfra-nccl"
"""The folder of a node that says what is installed there. It is in memory, as are the devices that
the installers prepare: both are gone when a node starts again."""
_READY_MOUNT: Final = mount("nccl-is-ready", READY)

GATE: Final = "wait-for-nccl"
GATE_SECONDS: Final = 900
"""How long a pod waits at the gate before it fails."""

# All pods of a job need the same plugin, so nodes change all at once, not one after the other.
_AT_ONCE: Final = {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": "100%"}}

# Libraries must not be replaced under a running job: neither when only the installer's pod is made
# again, nor by another version. The pod sees the node's processes (hostPID).
_ONCE: Final = """\
set -e
[ ! -e {marker} ] || exit 0
while grep -qs libnccl /proc/[0-9]*/maps; do
  echo 'waiting until no program on this node uses NCCL'
  sleep 30
done
set -x
rm -f {folder}/*
"""
# Replies to RDMA traffic arrive on another interface than the kernel expects, and the kernel would
# log each of them. This uses the shell, so that no image with `sysctl` is needed.
_QUIET_RDMA: Final = """\
for gpu in 0 1 2 3 4 5 6 7; do
  echo 0 >"/proc/sys/net/ipv4/conf/gpu${gpu}rdma0/log_martians"
done
"""
# TCPXO accesses the interfaces' memory through these PCI devices, and looks for them here.
_APERTURES: Final = """\
/sbin/iptables -I INPUT -p tcp -m tcp -j ACCEPT
modprobe import-helper
lspci -nn -D | grep '1ae0:0084' | while read -r device _; do
  folder="/dev/aperture_devices/${device}"
  mkdir -p "${folder}"
  umount -R "${folder}" 2>/dev/null || true
  mount --bind "$(readlink -f "/sys/bus/pci/devices/${device}")" "${folder}"
  chmod a+rw "${folder}"/resource*
done
[ ! -d /dev/aperture_devices ] || chmod -R a+r /dev/aperture_devices
"""

_HINT: Final = """\
      "Look at the DaemonSet {installer}: kubectl --namespace {namespace} get pods" \\
      "--selector k8s-app={installer} --field-selector spec.nodeName=${{NODE}}." \\
      "Where it has another version, run Create again and take the jobs that it writes.\""""
_HINT_OF_GKE: Final = """\
      "GKE installs it on nodes of this pool, by the strategy RDMA: see what it says of the pool" \\
      "with gcloud container node-pools describe, and have the node replaced.\""""
_WAIT: Final = """\
waited=0
until [ -e {marker} ]; do
  if [ "${{waited}}" -ge {seconds} ]; then
    echo "NCCL is not installed on the node ${{NODE}} after {seconds} s:" \\
      "{marker} is missing there; found: $(ls {folder})." \\
{hint} >&2
    exit 1
  fi
  [ $((waited % 60)) != 0 ] || echo "waiting for {name} on ${{NODE}}"
  sleep 5
  waited=$((waited + 5))
done
"""


def _folder(name: str, path: str) -> Object:
    """A volume that is a folder of the node."""
    return {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}


READY_VOLUME: Final = _folder("nccl-is-ready", READY)


@dataclass(frozen=True, kw_only=True)
class Installer:
    """One installer; its image is that of the plugin."""

    name: str
    command: str  # what unpacks the plugin in the container
    folders: Mapping[str, tuple[str, str]]  # volume -> folder of the node, and in the container
    # source -> destination, both in the container, copied once the plugin is unpacked
    copies: Mapping[str, str]
    # what runs as root before the installation, by name; None for nothing
    preparation: tuple[str, str] | None = None
    on_the_node: bool = False  # whether that runs in the node's namespaces, not the container's


_UNPACK: Final = "/scripts/container_entry.sh install"
_WITH_NCCL: Final = f"{_UNPACK} --install-nccl"
BIN: Final = "/home/kubernetes/bin"
"""The folder of a node that GKE's driver and the installers of NCCL fill."""
_TCP_FOLDERS: Final = {"var-lib": ("/var/lib", "/var/lib"), "bin": (BIN, "/usr/local")}

NVIDIA: Final = "/usr/local/nvidia"
"""Where a container finds the driver."""

LIBRARIES: Final = f"{NVIDIA}/lib64"
"""Where a container finds the driver's libraries, and NCCL with its plugin."""

GIB: Final = "/usr/local/gib"
"""Where a container finds gIB."""

FIRST: Final = "eth0"
"""A pod's interface to everything else."""

BROUGHT: Final = "/usr/local/aiinfra-rdma"
"""Where a worker of Ray finds libraries that its image lacks."""
BROUGHT_MOUNT: Final = mount("rdma-libraries", BROUGHT)

_SOCKETS: Final = "/run/tcpx"
_APERTURE_DEVICES: Final = "/dev/aperture_devices"
_HEALTHY: Final = "/run/health-check"  # its name may have no underscore
_RXDM: Final = "/fts/entrypoint_rxdm_container.sh"
_BINDINGS: Final = {
    # vCPUs of the NUMA node of each interface: for what is sent, and for what is received.
    "TX": "eth1:8-21,112-125;eth2:8-21,112-125;eth3:60-73,164-177;eth4:60-73,164-177",
    "RX": "eth1:22-35,126-139;eth2:22-35,126-139;eth3:74-87,178-191;eth4:74-87,178-191",
}


@dataclass(frozen=True, kw_only=True)
class Daemon:
    """The receive-datapath manager of TCPX and TCPXO, which runs beside each job."""

    name: str
    # what it runs; the signal to end reaches it, as it undoes what it has tuned
    command: tuple[str, ...]
    capabilities: tuple[str, ...]  # what it may do, instead of being privileged
    # what it opens beside the GPUs; GKE's device injector gives them to it
    devices: tuple[str, ...] = ()
    is_ready: tuple[str, ...]  # a command that succeeds when it listens


@dataclass(frozen=True, kw_only=True)
class PodFabric:
    """What nodes and pods need for one kind of GPU network."""

    installer: Installer | None  # None where GKE installs it
    # NCCL's test in the plugin's image for tests; built with MPI, without which each process would
    # measure its own GPU
    test: str = "/third_party/nccl-tests-mpi/build/all_gather_perf"
    variables: Mapping[str, str]  # variables of the job's container
    # what it sources before its command, which sets the other variables; "" for nothing
    script: str = ""
    mounts: Mapping[str, str]  # folder of the node -> where the job's container sees it
    capabilities: tuple[str, ...] = ()  # what the job's container may do beside the usual
    socket: str = ""  # a folder that daemon and job share; "" for none
    daemon: Daemon | None = None  # what runs beside the job; None for nothing
    libraries: tuple[str, ...] = ()  # shared libraries that the plugin needs and Ray's images lack
    # family of machines -> its own variables
    of_family: Mapping[str, Mapping[str, str]] = dataclasses.field(default_factory=dict)
    # whether its NCCL is too old for a PyTorch of 2.7 or newer that loads it (pytorch#144794)
    old_nccl: bool = False


_TCPX: Final = PodFabric(
    installer=Installer(
        name="nccl-tcpx-installer",
        command=_WITH_NCCL,
        folders=_TCP_FOLDERS,
        copies={"/var/lib/tcpx/lib64/.": "/usr/local/nvidia/lib64"},
    ),
    variables={
        "NCCL_NET": "GPUDirectTCPX_v7",
        "NCCL_SOCKET_IFNAME": FIRST,
        "NCCL_ALGO": "Ring,Tree",
        "NCCL_PROTO": "Simple",
        "NCCL_CROSS_NIC": "0",
        "NCCL_NET_GDR_LEVEL": "PIX",
        "NCCL_P2P_PXN_LEVEL": "0",
        "NCCL_NSOCKS_PERTHREAD": "4",
        "NCCL_SOCKET_NTHREADS": "1",
        "NCCL_DYNAMIC_CHUNK_SIZE": "524288",
        "NCCL_P2P_NET_CHUNKSIZE": "524288",
        "NCCL_P2P_PCI_CHUNKSIZE": "524288",
        "NCCL_P2P_NVL_CHUNKSIZE": "1048576",
        "NCCL_BUFFSIZE": "4194304",
        "NCCL_GPUDIRECTTCPX_SOCKET_IFNAME": "eth1,eth2,eth3,eth4",
        "NCCL_GPUDIRECTTCPX_CTRL_DEV": FIRST,
        "NCCL_GPUDIRECTTCPX_TX_BINDINGS": _BINDINGS["TX"],
        "NCCL_GPUDIRECTTCPX_RX_BINDINGS": _BINDINGS["RX"],
        "NCCL_GPUDIRECTTCPX_PROGRAM_FLOW_STEERING_WAIT_MICROS": "500000",
        "NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX": _SOCKETS,
    },
    mounts={f"{BIN}/nvidia/lib64": LIBRARIES},
    capabilities=("IPC_LOCK",),
    old_nccl=True,
    socket=_SOCKETS,
    daemon=Daemon(
        name="tcpx-daemon",
        command=(
            "/tcpgpudmarxd/build/app/tcpgpudmarxd",
            *("--gpu_nic_preset", "a3vm"),
            *("--gpu_shmem_type", "fd"),
            *("--uds_path", _SOCKETS),
            *("--setup_param", "--verbose 128 2 0 "),
        ),
        capabilities=("NET_ADMIN",),
        # The folder is new with the pod: what is in it are the sockets that it listens on.
        is_ready=("/bin/sh", "-c", f"ls {_SOCKETS} | grep -q ."),
    ),
)

_TCPXO: Final = PodFabric(
    installer=Installer(
        name="nccl-tcpxo-installer",
        command=f"chmod 755 /scripts/container_entry.sh\n{_WITH_NCCL}",
        folders=_TCP_FOLDERS,
        copies={"/var/lib/tcpxo/lib64/.": "/usr/local/nvidia/lib64"},
        preparation=("apertures", _APERTURES),
        on_the_node=True,
    ),
    variables={
        # The script ends the shell without it.
        "NCCL_LIB_DIR": LIBRARIES,
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": _APERTURE_DEVICES,
    },
    script=f"{LIBRARIES}/nccl-env-profile.sh",
    mounts={f"{BIN}/nvidia/lib64": LIBRARIES, _APERTURE_DEVICES: _APERTURE_DEVICES},
    capabilities=("IPC_LOCK",),
    daemon=Daemon(
        name="tcpxo-daemon",
        command=("/bin/sh", "-c", f"chmod 755 {_RXDM}\nexec {_RXDM} --num_hops=2\n"),
        capabilities=("NET_ADMIN", "NET_BIND_SERVICE"),
        devices=("/dev/dmabuf_import_helper",),
        is_ready=("cat", _HEALTHY),
    ),
)

TEST_OF_GIB: Final = "/third_party/nccl-tests/build/all_gather_perf"
"""The only build of NCCL's test in gIB's image, with MPI."""

_RDMA: Final = PodFabric(
    installer=Installer(
        name="nccl-rdma-installer",
        # Without --install-nccl since v1.1.1 (container-engine-accelerators 2da1c92f).
        command=_UNPACK,
        folders={
            "libraries": (f"{BIN}/nvidia/lib64", f"/usr/local{BIN}/nvidia/lib64"),
            "gib": (f"{BIN}/gib", f"/usr/local{BIN}/gib"),
        },
        copies={
            "/var/lib/gib/lib64/.": f"/usr/local{BIN}/nvidia/lib64",
            "/var/lib/gib/.": f"/usr/local{BIN}/gib",
        },
        preparation=("quiet-martians", _QUIET_RDMA),
    ),
    test=TEST_OF_GIB,
    variables={"NCCL_NET": "gIB"},
    script=f"{GIB}/scripts/set_nccl_env.sh",
    mounts={f"{BIN}/nvidia": NVIDIA, f"{BIN}/gib": GIB},
    # "rayproject images lack" them (DRANET's page on KubeRay); seed 001 has run without.
    libraries=("libnl-3.so.200", "libnl-route-3.so.200"),
    of_family={
        "a4-highgpu": {
            "NCCL_SOCKET_IFNAME": "eth0,eth1",
            "NCCL_TUNER_CONFIG_PATH": f"{GIB}/configs/tuner_config_a4.txtpb",
        }
    },
)

# A pod has eth0 and what it claims, and Google's test sets nothing but what the script sets.
_MANAGED: Final = dataclasses.replace(_RDMA, installer=None, of_family={})

FABRICS: Final[Mapping[GpuNetwork, PodFabric]] = {
    GpuNetwork.TCPX: _TCPX,
    GpuNetwork.TCPXO: _TCPXO,
    GpuNetwork.RDMA: _RDMA,
}
"""Kind of GPU network -> what nodes and pods need for it."""


def software(facts: ClusterFacts, pool: GpuPool) -> tuple[PodFabric, fabrics.Stack] | None:
    """NCCL's network and software on a pool's nodes, which its pods have to match; None for none.

    Arm machines need other images, which are untested here.
    """
    network = pool.gpu_network
    if network is None or pool.is_arm:
        return None
    fabric = _MANAGED if pool.managed else FABRICS[network]
    return fabric, fabrics.on_gke(fabrics.OF_NETWORK[network], facts.version)


def objects(facts: ClusterFacts) -> list[Object]:
    """A DaemonSet for each kind of GPU network that a pool has, and the device injector's."""
    found: list[Object] = []
    injected: list[str] = []
    with_software = [(pool, it) for pool in facts.pools if (it := software(facts, pool))]
    for fabric, stack in {pool.gpu_network: it for pool, it in with_software}.values():
        its = (pool.accelerator for pool, (own, _) in with_software if own is fabric)
        accelerators = list(dict.fromkeys(its))
        if fabric.installer is not None:
            found.append(_installer(fabric.installer, stack, accelerators))
        injected += accelerators if fabric.daemon else []
    return [*found, *([_injector(injected)] if injected else [])]


def gate(fabric: PodFabric, stack: fabrics.Stack) -> Object:
    """The init container that pods wait in until that is installed.

    It has to be the first one: the devices of a daemon must exist when the daemon's container is
    made. Its pod has `READY_VOLUME` where there is an installer.
    """
    installer = fabric.installer
    if installer is None:
        # GKE leaves no file of ours: the last that it has to bring is the script.
        seen, marker = mount("gib", GIB), fabric.script
        name, hint = "GKE", _HINT_OF_GKE
    else:
        seen, marker = _READY_MOUNT, _marker(installer, stack)
        name = installer.name
        hint = _HINT.format(installer=name, namespace=NAMESPACE)
    script = _WAIT.format(
        marker=marker, folder=seen["mountPath"], seconds=GATE_SECONDS, name=name, hint=hint
    )
    return {
        "name": GATE,
        # The node has it already, or pulls it for the installer at this very moment.
        "image": stack.plugin.pinned,
        "command": ["/bin/sh", "-c", script],
        "env": [field("NODE", "spec.nodeName")],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [{**seen, "readOnly": True}],
    }


def _marker(installer: Installer, stack: fabrics.Stack) -> str:
    """The file on a node that says that this version is installed."""
    return f"{READY}/{installer.name}-{stack.plugin.version}"


def _installer(installer: Installer, stack: fabrics.Stack, accelerators: Iterable[str]) -> Object:
    done = _marker(installer, stack)
    once = _ONCE.format(marker=done, folder=READY)

    def step(name: str, command: list[str], *inside: Object, **more: Object) -> Object:
        mounts = [*inside, dict(_READY_MOUNT)]
        rights = {"securityContext": {"privileged": True}, "volumeMounts": mounts}
        return {"name": name, "image": stack.plugin.pinned, **more, **rights, "command": command}

    steps: list[Object] = []
    if installer.preparation is not None:
        name, prepare = installer.preparation
        entry = ["nsenter", "--all", "--target", "1", "--"] if installer.on_the_node else []
        steps.append(step(name, [*entry, "/bin/sh", "-c", once + prepare]))
    copies = [
        line
        for source, to in installer.copies.items()
        for line in (f"mkdir -p {to}", f"cp -r {source} {to}")
    ]
    script = "\n".join([once.rstrip(), installer.command, *copies, f"touch {done}", ""])
    inside = (mount(name, path) for name, (_, path) in installer.folders.items())
    asks = {"requests": {"cpu": "150m"}}
    steps.append(step(installer.name, ["/bin/sh", "-c", script], *inside, resources=asks))
    pod = {
        "volumes": [
            *(_folder(name, path) for name, (path, _) in installer.folders.items()),
            READY_VOLUME,
        ],
        "initContainers": steps,
        "containers": [{"name": "pause", "image": _PAUSE}],
    }
    return _daemon_set(installer.name, accelerators, pod)


def _injector(accelerators: Iterable[str]) -> Object:
    """The plugin of containerd that gives containers the devices of their pods' annotations.

    Source: container-engine-accelerators 992db812, nri_device_injector; it needs GKE 1.29.
    """
    folders = {"dev": "/dev", "nri": "/var/run/nri"}
    pod = {
        "volumes": [{"name": name, "hostPath": {"path": it}} for name, it in folders.items()],
        "containers": [
            {
                "name": INJECTOR,
                "image": fabrics.DEVICE_INJECTOR.pinned,
                "resources": {"requests": {"cpu": "150m"}},
                "securityContext": {"privileged": True},
                "volumeMounts": [mount(name, path) for name, path in folders.items()],
            }
        ],
    }
    return _daemon_set(INJECTOR, accelerators, pod)


def _daemon_set(name: str, accelerators: Iterable[str], pod: Object) -> Object:
    """One pod on each node with one of these GPUs, whatever its taints are."""
    expression = {"key": ACCELERATOR_LABEL, "operator": "In", "values": list(accelerators)}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    labels = {"k8s-app": name}
    general = {
        "priorityClassName": "system-node-critical",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": True,
        "hostPID": True,
    }
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": _AT_ONCE,
        "template": {"metadata": {"labels": labels}, "spec": {**general, **pod}},
    }
    return build("apps/v1", "DaemonSet", name, NAMESPACE, spec=spec)


def of_family(fabric: PodFabric, machine_type: str) -> Mapping[str, str]:
    """The variables of a family's own, which count more than what the script sets."""
    family = machines.family(machine_type)
    return fabric.of_family.get(family.name, {}) if family else {}


def libraries(fabric: PodFabric, stack: fabrics.Stack) -> Object | None:
    """An init container that copies libraries out of the plugin's image; None for none.

    The node has that image for the installer, so nothing is fetched. What the image lacks is said
    in the log, and by the worker, which may have its own.
    """
    if not fabric.libraries:
        return None
    script = _COPY.format(names=" ".join(fabric.libraries), folder=BROUGHT)
    return {
        "name": BROUGHT_MOUNT["name"],
        "image": stack.plugin.pinned,
        "command": ["/bin/sh", "-c", script],
        "resources": {"requests": {"cpu": "10m", "memory": "16Mi"}},
        "volumeMounts": [dict(BROUGHT_MOUNT)],
    }


_COPY: Final = """\
for name in {names}; do
  found="$(find /usr/lib /lib/ /usr/local/lib -name "${{name}}" 2>/dev/null | head -n 1)"
  [ -n "${{found}}" ] || {{ echo "this image has no ${{name}}" >&2; continue; }}
  cp -L "${{found}}" "{folder}/${{name}}"
done
"""


def daemon(fabric: PodFabric, stack: fabrics.Stack, mounts: list[Object]) -> Object | None:
    """The daemon as a sidecar that runs until the job ends; None for no daemon."""
    wanted = fabric.daemon
    if wanted is None or stack.daemon is None:
        return None
    return {
        "name": wanted.name,
        "image": stack.daemon.pinned,
        # An init container with this is a sidecar: it runs until the others have ended.
        "restartPolicy": "Always",
        "command": list(wanted.command),
        "env": variables({"LD_LIBRARY_PATH": LIBRARIES, "HEALTH_CHECK_LOG_FILE": _HEALTHY}),
        "securityContext": {"capabilities": {"add": list(wanted.capabilities)}},
        # It takes some 30 seconds; on a bad node it never gets ready, and the pod does not start.
        "startupProbe": {
            "exec": {"command": list(wanted.is_ready)},
            "periodSeconds": 5,
            "failureThreshold": 24,
        },
        "volumeMounts": mounts,
    }
