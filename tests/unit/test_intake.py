from pathlib import Path
from typing import Any

import pydantic
import pytest

from provision.intake import load
from provision.settings import spelling
from tests.unit.conftest import MANDATORY, Given

IDENTITY = ("PROJECT_ID", "NAME_PREFIX", "ZONE", "REGION", "TERRAFORM_GCS_PATH")


def test_the_mandatory_settings_are_enough(given: Given) -> None:
    settings = given().loaded.settings

    assert settings is not None
    assert settings.model_fields_set == {"project_id", "name_prefix", "zone"}


def test_settings_do_not_change(given: Given) -> None:
    settings = given(LABELS="a=b").loaded.settings
    assert settings is not None

    with pytest.raises(pydantic.ValidationError, match="frozen"):
        settings.zone = "us-east1-b"
    with pytest.raises(TypeError):
        settings.labels["a"] = "c"  # type: ignore[index]  # that it can't be done is the point


EFFECTIVE: dict[str, Any] = {
    # what is set beside the mandatory ones, and a setting -> what that is
    "REGION": "us-central1",
    "ZONE=us-central1-ai1a REGION": "us-central1",
    "TERRAFORM_GCS_PATH": "gs://aiinfra-terraform-my-project",
    "GPU_COUNT": 2,
    "VM_TYPE=a3-megagpu-8g GPU_COUNT": 8,
    "VM_TYPE=a3-megagpu-8g ACCELERATOR_TYPE": "nvidia-h100-mega-80gb",
    "IMAGE_FAMILY_NAME": "pytorch-2-9-cu129-ubuntu-2404-nvidia-580",
    "VM_TYPE=a4-highgpu-8g IMAGE_PROJECT": "ubuntu-os-accelerator-images",
    "VM_TYPE=a4-highgpu-8g IMAGE_FAMILY_NAME=b IMAGE_PROJECT": "deeplearning-platform-release",
    "@ IMAGE_FAMILY_NAME": None,
    "IMAGE_NAME=a IMAGE_FAMILY_NAME": None,
    "DISK_SIZE_GB": 2000,
    "@ DISK_SIZE_GB": 100,
    "DISK_TYPE": "pd-ssd",
    "VM_TYPE=a3-ultragpu-8g DISK_TYPE": "hyperdisk-balanced",
    "VM_TYPE=a9-highgpu-8g DISK_TYPE": "pd-ssd",
    "MAX_RUN_DURATION": None,
    "ENABLE_FLEX_START=yes MAX_RUN_DURATION": 604800,
    "ENABLE_EXTERNAL_IP": True,
    "NETWORK_CONFIG=new_network ENABLE_EXTERNAL_IP": False,
    "NETWORK_CONFIG=multi_nic_network ENABLE_EXTERNAL_IP": False,
    "@ ENABLE_EXTERNAL_IP": False,
    "CAPACITY_TIMEOUT": 1800,
    "@ GKE_MIN_NODE_COUNT": None,
    "@ ENABLE_FLEX_START=1 INSTANCE_COUNT=8 GKE_MIN_NODE_COUNT": 0,
    "@ ENABLE_FLEX_START=1 INSTANCE_COUNT=8 GKE_MAX_NODE_COUNT": 8,
    "ENABLE_FLEX_START=1 GKE_MAX_NODE_COUNT": None,
    "KUEUE_GPU_QUOTA": None,
    "@ KUEUE_GPU_QUOTA": 2,
    "@ ENABLE_QUEUED_PROVISIONING=1 INSTANCE_COUNT=4 GKE_NODE_POOL_COUNT=3 KUEUE_GPU_QUOTA": 24,
    "@ GKE_NODE_POOLS=name=a,vm_type=a2-highgpu-1g,max=5,queued=yes;name=b,vm_type=a2-highgpu-2g"
    ",count=3,queued=yes;name=c,vm_type=a2-highgpu-8g KUEUE_GPU_QUOTA": 19,
    "ACTION=create ACTION": "Create",
    "GKE_NODE_COUNT_PER_NODE_POOL=3 INSTANCE_COUNT": 3,
    "GKE_ENABLE_COMPACT_PLACEMENT=yes ENABLE_COMPACT_PLACEMENT": True,
    "GCS_MOUNT_LIST=data:/a GCS_MOUNT_LIST": [{"bucket": "data", "path": "/a"}],
    "NFS_FILESHARE_LIST=/a:zonal:1024 NFS_FILESHARE_LIST": [
        {"path": "/a", "tier": "ZONAL", "size_gb": 1024}
    ],
}


