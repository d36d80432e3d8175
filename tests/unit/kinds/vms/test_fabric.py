"""What the plan says of NCCL between VMs."""

from __future__ import annotations

import pytest

from provision.intake import load
from provision.kinds.vms import fabric
from provision.spec import cluster

MANY = "multi_nic_network"


@pytest.mark.parametrize(
    ("machine", "network", "said"),
    [
        ("a3-megagpu-8g", MANY, "GPUDirect-TCPXO 1.0.15"),
        ("a3-ultragpu-8g", MANY, "GPUDirect-RDMA (gIB) 1.1.0"),
        (
            "a3-highgpu-8g",
            MANY,
            (
                "TCP over one interface, about 24 GB/s instead of 83: GPUDirect-TCPX needs"
                " Container-Optimized OS, as on GKE, or a private kernel"
            ),
        ),
        (
            "a3-megagpu-8g",
            "new_network",
            (
                "TCP over one interface, about 4 GB/s instead of 340:"
                " NETWORK_CONFIG=multi_nic_network has GPUDirect-TCPXO"
            ),
        ),
        (
            "a4x-highgpu-4g",
            MANY,
            "TCP over one interface: GPUDirect-RDMA (gIB) is not set up on Arm",
        ),
        ("a2-highgpu-8g", MANY, ""),
        ("a9-highgpu-8g", "new_network", ""),
    ],
)
def test_the_plan_tells_what_nccl_uses_and_what_is_lost(
    machine: str, network: str, said: str
) -> None:
    loaded = load(
        {
            "PROJECT_ID": "my-project",
            "NAME_PREFIX": "np",
            "ZONE": "us-central1-a",
            "VM_TYPE": machine,
            "NETWORK_CONFIG": network,
            "RESERVATION_NAME": "mine",
        }
    )
    assert loaded.settings is not None, loaded.problems

    assert fabric.words(cluster.vms(loaded.settings)) == said
