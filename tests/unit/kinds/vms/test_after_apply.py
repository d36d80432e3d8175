"""Create is done when all VMs run and have started up, and not when they once did."""

import json
import time
from collections.abc import Sequence
from typing import Any

import pytest

from provision.errors import CapacityError, ClusterError, Problem
from provision.kinds.vms import after_apply
from provision.state.objects import Change
from provision.time.clock import Clock
from tests.unit.conftest import vm_spec
from tests.unit.kinds.cases import having, unheard
from tests.unit.memory_folder import MemoryFolder

VM = "https://www.googleapis.com/compute/v1/projects/my-project/zones/us-central1-a/instances/"
RUNNING: list[dict[str, Any]] = [
    {"instance": VM + name, "instanceStatus": "RUNNING", "currentAction": "NONE"}
    for name in ("np-vm-a", "np-vm-b")
]
LOST: list[dict[str, Any]] = [
    RUNNING[0],
    {"instance": VM + "np-vm-b", "currentAction": "RECREATING"},
]
NO_ROOM = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no room"}
REFUSED: list[dict[str, Any]] = [
    RUNNING[0],
    {**LOST[1], "lastAttempt": {"errors": {"errors": [NO_ROOM]}}},
]
STOPPED: list[dict[str, Any]] = [RUNNING[0], {**RUNNING[1], "instanceStatus": "TERMINATED"}]


class FakeApi:
    """A Google whose group is, look by look, in these states; all VMs have started up."""

    def __init__(self, *looks: list[dict[str, Any]]) -> None:
        self.looks = list(looks)

    def managed_instances(self, *_: str) -> list[dict[str, Any]]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def find(self, *_: object) -> dict[str, Any]:
        return {}

    def named_instances(self, *_: str) -> list[dict[str, Any]]:
        return [
            {"name": name, "status": "RUNNING", "machineType": "a2-highgpu-2g"}
            for name in ("np-vm-a", "np-vm-b")
        ]

    def whole_instances(self, _project: str, _zone: str, names: list[str]) -> list[dict[str, Any]]:
        return [it for it in self.named_instances() if it["name"] in names]

    def guest_attributes(self, *_: str) -> dict[str, str]:
        return {"startup": json.dumps({"state": "done", "steps": {"agent": {"state": "done"}}})}

    def operations_of(self, *_: object) -> list[dict[str, Any]]:
        return [
            {
                "operationType": "compute.instances.preempted",
                "targetLink": VM + "np-vm-b",
                "insertTime": "2026-11-22T10:00:00Z",
            }
        ]

    def zones_with(self, *_: str) -> set[str]:
        return set()


class Folder(MemoryFolder):
    """A state folder in which both VMs say that they live, look by look so many seconds ago."""

    def __init__(self, *beats: float) -> None:
        super().__init__()
        self.beats = list(beats)

    def changed(self, _kept: object, *_parts: str) -> dict[str, Change]:
        ago = self.beats.pop(0) if len(self.beats) > 1 else self.beats[0]
        return {"np-vm-a": Change(time.time(), {}), "np-vm-b": Change(time.time() - ago, {})}


def _started(
    api: FakeApi,
    *,
    beats: Sequence[float] = (0.0,),
    folder: Folder | None = None,
    **settings: str,
) -> tuple[list[str], list[Problem]]:
    """The VMs that have started up in the end, and the notes."""
    spec = vm_spec(**{"INSTANCE_COUNT": "2", "SHOW_PROXY_URL": "no", **settings})
    notes: list[Problem] = []
    context = having(clock=Clock(0), progress=unheard(), note=notes.extend)
    now = after_apply.Started(
        context, having(api=api, folder=folder or Folder(*beats)), spec
    ).wait()
    assert now.told.keys() == {it["name"] for it in now.seen.documents}
    return sorted(now.told), notes


def test_a_create_is_done_at_once_or_waits_a_moment_for_a_sign_of_life() -> None:
    assert _started(FakeApi(RUNNING)) == (["np-vm-a", "np-vm-b"], [])
    assert _started(FakeApi(RUNNING), beats=(720, 720, 0)) == (["np-vm-a", "np-vm-b"], [])


