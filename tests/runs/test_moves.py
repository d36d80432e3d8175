"""Another zone, region, machine family or network for a cluster that exists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.runs.conftest import Rehearsal

NOTHING = {"add": 0, "change": 0, "destroy": 0}
MULTI = {"NETWORK_CONFIG": "multi_nic_network"}
GKE = {"ORCHESTRATOR_TYPE": "gke"}


@dataclass(frozen=True)
class Move:
    """What a cluster is made with, what it is to be next, and how the tool words that.

    Attributes:
        name: The test's.
        before: The settings of the first Create, on top of the mandatory ones.
        after: What the second Create has in their place.
        said: The sentence for which it wants a yes; "" where nothing ends.
    """

    name: str
    before: Mapping[str, str]
    after: Mapping[str, str]
    said: str


MOVES = [
    Move(
        "a3_ultra_to_another_zone",
        {**MULTI, "VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b", "INSTANCE_COUNT": "2"},
        {"ZONE": "us-central1-a"},
        "2 VMs in us-central1-b end, 2 begin in us-central1-a",
    ),
    Move(
        "a2_with_a_network_to_another_region",
        {"NETWORK_CONFIG": "new_network"},
        {"ZONE": "europe-west4-a"},
        "1 VM in us-central1-a ends, 1 begins in europe-west4-a",
    ),
    Move(
        "a3_mega_to_a3_high",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g"},
        {"VM_TYPE": "a3-highgpu-8g"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "a3_mega_to_a3_ultra",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g", "ZONE": "us-central1-a"},
        {"VM_TYPE": "a3-ultragpu-8g"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "a_share_to_another_network",
        {"NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD"},
        {"NETWORK_CONFIG": "new_network"},
        "google_filestore_instance",
    ),
    Move(
        "multi_nic_to_one_network",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g"},
        {"NETWORK_CONFIG": "new_network"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "gke_a3_ultra_to_another_zone",
        {**GKE, "VM_TYPE": "a3-ultragpu-8g", "ZONE": "us-central1-b"},
        {"ZONE": "us-central1-a"},
        "1 node in us-central1-b ends, 1 begins in us-central1-a",
    ),
    Move(
        "gke_a3_mega_to_a3_ultra",
        {**GKE, "VM_TYPE": "a3-megagpu-8g"},
        {"VM_TYPE": "a3-ultragpu-8g"},
        "1 node in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "gke_to_another_region",
        {**GKE, "VM_TYPE": "g2-standard-24"},
        {"ZONE": "europe-west4-a"},
        "1 node in us-central1-a ends, 1 begins in europe-west4-a",
    ),
]


def _left(rehearsal: Rehearsal) -> list[str]:
    return sorted(line for line in rehearsal.resources() if not line.startswith("storage/"))


@pytest.mark.parametrize("move", MOVES, ids=lambda move: move.name)
def test_row_7_a_cluster_moves_and_goes(standing: Callable[..., Rehearsal], move: Move) -> None:
    rehearsal = standing(move.before)
    before = _left(rehearsal)
    wanted = {**move.before, **move.after}

    refused = rehearsal.run("Create", **wanted)
    assert refused.code == 2, refused.said
    assert move.said in refused.problem["why"]
    assert _left(rehearsal) == before

    moved = rehearsal.run("Create", "--yes", **wanted)
    assert moved.code == 0, moved.said
    again = rehearsal.run("Plan", **wanted)
    assert again.code == 0, again.said
    assert again.document["changes"] == NOTHING, again.said
    assert rehearsal.run("Destroy", **wanted).code == 0
    assert _left(rehearsal) == []
