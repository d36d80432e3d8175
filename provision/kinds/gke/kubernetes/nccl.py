"""The NCCL installers, which make NCCL use the GPU network: one for each kind of GPU network.

The facts are taken from Google's public installers; the images are those of the catalogue.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue.fabrics import STACKS, Fabric
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes.objects import Object, build

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts

NAMESPACE: Final = "kube-system"
ACCELERATOR_LABEL: Final = "cloud.google.com/gke-accelerator"
_PAUSE: Final = (
    "gke.gcr.io/pause:3.8@sha256:880e63f94b145e46f1b1082bb71b85e21f16b99b180b9996407d61240ceb9830"
)

# Replies to RDMA traffic arrive on another interface than the kernel expects, and the kernel would
# log each of them. This uses the shell, so that no image with `sysctl` is needed.
_QUIET_RDMA: Final = """\
set -e
for gpu in 0 1 2 3 4 5 6 7; do
  echo 0 >"/proc/sys/net/ipv4/conf/gpu${gpu}rdma0/log_martians"
done
"""
# TCPXO accesses the interfaces' memory through these PCI devices, and looks for them here.
_APERTURES: Final = """\
set -e
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


@dataclass(frozen=True, kw_only=True)
class Preparation:
    """What the node needs before the plugin is installed.

    Attributes:
        name: The name of the container.
        script: A shell script, run as root.
        on_the_node: Whether it runs in the node's namespaces instead of the container's.
    """

    name: str
    script: str
    on_the_node: bool = False


@dataclass(frozen=True, kw_only=True)
class Installer:
    """One installer.

    Attributes:
        name: The name of the DaemonSet.
        image: The image, with its tag.
        host_paths: Volume -> folder of the node.
        mounts: Volume -> mount path in the container.
        copies: Source -> destination, both in the container, copied once the plugin is unpacked.
        preparation: What runs before the installation; None for nothing.
    """

    name: str
    image: str
    host_paths: Mapping[str, str]
    mounts: Mapping[str, str]
    copies: Mapping[str, str]
    preparation: Preparation | None = None


_UNPACK: Final = "/scripts/container_entry.sh install --install-nccl"
_BIN: Final = "/home/kubernetes/bin"
_TCP_MOUNTS: Final = MappingProxyType({"var-lib": "/var/lib", "bin": "/usr/local"})
_TCP_PATHS: Final = MappingProxyType({"var-lib": "/var/lib", "bin": _BIN})

INSTALLERS: Final[Mapping[GpuNetwork, Installer]] = MappingProxyType(
    {
        GpuNetwork.RDMA: Installer(
            name="nccl-rdma-installer",
            image=STACKS[Fabric.GIB].plugin.tagged,
            host_paths={"libraries": f"{_BIN}/nvidia/lib64", "gib": f"{_BIN}/gib"},
            mounts={
                "libraries": "/usr/local/home/kubernetes/bin/nvidia/lib64",
                "gib": "/usr/local/home/kubernetes/bin/gib",
            },
            copies={
                "/var/lib/gib/lib64/.": "/usr/local/home/kubernetes/bin/nvidia/lib64",
                "/var/lib/gib/.": "/usr/local/home/kubernetes/bin/gib",
            },
            preparation=Preparation(name="quiet-martians", script=_QUIET_RDMA),
        ),
        GpuNetwork.TCPX: Installer(
            name="nccl-tcpx-installer",
            image=STACKS[Fabric.TCPX].plugin.tagged,
            host_paths=_TCP_PATHS,
            mounts=_TCP_MOUNTS,
            copies={"/var/lib/tcpx/lib64/.": "/usr/local/nvidia/lib64"},
        ),
        GpuNetwork.TCPXO: Installer(
            name="nccl-tcpxo-installer",
            image=STACKS[Fabric.TCPXO].plugin.tagged,
            host_paths=_TCP_PATHS,
            mounts=_TCP_MOUNTS,
            copies={"/var/lib/tcpxo/lib64/.": "/usr/local/nvidia/lib64"},
            preparation=Preparation(name="apertures", script=_APERTURES, on_the_node=True),
        ),
    }
)
"""Kind of GPU network -> its installer."""


def objects(facts: ClusterFacts) -> list[Object]:
    """A DaemonSet for each kind of GPU network that a pool of the cluster has."""
    accelerators: dict[GpuNetwork, dict[str, None]] = {}
    for pool in facts.pools:
        # Arm machines need other images, which are untested here.
        if pool.gpu_network and not pool.is_arm:
            accelerators.setdefault(pool.gpu_network, {})[pool.accelerator] = None
    return [_daemon_set(INSTALLERS[kind], list(names)) for kind, names in accelerators.items()]


def _daemon_set(installer: Installer, accelerators: list[str]) -> Object:
    expression = {"key": ACCELERATOR_LABEL, "operator": "In", "values": accelerators}
    required = {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}
    labels = {"k8s-app": installer.name}
    pod = {
        "priorityClassName": "system-node-critical",
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": required}},
        "tolerations": [{"operator": "Exists"}],
        "hostNetwork": True,
        "hostPID": True,
        "volumes": [
            {"name": name, "hostPath": {"path": path, "type": "DirectoryOrCreate"}}
            for name, path in installer.host_paths.items()
        ],
        "initContainers": [*_preparation(installer), _installation(installer)],
        "containers": [{"name": "pause", "image": _PAUSE}],
    }
    spec = {
        "selector": {"matchLabels": labels},
        "updateStrategy": {"type": "RollingUpdate"},
        "template": {"metadata": {"labels": labels}, "spec": pod},
    }
    return build("apps/v1", "DaemonSet", installer.name, NAMESPACE, spec=spec)


def _preparation(installer: Installer) -> list[Object]:
    wanted = installer.preparation
    if wanted is None:
        return []
    entry = ["nsenter", "--all", "--target", "1", "--"] if wanted.on_the_node else []
    return [
        {
            "name": wanted.name,
            "image": installer.image,
            "securityContext": {"privileged": True},
            "command": [*entry, "/bin/sh", "-c", wanted.script],
        }
    ]


def _installation(installer: Installer) -> Object:
    copies = [f"mkdir -p {to} && cp -r {source} {to}" for source, to in installer.copies.items()]
    return {
        "name": installer.name,
        "image": installer.image,
        "resources": {"requests": {"cpu": "150m"}},
        "securityContext": {"privileged": True},
        "volumeMounts": [
            {"name": name, "mountPath": path} for name, path in installer.mounts.items()
        ],
        "command": ["/bin/sh", "-c", "\n".join(["set -ex", _UNPACK, *copies, ""])],
    }
