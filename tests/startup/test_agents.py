"""Agents of several VMs, in threads of one process, on the simulated Cloud Storage.

Each has a disk and a metadata of its own; times are a hundredth of what they are.
"""

import contextlib
import json
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from rehearsal.cloud.server import Cloud
from tests import waiting
from tests.startup.sandbox import PAYLOAD
from tests.waiting import until

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import agent, job_node, storage, tasks
from aiinfra_vm.leadership import Leadership
from aiinfra_vm.members import Member

BUCKET, FOLDER = "my-bucket", "train-deployment"
PACE = agent.Pace().times(0.01)
_wait = until


@dataclass
class State:
    """The state folder, as the tool reads and writes it."""

    url: str

    def write(self, name: str, document: Any) -> None:
        """Write an object."""
        path = f"upload/storage/v1/b/{BUCKET}/o?uploadType=media&name="
        self._ask(path + quote(f"{FOLDER}/{name}"), "POST", json.dumps(document).encode())

    def read(self, name: str) -> Any:
        """An object's document; None if there is none."""
        path = f"storage/v1/b/{BUCKET}/o/{quote(f'{FOLDER}/{name}', safe='')}?alt=media"
        try:
            return json.loads(self._ask(path, "GET"))
        except OSError:
            return None

    def names(self, prefix: str = "vms/") -> list[str]:
        """The objects that there are."""
        path = f"storage/v1/b/{BUCKET}/o?prefix={quote(f'{FOLDER}/{prefix}')}"
        items = json.loads(self._ask(path, "GET")).get("items", [])
        return [item["name"].removeprefix(f"{FOLDER}/") for item in items]

    def make_bucket(self) -> None:
        """Make the bucket."""
        self._ask(
            "storage/v1/b?project=rehearsal-host", "POST", json.dumps({"name": BUCKET}).encode()
        )

    def _ask(self, path: str, method: str, body: bytes | None = None) -> bytes:
        headers = {"Content-Type": "application/json"}
        request = Request(f"{self.url}/{path}", data=body, headers=headers, method=method)  # noqa: S310 - loopback
        with urlopen(request) as answer:  # noqa: S310 - loopback
            return bytes(answer.read())


