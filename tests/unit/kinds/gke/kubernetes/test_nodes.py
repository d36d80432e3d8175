"""What a node's labels, annotations, conditions and events say of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from provision.kinds.gke.kubernetes import nodes
from provision.kinds.gke.kubernetes.nodes import Maintenance, Node
from provision.time.clock import Clock

READY = {"type": "Ready", "status": "True"}


def _thing(*conditions: dict[str, str], **changes: Any) -> dict[str, Any]:
    gpus = {"nvidia.com/gpu": "8"}
    return {
        "metadata": {
            "name": "gke-1",
            "creationTimestamp": "2026-11-22T08:00:00Z",
            "labels": {
                "cloud.google.com/gke-nodepool": "np-gpu",
                "topology.kubernetes.io/zone": "us-central1-a",
                **changes.get("labels", {}),
            },
            "annotations": changes.get("annotations", {}),
        },
        "spec": changes.get("spec", {}),
        "status": {
            "capacity": gpus,
            "allocatable": {"nvidia.com/gpu": str(changes.get("usable", 8))},
            "conditions": [READY, *conditions],
        },
    }


def _read(thing: dict[str, Any], *events: dict[str, Any], clock: Clock | None = None) -> Node:
    (pool,) = nodes.read([thing], events, clock or Clock())
    assert pool.pool == "np-gpu"
    (found,) = pool.each
    return found


def _event(message: str, name: str = "gke-1", kind: str = "Node") -> dict[str, Any]:
    about = {"kind": kind, "name": name}
    return {"reason": "XIDError", "message": message, "involvedObject": about}


def test_a_node_in_order_says_nothing_but_what_it_has() -> None:
    found = _read(_thing())
    assert found == Node(
        name="gke-1", zone="us-central1-a", created="2026-11-22T08:00:00Z", gpus=8, usable=8
    )


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


def test_the_end_of_a_node_is_gkes_or_comes_from_its_longest_run() -> None:
    said = {"node.gke.io/machine-termination-datetime": "2026-11-24T08:00:00Z"}
    run = {"cloud.google.com/gke-max-run-duration-seconds": "3600"}
    assert _read(_thing(annotations=said, labels=run)).ends == "2026-11-24T08:00:00Z"
    assert _read(_thing(labels=run)).ends == "2026-11-22T09:00:00Z"
    assert _read(_thing(labels=run), clock=Clock(0.5)).ends == "2026-11-22T08:30:00Z"


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


def test_what_somebody_has_done_about_a_node_is_known() -> None:
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
