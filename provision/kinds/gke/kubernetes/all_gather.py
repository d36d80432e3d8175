"""The pods of the bandwidth test: NCCL's own all-gather test, set up for each kind of GPU network.

There is one pod per node, each with an ssh server; the first pod uses MPI to start one process per
GPU on all nodes. The images and paths are those of Google's published tests for the same machines.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes import test_program
from provision.kinds.gke.kubernetes.kueue import GPU
from provision.kinds.gke.kubernetes.nccl import INSTALLERS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

SECONDS: Final = 1800
"""The longest run time of the test, in seconds."""

REPLICATED_JOB: Final = "w"
CONTAINER: Final = "nccl"

_BIN: Final = "/home/kubernetes/bin"
_GIB: Final = "/usr/local/gib"
_LIBRARIES: Final = "/usr/local/nvidia/lib64"
_SMALLEST_GPU_SIZE: Final = "1G"


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """How to run the test on one kind of GPU network.

    Attributes:
        image: The image of the test.
        program: The path of the test's program in the image.
        prepare: Shell commands that set the variables that NCCL needs.
        largest: The largest message size.
        mounts: Folder of the node -> where it is mounted in the container.
        daemon: A sidecar container that the test needs; None for none.
    """

    image: str
    program: str
    prepare: str
    largest: str = "8G"
    mounts: Mapping[str, str]
    daemon: Object | None = None


_STACKS: Final = fabrics.STACKS
_GIB_IMAGE: Final = _STACKS[fabrics.Fabric.GIB].test.tagged
_PROGRAM: Final = "/third_party/nccl-tests/build/all_gather_perf"
_TCPX_SETTINGS: Final = f"""\
export LD_LIBRARY_PATH={_LIBRARIES}
export NCCL_NET=GPUDirectTCPX_v7 NCCL_SOCKET_IFNAME=eth0 NCCL_GPUDIRECTTCPX_CTRL_DEV=eth0
export NCCL_GPUDIRECTTCPX_SOCKET_IFNAME=eth1,eth2,eth3,eth4
export NCCL_GPUDIRECTTCPX_UNIX_CLIENT_PREFIX=/run/tcpx
export NCCL_CROSS_NIC=0 NCCL_ALGO=Ring NCCL_PROTO=Simple NCCL_NSOCKS_PERTHREAD=4
export NCCL_SOCKET_NTHREADS=1 NCCL_NET_GDR_LEVEL=PIX NCCL_P2P_PXN_LEVEL=0
"""


def _daemon(fabric: fabrics.Fabric) -> str:
    """The image of a fabric's daemon.

    Raises:
        ValueError: It has none.
    """
    daemon = _STACKS[fabric].daemon
    if daemon is None:
        raise ValueError(f"{fabric} has no daemon")
    return daemon.tagged


_TCPXO_DAEMON: Final = """\
chmod 755 /fts/entrypoint_rxdm_container.sh
exec /fts/entrypoint_rxdm_container.sh --num_hops=2 --num_nics=8 --uid= --alsologtostderr
"""

FABRICS: Final[Mapping[GpuNetwork | None, Fabric]] = MappingProxyType(
    {
        None: Fabric(
            image=_GIB_IMAGE,
            program=_PROGRAM,
            prepare=f"export NCCL_NET=Socket LD_LIBRARY_PATH={_GIB}/lib64:{_LIBRARIES}\n",
            largest=_SMALLEST_GPU_SIZE,
            mounts={f"{_BIN}/nvidia": "/usr/local/nvidia"},
        ),
        GpuNetwork.RDMA: Fabric(
            image=_GIB_IMAGE,
            program=_PROGRAM,
            prepare=f"export NCCL_NET=gIB\n. {_GIB}/scripts/set_nccl_env.sh\n",
            mounts={f"{_BIN}/nvidia": "/usr/local/nvidia", f"{_BIN}/gib": _GIB},
        ),
        GpuNetwork.TCPXO: Fabric(
            image=_STACKS[fabrics.Fabric.TCPXO].test.tagged,
            program=_PROGRAM,
            prepare=f"export LD_LIBRARY_PATH={_LIBRARIES}\n. {_LIBRARIES}/nccl-env-profile.sh\n"
            "export NCCL_FASTRAK_LLCM_DEVICE_DIRECTORY=/dev/aperture_devices\n",
            mounts={
                f"{_BIN}/nvidia/lib64": _LIBRARIES,
                "/dev/aperture_devices": "/dev/aperture_devices",
            },
            daemon={
                "name": "tcpxo-daemon",
                "image": _daemon(fabrics.Fabric.TCPXO),
                "command": [
                    "/bin/sh",
                    "-c",
                    _TCPXO_DAEMON,
                ],
            },
        ),
        GpuNetwork.TCPX: Fabric(
            image=_STACKS[fabrics.Fabric.TCPX].test.tagged,
            program="/third_party/nccl-tests-mpi/build/all_gather_perf",
            prepare=_TCPX_SETTINGS,
            mounts={f"{_BIN}/nvidia/lib64": _LIBRARIES, "/run/tcpx": "/run/tcpx"},
            daemon={
                "name": "tcpx-daemon",
                "image": _daemon(fabrics.Fabric.TCPX),
                "command": [
                    "/tcpgpudmarxd/build/app/tcpgpudmarxd",
                    "--gpu_nic_preset=a3vm",
                    "--gpu_shmem_type=fd",
                    "--uds_path=/run/tcpx",
                ],
            },
        ),
    }
)
"""Kind of GPU network -> how to run the test on it; None: over the first interface."""


def container(pool: GpuPool, nodes: int) -> Object:
    """The test's container, the same on each of `nodes` nodes of a pool."""
    fabric = FABRICS[pool.gpu_network]
    script = test_program.text(
        pool, nodes, job=REPLICATED_JOB, program=fabric.program, largest=fabric.largest
    )
    label = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
    return {
        "name": CONTAINER,
        "image": fabric.image,
        "command": ["bash", "-c", script],
        "env": [{"name": "JOB_SET", "valueFrom": {"fieldRef": {"fieldPath": label}}}],
        # The test opens the node's network interfaces directly.
        "securityContext": {"privileged": True},
        "volumeMounts": [*_mounts(fabric), {"name": "shared-memory", "mountPath": "/dev/shm"}],  # noqa: S108 - where the system has it
        "resources": {"requests": {GPU: str(pool.gpus)}, "limits": {GPU: str(pool.gpus)}},
    }