@pytest.mark.parametrize("text", EFFECTIVE)
def test_an_effective_value_is_typed_and_follows_from_the_others(given: Given, text: str) -> None:
    *environ, variable = text.replace("@", "ORCHESTRATOR_TYPE=gke").split()
    found = given(**dict(it.split("=", 1) for it in environ))[variable]

    assert found == EFFECTIVE[text]
    assert type(found) is type(EFFECTIVE[text])


def test_every_setting_is_effective_once_under_its_own_name(given: Given) -> None:
    effective = given(NFS_FILESTORE_LIST="/a:BASIC_SSD").loaded.effective

    assert list(effective) == list(spelling.SETTINGS)


def test_a_bad_value_is_effective_as_its_text_and_what_follows_from_it_is_open(
    given: Given,
) -> None:
    case = given(VM_TYPE="A2-highgpu-3g", ZONE="bogus")

    assert case["VM_TYPE"] == "A2-highgpu-3g"
    assert [case[name] for name in ("GPU_COUNT", "DISK_TYPE", "REGION")] == 3 * [None]
    assert case["INSTANCE_COUNT"] == 1


def test_destroy_takes_problems_of_other_settings_as_notes() -> None:
    environ = MANDATORY | {
        "VM_TYPE": "A2-highgpu-3g",
        "INSTANCE_COUNT": "abc",
        "IMAGE_NAME": "a",
        "IMAGE_FAMILY_NAME": "b",
        "SETUP_RAY": "yes",
        "ENABLE_SPOT": "yes",
        "RESERVATION_NAME": "r",
        "DISK_SIZE": "500",
    }

    loaded = load(environ, only=IDENTITY)

    assert not loaded.problems
    assert {"VM_TYPE", "INSTANCE_COUNT", "IMAGE_FAMILY_NAME", "SETUP_RAY"} <= {
        note.setting for note in loaded.notes
    }
    assert loaded.settings is not None
    assert loaded.settings.vm_type == "a2-highgpu-2g"
    assert loaded.settings.enable_spot is False
    assert loaded.settings.disk_size_gb == 2000
    assert loaded.effective["VM_TYPE"] == "A2-highgpu-3g"


def test_destroy_still_needs_the_settings_that_identify_the_cluster() -> None:
    loaded = load(
        {"PROJECT_ID": "example.com:project-1", "ZONE": "us-central1-a", "REGION": "us-east1"},
        only=IDENTITY,
    )

    assert {problem.setting for problem in loaded.problems} == {
        "NAME_PREFIX",
        "REGION",
        "TERRAFORM_GCS_PATH",
    }
    assert loaded.settings is None


def test_destroy_takes_a_second_name_of_what_identifies_the_cluster_as_a_note(
    tmp_path: Path,
) -> None:
    path = tmp_path / "env.list"
    path.write_text("CLUSTER_NAME=other\n")
    loaded = load(MANDATORY, path, only=IDENTITY)

    assert [note.setting for note in loaded.notes] == ["CLUSTER_NAME"]
    assert loaded.settings is not None
    assert loaded.settings.name_prefix == "np"


def test_the_process_environment_is_never_read_behind_the_caller(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in MANDATORY.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("instance_count", "7")

    loaded = load({})
    assert {problem.setting for problem in loaded.problems} == set(MANDATORY)
    # What is missing is effective as nothing.
    assert loaded.effective["PROJECT_ID"] is None
    assert loaded.effective["TERRAFORM_GCS_PATH"] is None


def test_loading_twice_gives_the_same(given: Given) -> None:
    environ = {"VM_TYPE": "x y", "LABELS": '{ a = "b" }', "METADATA": "token=x"}

    assert given(**environ).loaded == given(**environ).loaded
