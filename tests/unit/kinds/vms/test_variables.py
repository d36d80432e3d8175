import dataclasses
from pathlib import Path
from typing import Any, cast

import pytest

from provision.context import Cloud
from provision.deployment.deployment import ResizeRequestSpec, RunInputs
from provision.deployment.kind import deploy
from provision.files.archive import Archive
from provision.google.owner import Owner
from provision.kinds.vms import contents, instances, variables
from provision.kinds.vms.instances import Seen
from provision.kinds.vms.kind import VM_GROUP
from provision.settings.model import Settings
from provision.spec import cluster
from provision.spec.cluster import VmSpec
from provision.state.location import StateLocation
from tests.table import cases
from tests.unit.conftest import vm_spec
from tests.unit.kinds.cases import follows, having, settings

LOCATION = StateLocation("state", "clusters/np-deployment", is_default=False)
NOTHING = RunInputs()


def _made(spec: VmSpec, found: RunInputs = NOTHING) -> dict[str, Any]:
    return variables.variables(spec, Owner("3f9c2a71"), LOCATION, found)


# Settings => the paths of variables, each with what it is.
TABLE = """
# Networks are handed over in their order, as plain values; VMs check for their hardware.
NETWORK_CONFIG=default_network VM_TYPE=a3-megagpu-8g
    => network_config "default_network" | gpu_networks [] | startup.fabric null
NETWORK_CONFIG=new_network VM_TYPE=a3-megagpu-8g
    => network_config "new_network" | gpu_networks [] | startup.fabric null
NETWORK_CONFIG=multi_nic_network VM_TYPE=a3-ultragpu-8g => network_config "multi_nic_network"
    | gpu_networks.0 {"mtu": 8896, "nic_type": "GVNIC", "subnets": 1, "profile": null}
    | gpu_networks.1 {"mtu": 8896, "nic_type": "MRDMA", "subnets": 8, "profile": "vpc-roce"}
    | startup.gpus {"count": 8, "accelerator": "nvidia-h200-141gb"}
    | startup.fabric.kind "gib" | startup.fabric.interfaces 8 | startup.fabric.daemon null
NETWORK_CONFIG=multi_nic_network VM_TYPE=a3-highgpu-8g => startup.fabric
    {"kind": "tcp", "interfaces": 0, "plugin": null, "daemon": null}
NETWORK_CONFIG=multi_nic_network VM_TYPE=a2-highgpu-8g => startup.fabric
    {"kind": "tcp", "interfaces": 0, "plugin": null, "daemon": null}
NETWORK_CONFIG=multi_nic_network VM_TYPE=a3-megagpu-8g
    => startup.fabric.kind "tcpxo" | startup.fabric.interfaces 8
NETWORK_CONFIG=multi_nic_network VM_TYPE=e2-standard-8 => startup.fabric null
VM_TYPE=a9-highgpu-8g => startup.gpus null

# GPUs are attached to N1 machines, and to no other, known or not.
VM_TYPE=n1-standard-8 ACCELERATOR_TYPE=nvidia-tesla-t4 GPU_COUNT=2
    => group.gpu {"type": "nvidia-tesla-t4", "count": 2}
VM_TYPE=a2-highgpu-8g ACCELERATOR_TYPE=nvidia-tesla-a100 GPU_COUNT=8 => group.gpu null
VM_TYPE=a9-highgpu-8g ACCELERATOR_TYPE=nvidia-tesla-a100 GPU_COUNT=8 => group.gpu null

# Capacity is of the model that was asked for.
=> capacity {"model": "standard", "reservation": null, "max_run_seconds": null, "compact": false,
    "keeps_policy": false, "policies": [], "topology": null, "idle_seconds": null}
ENABLE_SPOT=yes MAX_RUN_DURATION=12h
    => capacity.model "spot" | capacity.max_run_seconds 43200 | capacity.reservation null
RESERVATION_NAME=mine => capacity.model "reservation" | capacity.reservation "mine"
RESERVATION_NAME=mine VM_TYPE=a3-ultragpu-8g
    => capacity.model "reservation_bound" | capacity.reservation "mine"
ENABLE_FLEX_START=yes VM_TYPE=a3-highgpu-8g
    => capacity.model "flex_start" | capacity.max_run_seconds 604800
ENABLE_COMPACT_PLACEMENT=yes => capacity.model "standard" | capacity.compact true

# Shares are in the zone, or by their tier in the region; buckets are mounted in their order.
NFS_FILESHARE_LIST=/mnt/a:BASIC_SSD,/mnt/b:ENTERPRISE:1024 => filestores [
    {"path": "/mnt/a", "tier": "BASIC_SSD", "size_gb": 2560, "location": "us-central1-a"},
    {"path": "/mnt/b", "tier": "ENTERPRISE", "size_gb": 1024, "location": "us-central1"}]
GCS_MOUNT_LIST=my-data:/mnt/data,my-models:/mnt/models => gcs_mounts [
    {"bucket": "my-data", "path": "/mnt/data", "grant": "own"},
    {"bucket": "my-models", "path": "/mnt/models", "grant": "own"}]
GCS_MOUNT_LIST=my-data:/mnt/data GCS_OPTIONS=ro => gcs_mounts [
    {"bucket": "my-data", "path": "/mnt/data", "grant": "own", "read_only": true}]
GCS_MOUNT_LIST=my-data:/mnt/data GCS_OPTIONS=ro=false => gcs_mounts [
    {"bucket": "my-data", "path": "/mnt/data", "grant": "own"}]

# What is set up on a VM follows the settings.
=> state_folder {"bucket": "state", "folder": "clusters/np-deployment"} | resize_requests {}
    | files {"archive": null, "sha256": null} | startup_command null | startup.ray null
    | startup.ops_agent true | startup.notebook true
    | startup.files_destination "/usr/aiinfra/copy"
ORCHESTRATOR_TYPE=ray RAY_VERSION=2.60.0 => startup.ray {"version": "2.60.0"}
    | startup.slurm null
ORCHESTRATOR_TYPE=slurm VM_TYPE=a3-highgpu-8g => startup.slurm {"partition": "a3-highgpu"}
    | startup.ray null
DISABLE_OPS_AGENT=yes ENABLE_NOTEBOOK=no VM_LOCALFILE_DEST_PATH=/srv/files
    => startup.ops_agent false | startup.notebook false | startup.files_destination "/srv/files"
"STARTUP_COMMAND=echo \\"$HOME\\" '" => startup_command "echo \\"$HOME\\" '"
"""


