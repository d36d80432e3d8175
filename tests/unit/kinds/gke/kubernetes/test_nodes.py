import dataclasses
import datetime as dt
import json
from typing import Any

import pytest

from provision.documents.status import EndedBy, PoolMode, Trouble
from provision.kinds.gke import trouble
from provision.kinds.gke.kubernetes import nodes
from provision.kinds.gke.kubernetes.nodes import Maintenance, Node, Nodes
from provision.time.clock import Clock
from tests.table import cases

READY = {"type": "Ready", "status": "True"}


def _thing(*conditions: dict[str, str], **changes: Any) -> dict[str, Any]:
    labels = {"cloud.google.com/gke-nodepool": "np-gpu"}
    labels |= {"topology.kubernetes.io/zone": "us-central1-a", **changes.get("labels", {})}
    metadata = {"name": "gke-1", "creationTimestamp": "2026-11-22T08:00:00Z", "labels": labels}
    usable = {"nvidia.com/gpu": str(changes.get("usable", 8))}
    status = {"capacity": {"nvidia.com/gpu": "8"}, "allocatable": usable}
    return {
        "metadata": {**metadata, "annotations": changes.get("annotations", {})},
        "spec": changes.get("spec", {}),
        "status": {**status, "conditions": [READY, *conditions]},
    }


def _read(thing: dict[str, Any], *events: dict[str, Any], clock: Clock | None = None) -> Node:
    (pool,) = nodes.read([thing], events, clock or Clock())
    assert pool.pool == "np-gpu"
    (found,) = pool.each
    return found


def _event(message: str, name: str = "gke-1", kind: str = "Node") -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {"reason": "XIDError", "message": message, "involvedObject": about}


def test_a_node_says_what_it_has_when_it_ends_and_what_somebody_has_done_about_it() -> None:
    found = _read(_thing())
    assert found == Node(
        name="gke-1", zone="us-central1-a", created="2026-11-22T08:00:00Z", gpus=8, usable=8
    )
    said = {"node.gke.io/machine-termination-datetime": "2026-11-24T08:00:00Z"}
    run = {"cloud.google.com/gke-max-run-duration-seconds": "3600"}
    assert _read(_thing(annotations=said, labels=run)).ends == "2026-11-24T08:00:00Z"
    assert _read(_thing(labels=run)).ends == "2026-11-22T09:00:00Z"
    assert _read(_thing(labels=run), clock=Clock(0.5)).ends == "2026-11-22T08:30:00Z"
    leaving = {"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"}
    found = _read(
        _thing(
            spec={"unschedulable": True, "taints": [leaving]},
            labels={
                "cloud.google.com/fault-behavior": "XID",
                "cloud.google.com/report-and-replace-status": "PodsEvicted",
            },
        )
    )
    assert (found.cordoned, found.is_leaving, found.reported) == (True, True, "XID: PodsEvicted")


@pytest.mark.parametrize(
    ("reason", "xids"),
    [('{"79":true}', ("79",)), ('{"48":true,"63":true}', ("48", "63")), ("odd", ("odd",))],
)
def test_the_device_plugins_condition_names_the_xids(reason: str, xids: tuple[str, ...]) -> None:
    critical = {"type": "XidCriticalError", "status": "True", "reason": reason, "message": "boot"}
    found = _read(_thing(critical, usable=7))
    assert (found.xids, found.gpus, found.usable) == (xids, 8, 7)
    assert _read(_thing({**critical, "status": "False"})).xids == ()


def test_errors_that_a_program_causes_are_no_fault_of_a_node() -> None:
    critical = {"type": "XidCriticalError", "status": "True", "reason": '{"79":true}'}
    found = _read(
        _thing(critical),
        _event("Caught XID error, XID=94"),
        _event("Caught XID error, XID=31"),
        _event("Caught XID error, XID=79"),
        _event("Caught XID error, XID=95", name="gke-2"),
        _event("Caught XID error, XID=96", kind="Pod"),
    )
    assert (found.xids, found.recent) == (("79",), ("94",))


def test_a_node_that_was_made_again_has_no_fault_from_the_one_before_it() -> None:
    error = _event("Caught XID error, XID=94")
    before, after = (error | {"lastTimestamp": f"2026-11-22T{it}:00:00Z"} for it in ("07", "09"))
    assert _read(_thing(), before).recent == ()
    assert _read(_thing(), before, after).recent == ("94",)


UPCOMING = {
    "maintenance_reason": ["FAILURE_GPU_XID", "FAILURE_GPU"],
    "type": "UNSCHEDULED",
    "can_reschedule": "true",
    "window_start_time": "2026-08-26T08:00:00+00:00",
}


