"""A group of VMs: from settings to Terraform's variables."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from provision.deployment.deployment import ResizeRequestSpec, RunInputs
from provision.files.archive import Archive
from provision.google.owner import Owner
from provision.intake import load
from provision.kinds.vms import variables
from provision.spec import cluster
from provision.state.location import StateLocation

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}
LOCATION = StateLocation("state", "clusters/np-deployment", is_default=False)
NOTHING = RunInputs()


def _variables(found: RunInputs = NOTHING, /, **settings: str) -> dict[str, Any]:
    loaded = load({**MANDATORY, **settings})
    assert loaded.settings is not None, loaded.problems
    return variables.variables(cluster.vms(loaded.settings), Owner("3f9c2a71"), LOCATION, found)


@pytest.mark.parametrize("network_config", ["default_network", "new_network"])
def test_one_network_comes_without_gpu_networks(network_config: str) -> None:
    made = _variables(NETWORK_CONFIG=network_config, VM_TYPE="a3-megagpu-8g")
    assert (made["network_config"], made["gpu_networks"]) == (network_config, [])


def test_several_networks_are_handed_over_in_order_and_vms_check_for_their_hardware() -> None:
    made = _variables(NETWORK_CONFIG="multi_nic_network", VM_TYPE="a3-ultragpu-8g")
    assert made["network_config"] == "multi_nic_network"
    assert made["gpu_networks"] == [
        {"mtu": 8896, "nic_type": "GVNIC", "subnets": 1, "profile": None},
        {"mtu": 8896, "nic_type": "MRDMA", "subnets": 8, "profile": "vpc-roce"},
    ]
    assert made["startup"]["gpus"] == {"count": 8, "accelerator": "nvidia-h200-141gb"}
    assert made["startup"]["interfaces"] == 10


@pytest.mark.parametrize(
    ("vm_type", "kind", "attached"),
    [
        ("n1-standard-8", "nvidia-tesla-t4", {"type": "nvidia-tesla-t4", "count": 2}),
        ("a2-highgpu-8g", "nvidia-tesla-a100", None),
        ("a9-highgpu-8g", "nvidia-tesla-a100", None),
    ],
)
def test_gpus_are_attached_to_n1_machines_and_to_no_other_known_or_not(
    vm_type: str, kind: str, attached: dict[str, Any] | None
) -> None:
    count = "2" if attached else "8"
    made = _variables(VM_TYPE=vm_type, ACCELERATOR_TYPE=kind, GPU_COUNT=count)
    assert made["group"]["gpu"] == attached


@pytest.mark.parametrize(
    ("settings", "capacity"),
    [
        ({}, ("standard", None, None, False)),
        ({"ENABLE_SPOT": "yes", "MAX_RUN_DURATION": "12h"}, ("spot", None, 43200, False)),
        ({"RESERVATION_NAME": "mine"}, ("reservation", "mine", None, False)),
        (
            {"RESERVATION_NAME": "mine", "VM_TYPE": "a3-ultragpu-8g"},
            ("reservation_bound", "mine", None, False),
        ),
        (
            {"ENABLE_FLEX_START": "yes", "VM_TYPE": "a3-highgpu-8g"},
            ("flex_start", None, 604800, False),
        ),
        ({"ENABLE_COMPACT_PLACEMENT": "yes"}, ("standard", None, None, True)),
    ],
    ids=["mandatory", "spot", "reservation", "bound", "flex_start", "compact"],
)
def test_capacity_is_of_the_model_that_was_asked_for(
    settings: dict[str, str], capacity: tuple[Any, ...]
) -> None:
    made = _variables(**settings)
    names = ("model", "reservation", "max_run_seconds", "compact")
    placement: dict[str, Any] = {"policies": [], "topology": None, "idle_seconds": None}
    assert made["capacity"] == {**dict(zip(names, capacity, strict=True)), **placement}


def test_requests_and_files_are_those_that_the_run_has_found() -> None:
    archive = Archive(path=Path("folder/0a1b.tar.gz"), sha256="0a1b", count=2, size=10)
    requests = {"np-3": ResizeRequestSpec(count=2, run_seconds=86400)}
    made = _variables(RunInputs(files=archive, resize_requests=requests))
    assert made["resize_requests"] == {"np-3": {"count": 2, "run_seconds": 86400}}
    assert made["files"] == {"archive": "0a1b.tar.gz", "sha256": "0a1b"}


@pytest.mark.parametrize(
    ("name", "given"), [("image-of-may", (None, "image-of-may")), (None, ("images", None))]
)
def test_an_image_is_given_by_its_name_once_that_is_known(
    name: str | None, given: tuple[str | None, str | None]
) -> None:
    loaded = load(MANDATORY)
    assert loaded.settings is not None
    spec = cluster.vms(loaded.settings)
    image = dataclasses.replace(spec.image, project="p", family="images", name=name)
    spec = dataclasses.replace(spec, image=image)
    made = variables.variables(spec, Owner("3f9c2a71"), LOCATION, NOTHING)
    assert made["image"] == {"project": "p", "family": given[0], "name": given[1]}


def test_shares_are_in_the_zone_or_by_their_tier_in_the_region() -> None:
    made = _variables(NFS_FILESHARE_LIST="/mnt/a:BASIC_SSD,/mnt/b:ENTERPRISE:1024")
    assert made["filestores"] == [
        {"path": "/mnt/a", "tier": "BASIC_SSD", "size_gb": 2560, "location": "us-central1-a"},
        {"path": "/mnt/b", "tier": "ENTERPRISE", "size_gb": 1024, "location": "us-central1"},
    ]


def test_buckets_are_mounted_in_the_order_of_the_list() -> None:
    made = _variables(GCS_MOUNT_LIST="my-data:/mnt/data,my-models:/mnt/models")
    assert made["gcs_mounts"] == [
        {"bucket": "my-data", "path": "/mnt/data", "grant": "own"},
        {"bucket": "my-models", "path": "/mnt/models", "grant": "own"},
    ]


def test_interfaces_in_subnetworks_that_exist_have_their_types_and_nothing_is_made() -> None:
    made = _variables(
        NETWORK_CONFIG="existing",
        NETWORK="my-vpc",
        SUBNETWORK="vms",
        GPU_SUBNETWORKS="gvnic,rdma-{0..7}",
        VM_TYPE="a3-ultragpu-8g",
    )
    there = "projects/my-project/regions/us-central1/subnetworks"
    assert made["existing"] == {
        "network": "projects/my-project/global/networks/my-vpc",
        "subnetwork": f"{there}/vms",
        "interfaces": [
            {"nic_type": "GVNIC", "subnetwork": f"{there}/gvnic"},
            *({"nic_type": "MRDMA", "subnetwork": f"{there}/rdma-{number}"} for number in range(8)),
        ],
        "rules": [],
    }
    assert made["gpu_networks"] == []
    assert made["startup"]["interfaces"] == 10
    assert made["startup"]["fabric"]["kind"] == "gib"


@pytest.mark.parametrize(
    ("machine", "network", "kind", "interfaces"),
    [
        ("a3-highgpu-8g", "multi_nic_network", "tcp", 0),
        ("a3-megagpu-8g", "multi_nic_network", "tcpxo", 8),
        ("a3-ultragpu-8g", "multi_nic_network", "gib", 8),
        ("a2-highgpu-8g", "multi_nic_network", "tcp", 0),
        ("a3-megagpu-8g", "new_network", None, 0),
        ("e2-standard-8", "multi_nic_network", None, 0),
    ],
)
def test_vms_are_told_what_nccl_is_to_use(
    machine: str, network: str, kind: str | None, interfaces: int
) -> None:
    fabric = _variables(VM_TYPE=machine, NETWORK_CONFIG=network)["startup"]["fabric"]
    assert (fabric and fabric["kind"], fabric["interfaces"] if fabric else 0) == (kind, interfaces)
    if interfaces:
        assert fabric["plugin"]
        assert (fabric["daemon"] is not None) == (kind == "tcpxo")


def test_a_vm_of_an_unknown_machine_type_checks_for_no_gpus_and_one_interface() -> None:
    made = _variables(VM_TYPE="a9-highgpu-8g")
    assert made["startup"]["gpus"] is None
    assert made["startup"]["interfaces"] == 1


def test_what_is_set_up_on_a_vm_follows_the_settings() -> None:
    usual = _variables()
    assert usual["state_folder"] == {"bucket": "state", "folder": "clusters/np-deployment"}
    assert usual["resize_requests"] == {}
    assert usual["files"] == {"archive": None, "sha256": None}
    command = 'echo "$HOME" \''
    asked = _variables(
        ORCHESTRATOR_TYPE="ray",
        RAY_VERSION="2.60.0",
        DISABLE_OPS_AGENT="yes",
        ENABLE_NOTEBOOK="no",
        STARTUP_COMMAND=command,
        VM_LOCALFILE_DEST_PATH="/srv/files",
    )
    names = ("ray", "ops_agent", "notebook", "files_destination")
    found = [
        (made["startup_command"], *(made["startup"][name] for name in names))
        for made in (usual, asked)
    ]
    assert found == [
        ("", None, True, True, "/usr/aiinfra/copy"),
        (command, {"version": "2.60.0"}, False, False, "/srv/files"),
    ]
