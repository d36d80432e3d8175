"""What a person means by a name of machines or GPUs that is not Google's."""

import pytest

from provision.catalogue import machines
from provision.catalogue import suggestions as catalogue

SLIPS = """a2-highgpu-3g a2-highgpu-2g a2-highgpu-4g
a2-highgpu-16g a2-highgpu-8g
a2-highgpu-0g a2-highgpu-1g
a2-highgpu-2gb a2-highgpu-2g
a3-high-8g a3-highgpu-8g
a3-ultra-8g a3-ultragpu-8g
g4-standard-100 g4-standard-96 g4-standard-192
a2-higgpu-2g a2-highgpu-2g
a2-hihggpu-2g a2-highgpu-2g
2-highgpu-2g a2-highgpu-2g
A2-HIGHGPU-2G a2-highgpu-2g
a2-highgpu-zzzzzzzzzzzzzzzzz a2-highgpu-1g"""
NONE = [
    *("a2-highgpu-2g", "a5-highgpu-8g", "c4-standard-48", "e2-standard-4", "g4-standard-6"),
    *("a3-ultragpu-8g-nolssd", "a4x-maxgpu-4g-metal", "n1-custom-4-8192", "n2-standard-8"),
    "a" * 100_000,
]
# The machine type that a person means comes first.
FIRST = {
    "a2-highgpu-2g": ["A2-HighGPU-2g", "a2_highgpu_2g"],
    "a3-highgpu-8g": ["a3-high-8g", "H100", "h100-80gb-8"],
    "a3-megagpu-8g": ["a3-mega", "h100-mega-80gb-8", "H100-MEGA:8"],
    "a2-highgpu-1g": ["A100"],
    "a2-highgpu-8g": ["8xA100"],
    "a2-ultragpu-2g": ["A100-80GB:2"],
    "a3-highgpu-2g": ["H100:2"],
    "a3-ultragpu-8g": ["nvidia-h200"],
    "a4-highgpu-8g": ["B200"],
    "g2-standard-4": ["L4"],
    "g4-standard-48": ["RTX PRO 6000"],
}


@pytest.mark.parametrize("row", SLIPS.splitlines())
def test_a_slip_of_the_pen_finds_the_type_that_was_meant(row: str) -> None:
    name, *meant = row.split()
    assert list(catalogue.like(name)) == meant


def test_a_known_type_or_one_of_another_family_is_no_typo() -> None:
    assert [name for name in NONE if catalogue.like(name)] == []


@pytest.mark.parametrize("first", FIRST)
def test_the_machine_type_that_a_person_means_comes_first(first: str) -> None:
    for text in FIRST[first]:
        assert catalogue.machine_types(text)[0] == first


@pytest.mark.parametrize("text", ["T4", "MI300X", "e2-standard-4", "", ":", "x" * 100_000])
def test_no_machine_type_has_what_is_attached_or_nobody_knows(text: str) -> None:
    assert catalogue.machine_types(text) == ()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("T4", ["nvidia-tesla-t4"]),
        ("nvidia-t4", ["nvidia-tesla-t4"]),
        ("a100", ["nvidia-tesla-a100", "nvidia-a100-80gb"]),
        ("A100-80GB", ["nvidia-a100-80gb"]),
        ("H100", ["nvidia-h100-80gb", "nvidia-h100-mega-80gb"]),
        ("nvidia-tesla-l4", ["nvidia-l4"]),
        ("nvidia-tesla-t4", []),
        ("B300", []),
    ],
)
def test_the_gpu_that_a_short_name_means(text: str, names: list[str]) -> None:
    assert [gpu.name for gpu in catalogue.gpus(text)] == names


@pytest.mark.parametrize("gpu", machines.GPUS.values(), ids=lambda gpu: str(gpu.name))
def test_each_gpu_is_found_by_the_driver_s_and_the_quota_s_name(gpu: machines.Gpu) -> None:
    assert gpu in catalogue.gpus(gpu.model)
    assert catalogue.gpus(gpu.quota_word.replace("_", "-"))[0] == gpu


def test_a_similar_name_of_a_gpu_is_found() -> None:
    assert catalogue.accelerator("nvidia-tesla-t40") == "nvidia-tesla-t4"
