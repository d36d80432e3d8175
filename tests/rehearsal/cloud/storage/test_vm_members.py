"""What the agents of simulated VMs say of themselves, and agree on."""

import json
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud.compute import startup_told
from rehearsal.cloud.compute.resources import INSTANCE
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import moment
from tests.rehearsal.cloud.sending import NOW, States

FOLDER = "np-deployment"

Json = dict[str, Any]


class State(States):
    """A state folder, and the VMs that share a part of it."""

    def size(self, number: int) -> None:
        """Say how many VMs there are to be, as Create does."""
        self.write(f"{FOLDER}/vms/group.json", json.dumps({"instance_count": number}).encode())

    def boot(self, name: str, number: int = 1, **told: Any) -> None:
        """Make a VM that has started a minute ago."""
        startup = {"begins": NOW - 600, "pace": 1.0, "skipped": {}, "failing": None, "number": 1}
        startup |= told
        vm = {
            "name": name,
            "id": f"{number}",
            "networkInterfaces": [{"networkIP": f"10.0.0.{number}"}],
            "_timeline": [[NOW - 600, "RUNNING"]],
            "_startup": {"shared": ["states", FOLDER], **startup},
        }
        with self.database.transaction() as store:
            store.put(INSTANCE.stored, f"projects/p/zones/z/instances/{name}", vm)

    def silence(self, name: str) -> None:
        """Take a VM's account away, without which it says nothing any more."""
        with self.database.transaction() as store:
            key = f"projects/p/zones/z/instances/{name}"
            vm = store.get(INSTANCE.stored, key)
            assert vm is not None
            store.put(INSTANCE.stored, key, {**vm, "_accounts": {"gone@p": "1"}})

    def end(self, name: str) -> None:
        """Delete a VM."""
        with self.database.transaction() as store:
            store.delete(INSTANCE.stored, f"projects/p/zones/z/instances/{name}")

    def roster(self) -> Json:
        """The roster; empty where there is none."""
        found = self.read(f"{FOLDER}/vms/roster.json")
        if found.status != 200:
            return {}
        assert isinstance(found.body, bytes)
        document: Json = json.loads(found.body)
        return document

    def ranks(self) -> dict[str, int]:
        """The ranks of those that are there."""
        members = self.roster().get("members", [])
        return {it["name"]: it["rank"] for it in members if it["present"]}

    def beats(self) -> dict[str, float]:
        """How many seconds ago each VM was heard of, that says something of itself."""
        return {name: self.now - moment(it["updated"]) for name, it in self._members().items()}

    def done(self) -> dict[str, str | None]:
        """What each VM says with its heartbeat of a start-up that is done."""
        members = self._members().items()
        return {
            name: json.loads(it["metadata"].get("startup", "{}")).get("state")
            for name, it in members
        }

    def _members(self) -> dict[str, Json]:
        prefix = f"{FOLDER}/vms/members/"
        listed = self.listed(f"prefix={prefix}")
        return {it["name"].removeprefix(f"{prefix}np-vm-")[:-5]: it for it in listed}


@pytest.fixture
def state(tmp_path: Path) -> State:
    """A state folder on which no VM has written yet."""
    return State(Database(tmp_path / "cloud.sqlite"), "rehearsal-host")


def test_vms_agree_on_ranks_once_they_hear_how_many_they_are(state: State) -> None:
    for number, name in enumerate(("b", "a", "c"), 1):
        state.boot(f"np-vm-{name}", number)
    assert list(state.beats()) == ["a", "b", "c"]
    assert state.roster() == {}

    state.size(3)

    assert state.ranks() == {"np-vm-a": 0, "np-vm-b": 1, "np-vm-c": 2}
    assert state.roster()["nnodes"] == 3
    assert state.roster()["generation"] == 1, "a second look changes nothing"