@settings(TABLE)
def test_variables_follow_the_settings(line: str) -> None:
    follows(line, lambda asked: _made(vm_spec(**asked)))


def test_subnetworks_that_exist_have_their_types() -> None:
    made = _made(
        vm_spec(
            NETWORK_CONFIG="existing",
            NETWORK="my-vpc",
            SUBNETWORK="vms",
            GPU_SUBNETWORKS="gvnic,rdma-{0..7}",
            VM_TYPE="a3-ultragpu-8g",
        )
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
    assert made["startup"]["fabric"]["kind"] == "gib"
    archive = Archive(path=Path("folder/0a1b.tar.gz"), sha256="0a1b", count=2, size=10)
    requests = {"np-3": ResizeRequestSpec(count=2, run_seconds=86400)}
    made = _made(vm_spec(), RunInputs(files=archive, resize_requests=requests))
    assert made["resize_requests"] == {"np-3": {"count": 2, "run_seconds": 86400}}
    assert made["files"] == {"archive": "0a1b.tar.gz", "sha256": "0a1b"}


@pytest.mark.parametrize(
    ("vm_type", "daemon"), [("a3-megagpu-8g", True), ("a3-ultragpu-8g", False)]
)
def test_a_fabric_has_its_plugin_and_tcpxo_its_daemon(vm_type: str, *, daemon: bool) -> None:
    spec = vm_spec(VM_TYPE=vm_type, NETWORK_CONFIG="multi_nic_network")
    fabric = _made(spec)["startup"]["fabric"]
    assert fabric["plugin"]
    assert bool(fabric["daemon"]) is daemon


@pytest.mark.parametrize(
    ("name", "given"), [("image-of-may", (None, "image-of-may")), (None, ("images", None))]
)
def test_an_image_is_given_by_its_name_once_that_is_known(
    name: str | None, given: tuple[str | None, str | None]
) -> None:
    spec = vm_spec()
    image = dataclasses.replace(spec.image, project="p", family="images", name=name)
    made = _made(dataclasses.replace(spec, image=image))
    assert made["image"] == {"project": "p", "family": given[0], "name": given[1]}


USUAL = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}
ACCELERATOR = "ubuntu-accelerator-2404-amd64-with-nvidia-580"


