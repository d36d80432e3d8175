"""Which version of GKE a text stands for."""

from __future__ import annotations

import pytest

from provision.catalogue import gke_versions

OFFERED = ["1.34.1-gke.3000000", "1.33.5-gke.2000000", "1.33.10-gke.1000", "1.33.5-gke.900"]


@pytest.mark.parametrize(
    ("asked", "version"),
    [
        (None, None),
        ("1.33.", "1.33.10-gke.1000"),
        ("1.33", "1.33.10-gke.1000"),
        ("1.33.5", "1.33.5-gke.2000000"),
        ("1.33.5-gke.900", "1.33.5-gke.900"),
        ("1.3.", None),
        ("1.35.", None),
    ],
)
def test_a_beginning_stands_for_the_newest_version_that_is_offered(
    asked: str | None, version: str | None
) -> None:
    assert gke_versions.settle(asked, OFFERED, None) == version


def test_a_cluster_stays_on_the_version_it_was_made_with() -> None:
    assert gke_versions.settle("1.33.", OFFERED, "1.33.4-gke.1") == "1.33.4-gke.1"


def test_another_version_that_is_asked_for_is_settled_anew() -> None:
    assert gke_versions.settle("1.34.", OFFERED, "1.33.4-gke.1") == "1.34.1-gke.3000000"


@pytest.mark.parametrize(
    ("version", "refused"),
    [
        ("1.31.", True),
        ("1.32.", False),
        ("1.32.1", True),
        ("1.32.2", False),
        ("1.32.2-gke.1651999", True),
        ("1.32.2-gke.1652000", False),
        ("1.32.10-gke.1", False),
        ("1.100.", False),
    ],
)
def test_a_floor_refuses_what_is_older_for_sure(version: str, refused: bool) -> None:  # noqa: FBT001 - a column of the table above
    assert gke_versions.FLEX_START.refuses(version) is refused


@pytest.mark.parametrize(
    ("machine", "version", "refused"),
    [
        ("a3-highgpu-8g", "1.29.3-gke.1092999", True),
        ("a3-highgpu-8g", "1.29.3-gke.1093000", False),
        ("a3-megagpu-8g", "1.31.1-gke.2007999", True),
        ("a3-megagpu-8g", "1.32.0-gke.1", False),
        ("a3-megagpu-8g", "1.31", False),
        ("a3-ultragpu-8g", "1.31.4-gke.1182999", True),
        ("a4-highgpu-8g", "1.32.1-gke.1729000", True),
        ("a4-highgpu-8g", "1.32.2-gke.1475000", False),
        ("g4-standard-48", "1.33.", True),
        ("g4-standard-48", "1.34.0-gke.1662000", False),
    ],
)
def test_a_machine_type_needs_the_version_that_came_with_it(
    machine: str, version: str, *, refused: bool
) -> None:
    floor = gke_versions.of_machine(machine)
    assert floor is not None
    assert floor.refuses(version) is refused


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
