"""What the names of Google's image families say, and which family is preferred."""

import pytest

from provision.catalogue import images, machines
from provision.catalogue.images import ACCELERATOR, ACCELERATOR_ARM, DEEP_LEARNING

DLVM = "cu129-ubuntu-2404-nvidia-580"
ACCEL = "ubuntu-accelerator-2404-amd64-with-nvidia"


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        # by the number of PyTorch, PyTorch itself, CUDA, the driver, and Ubuntu
        (f"pytorch-2-10-{DLVM}", f"pytorch-2-9-{DLVM}"),
        (f"pytorch-3-0-{DLVM}", f"pytorch-2-10-{DLVM}"),
        (f"pytorch-2-9-{DLVM}", f"common-{DLVM}"),
        ("common-cu131-ubuntu-2204-nvidia-580", f"common-{DLVM}"),
        ("common-cu129-ubuntu-2204-nvidia-590", f"common-{DLVM}"),
        (f"common-{DLVM}", "common-cu129-ubuntu-2204-nvidia-580"),
        (f"common-{DLVM}", "pytorch-2-11-cu131-ubuntu-2604-nvidia-600"),  # nobody knows it
        (f"{ACCEL}-580", f"{ACCEL}-595"),  # the driver that is documented
        (f"{ACCEL}-600", f"{ACCEL}-595"),
    ],
)
def test_of_two_families_one_is_preferred(better: str, worse: str) -> None:
    line = ACCELERATOR if better.startswith(ACCEL) else DEEP_LEARNING
    assert images.preferred(line, [better, worse]) == better
    assert images.preferred(line, [worse, better]) == better


def test_a_family_without_the_driver_is_not_chosen() -> None:
    without = (
        "tf-2-17-cu123-ubuntu-2204-py310",
        "common-cpu-ubuntu-2204",
        "common-cu124-debian-11",
    )
    for family in (*without, ""):
        assert images.preferred(DEEP_LEARNING, [family]) is None


def test_contents_are_said_in_words() -> None:
    said = images.contents(f"pytorch-2-9-{DLVM}")
    assert said is not None
    assert said.words == "PyTorch 2.9, CUDA 12.9, NVIDIA's driver 580, Ubuntu 24.04"
    said = images.contents(f"{ACCEL}-580")
    assert said is not None
    assert said.words == "NVIDIA's driver 580, Ubuntu 24.04"


def test_a_machine_type_has_a_line_of_images() -> None:
    lines = {
        DEEP_LEARNING: "g2-standard-4 a3-highgpu-8g n1-custom-8-16384 a9-highgpu-8g",
        ACCELERATOR: "a3-megagpu-8g a3-ultragpu-8g a4-highgpu-8g",
        ACCELERATOR_ARM: "a4x-highgpu-4g a4x-maxgpu-4g-metal",
    }
    for line, names in lines.items():
        assert {machines.image_line(name) for name in names.split()} == {line}


def test_arm_machines_alone_have_images_for_arm() -> None:
    assert all(it.image_line.arm == it.arm for it in machines.FAMILIES.values())


def test_the_family_is_read_off_an_images_name() -> None:
    assert images.family_of(f"common-{DLVM}-v20260909") == f"common-{DLVM}"
    assert images.family_of("pytorch-latest-cu124-v20250327-ubuntu-2204") == (
        "pytorch-latest-cu124-ubuntu-2204"
    )


def test_an_image_that_was_baked_says_itself_what_it_has() -> None:
    labels = {images.PROGRAMS: "docker_torchrun"}
    assert images.has("docker", f"common-{DLVM}") is False
    assert images.has("docker", f"common-{DLVM}", labels=labels) is True
    assert images.has("nvcc", "np-bake", labels=labels) is False
    assert images.has("make", "np-bake", labels=labels) is None