class Vm:
    """A VM on which nothing runs but the agent."""

    def __init__(
        self, folder: Path, name: str, life: int = 1, unit: job_node.Unit | None = None
    ) -> None:
        self.name = name
        self.disk = folder / name
        self.member = Member(name, str(life), f"127.0.{life}.{name[-1]}", "b007")
        shared = storage.Folder(BUCKET, f"{FOLDER}/vms")
        wanted = storage.Folder(BUCKET, f"{FOLDER}/jobs")
        config = {"gpus": {"count": 8}}
        self._agent = agent.Agent(shared, wanted, self.member, config, PACE, self.disk, unit)
        self._thread = threading.Thread(target=self._agent.run, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the agent as systemd does."""
        self._agent.stop()
        self._thread.join(waiting.SECONDS)
        assert not self._thread.is_alive()

    def die(self) -> None:
        """End the agent without a word to anybody."""
        self._agent._leader.resign = lambda: None  # type: ignore[method-assign]
        self.stop()

    @property
    def peers(self) -> dict[str, Any]:
        """What programs on this VM read of the group."""
        file = self.disk / "run/aiinfra/peers.json"
        found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
        return found

    @property
    def environment(self) -> dict[str, str]:
        """The variables that programs get."""
        lines = (self.disk / "run/aiinfra/peers.env").read_text().splitlines()
        return dict(line.split("=", 1) for line in lines)


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[State]:
    """A state folder, and the cloud around it."""
    with Cloud(database=tmp_path / "cloud.sqlite") as cloud:
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", cloud.base_url)
        monkeypatch.setenv("GCE_METADATA_HOST", cloud.base_url.removeprefix("http://"))
        monkeypatch.setenv("PYTHONPATH", str(PAYLOAD / "lib"))
        found = State(cloud.base_url)
        found.make_bucket()
        yield found


@pytest.fixture
def boot(tmp_path: Path) -> Iterator[Callable[..., Vm]]:
    """Boots VMs, which are stopped in the end."""
    booted: list[Vm] = []

    def start(name: str, life: int = 1) -> Vm:
        booted.append(Vm(tmp_path, name, life))
        return booted[-1]

    yield start
    for vm in booted:
        vm.stop()


def _agree(vms: list[Vm], size: int) -> None:
    _wait(lambda: all(vm.peers.get("complete") and vm.peers["nnodes"] == size for vm in vms))
    _wait(lambda: len({vm.peers["generation"] for vm in vms}) == 1)


def test_all_vms_agree_on_ranks_which_survive_a_death_and_a_repair(
    state: State, boot: Callable[..., Vm]
) -> None:
    vms = [boot("vm-1"), boot("vm-2"), boot("vm-3")]
    _wait(lambda: len(state.names("vms/members/")) == 3)
    assert not any(vm.peers for vm in vms), "nobody has said how many they are"

    state.write("vms/group.json", {"instance_count": 3})
    _agree(vms, 3)

    ranks = {vm.name: vm.peers["rank"] for vm in vms}
    assert sorted(ranks.values()) == [0, 1, 2]
    (master,) = {vm.environment["MASTER_ADDR"] for vm in vms}
    assert master == next(vm.member.address for vm in vms if vm.peers["rank"] == 0)
    (leader,) = [vm for vm in vms if vm.name == state.read("vms/leader.json")["vm"]]

    leader.die()
    others = [vm for vm in vms if vm is not leader]
    _wait(lambda: all(vm.peers["complete"] is False for vm in others))
    assert state.read("vms/leader.json")["vm"] != leader.name
    assert {vm.name: vm.peers["rank"] for vm in others} == {
        vm.name: ranks[vm.name] for vm in others
    }

    again = boot(leader.name, life=2)
    _agree([*others, again], 3)
    assert again.peers["rank"] == ranks[leader.name]
    assert {it["address"] for it in others[0].peers["members"]} >= {again.member.address}


def test_a_smaller_group_has_no_place_for_one_and_a_larger_one_has(
    state: State, boot: Callable[..., Vm]
) -> None:
    state.write("vms/group.json", {"instance_count": 1})
    first = boot("vm-1")
    _agree([first], 1)
    second = boot("vm-2")
    _wait(lambda: second.peers.get("nnodes") == 1)
    assert second.peers["rank"] is None
    assert "NODE_RANK" not in second.environment

    state.write("vms/group.json", {"instance_count": 2})
    _agree([first, second], 2)
    assert [vm.peers["rank"] for vm in (first, second)] == [0, 1]


def test_a_roster_that_somebody_spoiled_is_written_on_no_disk_and_made_anew(
    state: State, boot: Callable[..., Vm]
) -> None:
    state.write("vms/group.json", {"instance_count": 1})
    vm = boot("vm-1")
    _agree([vm], 1)
    evil = vm.peers["members"][0] | {"address": "$(touch /tmp/evil)"}

    state.write("vms/roster.json", {"nnodes": 1, "generation": 7, "members": [evil]})

    _wait(lambda: state.read("vms/roster.json")["members"][0]["address"] == vm.member.address)
    assert "evil" not in json.dumps(vm.peers)


def test_one_of_many_leads_and_another_when_that_says_nothing_any_more(
    state: State, monkeypatch: pytest.MonkeyPatch
) -> None:
    del state
    moment = 1000.0
    monkeypatch.setattr("aiinfra_vm.leadership.time.monotonic", lambda: moment)
    shared = storage.Folder(BUCKET, f"{FOLDER}/vms")
    first, second = (
        Leadership(shared, Member(f"vm-{it}", str(it), "10.0.0.1", ""), 100) for it in (1, 2)
    )

    assert (first.hold(), second.hold()) == (True, False)
    moment = 1090.0
    assert (first.hold(), second.hold()) == (True, False)
    moment = 1189.0
    assert not second.hold(), "it was renewed while this one watched, 99 seconds ago"
    moment = 1191.0
    assert second.hold()
    assert not first.hold(), "it is another's by now"
    second.resign()
    assert first.hold()


def _done(state: State, task: str, vm: str) -> dict[str, Any]:
    """The result of a VM once it is final."""
    name = f"vms/results/{task}/{vm}.json"
    _wait(lambda: (state.read(name) or {"state": "running"})["state"] != "running")
    found: dict[str, Any] = state.read(name)
    return found


def _task(vms: list[Vm], task: str, **fields: Any) -> dict[str, Any]:
    asked = {vm.name: vm.member.instance_id for vm in vms}
    return {"id": task, "kind": "peers", "arguments": {}, "vms": asked, "seconds": 20, **fields}


_NAP = """
import os, subprocess, sys, time

def run(arguments):
    with open(arguments["log"], "a") as log:
        log.write("begun\\n")
    if arguments.get("fail"):
        raise RuntimeError("out of order")
    subprocess.Popen(["sleep", "1000"])
    print("working", file=sys.stderr, flush=True)
    time.sleep(arguments["seconds"])
    return {"slept": arguments["seconds"]}
"""


@pytest.fixture
def nap(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One more kind of task, `nap`, in a copy of the programs; the file that it writes to."""
    programs = tmp_path / "lib"
    shutil.copytree(PAYLOAD / "lib", programs, ignore=shutil.ignore_patterns("__pycache__"))
    kinds = programs / "aiinfra_vm/tasks"
    (kinds / "nap.py").write_text(_NAP)
    with (kinds / "__init__.py").open("a") as file:
        file.write('\nKINDS["nap"] = "aiinfra_vm.tasks.nap"\n')
    monkeypatch.setenv("PYTHONPATH", str(programs))
    monkeypatch.setitem(tasks.KINDS, "nap", "aiinfra_vm.tasks.nap")
    return tmp_path / "log"


def _naps(nap: Path) -> int:
    """How many processes still have a nap's folder of programs in their environment."""
    found = 0
    for process in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            found += f"PYTHONPATH={nap.parent}/lib".encode() in process.read_bytes()
    return found


def _alone(state: State, boot: Callable[..., Vm]) -> Vm:
    state.write("vms/group.json", {"instance_count": 1})
    vm = boot("vm-1")
    _agree([vm], 1)
    return vm


def test_each_vm_that_is_asked_does_a_task_once_and_the_next_one_clears_its_results_away(
    state: State, boot: Callable[..., Vm]
) -> None:
    state.write("vms/group.json", {"instance_count": 2})
    vms = [boot("vm-1"), boot("vm-2")]
    _agree(vms, 2)

    state.write("vms/task.json", _task(vms, "first", arguments={"what": "is this"}))
    for vm in vms:
        result = _done(state, "first", vm.name)
        assert result["state"] == "refused"
        assert "it takes no arguments" in result["detail"]
        assert (result["vm"], result["instance_id"]) == (vm.name, "1")

    state.write("vms/task.json", _task(vms[:1], "second", kind="launch-missiles"))
    result = _done(state, "second", "vm-1")
    assert result["state"] == "refused"
    assert "this VM knows the tasks" in result["detail"]
    _wait(lambda: state.names("vms/results/") == ["vms/results/second/vm-1.json"])

    # Of an earlier life of this VM: its group has made it again since.
    state.write("vms/task.json", _task(vms, "third") | {"vms": {"vm-1": "77"}})
    time.sleep(PACE.idle * 3)
    assert not state.names("vms/results/third/")


def test_a_task_ends_with_its_answer_and_all_that_it_started_ends_with_it(
    state: State, boot: Callable[..., Vm], nap: Path
) -> None:
    vm = _alone(state, boot)
    about = {"log": str(nap), "seconds": 0.1}

    state.write("vms/task.json", _task([vm], "one", kind="nap", arguments=about))
    result = _done(state, "one", vm.name)

    assert (result["state"], result["answer"]) == ("done", {"slept": 0.1})
    assert result["detail"] == "working"
    state.write("vms/task.json", _task([vm], "two", kind="nap", arguments=about | {"fail": True}))
    result = _done(state, "two", vm.name)
    assert result["state"] == "failed"
    assert result["detail"].endswith("RuntimeError: out of order")


def test_a_task_whose_time_is_over_or_that_gives_way_to_another_is_ended(
    state: State, boot: Callable[..., Vm], nap: Path
) -> None:
    vm = _alone(state, boot)
    about = {"log": str(nap), "seconds": 1000}

    state.write("vms/task.json", _task([vm], "long", kind="nap", arguments=about, seconds=1))
    late = _done(state, "long", vm.name)
    state.write("vms/task.json", _task([vm], "longer", kind="nap", arguments=about))
    _wait(lambda: (state.read("vms/results/longer/vm-1.json") or {}).get("state") == "running")
    _wait(lambda: nap.read_text().count("begun") == 2)
    state.write("vms/task.json", _task([vm], "next"))

    assert (late["state"], late["detail"]) == ("late", "working\nstopped after 1 s")
    assert _done(state, "next", vm.name)["state"] == "failed", "its /run/aiinfra is no VM's"
    _wait(lambda: _naps(nap) == 0)


def test_a_task_that_a_restart_cut_off_is_told_and_not_begun_again(
    state: State, boot: Callable[..., Vm], nap: Path
) -> None:
    vm = _alone(state, boot)
    about = {"log": str(nap), "seconds": 1000}
    state.write("vms/task.json", _task([vm], "long", kind="nap", arguments=about))
    _wait(nap.exists)

    vm.stop()
    boot(vm.name)

    assert _done(state, "long", vm.name)["state"] == "cut-off"
    time.sleep(PACE.idle * 3)
    assert nap.read_text() == "begun\n"


def test_what_could_not_be_written_is_written_when_it_can_be(
    state: State, boot: Callable[..., Vm], tmp_path: Path
) -> None:
    state.write("vms/group.json", {"instance_count": 1})
    # A file where the folder is to be.
    in_the_way = tmp_path / "vm-1/run"
    in_the_way.parent.mkdir()
    in_the_way.touch()
    vm = boot("vm-1")
    _wait(lambda: state.read("vms/roster.json"))
    time.sleep(PACE.idle * 2)

    in_the_way.unlink()

    _agree([vm], 1)