def test_a_rank_stays_and_that_of_a_vm_that_is_gone_goes_to_a_new_one(state: State) -> None:
    state.size(2)
    state.boot("np-vm-b", 1)
    assert state.ranks() == {"np-vm-b": 0}
    state.boot("np-vm-a", 2)
    assert state.ranks() == {"np-vm-b": 0, "np-vm-a": 1}

    state.end("np-vm-b")
    assert state.ranks() == {"np-vm-a": 1}
    assert list(state.beats()) == ["a"]
    state.boot("np-vm-c", 3)
    assert state.ranks() == {"np-vm-a": 1, "np-vm-c": 0}


def test_a_heartbeat_says_of_a_start_up_only_that_it_is_done(state: State) -> None:
    state.rate = 1.0
    state.boot("np-vm-a", 1)
    state.boot("np-vm-b", 2, begins=NOW - startup_told.length({}) + 20)
    state.boot("np-vm-c", 3, failing="command")
    assert state.done() == {"a": "done", "b": None, "c": None}
    state.now += 300
    assert state.done() == {"a": "done", "b": "done", "c": None}


def test_a_vm_that_is_not_so_far_or_may_not_write_says_nothing(state: State) -> None:
    state.size(3)
    state.boot("np-vm-a", 1)
    state.boot("np-vm-b", 2, begins=NOW - 1)
    state.boot("np-vm-c", 3, **{"went-on": {"agent": "it may not write"}})

    assert state.ranks() == {"np-vm-a": 0}


def test_hearts_beat_each_minute_and_who_says_nothing_is_away_after_200_seconds(
    state: State,
) -> None:
    state.rate = 1.0
    state.size(2)
    state.boot("np-vm-a", 1)
    state.boot("np-vm-b", 2)
    assert state.ranks() == {"np-vm-a": 0, "np-vm-b": 1}
    state.now += 59
    assert state.beats() == {"a": 59, "b": 59}
    state.now += 1
    assert state.beats() == {"a": 0, "b": 0}

    state.silence("np-vm-b")
    state.now += 199
    assert state.beats() == {"a": 0, "b": 199}
    assert state.ranks() == {"np-vm-a": 0, "np-vm-b": 1}
    state.now += 1
    assert state.ranks() == {"np-vm-a": 0}
    away = state.roster()["members"][1]
    assert (away["name"], moment(away["since"])) == ("np-vm-b", state.now - 200)
    state.now += 300
    assert state.roster()["members"][1]["since"] == away["since"]
    assert state.beats() == {"a": 0}


@pytest.mark.parametrize("number", ["4", "x", True, 0, 10_001, None, [2]])
def test_a_number_of_vms_that_is_none_changes_no_rank(state: State, number: object) -> None:
    state.boot("np-vm-a", 1)
    state.size(1)
    assert state.ranks() == {"np-vm-a": 0}

    state.write(f"{FOLDER}/vms/group.json", json.dumps({"instance_count": number}).encode())
    state.boot("np-vm-b", 2)

    assert state.ranks() == {"np-vm-a": 0}
    state.size(2)
    assert state.ranks() == {"np-vm-a": 0, "np-vm-b": 1}


SPOILED = [
    b"no JSON",
    b"[]",
    b'{"members": {"a": 1}}',
    b'{"members": [{"name": "a", "rank": "0"}]}',
]


@pytest.mark.parametrize("text", SPOILED)
def test_a_roster_or_a_member_that_is_spoiled_is_nobodys_word(state: State, text: bytes) -> None:
    state.rate = 1.0
    state.boot("np-vm-a", 1)
    state.size(2)
    assert state.ranks() == {"np-vm-a": 0}

    state.write(f"{FOLDER}/vms/roster.json", text)
    state.write(f"{FOLDER}/vms/members/np-vm-x.json", text)
    state.write(f"{FOLDER}/vms/members/np-vm-a.json", text)

    assert state.ranks() == {"np-vm-a": 0}
    assert state.roster()["generation"] == 1, "it is begun again"
    assert state.beats().keys() == {"a", "x"}