@cases("""
settings                                                              | jupyter
{}                                                                    | Jupyter
{vm_type: a3-ultragpu-8g}                                             | -
{image_name: ubuntu-accelerator-2404-amd64-with-nvidia-580-v20260428} | -
{image_family_name: mine}                                             | Jupyter, if the image has it
{enable_notebook: "no"}                                               | -
""")
def test_jupyter_is_on_images_that_have_it(settings: dict[str, str], jupyter: str) -> None:
    spec = cluster.vms(Settings(texts=USUAL | settings))
    software = contents.of(spec).software
    assert next((it for it in software if it.startswith("Jupyter")), "") == jupyter


@pytest.mark.parametrize(
    ("asked", "said"), [("yes", "OS updates while idle"), ("no", "no OS updates")]
)
def test_whether_vms_update_themselves_is_said(asked: str, said: str) -> None:
    spec = cluster.vms(Settings(texts=USUAL | {"os_updates": asked}))
    assert said in contents.of(spec).software


def test_the_way_out_of_vms_is_part_of_what_they_have() -> None:
    asked = {
        "orchestrator_type": "ray",
        "https_proxy": "http://proxy.example.com:3128",
        "apt_mirror": "https://mirror.example.com/apt",
        "pip_index": "https://us-python.pkg.dev/p/pypi/simple",
    }
    software = contents.of(cluster.vms(Settings(texts=USUAL | asked))).software
    assert "the proxy proxy.example.com:3128" in software
    assert "packages from mirror.example.com and us-python.pkg.dev" in software


MANY = "multi_nic_network"


@cases(
    """
machine | network | said
a3-megagpu-8g | @MANY | GPUDirect-TCPXO 1.0.15
a3-ultragpu-8g | @MANY | GPUDirect-RDMA (gIB) 1.1.0
a3-highgpu-8g | @MANY | TCP over one interface, about 24 GB/s instead of 83: GPUDirect-TCPX needs
    Container-Optimized OS, as on GKE, or a private kernel
a3-megagpu-8g | new_network | TCP over one interface, about 4 GB/s instead of 340:
    NETWORK_CONFIG=multi_nic_network has GPUDirect-TCPXO
a4x-highgpu-4g | @MANY | TCP over one interface: GPUDirect-RDMA (gIB) is not set up on Arm
a2-highgpu-8g | @MANY | -
a9-highgpu-8g | new_network | -
""",
    MANY=MANY,
)
def test_the_plan_tells_what_nccl_uses_and_what_is_lost(
    machine: str, network: str, said: str
) -> None:
    asked = {"vm_type": machine, "network_config": network, "reservation_name": "mine"}
    assert contents.nccl(cluster.vms(Settings(texts=USUAL | asked))) == said


@pytest.mark.parametrize(
    ("there", "more", "is_kept"),
    [
        (("a3-ultragpu-8g",), {"ENABLE_FLEX_START": "yes"}, True),
        (("a3-ultragpu-8g",), {"ENABLE_SPOT": "yes"}, True),
        ((), {"ENABLE_SPOT": "yes"}, False),
        (("a4-highgpu-8g",), {"ENABLE_SPOT": "yes"}, False),
        (("a3-highgpu-8g",), {"VM_TYPE": "a3-highgpu-8g", "ENABLE_FLEX_START": "yes"}, False),
        (("a4x-highgpu-4g",), {"VM_TYPE": "a4x-highgpu-4g", "RESERVATION_NAME": "mine"}, False),
    ],
    ids=["flex", "spot", "no_vm", "another_machine", "no_policy_by_flex_start", "a_topology"],
)
def test_a_group_keeps_the_workload_policy_of_vms_that_its_template_can_have_too(
    monkeypatch: pytest.MonkeyPatch, *, there: tuple[str, ...], more: dict[str, str], is_kept: bool
) -> None:
    asked = {"VM_TYPE": "a3-ultragpu-8g", "NETWORK_CONFIG": "multi_nic_network", **more}
    spec = vm_spec(**asked)
    documents = [{"machineType": f"zones/z/machineTypes/{it}"} for it in there]
    monkeypatch.setattr(instances, "see", lambda *_: Seen(documents=documents))
    target = deploy(VM_GROUP, spec, LOCATION, NOTHING)
    kept = VM_GROUP.keeping_policy(cast("Cloud", having(api=None)), target)
    assert (kept is not None) is is_kept
    if kept is not None:
        assert kept[0].variables["capacity"] == {
            **target.variables["capacity"],
            "keeps_policy": True,
        }
