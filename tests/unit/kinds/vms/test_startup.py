"""Start-ups: who is asked how often, what ends the wait, and who is named."""

import datetime as dt
import json
import re
import threading
import time
from collections.abc import Sequence
from typing import Any, cast

import pytest

from provision.documents.vm_status import GpuCheck
from provision.errors import ClusterError, Problem
from provision.google.api import GoogleApi
from provision.kinds import happened
from provision.kinds.happened import Event
from provision.kinds.vms import instances, startup
from provision.kinds.vms.instances import Interruption, Vm
from provision.kinds.vms.startup import Reader, Startup
from provision.spec.pools import Group
from provision.state import objects
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.stages import Progress
from tests.table import cases
from tests.unit.kinds.cases import having

AT_ONCE = Clock(0)
PLACE = having(project_id="p", zone="z")


def _told(state: str, step: str | None = None, detail: str = "", **more: Any) -> dict[str, str]:
    steps = {step: {"state": state, "detail": detail}} if step else {}
    return {"startup": json.dumps({"state": state, "step": step, "steps": steps, **more})}


DONE = _told("done")


class FakeApi:
    """VMs that answer each look with the next of their guest attributes."""

    def __init__(self, **vms: list[dict[str, str]]) -> None:
        self.vms = {name.replace("_", "-"): list(looks) for name, looks in vms.items()}
        self.resets: dict[str, str] = {}
        self.asked: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self._lock = threading.Lock()

    def operations_of(self, project: str, zone: str, types: list[str]) -> list[dict[str, str]]:
        assert (project, zone) == ("p", "z")
        assert "reset" in types
        return [
            {"targetLink": f"zones/z/instances/{n}", "insertTime": at, "operationType": "reset"}
            for n, at in self.resets.items()
        ]

    def guest_attributes(self, path: str, namespace: str) -> dict[str, str]:
        assert namespace == "aiinfra"
        name = path.rpartition("/")[2]
        with self._lock:
            self.asked.append(name)
            self.at_once += 1
            self.most_at_once = max(self.most_at_once, self.at_once)
        time.sleep(0.001)  # so that requests at once meet
        with self._lock:
            self.at_once -= 1
        looks = self.vms[name]
        return looks.pop(0) if len(looks) > 1 else looks[0]


def _wait(api: FakeApi) -> tuple[dict[str, Startup], list[str]]:
    said: list[str] = []
    reader = Reader(cast("GoogleApi", api), PLACE, AT_ONCE)
    return startup.wait(reader, api.vms, progress=Progress(AT_ONCE, said.append)), said


def _failure(api: FakeApi) -> tuple[Problem, ...]:
    with pytest.raises(ClusterError) as caught:
        _wait(api)
    return caught.value.problems


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)


def test_it_ends_when_all_are_done_and_nobody_is_asked_again_or_all_at_once() -> None:
    api = FakeApi(a=[{}, _told("running", "gpu"), DONE], b=[DONE])
    _, said = _wait(api)
    assert said == ["1 of 2 VMs have started up; 1 not begun", "2 of 2 VMs have started up"]
    api = FakeApi(a=[DONE], b=[{}, {}, DONE])
    _wait(api)
    assert api.asked.count("a") == 1
    assert api.asked.count("b") == 3
    api = FakeApi(**{f"vm{number}": [DONE] for number in range(1000)})
    _wait(api)
    assert len(api.asked) == 1000
    assert 1 < api.most_at_once <= 8


def _at(minute: int, state: str, number: int = 1) -> dict[str, str]:
    told = {"state": state, "step": "gpu", "number": number, "at": f"2026-11-23T10:{minute:02}:00Z"}
    steps = {"gpu": {"state": state, "detail": f"boot {number}"}}
    return {"startup": json.dumps({**told, "steps": steps, "gpu_check": {"gpus": 8}})}


def _beat(told: dict[str, str], ago: float = 0.0) -> objects.Change:
    return objects.Change(time.time() - ago, told)