def test_announced_maintenance_is_read_from_labels_and_annotations() -> None:
    told = {"node.gke.io/upcoming-maintenance": json.dumps(UPCOMING)}
    found = _read(_thing(annotations=told)).maintenance
    assert found == Maintenance(
        begins="2026-08-26T08:00:00Z",
        reasons=("FAILURE_GPU_XID", "FAILURE_GPU"),
        can_begin_now=True,
    )
    assert found.is_repair
    label = {"cloud.google.com/scheduled-maintenance-time": "1733296000"}
    planned = _read(_thing(labels=label)).maintenance
    assert planned == Maintenance(begins="2024-12-04T07:06:40Z")
    assert not planned.is_repair
    active = {"cloud.google.com/active-node-maintenance": "ONGOING"}
    assert _read(_thing(labels=active)).maintenance == Maintenance(is_ongoing=True)
    odd = {"node.gke.io/upcoming-maintenance": "not JSON"}
    assert _read(_thing(annotations=odd)).maintenance is None


CLOCK = Clock()
GROUP = "https://www.googleapis.com/compute/v1/projects/p/zones/us-central1-a/instanceGroupManagers/gke-grp"
NP_GPU: dict[str, Any] = {"name": "np-gpu", "instanceGroupUrls": [GROUP]}
NODE = Node(name="gke-1", zone="us-central1-a", created="2026-01-01T00:00:00Z", gpus=8, usable=8)
BROKEN = dataclasses.replace(NODE, xids=("79",), usable=7)


def _in(seconds: float) -> str:
    then = dt.datetime.now(dt.UTC) + dt.timedelta(seconds=seconds)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def _troubles(*nodes: Node, mode: PoolMode = PoolMode.STANDARD, **pool: Any) -> list[Trouble]:
    them = Nodes(pool="np-gpu", each=nodes)
    return list(trouble.troubles(them, 8, {**NP_GPU, **pool}, mode, CLOCK))


@cases("""
changes                                    | words
{}                                         | -
{xids: ["79", "48"]}                       | a GPU is broken (XID 79, 48)
{recent: ["94"]}                           | a GPU told of an error in the last hour (XID 94)
{usable: 7}                                | 7 of 8 GPUs usable
{gpus: 7, usable: 7}                       | 7 of 8 GPUs there
{gpus: 0, usable: 0, unready: silent}      | -
{reported: "XID: PodsEvicted"}             | reported to Google (XID: PodsEvicted)
{maintenance: [FAILURE_GPU]}               | Google found a fault (FAILURE_GPU)
{maintenance: [PLANNED_UPDATE]}            | -
""")
def test_a_node_says_what_is_wrong_with_it(changes: dict[str, Any], words: str) -> None:
    if reasons := changes.pop("maintenance", ()):
        changes["maintenance"] = Maintenance(reasons=tuple(reasons))
    found = trouble.faults(dataclasses.replace(NODE, **changes), 8, CLOCK)
    assert found == ((words,) if words else ())


def test_equal_faults_are_one_trouble_with_its_commands() -> None:
    new = dataclasses.replace(NODE, gpus=0, usable=0, created=_in(-600))
    assert trouble.faults(new, 8, CLOCK) == ()
    old = dataclasses.replace(new, created=_in(-1000))
    assert trouble.faults(old, 8, CLOCK) == ("0 of 8 GPUs there",)
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
    (found,) = _troubles(dataclasses.replace(BROKEN, reported="XID"))
    assert (found.fix, found.by_itself) == ("", True)


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
    mode: PoolMode, *, scaling: bool, words: str
) -> None:
    (found,) = _troubles(BROKEN, mode=mode, autoscaling={"enabled": scaling})
    assert words in found.fix
    assert "recreate-instances" not in found.fix


@pytest.mark.parametrize("can_begin_now", [False, True])
def test_what_google_repairs_can_come_sooner(*, can_begin_now: bool) -> None:
    repair = Maintenance(reasons=("FAILURE_GPU_XID",), can_begin_now=can_begin_now)
    (found,) = _troubles(dataclasses.replace(NODE, maintenance=repair))
    assert found.by_itself
    command = "kubectl label node gke-1 cloud.google.com/perform-maintenance=true"
    assert (command in found.fix) == can_begin_now
    assert "delete-instances" not in found.fix


@pytest.mark.parametrize("repairs", [False, True])
def test_a_node_that_is_not_ready_is_repaired_by_gke(*, repairs: bool) -> None:
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
