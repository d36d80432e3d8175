"""What a pod needs to use the GPU network of its node: one row for each kind of network.

Sources: container-engine-accelerators 992db812 (the newest tests of TCPX and TCPXO, the
configuration of TCPX, best practices); the source of TCPXO, 04815d1b; Cluster Toolkit v1.95.0 and
GPU recipes 2e1fd5e (gIB, A4).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes.objects import mount, variables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.catalogue.fabrics import Stack
    from provision.kinds.gke.kubernetes.objects import Object

BIN: Final = "/home/kubernetes/bin"
"""The folder of a node that GKE's driver and the installers of NCCL fill."""

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
_APERTURES: Final = "/dev/aperture_devices"
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
    """What a pod needs for one kind of GPU network."""

    variables: Mapping[str, str]  # variables of the job's container
    # what it sources before its command, which sets the other variables; "" for nothing
    script: str = ""
    mounts: Mapping[str, str]  # folder of the node -> where the job's container sees it
    capabilities: tuple[str, ...] = ()  # what the job's container may do beside the usual
    socket: str = ""  # a folder that daemon and job share; "" for none
    daemon: Daemon | None = None  # what runs beside the job; None for nothing
    libraries: tuple[str, ...] = ()  # shared libraries that the plugin needs and Ray's images lack
    # family of machines -> its own variables
    of_family: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    # whether its NCCL is too old for a PyTorch of 2.7 or newer that loads it (pytorch#144794)
    old_nccl: bool = False


_TCPX: Final = PodFabric(
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
    variables={
        # The script ends the shell without it.
        "NCCL_LIB_DIR": LIBRARIES,
        "NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY": _APERTURES,
    },
    script=f"{LIBRARIES}/nccl-env-profile.sh",
    mounts={f"{BIN}/nvidia/lib64": LIBRARIES, _APERTURES: _APERTURES},
    capabilities=("IPC_LOCK",),
    daemon=Daemon(
        name="tcpxo-daemon",
        command=("/bin/sh", "-c", f"chmod 755 {_RXDM}\nexec {_RXDM} --num_hops=2\n"),
        capabilities=("NET_ADMIN", "NET_BIND_SERVICE"),
        devices=("/dev/dmabuf_import_helper",),
        is_ready=("cat", _HEALTHY),
    ),
)

_RDMA: Final = PodFabric(
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

FABRICS: Final[Mapping[GpuNetwork, PodFabric]] = {
    GpuNetwork.TCPX: _TCPX,
    GpuNetwork.TCPXO: _TCPXO,
    GpuNetwork.RDMA: _RDMA,
}
"""Kind of GPU network -> what a pod needs for it."""


def of_family(fabric: PodFabric, machine_type: str) -> Mapping[str, str]:
    """The variables of a family's own, which count more than what the script sets."""
    family = machines.family(machine_type)
    return fabric.of_family.get(family.name, {}) if family else {}


def libraries(fabric: PodFabric, stack: Stack) -> Object | None:
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


def daemon(fabric: PodFabric, stack: Stack, mounts: list[Object]) -> Object | None:
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
