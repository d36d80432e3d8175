"""What Status tells of nodes with broken GPUs, of maintenance and of their end."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import Any

import pytest

from provision.documents.status import EndedBy, PoolMode, Trouble
from provision.kinds.gke import trouble
from provision.kinds.gke.kubernetes.nodes import Maintenance, Node, Nodes
from provision.time.clock import Clock

CLOCK = Clock()
GROUP = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers/gke-grp"
POOL: dict[str, Any] = {"name": "np-gpu", "instanceGroupUrls": [GROUP]}
NODE = Node(name="gke-1", zone="us-central1-a", created="2026-01-01T00:00:00Z", gpus=8, usable=8)
BROKEN = dataclasses.replace(NODE, xids=("79",), usable=7)


def _in(seconds: float) -> str:
    then = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def _troubles(*nodes: Node, mode: PoolMode = PoolMode.STANDARD, **pool: Any) -> list[Trouble]:
    them = Nodes(pool="np-gpu", each=nodes)
    return list(trouble.troubles(them, 8, {**POOL, **pool}, mode, CLOCK))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ()),
        ({"xids": ("79", "48")}, ("a GPU is broken (XID 79, 48)",)),
        ({"recent": ("94",)}, ("a GPU told of an error in the last hour (XID 94)",)),
        ({"usable": 7}, ("7 of 8 GPUs usable",)),
        ({"gpus": 7, "usable": 7}, ("7 of 8 GPUs there",)),
        ({"gpus": 0, "usable": 0, "unready": "silent"}, ()),
        ({"reported": "XID: PodsEvicted"}, ("reported to Google (XID: PodsEvicted)",)),
        (
            {"maintenance": Maintenance(reasons=("FAILURE_GPU",))},
            ("Google found a fault (FAILURE_GPU)",),
        ),
        ({"maintenance": Maintenance(reasons=("PLANNED_UPDATE",))}, ()),
    ],
)
def test_a_node_says_what_is_wrong_with_it(changes: dict[str, Any], words: tuple[str, ...]) -> None:
    assert trouble.faults(dataclasses.replace(NODE, **changes), 8, CLOCK) == words


def test_a_new_node_may_install_its_driver_first() -> None:
    new = dataclasses.replace(NODE, gpus=0, usable=0, created=_in(-600))
    assert trouble.faults(new, 8, CLOCK) == ()
    old = dataclasses.replace(new, created=_in(-1000))
    assert trouble.faults(old, 8, CLOCK) == ("0 of 8 GPUs there",)


def test_nodes_with_the_same_fault_are_one_trouble_and_name_the_commands() -> None:
    other = dataclasses.replace(BROKEN, name="gke-2")
    (found,) = _troubles(BROKEN, NODE, other)
    assert found.what == (
        "2 nodes of np-gpu with a fault: a GPU is broken (XID 79); 7 of 8 GPUs usable"
    )
    assert (found.names, found.by_itself) == (("gke-1", "gke-2"), False)
    assert "kubectl cordon gke-1 gke-2\n" in found.fix
    assert found.fix.endswith(
        "gcloud compute instance-groups managed recreate-instances gke-grp --zone us-central1-a"
        " --project p --instances=gke-1,gke-2"
    )


@pytest.mark.parametrize(
    ("mode", "scaling", "words"),
    [
        (PoolMode.STANDARD, True, "delete-instances"),
        (PoolMode.FLEX_START, False, "delete-instances"),
        (PoolMode.FLEX_START_QUEUED, True, "only your account team"),
        (PoolMode.RESERVATION_BOUND, False, "cloud.google.com/fault-behavior=XID"),
    ],
)
def test_the_cure_depends_on_how_the_pool_gets_its_nodes(
    mode: PoolMode,
    scaling: bool,  # noqa: FBT001 - a case
    words: str,
) -> None:
    (found,) = _troubles(BROKEN, mode=mode, autoscaling={"enabled": scaling})
    assert words in found.fix
    assert "recreate-instances" not in found.fix


def test_what_is_reported_already_is_left_to_google() -> None:
    (found,) = _troubles(dataclasses.replace(BROKEN, reported="XID"))
    assert (found.fix, found.by_itself) == ("", True)


@pytest.mark.parametrize("can_begin_now", [False, True])
def test_what_google_repairs_itself_can_only_be_had_sooner(
    can_begin_now: bool,  # noqa: FBT001 - a case
) -> None:
    repair = Maintenance(reasons=("FAILURE_GPU_XID",), can_begin_now=can_begin_now)
    (found,) = _troubles(dataclasses.replace(NODE, maintenance=repair))
    assert found.by_itself
    command = "kubectl label node gke-1 cloud.google.com/perform-maintenance=true"
    assert (command in found.fix) == can_begin_now
    assert "delete-instances" not in found.fix


@pytest.mark.parametrize("repairs", [False, True])
def test_a_node_that_is_not_ready_is_gkes_where_it_repairs(
    repairs: bool,  # noqa: FBT001 - a case
) -> None:
    node = dataclasses.replace(NODE, unready="gke-1 is not ready: silent")
    (found,) = _troubles(node, management={"autoRepair": repairs})
    assert found.what == "1 node of np-gpu not ready"
    assert found.by_itself
    assert bool(found.fix) != repairs


def test_maintenance_stands_among_the_ends_and_waits_once_it_has_begun() -> None:
    begins = _in(7200)
    announced = dataclasses.replace(
        NODE, maintenance=Maintenance(begins=begins, can_begin_now=True)
    )
    ongoing = dataclasses.replace(NODE, maintenance=Maintenance(is_ongoing=True), is_leaving=True)
    leaving = dataclasses.replace(NODE, name="gke-9", is_leaving=True)
    pool = Nodes(pool="np-gpu", each=(announced, ongoing, leaving))
    *_, end = trouble.all_ends(None, [pool], CLOCK)
    assert (end.how, end.first, end.what) == (
        EndedBy.MAINTENANCE,
        begins,
        "1 node of np-gpu (gke-1)",
    )
    assert end.first_seconds is not None
    assert 7100 < end.first_seconds <= 7200
    assert "kubectl label node gke-1 cloud.google.com/perform-maintenance=true" in end.words
    assert [it.what for it in trouble.doing(pool)] == [
        "1 node of np-gpu under maintenance by Google",
        "1 node of np-gpu about to be stopped",
    ]


def test_the_nodes_that_need_a_look_come_first_and_then_those_that_end_first() -> None:
    soon = dataclasses.replace(NODE, name="b-soon", ends=_in(3600))
    late = dataclasses.replace(NODE, name="a-late", ends=_in(7200))
    never = dataclasses.replace(NODE, name="a-never")
    pool = Nodes(pool="np-gpu", each=(late, never, soon, dataclasses.replace(BROKEN, name="z")))
    found = trouble.nodes([pool], {"np-gpu": 8}, CLOCK)
    assert [it.name for it in found] == ["z", "b-soon", "a-late", "a-never"]
    assert found[0].faults
    left = found[1].remaining_seconds
    assert left is not None
    assert 3500 < left <= 3600
