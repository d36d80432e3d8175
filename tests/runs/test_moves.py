"""Another zone, region, machine family or network for a cluster that exists."""

import re
import signal
from collections.abc import Mapping
from dataclasses import dataclass

import pytest

from tests.chaos import processes
from tests.runs.conftest import Rehearsal, Rehearse

NOTHING = {"add": 0, "change": 0, "destroy": 0}
MULTI = {"NETWORK_CONFIG": "multi_nic_network"}
FLEX = {"ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "1d"}
GKE = {"ORCHESTRATOR_TYPE": "gke"}
# The zone that has all families of A3.
SPOT = {"ZONE": "us-central1-b", "ENABLE_SPOT": "yes"}
# Of the families whose networks are bound to a zone, the one that a region has in two zones.
A4 = {"VM_TYPE": "a4-highgpu-8g", "ZONE": "us-west3-b", "ENABLE_SPOT": "yes"}


@dataclass(frozen=True)
class Move:
    """What a cluster is made with, what it is to be next, and how the tool words that."""

    name: str  # the test's
    before: Mapping[str, str]  # the settings of the first Create, on top of the mandatory ones
    after: Mapping[str, str]  # what the second Create has in their place
    said: str  # the sentence for which it wants a yes; "" where nothing ends


MOVES = [
    Move(
        "a4_to_another_zone",
        {**MULTI, **A4, "INSTANCE_COUNT": "2"},
        {"ZONE": "us-west3-c"},
        "2 VMs in us-west3-b end, 2 begin in us-west3-c",
    ),
    Move(
        "a2_with_a_network_to_another_region",
        {"NETWORK_CONFIG": "new_network"},
        {"ZONE": "europe-west4-a"},
        "1 VM in us-central1-a ends, 1 begins in europe-west4-a",
    ),
    Move(
        "the_default_network_to_one_of_its_own",
        {},
        {"NETWORK_CONFIG": "new_network"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "a3_mega_to_a3_high",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g"},
        {"VM_TYPE": "a3-highgpu-8g"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "a3_mega_to_a3_ultra",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g", **SPOT},
        {"VM_TYPE": "a3-ultragpu-8g"},
        "1 VM in us-central1-b ends, 1 begins in us-central1-b",
    ),
    Move(
        "a_share_to_another_network",
        {"NFS_FILESHARE_LIST": "/mnt/nfs:BASIC_SSD"},
        {"NETWORK_CONFIG": "new_network"},
        "all files on its 2560 GB are lost",
    ),
    Move(
        "multi_nic_to_one_network",
        {**MULTI, "VM_TYPE": "a3-megagpu-8g"},
        {"NETWORK_CONFIG": "new_network"},
        "1 VM in us-central1-a ends, 1 begins in us-central1-a",
    ),
    Move(
        "flex_start_from_a3_mega_to_a3_high",
        {**MULTI, **FLEX, "VM_TYPE": "a3-megagpu-8g"},
        {"VM_TYPE": "a3-highgpu-8g"},
        "1 VM in us-central1-a ends, new ones begin in us-central1-a",
    ),
    Move(
        "gke_a4_to_another_zone",
        {**GKE, **A4},
        {"ZONE": "us-west3-c"},
        "1 node in us-west3-b ends, 1 begins in us-west3-c",
    ),
    Move(
        "gke_a3_mega_to_a3_ultra",
        {**GKE, "VM_TYPE": "a3-megagpu-8g", **SPOT},
        {"VM_TYPE": "a3-ultragpu-8g"},
        "1 node in us-central1-b ends, 1 begins in us-central1-b",
    ),
    Move(
        "gke_l4_to_a3_mega",
        {**GKE, "VM_TYPE": "g2-standard-24"},
        {"VM_TYPE": "a3-megagpu-8g"},
        "cluster np-gke is replaced: all that runs in it ends",
    ),
    Move(
        "gke_a3_mega_to_l4",
        {**GKE, "VM_TYPE": "a3-megagpu-8g"},
        {"VM_TYPE": "g2-standard-24"},
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


SLOW = pytest.mark.slow(
    sibling="tests/runs/test_any_zone.py::test_a_cluster_goes_from_zone_to_zone_until_one_has_it"
)


@SLOW
@pytest.mark.parametrize("move", MOVES, ids=lambda it: it.name)
def test_row_7_a_cluster_moves_and_goes(standing: Rehearse, move: Move) -> None:
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
    assert [line for line in _left(rehearsal) if "/instances/" in line]
    assert rehearsal.run("Destroy", **wanted).code == 0
    assert _left(rehearsal) == []


HERE = {"NETWORK_CONFIG": "new_network"}
THERE = {**HERE, "ZONE": "europe-west4-a"}


def _kill(rehearsal: Rehearsal, method: str, path: str) -> None:
    """Kill a Create that moves a cluster, and all that it has started, at a request."""
    started = rehearsal.start("Create", "--yes", **THERE)
    rehearsal.when_asked(method, path)
    rehearsal.kill(started)


def _kinds(rehearsal: Rehearsal) -> list[str]:
    """What there is, but for the ends of names that Google or a hash has drawn."""
    drawn = r"(?<=-)[0-9a-z]{4}\b|(?<=-)[0-9a-f]{8}\b|[\w-]{36}"
    return sorted(re.sub(drawn, "*", line) for line in _left(rehearsal))


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("DELETE", "zones/us-central1-a/instanceGroupManagers/np-mig"),
        ("POST", "zones/europe-west4-a/instanceGroupManagers"),
    ],
)
def test_a_move_that_is_killed_is_finished_or_undone(
    standing: Rehearse, method: str, path: str
) -> None:
    rehearsal = standing(HERE)
    before = _kinds(rehearsal)
    _kill(rehearsal, method, path)

    back = rehearsal.run("Create", "--yes", **HERE)
    assert back.code == 0, back.said
    assert _kinds(rehearsal) == before
    assert rehearsal.run("Destroy", "--yes", **HERE).code == 0
    assert _left(rehearsal) == []


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
def test_the_next_create_finishes_a_killed_move_and_leaves_no_old_network(
    standing: Rehearse,
) -> None:
    rehearsal = standing(HERE)
    count = len(_left(rehearsal))
    _kill(rehearsal, "POST", "zones/europe-west4-a/instanceGroupManagers")

    finished = rehearsal.run("Create", "--yes", **THERE)
    assert finished.code == 0, finished.said
    left = _left(rehearsal)
    # A group that came to be before the kill is adopted with its VM, which keeps the network and
    # the subnetwork that the killed run made for it: the VM is told to be out of date.
    kept = 2 * len(finished.document["out_of_date"])
    assert len(left) == count + kept, left
    assert not any("us-central1" in line for line in left)
    assert rehearsal.run("Destroy", "--yes", **THERE).code == 0
    assert _left(rehearsal) == []


@SLOW
@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
def test_status_and_destroy_find_what_a_killed_move_has_made(standing: Rehearse) -> None:
    rehearsal = standing(HERE)
    _kill(rehearsal, "POST", "zones/europe-west4-a/instanceGroupManagers")

    status = rehearsal.run("Status", **THERE)
    assert status.code == 0, status.said
    assert status.document["status"]["zone"] == "europe-west4-a"
    destroyed = rehearsal.run("Destroy", "--yes", **THERE)
    assert destroyed.code == 0, destroyed.said
    assert _left(rehearsal) == []


@dataclass(frozen=True)
class Rest:
    """What a killed move leaves."""

    name: str  # the test's
    settings: Mapping[str, str]  # of the cluster, on top of the mandatory ones
    zone: str  # where it moves to
    fault: str  # Where it is killed. The request comes once the run is dead.


_SUBNETWORK = "DELETE /compute/**/subnetworks/*: hold"
RESTS = [
    Rest("the_old_subnetwork_goes", HERE, THERE["ZONE"], _SUBNETWORK),
    Rest("the_old_network_goes", HERE, THERE["ZONE"], "DELETE **/global/networks/*: hold"),
    Rest("the_old_template_goes", HERE, THERE["ZONE"], "DELETE **/instanceTemplates/*: hold"),
    Rest("the_old_rules_go", HERE, THERE["ZONE"], "DELETE **/firewalls/*: hold"),
    Rest("an_a4_leaves_its_zone", {**MULTI, **A4}, "us-west3-c", _SUBNETWORK),
]


@pytest.mark.skipif(not processes.PROC.is_dir(), reason="finds processes by /proc")
@SLOW
@pytest.mark.parametrize(
    "rest", [pytest.param(it, id=it.name, marks=[] if it is RESTS[0] else [SLOW]) for it in RESTS]
)
def test_row_10_vms_stay_reachable_after_a_kill_with_a_state_older_than_their_network(
    standing: Rehearse, rest: Rest
) -> None:
    rehearsal = standing(rest.settings)
    before = _kinds(rehearsal)
    there = {**rest.settings, "ZONE": rest.zone}
    assert rehearsal.cloud is not None
    faults = rehearsal.cloud.faults
    lost = faults.add("POST /upload/storage/**/default.tfstate: forget")
    fault = faults.add(rest.fault)
    killed = rehearsal.start("Create", "--yes", **there)
    faults.wait(fault)
    rehearsal.kill(killed)
    faults.end(fault)
    faults.end(lost)
    vms = _vms(rehearsal)
    assert vms
    assert rehearsal.unreachable() == []

    finished = rehearsal.run("Create", "--yes", **there)
    assert finished.code == 0, finished.said
    assert _vms(rehearsal) == vms
    assert rehearsal.unreachable() == []
    assert len(_left(rehearsal)) == len(before)
    assert rehearsal.run("Plan", **there).document["changes"] == NOTHING

    back = rehearsal.run("Create", "--yes", **rest.settings)
    assert back.code == 0, back.said
    assert _kinds(rehearsal) == before
    assert rehearsal.unreachable() == []
    assert rehearsal.run("Destroy", "--yes", **rest.settings).code == 0
    assert _left(rehearsal) == []


@SLOW
def test_a_network_that_an_interrupted_create_left_alone_is_not_used_in_another_region(
    rehearsal: Rehearsal,
) -> None:
    assert rehearsal.cloud is not None
    faults = rehearsal.cloud.faults
    fault = faults.add("POST /compute/**/global/networks: hold")
    started = rehearsal.start("Create", **HERE)
    faults.wait(fault)
    started.send_signal(signal.SIGINT)
    faults.end(fault)
    assert rehearsal.finish(started).code == 130
    (alone,) = (line for line in _left(rehearsal) if "/networks/" in line)

    for place in (THERE, HERE):
        moved = rehearsal.run("Create", "--yes", **place)
        assert moved.code == 0, moved.said
        networks = [line for line in _left(rehearsal) if "/networks/" in line]
        assert (networks == [alone]) is (place is HERE)
    assert rehearsal.unreachable() == []


def _vms(rehearsal: Rehearsal) -> list[str]:
    return [line for line in _left(rehearsal) if "/instances/" in line]