def test_a_vm_that_is_lost_after_its_start_up_is_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # The group is looked at for the VMs, and when all else was waited for.
    api = FakeApi(RUNNING, LOST, LOST, RUNNING)
    vms, (note,) = _started(api)
    assert vms == ["np-vm-a", "np-vm-b"]
    assert api.looks == [RUNNING]
    assert note.what.startswith("np-vm-b was preempted; it does not exist: its group makes it")
    monkeypatch.setattr("provision.time.deadline._SHORTEST", 0.0)
    api = FakeApi(RUNNING, RUNNING, LOST, RUNNING)
    vms, (note,) = _started(api, beats=(720, 720, 0))
    assert vms == ["np-vm-a", "np-vm-b"]
    assert note.what.startswith("np-vm-b was preempted")


def test_a_place_that_google_refuses_ends_the_wait() -> None:
    with pytest.raises(CapacityError) as caught:
        _started(FakeApi(RUNNING, REFUSED))
    assert "1 of 2 VMs run" in caught.value.problems[0].what


def test_flex_start_makes_no_vm_again() -> None:
    with pytest.raises(ClusterError) as caught:
        _started(FakeApi(RUNNING, STOPPED), ENABLE_FLEX_START="yes")
    assert "np-vm-b was preempted; it is TERMINATED" in caught.value.problems[0].what


def test_a_vm_that_started_up_long_ago_and_says_nothing_ends_a_create(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("provision.time.deadline._SHORTEST", 0.1)
    with pytest.raises(ClusterError) as caught:
        _started(FakeApi(RUNNING), beats=(720,))
    (problem,) = caught.value.problems
    assert problem.what == "np-vm-b has not been heard of for 12 min"
    assert "instances reset np-vm-b --zone us-central1-a --project my-project" in problem.fix
    assert caught.value.exit_code == 8


def test_vms_that_say_that_something_is_broken_end_a_create() -> None:
    folder = Folder(0.0)
    members = [
        {"name": "np-vm-a", "rank": 0, "present": True, "disks": ["the boot disk is 97 % full"]},
        {"name": "np-vm-b", "rank": 1, "present": True, "faults": ["7 GPUs instead of 8"]},
    ]
    folder.write("vms/roster.json", json.dumps({"members": members}), "application/json")
    with pytest.raises(ClusterError) as caught:
        _started(FakeApi(RUNNING), folder=folder)
    (problem,) = caught.value.problems
    assert problem.what == (
        "the GPUs of np-vm-b complain: 7 GPUs instead of 8; np-vm-a says: the boot disk is 97 %"
        " full"
    )
    assert "--instances=np-vm-b" in problem.fix
    assert caught.value.exit_code == 8


class Notebooks:
    """Looks at all VMs: each gets its URL at a look of its own."""

    def __init__(self, appears: dict[str, int]) -> None:
        self.appears = appears
        self.looks = 0

    def __call__(self) -> dict[str, str | None]:
        self.looks += 1
        return {
            name: f"https://{name}" if look <= self.looks else None
            for name, look in self.appears.items()
        }


def _urls(notebooks: Notebooks, wanted: set[str]) -> dict[str, str]:
    return after_apply.wait_for_urls(notebooks, wanted, progress=unheard())


def test_urls_are_looked_for_at_all_vms_at_once_that_have_a_notebook() -> None:
    notebooks = Notebooks({f"vm{number}": 1 + number % 3 for number in range(1000)})
    assert len(_urls(notebooks, set(notebooks.appears))) == 1000
    assert notebooks.looks == 3
    notebooks = Notebooks({"a": 1, "b": 10**6})
    assert _urls(notebooks, {"a"}) == {"a": "https://a"}


def test_there_is_one_deadline_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("provision.time.deadline._SHORTEST", 0.2)
    notebooks = Notebooks({f"vm{number}": 10**6 for number in range(100)} | {"a": 1})
    assert _urls(notebooks, set(notebooks.appears)) == {"a": "https://a"}
    assert notebooks.looks < 10
