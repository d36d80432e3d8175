"""The container of the bandwidth test: NCCL's own all-gather test, for each kind of GPU network.

There is one pod per node, each with an ssh server; the first pod uses MPI to start one process per
GPU on all nodes. The images and paths are those of Google's published tests for the same machines.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue import fabrics
from provision.catalogue.machines import GpuNetwork
from provision.kinds.gke.kubernetes import nccl, pod_fabrics, test_program

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
    from provision.kinds.gke.kubernetes.objects import Object

SECONDS: Final = 1800
"""The longest run time of the test's pods, in seconds."""
NODE_SECONDS: Final = 2700
"""For how long it asks for nodes, which count from their start: their drivers come first."""

REPLICATED_JOB: Final = "w"
CONTAINER: Final = "nccl"

_SMALLEST_GPU_SIZE: Final = "1G"


@dataclass(frozen=True, kw_only=True)
class Fabric:
    """How to run the test on one kind of GPU network."""

    # the path of the test's program in the image, built with MPI: without it each process would
    # measure its own GPU
    program: str = "/third_party/nccl-tests-mpi/build/all_gather_perf"
    largest: str = "8G"  # the largest message size


# The only build in this image, with MPI.
_RDMA: Final = Fabric(program="/third_party/nccl-tests/build/all_gather_perf")

FABRICS: Final[Mapping[GpuNetwork | None, Fabric]] = MappingProxyType(
    {
        None: dataclasses.replace(_RDMA, largest=_SMALLEST_GPU_SIZE),
        GpuNetwork.RDMA: _RDMA,
        GpuNetwork.TCPXO: Fabric(),
        GpuNetwork.TCPX: Fabric(),
    }
)
"""Kind of GPU network -> how to run the test on it; None: over the first interface."""

_SOCKETS: Final = fabrics.STACKS[fabrics.Fabric.GIB]
"""What brings NCCL and its tests to nodes that have no plugin."""


def container(facts: ClusterFacts, pool: GpuPool, nodes: int) -> Object:
    """The test's container, the same on each of `nodes` nodes of a pool."""
    fabric = FABRICS[pool.gpu_network]
    stack = nccl.software(facts, pool)
    script = test_program.text(
        pool, nodes, job=REPLICATED_JOB, program=fabric.program, largest=fabric.largest
    )
    label = "metadata.labels['jobset.sigs.k8s.io/jobset-name']"
    env: list[Object] = [{"name": "JOB_SET", "valueFrom": {"fieldRef": {"fieldPath": label}}}]
    if stack is None:
        env += [
            {"name": "NCCL_NET", "value": "Socket"},
            {"name": "LD_LIBRARY_PATH", "value": f"{pod_fabrics.GIB}/lib64"},
        ]
    return {
        "name": CONTAINER,
        "image": (stack or _SOCKETS).test.pinned,
        "command": ["bash", "-c", script],
        "env": env,
    }


def complete(pod: Object, facts: ClusterFacts, pool: GpuPool) -> None:
    """Add what only the test's pod needs: a deadline, and NCCL where nodes have none."""
    pod["restartPolicy"] = "Never"
    pod["activeDeadlineSeconds"] = SECONDS
    if nccl.software(facts, pool) is None:
        _bring_nccl(pod)


def _bring_nccl(pod: Object) -> None:
    """Unpack NCCL in this pod: nodes without a GPU network have no NCCL installer.

    Google's recipes do so in an init container that is not privileged (GPU recipes 2e1fd5e, A3
    Ultra's JobSet).
    """
    pod["volumes"].append({"name": "gib", "emptyDir": {}})
    pod["initContainers"] = [
        {
            "name": "bring-nccl",
            "image": _SOCKETS.plugin.pinned,
            "command": [
                "/bin/sh",
                "-c",
                "/scripts/container_entry.sh install --install-nccl && cp -r /var/lib/gib/. /gib",
            ],
            "volumeMounts": [{"name": "gib", "mountPath": "/gib"}],
        }
    ]
    mounts = pod["containers"][0].setdefault("volumeMounts", [])
    mounts.append({"name": "gib", "mountPath": pod_fabrics.GIB})
