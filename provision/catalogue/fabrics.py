"""What is between machines: networks beside the first, and the software with which NCCL uses them.

This is the only place for images, packages and versions of NCCL's fabrics; GKE's pods and VMs read
them. A plugin and its daemon are a pair, and all machines of a job need the same plugin.

Sources: container-engine-accelerators 992db812 (release notes of TCPX and TCPXO, installers, device
injector) and its release notes of TCPX of 2026-06-22 (stored file 55187157636); digests from the
bill of materials of NVIDIA/aicr (stored file 70178274431, 2026), which names no others;
Cluster Toolkit 10470803 (v1.95.0, blueprints of A3 Mega, A3 Ultra and A4); slurm-gcp 13fd92b6; the
source of TCPXO, 04815d1b; "Run NCCL on Compute Engine instances" (AI Hypercomputer, 2026-04-06).
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from provision.catalogue import images
from provision.catalogue.machines import GpuNetwork

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.catalogue.machines import MachineType

USUAL_INTERFACES: Final = 5
"""The number of interfaces, including the first, for machine types without a GPU network: the same
as in the predecessor."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """One additional VPC network."""

    mtu: int  # the MTU in bytes
    nic_type: str  # the type of its interfaces, by its name in the API
    subnets: int = 1  # the number of its subnetworks; each VM has one interface in each
    # Google's network profile, without the zone at the beginning of its name; None for an ordinary
    # network
    profile: str | None = None


_PLAIN: Final = Network(mtu=8896, nic_type="GVNIC")


def beside_the_first(machine: MachineType | None) -> tuple[Network, ...]:
    """The networks of the additional interfaces, in their order; none of a type not known."""
    if machine is None or machine.gpu_network is None:
        return (USUAL_INTERFACES - 1) * (_PLAIN,)
    kind = machine.gpu_network
    first = (_PLAIN,) if kind.second_gvnic else ()
    # Not `kind.subnets`: a machine type with half the GPUs has half the subnetworks.
    subnets = (machine.nics - 1 - len(first)) // kind.vpcs
    gpus = Network(mtu=kind.mtu, nic_type=kind.nic_type, subnets=subnets, profile=kind.profile)
    return (*first, *kind.vpcs * (gpus,))


REGISTRY: Final = "us-docker.pkg.dev/gce-ai-infra"


class Fabric(enum.StrEnum):
    """What NCCL sends messages between machines with."""

    TCP = "tcp"
    TCPX = "tcpx"
    TCPXO = "tcpxo"
    GIB = "gib"


@dataclass(frozen=True, kw_only=True)
class ContainerImage:
    """A container image of Google's registry."""

    name: str
    version: str  # its tag; "" where Google names it by digest alone
    digest: str = ""  # its digest; "" where no source names it
    registry: str = REGISTRY

    @property
    def tagged(self) -> str:
        """Its reference by tag."""
        tag = f":{self.version}" if self.version else ""
        return f"{self.registry}/{self.name}{tag}"

    @property
    def pinned(self) -> str:
        """Its reference by tag and digest, where the digest is known."""
        return f"{self.tagged}@{self.digest}" if self.digest else self.tagged


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The bus bandwidth of all-reduce on two machines, with the fabric and without it."""

    fabric: float  # over the fabric, in GB/s
    tcp: float  # over TCP, in GB/s


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The software of a fabric."""

    title: str  # its name in Google's documentation
    plugin: ContainerImage
    # the image of the receive-datapath manager, which runs beside jobs; None for none
    daemon: ContainerImage | None
    test: ContainerImage  # the image that has NCCL's tests
    # the Debian package that VMs get the plugin from, with its version; "" for none
    package: str = ""
    logged: str  # what NCCL's log calls it: "Using network ..." or "NET/..."
    on_vms: bool  # whether VMs of this tool can have it
    measured: Measured | None = None  # what it is worth; None where nobody has published both

    @property
    def version(self) -> str:
        """The version of the plugin on VMs, without a "v"."""
        _, _, packaged = self.package.partition("=")
        return packaged or self.plugin.version.removeprefix("v")


_TCPX: Final = ContainerImage(
    name="gpudirect-tcpx/nccl-plugin-gpudirecttcpx-dev", version="v3.1.12"
)
_TCPX_BEFORE: Final = replace(_TCPX, version="v3.1.9")
_TCPX_DAEMON: Final = ContainerImage(name="gpudirect-tcpx/tcpgpudmarxd-dev", version="v2.0.15")
_TCPXO: Final = ContainerImage(
    name="gpudirect-tcpxo/nccl-plugin-gpudirecttcpx-dev",
    version="v1.0.15",
    digest="sha256:4c9f0de3f39455a2ea35e844e0fc92564ca5629f6b03250fde40e8160719dae4",
)