def test_who_says_with_its_heartbeat_that_it_is_done_is_not_asked() -> None:
    spoiled = {"startup": "[{"}
    beats = {
        **{name: _beat(DONE) for name in ("a", "b")},
        "late": _beat(DONE, ago=120),
        "spoiled": _beat(spoiled),
        "mute": _beat({}),
        "failed": _beat(_told("failed", "gpu")),
        "somebody": _beat(DONE),
    }
    names = [*(beats.keys() - {"somebody"}), "unheard"]
    api = FakeApi(**{name: [_told("running", "gpu")] for name in names})
    reader = Reader(cast("GoogleApi", api), PLACE, Clock(), look=lambda: beats)
    others = ["failed", "late", "mute", "spoiled", "unheard"]
    assert sorted(reader.slow(names)) == others
    found = reader.read(names)
    assert {name for name, it in found.items() if it.state == "done"} == {"a", "b"}
    assert sorted(api.asked) == others


def test_what_a_heartbeat_says_of_an_earlier_boot_counts_for_nothing() -> None:
    beats = {"a": _beat(_at(10, "done")), "b": _beat(_at(12, "done"))}
    api = FakeApi()
    started: dict[str, str | None] = dict.fromkeys(beats, "2026-11-23T10:11:00Z")
    found = Reader(cast("GoogleApi", api), PLACE, Clock(), started, lambda: beats).read(beats)
    assert [it.state for it in found.values()] == ["", "done"]
    assert api.asked == []


def test_one_document_has_all_steps_and_the_gpus_with_what_nccl_uses() -> None:
    it = Startup.of(_at(10, "failed", 3))
    assert (it.state, it.step, it.detail) == ("failed", "gpu", "boot 3")
    assert set(it.steps) == {"gpu"}
    assert it.gpu_check == GpuCheck(gpus=8)
    fabric = {"kind": "gib", "plugin": "nccl-gib=1.1.0", "faults": [], "notes": []}
    told = {"state": "done", "steps": {}, "gpu_check": {"gpus": 8}, "fabric": fabric}
    it = Startup.of({"startup": json.dumps(told)})
    assert it.gpu_check == GpuCheck(gpus=8, fabric="gib")
    assert Startup.of({"startup": json.dumps({**told, "fabric": "?"})}).gpu_check == GpuCheck(
        gpus=8
    )
    odds: list[object] = [True, [], "x", 7, None]
    for odd in odds:
        assert Startup.of({"startup": json.dumps({**told, "gpu_check": odd})}).gpu_check is None


def test_a_failure_or_report_before_a_reset_counts_for_nothing_after_it() -> None:
    api = FakeApi(
        a=[_at(10, "failed"), _at(10, "failed"), _at(12, "running", 2), _at(13, "done", 2)]
    )
    api.resets = {"a": "2026-11-23T03:11:00.512-07:00"}
    _, said = _wait(api)
    assert said == [
        "1 of 1 VM has started up" if word == "done" else f"0 of 1 VM has started up; 1 {word}"
        for word in ("not begun", "done")
    ]
    api = FakeApi(a=[_at(10, "done")], b=[_at(10, "done")], c=[_told("done")])
    started = {
        "a": "2026-11-23T10:11:00Z",
        "b": "2026-11-23T10:09:00Z",
        "c": "2026-11-23T10:11:00Z",
    }
    reader = Reader(cast("GoogleApi", api), PLACE, AT_ONCE, started)
    assert {name: it.state for name, it in reader.read(api.vms).items()} == {
        "a": "",
        "b": "done",
        "c": "done",
    }


def test_the_requests_are_spread_over_time() -> None:
    api = FakeApi(**{f"vm{number}": [DONE] for number in range(21)})
    reader = Reader(cast("GoogleApi", api), PLACE, Clock(0.1))
    begin = time.monotonic()
    reader.read(api.vms)
    # 10 in a second of the cloud's, of which there are 10 in one of ours.
    assert time.monotonic() - begin >= 0.2


