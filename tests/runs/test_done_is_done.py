"""Whether it is really done: what Create and Test say of what the cloud has (rows 1, 5, 6)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.runs.conftest import Rehearsal

GROUP = "projects/my-project/zones/us-central1-a/instanceGroupManagers/np-mig"
FOUR = {"INSTANCE_COUNT": "4"}


def test_row_1_vms_that_somebody_added_by_hand_are_not_deleted_unasked(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing()
    rehearsal.google("POST", f"compute/v1/{GROUP}/resize?size=4")

    asked = rehearsal.run("Create")
    assert asked.code == 2, asked.said
    assert "shrink from 4 to 1 VMs" in asked.problem["why"]
    assert "--yes" in asked.problem["fix"]
    kept = rehearsal.google("GET", f"compute/v1/{GROUP}")
    assert kept["targetSize"] == 4

    assert rehearsal.run("Create", "--yes").code == 0
    assert rehearsal.google("GET", f"compute/v1/{GROUP}")["targetSize"] == 1


@pytest.mark.parametrize("size", [1, 0])
def test_row_6_a_group_that_somebody_shrank_does_not_pass_the_test(
    standing: Callable[..., Rehearsal], size: int
) -> None:
    rehearsal = standing(FOUR)
    rehearsal.google("POST", f"compute/v1/{GROUP}/resize?size={size}")

    ended = rehearsal.run("Test")

    assert ended.code == 8, ended.said
    assert f"{size} of 4 VMs" in ended.problem["what"]
    assert "Create" in ended.problem["fix"]


def test_row_6_vms_without_labels_are_still_the_groups(
    standing: Callable[..., Rehearsal],
) -> None:
    rehearsal = standing(FOUR)
    rehearsal.rewrite(lambda text: text.replace('"aiinfra-cluster": "', '"taken-off": "'))

    ended = rehearsal.run("Test")

    assert ended.code == 0, ended.said
    assert len(ended.document["checks"]) == 4