STACKS: Final[Mapping[Fabric, Stack]] = {
    # NCCL 2.19.4; one has run it on GKE 1.35.6 with the driver 580.159 (file 60356655068,
    # 2026-07-31). Older clusters: see `on_gke`.
    Fabric.TCPX: Stack(
        title="GPUDirect-TCPX",
        plugin=_TCPX,
        daemon=_TCPX_DAEMON,
        test=_TCPX,
        logged="GPUDirectTCPX_v7",
        # It needs the kernel of Container-Optimized OS, or one that Canonical gives to some.
        on_vms=False,
        # Of 2 GiB; over TCP through one gVNIC (file 60356655068).
        measured=Measured(fabric=83, tcp=24),
    ),
    # Qualified with CUDA 12.8, the driver 580.95.05 and NCCL 2.28.7 (release of 2026-01-09),
    # and the newest pair whose digests a source names: v1.0.17 with v1.0.23 is qualified with
    # CUDA 13.2 and the driver 595.
    Fabric.TCPXO: Stack(
        title="GPUDirect-TCPXO",
        plugin=_TCPXO,
        daemon=ContainerImage(
            name="gpudirect-tcpxo/tcpgpudmarxd-dev",
            version="v1.0.21",
            digest="sha256:8d9e10fd589a34ab8a0aa64f7e70ad075c8f1c69bea176350f8d211367697e3d",
        ),
        test=_TCPXO,
        logged="FasTrak",
        on_vms=True,
        # Of 16 GiB, and what it falls back to (NVIDIA/aicr bc05c6be, "Performance Reference").
        measured=Measured(fabric=340, tcp=4),
    ),
    # Google's installer for GKE has v1.1.1 since 2026-05-06, the blueprints for VMs pin the
    # package 1.1.0.
    Fabric.GIB: Stack(
        title="GPUDirect-RDMA (gIB)",
        plugin=ContainerImage(name="gpudirect-gib/nccl-plugin-gib", version="v1.1.1"),
        daemon=None,
        test=ContainerImage(name="gpudirect-gib/nccl-plugin-gib-diagnostic", version="v1.1.1"),
        package="nccl-gib=1.1.0",
        logged="gIB",
        on_vms=True,
    ),
}
"""Fabric -> its software; TCP needs none."""

DEVICE_INJECTOR: Final = ContainerImage(
    name="nri-device-injector",
    version="",
    digest="sha256:6e79483d52abdc28454bf186320b10a56b0f117a10e8d65d5c74dbb821a76970",
    registry="gcr.io/gke-release",
)
"""What gives a container of GKE the devices that an annotation of its pod names: a daemon that asks
for no GPUs sees none otherwise, unless it is privileged."""

_TCPX_SINCE: Final = (1, 34)
"""The first version of GKE whose Container-Optimized OS (125, kernel 6.12) has the kernel's own
device memory TCP where older ones have Google's patches (container-engine-accelerators 21ed6613,
e3ae253a of 2026-06-02)."""


def on_gke(fabric: Fabric, version: str) -> Stack:
    """The software of a fabric on the nodes of a GKE cluster, and of its pods.

    Only that of TCPX depends on the version: Cluster Toolkit runs v3.1.9 with v2.0.12 on GKE 1.33,
    and nobody says that this pair works on later kernels. "It is not a hard requirement to upgrade
    your GKE cluster" for the new pair, so it is the one for versions that nobody knows. `version`:
    the version of the cluster, such as "1.34.1-gke.2037000"; "" if it is not known.
    """
    stack = STACKS[fabric]
    parts = version.split(".")[:2]
    known = all(part.isdigit() for part in parts)
    if fabric is not Fabric.TCPX or not known or tuple(map(int, parts)) >= _TCPX_SINCE:
        return stack
    daemon = replace(_TCPX_DAEMON, version="v2.0.12")
    return replace(stack, plugin=_TCPX_BEFORE, daemon=daemon, test=_TCPX_BEFORE)


OF_NETWORK: Final[Mapping[GpuNetwork, Fabric]] = {
    GpuNetwork.TCPX: Fabric.TCPX,
    GpuNetwork.TCPXO: Fabric.TCPXO,
    GpuNetwork.RDMA: Fabric.GIB,
}
"""Kind of GPU network -> the fabric that uses it."""


def of_machine(machine: MachineType | None) -> Fabric | None:
    """The fabric that a machine type is built for; None if its GPUs have no network of theirs."""
    if machine is None or machine.gpu_network is None:
        return None
    return OF_NETWORK[machine.gpu_network]


STRATEGY: Final = ("a3-ultragpu-8g", "a4-highgpu-8g")
"""The machine types for whose pools GKE has GPUDirect RDMA as a strategy.

"GPUDirect-RDMA on A3 Ultra, and A4 machine types" (container v1, revision 20261027); the names are
those of DRANET's page (2026-04-10).
"""


def rdma_interfaces(machine: MachineType | None) -> int:
    """The number of a machine's interfaces for RDMA."""
    return sum(it.subnets for it in beside_the_first(machine) if it.profile is not None)


def on_vms(machine: MachineType | None) -> Fabric | None:
    """The fabric that VMs of a type get in their GPU networks; None as for `of_machine`.

    TCP where the software can't be had: see `Stack.on_vms`, and gIB's package is for x86.
    """
    fabric = of_machine(machine)
    if fabric is None or machine is None:
        return None
    return fabric if STACKS[fabric].on_vms and not machine.family.arm else Fabric.TCP


_NEED_SOFTWARE: Final = frozenset({Fabric.TCPXO, Fabric.GIB})


def refusal(fabric: Fabric | None, project: str) -> str:
    """Why a fabric can't work on VMs with a public image, in words; "" where it can, or may."""
    system = images.PUBLIC_SYSTEMS.get(project)
    if system is None or fabric not in _NEED_SOFTWARE:
        return ""
    if not system.apt:
        return f"its software is installed by apt-get, which {system.name} lacks"
    # "If you are using standard OS images, you must also install the latest NVIDIA DOCA-OFED
    # driver" (Run NCCL on Compute Engine instances, 2026-04-06).
    if fabric is Fabric.GIB and system.plain:
        return "without NVIDIA's DOCA-OFED driver, which standard images lack, there is no RDMA"
    return ""


def is_unproven(fabric: Fabric | None, project: str) -> bool:
    """Whether no source says that a fabric works with a public image; see `refusal`.

    Google's page on the Deep Learning VM images says that they support A3 Ultra, and nothing of
    its interfaces; Google's blueprints for these machines boot the accelerator images.
    """
    return fabric in _NEED_SOFTWARE and project == images.DEEP_LEARNING.project