def test_all_failures_are_named_a_handful_in_full_with_step_and_last_lines() -> None:
    (problem,) = _failure(FakeApi(a=[DONE], b=[_told("failed", "mounts", "mount: no such bucket")]))
    assert problem.what == "b failed in the step mounts"
    assert problem.why == "mount: no such bucket"
    assert "gcloud compute instances reset b --zone z --project p`" in problem.fix
    (problem,) = _failure(FakeApi(b=[_told("failed", "gpu", "NVRM: Xid (PCI:0:4): 79, GPU lost")]))
    assert "a restart is not enough: Status has the command" in problem.fix
    (problem,) = _failure(FakeApi(a=[_told("failed", "command", "exit code 3")]))
    assert problem.setting == "STARTUP_COMMAND"
    assert problem.why == "exit code 3"
    vms = {f"vm{number}": [_told("failed", "ray", f"line {number}")] for number in range(9)}
    problems = _failure(FakeApi(**vms))
    assert [problem.what for problem in problems[:5]] == [
        f"vm{number} failed in the step ray" for number in range(5)
    ]
    assert problems[5].what == "4 more: vm5, vm6, vm7, vm8 failed in the step ray"
    assert len(problems) == 6
    api = FakeApi(a=[_at(12, "failed", 2)])
    api.resets = {"a": "2026-11-23T10:11:00.512+00:00", "b": "2026-11-23T10:30:00+00:00"}
    (problem,) = _failure(api)
    assert problem.why == "boot 2"


def test_a_failure_is_told_although_others_never_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 60.0)
    begin = time.monotonic()
    problems = _failure(FakeApi(a=[_told("failed", "gpu", "no driver")], b=[{}]))
    assert time.monotonic() - begin < 30
    failed, starting = problems
    assert failed.what == "a failed in the step gpu"
    assert re.fullmatch(
        r"1 VM was still starting up after \d+ (s|min), when Create ended because of the failure",
        starting.what,
    )
    assert (starting.why, starting.fix) == ("b has not begun its start-up", "")


@pytest.mark.usefixtures("impatient")
def test_a_vm_that_says_nothing_or_whose_command_fails_again_and_again_fails_in_the_end() -> None:
    (problem,) = _failure(FakeApi(a=[{}]))
    assert problem.what == "After 45 minutes, a has not begun its start-up"
    assert "guest agent" in problem.why
    (problem,) = _failure(FakeApi(a=[_failing(3)], b=[_failing(2)]))
    assert problem.what == "STARTUP_COMMAND failed on a 3 times in a row, and is begun again"
    assert problem.setting == "STARTUP_COMMAND"
    assert "sudo systemctl restart aiinfra-command" in problem.fix


def _failing(times: int) -> dict[str, str]:
    step = {"state": "failing", "detail": "no module\nexit code 1", "failures": times}
    return _told("running", "command", steps={"command": step | {"attempt": 7}})


@pytest.mark.usefixtures("impatient")
def test_a_command_that_takes_long_or_failed_and_is_begun_again_is_worth_a_note() -> None:
    found, said = _wait(FakeApi(a=[_failing(2)], b=[_told("running", "command")]))
    failing, running = startup.notes(found)
    assert failing.what == "the command failed on a, and is begun again"
    assert failing.why == "no module\nexit code 1"
    assert "/var/log/aiinfra/command.log" in failing.fix
    assert running.what == "the command is still running on b"
    assert (failing.setting, running.setting) == ("STARTUP_COMMAND", "STARTUP_COMMAND")
    assert "1 at the step command, which failed and is begun again" in said[0]


def test_a_step_that_may_fail_is_worth_a_note_and_a_command_that_got_over_it_none() -> None:
    agent = {"state": "failed", "detail": "apt\nE: no route"}
    found, _ = _wait(FakeApi(a=[_told("done", steps={"ops-agent": agent})]))
    (note,) = startup.notes(found)
    assert "the step ops-agent failed on a" in note.what
    assert note.why.endswith("E: no route")
    found, _ = _wait(FakeApi(a=[_failing(3), DONE]))
    assert not list(startup.notes(found))


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_what_can_not_be_read_counts_as_not_told(text: str) -> None:
    assert Startup.of({"startup": text}).state == ""


