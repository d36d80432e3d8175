import pytest

from provision.catalogue import gke_versions

OFFERED = ["1.34.1-gke.3000000", "1.33.5-gke.2000000", "1.33.10-gke.1000", "1.33.5-gke.900"]


def test_a_beginning_stands_for_the_newest_version_that_is_offered() -> None:
    for asked, version in {
        None: None,
        "1.33.": "1.33.10-gke.1000",
        "1.33": "1.33.10-gke.1000",
        "1.33.5": "1.33.5-gke.2000000",
        "1.33.5-gke.900": "1.33.5-gke.900",
        "1.3.": None,
        "1.35.": None,
    }.items():
        assert gke_versions.settle(asked, OFFERED, None) == version
    # A cluster stays on the version it was made with, unless another is asked for.
    assert gke_versions.settle("1.33.", OFFERED, "1.33.4-gke.1") == "1.33.4-gke.1"
    assert gke_versions.settle("1.34.", OFFERED, "1.33.4-gke.1") == "1.34.1-gke.3000000"


@pytest.mark.parametrize(
    ("machine", "refused", "taken"),
    [
        # Flex start, and machine types that came with a version.
        (
            *("", "1.31. 1.32.1 1.32.2-gke.1651999"),
            "1.32. 1.32.2 1.32.2-gke.1652000 1.32.10-gke.1 1.100.",
        ),
        ("a3-highgpu-8g", "1.29.3-gke.1092999", "1.29.3-gke.1093000"),
        ("a3-megagpu-8g", "1.31.1-gke.2007999", "1.32.0-gke.1 1.31"),
        ("a3-ultragpu-8g", "1.31.4-gke.1182999", ""),
        ("a4-highgpu-8g", "1.32.1-gke.1729000", "1.32.2-gke.1475000"),
        ("g4-standard-48", "1.33.", "1.34.0-gke.1662000"),
    ],
)
def test_a_floor_refuses_what_is_older_for_sure(machine: str, refused: str, taken: str) -> None:
    floor = gke_versions.of_machine(machine) if machine else gke_versions.FLEX_START
    assert floor is not None
    assert [it for it in refused.split() if not floor.refuses(it)] == []
    assert [it for it in taken.split() if floor.refuses(it)] == []


def test_other_machines_need_none() -> None:
    assert gke_versions.of_machine("a2-highgpu-1g") is None
    assert gke_versions.of_machine("a3-highgpu-1g") is None


@pytest.mark.parametrize(
    ("version", "least", "refused"),
    [
        ("1.34.5-gke.1153000", "1.34.5-gke.1153000", False),
        ("1.35.1-gke.1", "1.35.2-gke.1485000", True),
        ("1.35.2-gke.1485000", "1.35.2-gke.1485000", False),
        ("1.36.0-gke.1", "1.34.5-gke.1153000", False),
    ],
)
def test_a_minor_version_may_have_a_floor_of_its_own(
    version: str, least: str, *, refused: bool
) -> None:
    floor = gke_versions.GPU_PARTS
    assert (floor.of(version), floor.refuses(version)) == (least, refused)