def complete(pod: Object, pool: GpuPool) -> None:
    """Add what the test's container needs to its pod: volumes, sidecars, a deadline."""
    fabric = FABRICS[pool.gpu_network]
    pod["restartPolicy"] = "Never"
    pod["activeDeadlineSeconds"] = SECONDS
    volumes = [{"name": _volume(path), "hostPath": {"path": path}} for path in fabric.mounts]
    memory = {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "16Gi"}}
    pod["volumes"] = [*pod.get("volumes", []), *volumes, memory]
    if fabric.daemon is not None:
        # Init containers with restartPolicy Always are sidecars: they run until the others end.
        pod["initContainers"] = [
            {
                **fabric.daemon,
                "restartPolicy": "Always",
                "securityContext": {"privileged": True},
                "env": [{"name": "LD_LIBRARY_PATH", "value": _LIBRARIES}],
                "volumeMounts": _mounts(fabric),
            }
        ]
    if pool.gpu_network is None:
        _bring_nccl(pod)


def _bring_nccl(pod: Object) -> None:
    """Unpack NCCL in this pod: nodes without a GPU network have no NCCL installer."""
    pod["volumes"].append({"name": "gib", "emptyDir": {}})
    pod["initContainers"] = [
        {
            "name": "bring-nccl",
            "image": INSTALLERS[GpuNetwork.RDMA].image,
            "command": [
                "/bin/sh",
                "-c",
                "/scripts/container_entry.sh install --install-nccl && cp -r /var/lib/gib/. /gib",
            ],
            "securityContext": {"privileged": True},
            "volumeMounts": [{"name": "gib", "mountPath": "/gib"}],
        }
    ]
    pod["containers"][0]["volumeMounts"].append({"name": "gib", "mountPath": _GIB})


def _mounts(fabric: Fabric) -> list[Object]:
    return [{"name": _volume(path), "mountPath": inside} for path, inside in fabric.mounts.items()]


def _volume(path: str) -> str:
    return path.removeprefix(f"{_BIN}/").strip("/").replace("/", "-").replace("_", "-")
