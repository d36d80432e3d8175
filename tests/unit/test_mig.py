"""A group of VMs: from settings to Terraform's variables."""

from __future__ import annotations

from typing import Any

import pytest

from provision.clusters import mig
from provision.settings import load

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


def _variables(**settings: str) -> dict[str, Any]:
    loaded = load({**MANDATORY, **settings})
    assert loaded.settings is not None, loaded.problems
    return mig.variables(loaded.settings, "3f9c2a71", {})


@pytest.mark.parametrize("network_config", ["default_network", "new_network"])
def test_one_network_comes_without_gpu_networks(network_config: str) -> None:
    made = _variables(NETWORK_CONFIG=network_config, VM_TYPE="a3-megagpu-8g")

    assert made["network_config"] == network_config
    assert made["gpu_networks"] == []


def test_several_networks_are_handed_over_in_order_as_plain_values() -> None:
    made = _variables(NETWORK_CONFIG="multi_nic_network", VM_TYPE="a3-ultragpu-8g")

    assert made["network_config"] == "multi_nic_network"
    assert made["gpu_networks"] == [
        {"mtu": 8896, "nic_type": "GVNIC", "subnets": 1, "profile": None},
        {"mtu": 8896, "nic_type": "MRDMA", "subnets": 8, "profile": "vpc-roce"},
    ]


def test_gpus_are_attached_to_n1_machines() -> None:
    made = _variables(VM_TYPE="n1-standard-8", ACCELERATOR_TYPE="nvidia-tesla-t4", GPU_COUNT="2")

    assert made["group"]["gpu"] == {"type": "nvidia-tesla-t4", "count": 2}


@pytest.mark.parametrize("vm_type", ["a2-highgpu-8g", "a9-highgpu-8g"])
def test_gpus_are_attached_to_no_other_machine_known_or_not(vm_type: str) -> None:
    made = _variables(VM_TYPE=vm_type, ACCELERATOR_TYPE="nvidia-tesla-a100", GPU_COUNT="8")

    assert made["group"]["gpu"] is None
