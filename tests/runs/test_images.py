"""Images as Google serves them: withdrawn ones, and those whose driver does not fit the GPU."""

import pytest

from tests.runs.conftest import Rehearsal

OPEN = "common-cu129-ubuntu-2404-nvidia-580"
V100 = {
    "VM_TYPE": "n1-standard-8",
    "ACCELERATOR_TYPE": "nvidia-tesla-v100",
    "GPU_COUNT": "1",
    "ENABLE_NOTEBOOK": "no",
    "DISABLE_OPS_AGENT": "yes",
}


@pytest.mark.slow(
    sibling="tests/rehearsal/cloud/compute/test_images.py::test_the_open_kernel_module_finds_no_old_gpu"
)
def test_an_image_without_a_driver_for_the_gpu_ends_in_the_step_gpu(rehearsal: Rehearsal) -> None:
    refused = rehearsal.run("Create", **V100)
    assert refused.code == 2
    assert "open kernel module" in refused.problem["why"]

    failed = rehearsal.run("Create", **V100, IMAGE_FAMILY_NAME=OPEN)

    assert failed.code == 8, failed.said
    assert "not supported by open nvidia.ko" in failed.problem["why"]
    (noted,) = (it for it in failed.document["notes"] if it["setting"] == "IMAGE_FAMILY_NAME")
    assert "probably has no driver for nvidia-tesla-v100" in noted["what"]
    assert rehearsal.run("Destroy").code == 0


def test_a_plan_says_which_image_it_is_and_a_withdrawn_family_is_refused(
    rehearsal: Rehearsal,
) -> None:
    planned = rehearsal.run("Plan")

    assert planned.code == 0, planned.said
    image = planned.document["image"]
    assert image["resolved"]
    assert image["name"].startswith(f"{image['family']}-v")
    assert planned.document["tfvars"]["image"]["name"] == image["name"]
    assert image["name"] in planned.said

    old = rehearsal.run("Plan", IMAGE_FAMILY_NAME="common-cu128-ubuntu-2204-nvidia-570")

    assert old.code == 4, old.said
    assert "deprecated since 2026-04-13" in old.problem["what"]
    assert old.problem["fix"].startswith("IMAGE_FAMILY_NAME=common-cu129-ubuntu-2204-nvidia-580")
