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
