"""What NCCL needs on Google's GPU networks, and what it does without: for pods on GKE."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from rehearsal.cloud import facts
from rehearsal.cloud.facts.machines import GpuNetwork

_FACTS: Final = facts.read("fabrics")

LIBRARIES: Final[str] = _FACTS["libraries_on_nodes"]
"""Where installers bring NCCL and its plugin, on a node."""

GIB: Final[str] = _FACTS["gib_on_nodes"]  # where the installer for RDMA brings gIB, on a node

LEAST_SHARED_MEMORY: Final[int] = _FACTS["least_shared_memory_mib"] * 2**20
"""Bytes of /dev/shm with which Google's own test runs."""

SHARED_MEMORY_UNASKED: Final[int] = _FACTS["shared_memory_unasked_mib"] * 2**20
"""Bytes of /dev/shm that a container has without a volume for it."""

DAEMON_SECONDS: Final[float] = _FACTS["seconds_of_a_daemon"]
"""Seconds of cloud time until a daemon listens."""

GPU_DEVICES: Final[tuple[str, ...]] = tuple(_FACTS["devices_of_gpus"])
"""What a program opens beside each /dev/nvidiaN."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The software of one kind of GPU network."""

    network: str  # what NCCL's log calls it
    plugin: str  # the image of its installer, without registry and tag
    daemon: str  # the image of the daemon beside jobs; "" for none
    pairs: Mapping[str, str]  # version of the plugin -> of the daemon, as far as they were released
    # version of the plugin -> the first minor version of GKE that it does not work on
    gone_with: Mapping[str, tuple[int, ...]]
    interfaces: tuple[str, ...]  # the interfaces of a pod that carry it
    arguments: tuple[str, ...]  # what the daemon has to be told, with a space for "="
    capabilities: frozenset[str]  # what the daemon may do unless it is privileged
    devices: tuple[str, ...]  # what the daemon opens beside the GPUs
    with_mpi: str  # the folder of NCCL's tests that are built with MPI, in the image of its test
    script: str  # what sets NCCL's variables, below the folder of the installation; "" for nothing


STACKS: Final[Mapping[GpuNetwork, Stack]] = {
    GpuNetwork(name): Stack(
        network=it["network"],
        plugin=it["plugin"],
        daemon=it["daemon"],
        pairs=it["pairs"],
        gone_with={tag: tuple(minor) for tag, minor in it["first_gke_without"].items()},
        interfaces=tuple(it["interfaces"]),
        arguments=tuple(it["arguments"]),
        capabilities=frozenset(it["capabilities"]),
        devices=tuple(it["devices"]),
        with_mpi=it["with_mpi"],
        script=it["script"],
    )
    for name, it in _FACTS["stacks"].items()
}
"""Kind of GPU network -> its software."""


def bandwidth(machine: str, *, on_fabric: bool) -> float:
    """The bus bandwidth between two machines, in GB/s; for machines without a figure, a belief.

    `machine`: such as "a3-megagpu-8g". `on_fabric`: whether NCCL uses the network of the GPUs, or
    plain sockets.
    """
    if on_fabric:
        return float(_FACTS["gb_per_second"][machine.removesuffix("-nolssd")])
    known = _FACTS["gb_per_second_over_sockets"].get(machine)
    return float(known or _FACTS["believed"]["gb_per_second_over_sockets"])
