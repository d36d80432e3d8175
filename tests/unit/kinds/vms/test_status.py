"""What Status says of VMs: how many run, what became of the others, and what is coming."""

from __future__ import annotations

from typing import Any, cast

import pytest

from provision.kinds.vms import status
from provision.kinds.vms.resize_requests import ResizeRequest
from provision.state.record import Record

RUNNING: dict[str, Any] = {
    "name": "np-vm-a",
    "status": "RUNNING",
    "startup": {"words": "has started up", "state": "done", "detail": ""},
    "remaining_seconds": None,
    "maintenance_seconds": None,
    "interruption": None,
    "notebook": None,
}
PREEMPTED = {"event": "preempted", "seconds_ago": 120, "words": "was preempted 2 min ago"}
LOST = {
    "name": "np-vm-b",
    "words": "does not exist: its group makes it as soon as there is room",
    "reasons": ["no room"],
    "interruption": PREEMPTED,
}


def _lines(*vms: dict[str, Any], **found: Any) -> list[str]:
    running = sum(vm["status"] == "RUNNING" for vm in vms)
    usual = {"zone": "us-central1-a", "wanted": 2, "running": running, "down": [], "requests": []}
    usual["image"] = {"project": None, "family": None, "name": None}
    return list(status.lines({**usual, "vms": list(vms), **found}))


def test_a_vm_that_is_gone_is_told_with_what_happened_and_googles_reason() -> None:
    assert _lines(RUNNING, down=[LOST]) == [
        "1 of 2 VMs run in us-central1-a:",
        "  np-vm-a RUNNING, has started up",
        (
            "np-vm-b was preempted 2 min ago; it does not exist:"
            " its group makes it as soon as there is room"
        ),
        "  no room",
    ]


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"maintenance_seconds": 3000}, "; Google stops it in 50 min to maintain its host"),
        ({"interruption": PREEMPTED}, "; was preempted 2 min ago"),
        ({"interruption": {**PREEMPTED, "seconds_ago": 90_000}}, ""),
    ],
)
def test_a_vm_that_runs_tells_what_it_met_lately_and_what_is_coming(
    change: dict[str, Any], line: str
) -> None:
    assert _lines(RUNNING | change)[1] == f"  np-vm-a RUNNING, has started up{line}"


def test_the_start_up_of_a_vm_that_is_down_is_not_told() -> None:
    stopped = {"status": "STOPPING", "startup": {**RUNNING["startup"], "words": "nonsense"}}
    assert _lines(RUNNING | stopped)[:2] == [
        "0 of 2 VMs run in us-central1-a:",
        "  np-vm-a STOPPING",
    ]


def _ended(there: int, limit: int | None = 3600, *requests: str) -> list[str]:
    fields = ("kind", "cluster_id", "project_id", "name_prefix", "region", "zone")
    texts = dict.fromkeys((*fields, "tool_version", "terraform_version"), "x")
    record = Record(**cast("Any", texts), settings={"MAX_RUN_DURATION": limit})
    known = [
        ResizeRequest.of({"name": "np-1", "resizeBy": 1, "state": state}) for state in requests
    ]
    return [note.what for note in status._ended(record, 2, there, known)]


def test_vms_whose_run_is_over_are_missed() -> None:
    assert _ended(1) == ["1 of 2 VMs are no longer part of the group"]
    assert _ended(1, 3600, "SUCCEEDED") == ["1 of 2 VMs are no longer part of the group"]


def test_vms_that_are_all_there_or_still_to_come_are_not_missed() -> None:
    assert _ended(2) == []
    assert _ended(1, None) == []
    assert _ended(1, 3600, "ACCEPTED") == []
