"""What the plan says is on VMs, by the image that they boot from, and what NCCL uses."""

from __future__ import annotations

import pytest

from provision.kinds.vms import contents
from provision.settings.model import Settings
from provision.spec import cluster

MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
ACCELERATOR = "ubuntu-accelerator-2404-amd64-with-nvidia-580"


@pytest.mark.parametrize(
    ("settings", "jupyter"),
    [
        ({}, "Jupyter"),
        ({"vm_type": "a3-ultragpu-8g"}, ""),
        ({"image_name": f"{ACCELERATOR}-v20260428"}, ""),
        ({"image_family_name": "mine"}, "Jupyter, if the image has it"),
        ({"enable_notebook": "no"}, ""),
    ],
)
def test_jupyter_is_on_images_that_have_it(settings: dict[str, str], jupyter: str) -> None:
    spec = cluster.vms(Settings(texts=MANDATORY | settings))
    software = contents.of(spec).software
    assert next((it for it in software if it.startswith("Jupyter")), "") == jupyter


@pytest.mark.parametrize(("asked", "said"), [("yes", "updates while idle"), ("no", "no updates")])
def test_whether_vms_update_themselves_is_said(asked: str, said: str) -> None:
    spec = cluster.vms(Settings(texts=MANDATORY | {"os_updates": asked}))
    assert said in contents.of(spec).software


def test_the_way_out_of_vms_is_part_of_what_they_have() -> None:
    asked = {
        "orchestrator_type": "ray",
        "https_proxy": "http://proxy.example.com:3128",
        "apt_mirror": "https://mirror.example.com/apt",
        "pip_index": "https://us-python.pkg.dev/p/pypi/simple",
    }
    software = contents.of(cluster.vms(Settings(texts=MANDATORY | asked))).software
    assert "the proxy proxy.example.com:3128" in software
    assert "packages from mirror.example.com and us-python.pkg.dev" in software


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
    asked = {"vm_type": machine, "network_config": network, "reservation_name": "mine"}
    assert contents.nccl(cluster.vms(Settings(texts=MANDATORY | asked))) == said
