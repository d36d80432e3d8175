"""What the tool tells a group of VMs, and reads of what they have agreed on."""

from __future__ import annotations

import datetime as dt
import json
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from provision.documents.vm_status import StartupStep
from provision.kinds.vms import agent
from provision.time.clock import Clock
from tests.unit.memory_folder import MemoryFolder

if TYPE_CHECKING:
    from provision.context import Cloud
    from provision.spec.cluster import VmSpec


def _cloud(folder: MemoryFolder) -> Cloud:
    return cast("Cloud", SimpleNamespace(folder=folder))


def _spec(size: int) -> VmSpec:
    group = SimpleNamespace(size=SimpleNamespace(first=size))
    return cast("VmSpec", SimpleNamespace(group=group))


def test_the_number_of_vms_is_written_when_it_is_another() -> None:
    folder = MemoryFolder()
    for size in (3, 3, 4):
        agent.tell_size(_cloud(folder), _spec(size))

    assert folder.written == ['{"instance_count": 3}', '{"instance_count": 4}']


@pytest.mark.parametrize(
    "text",
    [None, "", "[]", "no JSON", '{"members": {"a": 1}}', '{"members": [{"name": "a"}]}'],
    ids=str,
)
def test_a_roster_that_is_missing_or_spoiled_ranks_nobody(text: str | None) -> None:
    folder = MemoryFolder({} if text is None else {"vms/roster.json": text})
    assert agent.seats(_cloud(folder)) == {}
    assert agent.accounts(folder) == {}


AWAY = {"name": "a", "rank": 0, "present": False}
MINUTE = 60.0


def _silence(
    *,
    seat: dict[str, object] | None = None,
    beat: float | None = None,
    step: str = "done",
    age: float = 60 * MINUTE,
) -> str:
    """What is said of a VM, all of whose moments are so many seconds ago."""
    now = time.time()
    folder = MemoryFolder(now=now - (beat or 0))
    if seat is not None:
        folder.files["vms/roster.json"] = json.dumps({"members": [seat]})
    if beat is not None:
        folder.files["vms/members/a.json"] = "{}"
    heard = agent.heard(_cloud(folder))
    steps = {"agent": StartupStep(state=step)} if step else {}
    return heard.silence("a", steps, _moment(now - age), Clock())


def _moment(at: float) -> str:
    return dt.datetime.fromtimestamp(at, dt.UTC).isoformat()


def test_a_vm_whose_heart_beats_is_heard_of_whatever_the_roster_says() -> None:
    assert not _silence(seat=AWAY, beat=2 * MINUTE)
    assert not _silence(seat=None, beat=2 * MINUTE), "it is more than the group is to have"


def test_of_a_fleet_of_one_that_hangs_only_its_last_heartbeat_tells() -> None:
    found = _silence(seat=AWAY | {"present": True}, beat=12 * MINUTE)
    assert found == "has not been heard of for 12 min"


def test_a_vm_that_the_others_miss_is_silent_since_they_last_heard_of_it() -> None:
    since = _moment(time.time() - 20 * MINUTE)
    assert _silence(seat=AWAY | {"since": since}) == "has not been heard of for 20 min"
    assert _silence(seat=AWAY) == "has not been heard of"
    assert not _silence(seat=AWAY | {"present": True}), "it is about to be listed"


@pytest.mark.parametrize("since", [7, "x", "9999-99-99", None], ids=str)
def test_a_moment_that_is_none_makes_no_vm_heard_of(since: object) -> None:
    assert _silence(seat=AWAY | {"since": since}) == "has not been heard of"


def test_a_vm_that_nobody_knows_is_silent_five_minutes_after_its_start() -> None:
    assert not _silence(age=4 * MINUTE)
    assert _silence(age=6 * MINUTE) == "has not been heard of"
    assert not _silence(step="failed"), "its step says why"


@pytest.mark.parametrize("step", ["", "running", "skipped"])
def test_a_vm_that_is_not_to_say_anything_yet_or_at_all_is_not_silent(step: str) -> None:
    """VMs of an earlier version have no such step; a VM that was made again has not come to it."""
    assert not _silence(seat=AWAY, step=step)
    assert not _silence(beat=12 * MINUTE, step=step)


def test_a_vm_that_is_away_has_its_faults_and_no_rank() -> None:
    seat = AWAY | {"faults": ["NVRM: Xid 79"]}
    folder = MemoryFolder({"vms/roster.json": json.dumps({"members": [seat]})})
    (found,) = agent.seats(_cloud(folder)).values()
    assert (found.rank, found.faults) == (None, ("NVRM: Xid 79",))


def test_an_account_that_is_no_number_never_comes_into_a_command() -> None:
    members = [
        {"instance_id": "1", "account": "103271949540120710052", "present": False},
        {"instance_id": "2", "account": "1; rm -rf ~"},
        {"instance_id": "3", "account": None},
    ]
    folder = MemoryFolder({"vms/roster.json": json.dumps({"members": members})})
    assert agent.accounts(folder) == {"1": "103271949540120710052"}


@pytest.mark.parametrize("text", ["", "[]", '{"state": 7}', "no JSON"])
def test_an_answer_that_a_program_has_spoiled_is_a_failure(text: str) -> None:
    answer = agent.Answer.of(text.encode())
    assert answer.is_over
    assert answer.failure == "failed: its answer can't be read"