@pytest.mark.parametrize(
    ("state", "expected"), [("done", True), ("skipped", False), ("failed", False)]
)
def test_a_notebook_is_expected_only_where_there_is_one(*, state: str, expected: bool) -> None:
    told = Startup.of(_told("done", steps={"notebook": {"state": state}}))
    assert told.has_notebook is expected


def test_an_interrupt_does_not_wait_for_a_thousand_looks() -> None:
    class Interrupted(FakeApi):
        def guest_attributes(self, path: str, namespace: str) -> dict[str, str]:
            if path.endswith("vm3"):
                raise KeyboardInterrupt
            return super().guest_attributes(path, namespace)

    api = Interrupted(**{f"vm{number}": [DONE] for number in range(200)})
    reader = Reader(cast("GoogleApi", api), PLACE, Clock(0.1))
    with pytest.raises(KeyboardInterrupt):
        reader.read(api.vms)
    assert len(api.asked) < 100


GROUP = Group(project="p", zone="z", name="np-mig", size=2, machine_type="a3-highgpu-8g")
ZONE = "https://www.googleapis.com/compute/v1/projects/p/zones/z/"


def _ago(**span: float) -> str:
    return (dt.datetime.now(dt.UTC) - dt.timedelta(**span)).isoformat()


def _vm(clock: Clock | None = None, **fields: Any) -> Vm:
    document = {"name": "vm", "status": "RUNNING", "machineType": f"{ZONE}machineTypes/a2"}
    return Vm.of(document | {"networkInterfaces": [{}]} | fields, clock or Clock())


def _limited(started: str) -> Vm:
    return _vm(scheduling={"maxRunDuration": {"seconds": "172800"}}, lastStartTimestamp=started)


def test_the_run_duration_counts_from_the_last_start() -> None:
    assert _vm(creationTimestamp=_ago(days=90)).remaining is None
    assert _limited(_ago(hours=47)).remaining == pytest.approx(3600, abs=60)
    limit = {"maxRunDuration": {"seconds": "1000"}}
    vm = _vm(Clock(0.02), scheduling=limit, creationTimestamp=_ago(seconds=10))
    assert vm.remaining == pytest.approx(500, abs=60)
    assert instances.ending_soon([_limited(_ago(hours=1)), _vm()]) == []
    # Of one that has just come, and was to live for less than a day, the plan has said it.
    short = {"maxRunDuration": {"seconds": "14400"}}
    just, late = (
        _vm(scheduling=short, creationTimestamp=_ago(hours=hours, minutes=1)) for hours in (1, 2)
    )
    assert instances.ending_soon([just]) == []
    assert instances.ending_soon([late])
    (note,) = instances.ending_soon([_limited(_ago(hours=45))])
    assert note.setting == "MAX_RUN_DURATION"
    assert note.what == "in 2 h 59 min Google deletes vm"
    vm = _vm(id="417", networkInterfaces=[{"networkIP": "10.0.0.2"}, {"networkIP": "10.1.0.2"}])
    assert (vm.id, vm.address, vm.interfaces) == ("417", "10.0.0.2", 2)


@cases("""
value                                 | url
abc-dot-us-central1.notebooks.example | https://abc-dot-us-central1.notebooks.example
https://abc.example                   | https://abc.example
-                                     | null
""")
def test_a_notebooks_url_is_a_link(value: str, url: str | None) -> None:
    assert _vm(metadata={"items": [{"key": "proxy-url", "value": value}]}).notebook == url
    assert _vm().notebook is None


def _managed(
    name: str, status: str = "", action: str = "RECREATING", **more: Any
) -> dict[str, Any]:
    told = {"instanceStatus": status} if status else {}
    return {"instance": f"{ZONE}instances/{name}", "currentAction": action, **told, **more}


