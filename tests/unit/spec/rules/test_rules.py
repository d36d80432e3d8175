"""What settings say to each other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.unit.conftest import Given

GKE = {"ORCHESTRATOR_TYPE": "gke"}
KEY = "projects/k/locations/{}/keyRings/r/cryptoKeys/k"
MEGA = {
    "VM_TYPE": "a3-megagpu-8g",
    "IMAGE_PROJECT": "ubuntu-os-accelerator-images",
    "IMAGE_FAMILY_NAME": "ubuntu-accelerator-2404-amd64-with-nvidia-580",
}
V100 = {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-v100", "GPU_COUNT": "8"}


@pytest.mark.parametrize(
    ("environ", "setting", "what"),
    [
        ({"REGION": "us-east1"}, "REGION", "does not contain the zone us-central1-a"),
        (
            {"IMAGE_NAME": "a", "IMAGE_FAMILY_NAME": "b"},
            "IMAGE_FAMILY_NAME",
            "can't be combined with IMAGE_NAME",
        ),
        (
            {"IMAGE_NAME": "common-cu129-ubuntu-2204-nvidia-580-stage"},
            "IMAGE_NAME",
            "is no image",
        ),
        ({"GPU_COUNT": "4"}, "GPU_COUNT", "not the number of GPUs of a2-highgpu-2g"),
        ({"ACCELERATOR_TYPE": "nvidia-l4"}, "ACCELERATOR_TYPE", "not the GPU of a2-highgpu-2g"),
        ({"VM_TYPE": "a3-megagpu-8g", "GPU_COUNT": "4"}, "GPU_COUNT", "a3-megagpu-8g"),
        ({"VM_TYPE": "n1-standard-8", "GPU_COUNT": "1"}, "ACCELERATOR_TYPE", "is required"),
        (
            {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4"},
            "GPU_COUNT",
            "is required for n1-standard-8",
        ),
        (
            {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-l4", "GPU_COUNT": "1"},
            "ACCELERATOR_TYPE",
            "can't be attached",
        ),
        (
            {"VM_TYPE": "n1-standard-8", "ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "3"},
            "GPU_COUNT",
            "is not a number of nvidia-tesla-t4",
        ),
        (
            {"VM_TYPE": "n1-highmem-96", "ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "2"},
            "GPU_COUNT",
            "is not a number of nvidia-tesla-t4",
        ),
        (
            {"IDLE_TIMEOUT": "2h", "ENABLE_FLEX_START": "yes"},
            "IDLE_TIMEOUT",
            "can't be combined with ENABLE_FLEX_START",
        ),
        ({"DISK_TYPE": "pd-extreme"}, "DISK_TYPE", "can't be the boot disk of a2-highgpu-2g"),
        ({"VM_TYPE": "a4-highgpu-8g", "DISK_TYPE": "pd-ssd"}, "DISK_TYPE", "a4-highgpu-8g"),
        (
            {"GCS_MOUNT_LIST": "data:/a,more:/b", "NFS_FILESHARE_LIST": "/b:BASIC_SSD"},
            "NFS_FILESHARE_LIST",
            "mounts /b twice, in GCS_MOUNT_LIST",
        ),
        (
            {"VM_TYPE": "g2-standard-4", "NETWORK_CONFIG": "multi_nic_network"},
            "NETWORK_CONFIG",
            "gives each VM 5 network interfaces, more than g2-standard-4 supports",
        ),
        ({"KMS_KEY": KEY.format("europe-west4")}, "KMS_KEY", "is in europe-west4"),
        ({"KMS_KEY": KEY.format("global"), **GKE}, "KMS_KEY", "is in global"),
        (
            {"KMS_KEY": KEY.format("us-central1"), "NFS_FILESHARE_LIST": "/s:BASIC_SSD"},
            "NFS_FILESHARE_LIST",
            "has a share of tier BASIC_SSD, which takes no key",
        ),
        ({"SECURE_BOOT": "yes"}, "SECURE_BOOT", "asks for an image whose drivers are signed"),
        (
            {"SECURE_BOOT": "yes", "IMAGE_PROJECT": "ubuntu-os-cloud", "IMAGE_NAME": "u"},
            "SECURE_BOOT",
            "asks for an image whose drivers are signed",
        ),
        (
            {"SECURE_BOOT": "yes", "NETWORK_CONFIG": "multi_nic_network", **MEGA},
            "SECURE_BOOT",
            "asks for an image whose drivers are signed",
        ),
        ({"MAX_RUN_DURATION": "9m"}, "MAX_RUN_DURATION", "too short for a group of VMs"),
        ({"GKE_VERSION": "1.33."}, "GKE_VERSION", "no effect with ORCHESTRATOR_TYPE=none"),
        ({"ENABLE_QUEUED_PROVISIONING": "yes"}, "ENABLE_QUEUED_PROVISIONING", "no effect"),
        ({"GKE_NODE_COUNT_PER_NODE_POOL": "2"}, "GKE_NODE_COUNT_PER_NODE_POOL", "no effect"),
        ({"RAY_VERSION": "2.60.0"}, "RAY_VERSION", "no effect"),
        ({"ENABLE_SPOT": "1", "RESERVATION_NAME": "r"}, "ENABLE_SPOT", "RESERVATION_NAME"),
        ({"ENABLE_SPOT": "1", "ENABLE_FLEX_START": "1"}, "ENABLE_SPOT", "ENABLE_FLEX_START"),
        (
            {"RESERVATION_NAME": "r", "ENABLE_FLEX_START": "1"},
            "RESERVATION_NAME",
            "ENABLE_FLEX_START",
        ),
        (
            {"RESERVATION_NAME": "r", "VM_TYPE": "a3-ultragpu-8g", "MAX_RUN_DURATION": "1d"},
            "MAX_RUN_DURATION",
            "can't be combined with a reservation of a3-ultragpu-8g",
        ),
        (
            {"RESERVATION_NAME": "r", "ENABLE_COMPACT_PLACEMENT": "1"},
            "ENABLE_COMPACT_PLACEMENT",
            "can't be combined with RESERVATION_NAME",
        ),
        (
            {
                "VM_TYPE": "n1-standard-8",
                "ACCELERATOR_TYPE": "nvidia-tesla-t4",
                "GPU_COUNT": "1",
                "ENABLE_COMPACT_PLACEMENT": "1",
            },
            "ENABLE_COMPACT_PLACEMENT",
            "is not available for n1-standard-8",
        ),
        (
            {"VM_TYPE": "a4x-highgpu-4g", "RESERVATION_NAME": "r", "INSTANCE_COUNT": "19"},
            "INSTANCE_COUNT",
            "is more than one group of A4X can have",
        ),
        (
            {"ENABLE_COMPACT_PLACEMENT": "1", "ENABLE_FLEX_START": "1"},
            "ENABLE_COMPACT_PLACEMENT",
            "flex start for a2-highgpu-2g",
        ),
        (
            GKE | {"ENABLE_COMPACT_PLACEMENT": "1", "ENABLE_QUEUED_PROVISIONING": "1"},
            "ENABLE_COMPACT_PLACEMENT",
            "ENABLE_QUEUED_PROVISIONING",
        ),
        (GKE | {"NETWORK_CONFIG": "new_network"}, "NETWORK_CONFIG", "has no effect"),
        (GKE | {"GKE_MIN_NODE_COUNT": "1"}, "GKE_MIN_NODE_COUNT", "without GKE_MAX_NODE_COUNT"),
        (GKE | {"GKE_MAX_NODE_COUNT": "1"}, "GKE_MAX_NODE_COUNT", "without GKE_MIN_NODE_COUNT"),
        (
            GKE | {"GKE_MIN_NODE_COUNT": "3", "GKE_MAX_NODE_COUNT": "2"},
            "GKE_MIN_NODE_COUNT",
            "more than GKE_MAX_NODE_COUNT, 2",
        ),
        (
            GKE
            | {
                "GKE_NODE_COUNT_PER_NODE_POOL": "2",
                "GKE_MIN_NODE_COUNT": "1",
                "GKE_MAX_NODE_COUNT": "2",
            },
            "GKE_NODE_COUNT_PER_NODE_POOL",
            "can't be combined with autoscaling limits",
        ),
        (GKE | {"SYSTEM_NODE_POOL": "min=4"}, "SYSTEM_NODE_POOL", "more than its max, 3"),
        (
            GKE | {"SYSTEM_NODE_POOL": "zone=us-east1-b"},
            "SYSTEM_NODE_POOL",
            "not in us-central1",
        ),
    ],
)
def test_settings_that_disagree_are_refused(
    given: Given, environ: dict[str, str], setting: str, what: str
) -> None:
    told = [it for it in given(**environ).loaded.problems if it.setting == setting]

    assert any(what in problem.what for problem in told)
    assert all(problem.why and problem.fix for problem in told)


@pytest.mark.parametrize(
    "environ",
    [
        {"REGION": "us-central1"},
        {"GPU_COUNT": "2", "ACCELERATOR_TYPE": "nvidia-tesla-a100"},
        V100 | {"IMAGE_PROJECT": "my-images", "IMAGE_NAME": "with-driver-580-closed"},
        V100 | {"ORCHESTRATOR_TYPE": "gke"},
        {"IMAGE_PROJECT": "my-images", "IMAGE_NAME": "my-image-stage"},
        {"VM_TYPE": "a4-highgpu-8g", "DISK_TYPE": "hyperdisk-balanced", "ENABLE_SPOT": "yes"},
        {"ENABLE_QUEUED_PROVISIONING": "no", "ENABLE_RAY_OPERATOR": "off"},
        {"PROJECT_ID": "example.com:project-1", "TERRAFORM_GCS_PATH": "gs://bucket"},
        {"VM_TYPE": "c3-standard-4", "DISK_TYPE": "pd-extreme", "GPU_COUNT": "3"},
    ],
)
def test_settings_that_agree_are_fine(given: Given, environ: dict[str, str]) -> None:
    assert not given(**environ).loaded.problems


@pytest.mark.parametrize(
    ("pools", "what"),
    [
        ("name=a,vm_type=a2-highgpu-1g,gpu_count=2", "pool a, whose gpu_count=2"),
        ("name=a,vm_type=n1-standard-2", "pool a, whose accelerator_type is required"),
        ("name=a,vm_type=a2-highgpu-1g,zone=us-east1-b", "zone=us-east1-b is not in us-central1"),
        ("name=a,vm_type=a4-highgpu-8g,disk_type=pd-ssd", "whose disk_type=pd-ssd"),
        ("name=a,vm_type=a2-highgpu-1g,count=1,max=2", "count=1 can't be combined with min or max"),
        ("name=a,vm_type=a2-highgpu-1g,min=3,max=2", "min=3 is more than max, 2"),
        ("name=a,vm_type=a2-highgpu-1g,spot=yes,flex_start=on", "spot=yes can't be combined"),
        ("name=a,vm_type=a2-highgpu-1g,reservation=r,queued=1", "reservation=r can't be combined"),
        ("name=a,vm_type=a2-highgpu-1g;name=a,vm_type=a2-highgpu-2g", "two pools with the name a"),
    ],
)
def test_a_pool_that_disagrees_is_refused_by_its_name(given: Given, pools: str, what: str) -> None:
    case = given(**GKE, GKE_NODE_POOLS=pools)

    assert what in " ".join(it.what for it in case.loaded.problems)


def test_pools_take_what_they_leave_open_from_the_cluster(given: Given) -> None:
    case = given(**GKE, ENABLE_SPOT="yes", GKE_NODE_POOLS="name=a,vm_type=a2-highgpu-1g,queued=yes")

    assert "spot can't be combined with queued" in case.problem("GKE_NODE_POOLS").what


def test_pools_replace_the_settings_of_one_machine_type(given: Given) -> None:
    case = given(
        **GKE,
        GKE_NODE_POOLS="name=a,vm_type=a2-highgpu-1g",
        VM_TYPE="a2-highgpu-2g",
        GPU_COUNT="4",
        GKE_NODE_POOL_COUNT="2",
    )

    assert {"VM_TYPE", "GPU_COUNT", "GKE_NODE_POOL_COUNT"} <= case.refused
    assert "can't be combined with GKE_NODE_POOLS" in case.problem("GPU_COUNT").what


def test_a_domain_scoped_project_needs_a_bucket_of_its_own(given: Given) -> None:
    case = given(PROJECT_ID="example.com:project-1")

    assert case["TERRAFORM_GCS_PATH"] is None
    assert "is required" in case.problem("TERRAFORM_GCS_PATH").what


def test_an_unknown_zone_of_a_known_region_is_a_note(given: Given) -> None:
    case = given(ZONE="us-central1-z")

    assert not case.loaded.problems
    assert "list of zones" in case.note("ZONE").what


def test_a_machine_of_an_unknown_family_is_a_note(given: Given) -> None:
    case = given(VM_TYPE="a9-highgpu-8g")

    assert not case.loaded.problems
    assert "does not know" in case.note("VM_TYPE").what
    assert case["GPU_COUNT"] is None


@pytest.mark.parametrize(
    ("vm_type", "fits", "takes"),
    [
        ("g2-standard-4", "g2-standard-8", "with its 4 vCPUs it supports 4:"),
        ("n1-highcpu-2", "n1-highcpu-8", "with its 2 vCPUs it supports 2:"),
    ],
)
def test_a_machine_too_small_for_several_networks_hears_of_one_that_fits(
    given: Given, vm_type: str, fits: str, takes: str
) -> None:
    gpu = {"ACCELERATOR_TYPE": "nvidia-tesla-t4", "GPU_COUNT": "1"} if vm_type[0] == "n" else {}
    several = {"NETWORK_CONFIG": "multi_nic_network", **gpu}

    problem = given(VM_TYPE=vm_type, **several).problem("NETWORK_CONFIG")

    assert takes in problem.why
    assert problem.fix == f"NETWORK_CONFIG=new_network, or VM_TYPE={fits}"
    assert not given(VM_TYPE=fits, **several).loaded.problems


@pytest.mark.parametrize("network", [{}, {"NETWORK_CONFIG": "new_network"}])
def test_one_interface_on_a_machine_with_a_gpu_network_is_a_note(
    given: Given, network: dict[str, str]
) -> None:
    case = given(VM_TYPE="a3-megagpu-8g", **network)

    assert not case.loaded.problems
    assert "one network interface instead of 9" in case.note("NETWORK_CONFIG").what
    assert "GPUDirect-TCPXO" in case.note("NETWORK_CONFIG").why
    assert case.note("NETWORK_CONFIG").fix == "NETWORK_CONFIG=multi_nic_network"


@pytest.mark.parametrize(
    "case",
    [
        {"VM_TYPE": "a3-megagpu-8g", "NETWORK_CONFIG": "multi_nic_network"},
        {"VM_TYPE": "a9-highgpu-8g", "NETWORK_CONFIG": "multi_nic_network"},
        {"VM_TYPE": "g2-standard-4", "NETWORK_CONFIG": "new_network"},
        {"VM_TYPE": "a3-megagpu-8g", **GKE},
        {"VM_TYPE": "g2-standard-4", **GKE},
    ],
)
def test_networks_that_suit_the_machine_need_no_word(given: Given, case: dict[str, str]) -> None:
    assert not {"NETWORK_CONFIG"} & (given(**case).refused | given(**case).noted)


def test_a_rule_is_silent_while_what_it_compares_is_bad(given: Given) -> None:
    case = given(VM_TYPE="A2-highgpu-3g", GPU_COUNT="7", DISK_TYPE="pd-extreme", REGION="nowhere")

    assert case.refused == {"VM_TYPE", "REGION"}


def test_the_mandatory_settings_alone_need_no_word(given: Given) -> None:
    assert not given().loaded.problems
    assert not given().loaded.notes


@pytest.mark.parametrize("gpu", ["nvidia-tesla-v100", "nvidia-tesla-p100", "nvidia-tesla-p4"])
def test_a_gpu_that_the_current_drivers_have_dropped_needs_an_image(given: Given, gpu: str) -> None:
    asked = V100 | {"ACCELERATOR_TYPE": gpu, "GPU_COUNT": "4", "IMAGE_PROJECT": "ml-images"}

    (problem,) = given(**asked).loaded.problems

    assert (problem.setting, problem.what) == (
        "IMAGE_NAME",
        f"is required for {gpu}, or IMAGE_FAMILY_NAME is",
    )
    assert "open kernel module" in problem.why
    assert "ACCELERATOR_TYPE=nvidia-tesla-t4" in problem.fix


@pytest.mark.parametrize(
    ("setting", "value", "is_noted"),
    [
        ("IMAGE_FAMILY_NAME", "common-cu129-ubuntu-2404-nvidia-580", True),
        ("IMAGE_FAMILY_NAME", "common-cu128-ubuntu-2204-nvidia-570", True),
        ("IMAGE_NAME", "ubuntu-accelerator-2404-amd64-with-nvidia-580-v20260418", True),
        ("IMAGE_NAME", "pytorch-latest-cu124-v20250327-ubuntu-2204", False),
        ("IMAGE_FAMILY_NAME", "common-cu124-ubuntu-2204-nvidia-550", False),
    ],
)
def test_an_image_with_the_open_module_is_noted_for_a_gpu_that_it_does_not_drive(
    given: Given, setting: str, value: str, *, is_noted: bool
) -> None:
    made = given(**V100, **{setting: value}).loaded

    assert not made.problems
    assert [note.setting for note in made.notes] == ([setting] if is_noted else [])
    assert not given(**{setting: value}).loaded.notes


def test_a_notebook_is_noted_where_the_image_may_have_none(given: Given) -> None:
    own = {"IMAGE_PROJECT": "my-images", "IMAGE_NAME": "my-image"}

    note = given(**own, ENABLE_NOTEBOOK="yes").note("ENABLE_NOTEBOOK")

    assert "images of my-images" in note.what
    assert note.fix.startswith("ENABLE_NOTEBOOK=no")
    assert not given(**own, ENABLE_NOTEBOOK="no").loaded.notes
    assert not given(**own).loaded.notes


def test_asking_for_urls_of_notebooks_that_are_off_is_a_note(given: Given) -> None:
    case = given(ENABLE_NOTEBOOK="no", SHOW_PROXY_URL="yes")

    assert not case.loaded.problems
    assert "ENABLE_NOTEBOOK" in case.note("SHOW_PROXY_URL").why
    assert not given(ENABLE_NOTEBOOK="no").loaded.notes


RAY = {"ORCHESTRATOR_TYPE": "ray"}


@pytest.mark.parametrize(("version", "is_refused"), [("2.51.2", True), ("2.52.0", False)])
def test_a_ray_that_asks_nobody_for_a_token_is_refused(
    given: Given, version: str, *, is_refused: bool
) -> None:
    found = given(**RAY, RAY_VERSION=version).loaded.problems

    assert [problem.setting for problem in found] == (["RAY_VERSION"] if is_refused else [])


def test_ray_with_the_account_of_many_vms_is_noted(given: Given) -> None:
    note = given(**RAY, SERVICE_ACCOUNT="default").note("SERVICE_ACCOUNT")

    assert "its token alone" in note.what
    assert note.fix == "SERVICE_ACCOUNT=dedicated"
    assert not given(**RAY).loaded.notes
    assert not given(SERVICE_ACCOUNT="default").loaded.notes


@pytest.mark.parametrize(
    "environ",
    [
        {"KMS_KEY": KEY.format("us-central1"), "NFS_FILESHARE_LIST": "/s:ZONAL", **GKE},
        {"KMS_KEY": KEY.format("us")},
        {"KMS_KEY": KEY.format("global")},
        {"KMS_KEY": KEY.format("europe-west4"), "ZONE": "us-central1-a,europe-west4-b"},
        {"SECURE_BOOT": "yes", **MEGA},
        {"SECURE_BOOT": "yes", "IMAGE_PROJECT": "mine", "IMAGE_NAME": "signed"},
        {"SECURE_BOOT": "no"},
    ],
)
def test_keys_and_secure_boot_are_taken_where_google_takes_them(
    given: Given, environ: dict[str, str]
) -> None:
    assert not {"KMS_KEY", "SECURE_BOOT", "NFS_FILESHARE_LIST"} & given(**environ).refused