STOCKOUT = {"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "no  room"}
LOST = _managed("np-vm-b", lastAttempt={"errors": {"errors": [STOCKOUT, STOCKOUT]}})
RUNNING = _managed("np-vm-a", "RUNNING", "NONE")
STOPPED = _managed("np-vm-b", "TERMINATED", "NONE")


def test_what_becomes_of_a_vm_is_what_its_group_does() -> None:
    makes = "its group makes it as soon as there is room"
    for member, reasons, words in (
        (LOST, ("no room",), f"does not exist: {makes}"),
        (STOPPED, (), "is TERMINATED, and its group does nothing about it"),
        (_managed("b", "STOPPING", "DELETING"), (), "is STOPPING: its group is deleting it"),
        (_managed("b", "STAGING", "CREATING"), (), f"is STAGING: {makes}"),
    ):
        (one,) = instances.down([RUNNING, member])
        assert (one.reasons, one.words) == (reasons, words)


class Operations:
    """A Google with these operations, all a minute old but the last, which is an hour old."""

    def __init__(self, *types: str) -> None:
        self.types = types
        self.asked: Sequence[str] = ()

    def operations_of(self, _: str, __: str, types: Sequence[str]) -> list[dict[str, Any]]:
        self.asked = types
        return [
            {
                "operationType": it,
                "targetLink": f"{ZONE}instances/np-vm-b",
                "insertTime": _ago(minutes=60 if it == self.types[-1] else 1),
            }
            for it in self.types
        ]


def test_the_last_event_of_a_vm_counts() -> None:
    api = Operations("compute.instances.preempted", "compute.instances.hostError")
    place = cast("Any", type("Place", (), {"project_id": "p", "zone": "z", "name_prefix": "np"}))
    told = instances.happened(happened.operations(cast("GoogleApi", api), place), place)
    known = instances.interruptions(told, Clock())
    assert set(api.asked) == {*Event, happened.RESET}
    assert known["np-vm-b"].event is Event.PREEMPTED
    assert known["np-vm-b"].words == "was preempted 1 min ago"


@cases("""
event       | minutes | started | automatic | back
MAINTENANCE | 5       | 600     | true      | true
HOST_ERROR  | 29      | 600     | true      | true
MAINTENANCE | 31      | 600     | true      | false  # long ago
MAINTENANCE | 20      | 10      | true      | false  # it is back since
MAINTENANCE | 5       | 600     | false     | false  # flex start, or spot
PREEMPTED   | 5       | 600     | true      | false
""")
def test_google_starts_a_vm_again_that_it_stopped_for_its_host_a_while_ago(
    event: str, minutes: float, started: float, *, automatic: bool, back: bool
) -> None:
    restart = {"automaticRestart": automatic}
    vm = _vm(name="np-vm-b", lastStartTimestamp=_ago(minutes=started), scheduling=restart)
    known = {"np-vm-b": Interruption(event=Event[event], ago=minutes * 60)}
    (one,) = instances.down([STOPPED], instances.restarting([vm], known, Clock()))
    words = "is TERMINATED: Google starts it again, usually within minutes"
    assert (one.words == words) is back
    assert one.is_off is not back
    assert not instances.restarting([vm], {}, Clock()), "somebody may have stopped it"


def test_a_note_names_event_and_reason_and_what_takes_a_vm_out() -> None:
    known = {"np-vm-b": Interruption(event=Event.PREEMPTED, ago=60.0)}
    (note,) = instances.gone(instances.down([LOST, RUNNING]), known)
    assert note.what.startswith("np-vm-b was preempted; it does not exist: its group makes it")
    assert note.why == "no room"
    known = {"np-vm-b": Interruption(event=Event.HOST_ERROR, ago=60.0)}
    (problem,) = instances.gone(instances.down([STOPPED, RUNNING]), known, GROUP)
    assert problem.what == (
        "np-vm-b lost its host, which failed; it is TERMINATED, and its group does nothing about it"
    )
    assert "delete-instances np-mig --zone z --project p --instances=np-vm-b" in problem.fix
