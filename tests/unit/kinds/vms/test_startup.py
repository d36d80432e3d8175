"""Start-ups: who is asked how often, what ends the wait, and who is named."""

from __future__ import annotations

import json
import re
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.errors import ClusterError, Problem
from provision.kinds.vms import startup
from provision.kinds.vms.startup import Reader, Startup
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.progress import Progress

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.google.api import GoogleApi
    from provision.state.location import Place

AT_ONCE = Clock(0)
PLACE = cast("Place", SimpleNamespace(project_id="p", zone="z"))


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
        assert (project, zone, types) == ("p", "z", ["reset"])
        return [
            {"targetLink": f"zones/z/instances/{n}", "insertTime": at}
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


def test_it_ends_when_all_are_done_and_tells_how_far_they_are() -> None:
    api = FakeApi(a=[{}, _told("running", "gpu"), DONE], b=[DONE])
    _, said = _wait(api)
    assert said == [
        "1 of 2 VMs have started up; 1 not begun",
        "2 of 2 VMs have started up",
    ]


def _at(minute: int, state: str, number: int = 1) -> dict[str, str]:
    told = {"state": state, "step": "gpu", "number": number, "at": f"2026-11-23T10:{minute:02}:00Z"}
    steps = {"gpu": {"state": state, "detail": f"boot {number}"}}
    return {"startup": json.dumps({**told, "steps": steps, "gpu_check": {"gpus": 8}})}


def test_one_document_has_all_steps_and_the_gpus() -> None:
    it = Startup.of(_at(10, "failed", 3))
    assert (it.state, it.step, it.detail) == ("failed", "gpu", "boot 3")
    assert set(it.steps) == {"gpu"}
    assert it.gpu_check == {"gpus": 8}


def test_what_nccl_uses_is_told_with_the_gpus_as_far_as_both_are_objects() -> None:
    fabric = {"kind": "gib", "plugin": "nccl-gib=1.1.0", "faults": [], "notes": []}
    told = {"state": "done", "steps": {}, "gpu_check": {"gpus": 8}, "fabric": fabric}
    it = Startup.of({"startup": json.dumps(told)})
    assert it.gpu_check == {"gpus": 8, "fabric": fabric}
    assert Startup.of({"startup": json.dumps({**told, "fabric": "?"})}).gpu_check == {"gpus": 8}
    odds: list[object] = [True, [], "x", 7, None]
    for odd in odds:
        assert Startup.of({"startup": json.dumps({**told, "gpu_check": odd})}).gpu_check is None


def test_a_failure_before_a_reset_is_not_that_of_the_boot_after_it() -> None:
    api = FakeApi(
        a=[_at(10, "failed"), _at(10, "failed"), _at(12, "running", 2), _at(13, "done", 2)]
    )
    api.resets = {"a": "2026-11-23T03:11:00.512-07:00"}
    _, said = _wait(api)
    assert said == [
        "1 of 1 VMs have started up" if word == "done" else f"0 of 1 VMs have started up; 1 {word}"
        for word in ("not begun", "done")
    ]


def test_a_failure_after_the_last_reset_ends_the_wait() -> None:
    api = FakeApi(a=[_at(12, "failed", 2)])
    api.resets = {"a": "2026-11-23T10:11:00.512+00:00", "b": "2026-11-23T10:30:00+00:00"}
    (problem,) = _failure(api)
    assert problem.why == "boot 2"


def test_a_report_before_the_vms_last_start_counts_for_nothing() -> None:
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


def test_vms_that_are_done_are_not_asked_again() -> None:
    api = FakeApi(a=[DONE], b=[{}, {}, DONE])
    _wait(api)
    assert api.asked.count("a") == 1
    assert api.asked.count("b") == 3


def test_a_thousand_vms_are_asked_a_few_at_a_time() -> None:
    api = FakeApi(**{f"vm{number}": [DONE] for number in range(1000)})
    _wait(api)
    assert len(api.asked) == 1000
    assert 1 < api.most_at_once <= 8


def test_the_requests_are_spread_over_time() -> None:
    api = FakeApi(**{f"vm{number}": [DONE] for number in range(21)})
    reader = Reader(cast("GoogleApi", api), PLACE, Clock(0.1))
    begin = time.monotonic()
    reader.read(api.vms)
    # 10 in a second of the cloud's, of which there are 10 in one of ours.
    assert time.monotonic() - begin >= 0.2


def test_a_failure_names_the_vm_the_step_and_its_last_lines() -> None:
    (problem,) = _failure(FakeApi(a=[DONE], b=[_told("failed", "mounts", "mount: no such bucket")]))
    assert problem.what == "b failed in the step mounts"
    assert problem.why == "mount: no such bucket"
    assert "gcloud compute instances reset b --zone z --project p`" in problem.fix


def test_all_vms_that_fail_are_named_and_a_handful_in_full() -> None:
    vms = {f"vm{number}": [_told("failed", "ray", f"line {number}")] for number in range(9)}
    problems = _failure(FakeApi(**vms))
    assert [problem.what for problem in problems[:5]] == [
        f"vm{number} failed in the step ray" for number in range(5)
    ]
    assert problems[5].what == "4 more: vm5, vm6, vm7, vm8 failed in the step ray"
    assert len(problems) == 6


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
def test_a_vm_that_says_nothing_is_late_in_the_end() -> None:
    (problem,) = _failure(FakeApi(a=[{}]))
    assert problem.what == "After 45 minutes, a has not begun its start-up"
    assert "guest agent" in problem.why


def test_a_command_that_fails_is_one() -> None:
    (problem,) = _failure(FakeApi(a=[_told("failed", "command", "exit code 3")]))
    assert problem.setting == "STARTUP_COMMAND"
    assert problem.why == "exit code 3"


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


@pytest.mark.usefixtures("impatient")
def test_a_command_that_fails_again_and_again_is_a_failure() -> None:
    (problem,) = _failure(FakeApi(a=[_failing(3)], b=[_failing(2)]))
    assert problem.what == "STARTUP_COMMAND failed on a 3 times in a row, and is begun again"
    assert problem.setting == "STARTUP_COMMAND"
    assert "sudo systemctl restart aiinfra-command" in problem.fix


def test_a_command_that_got_over_its_failures_is_none() -> None:
    found, _ = _wait(FakeApi(a=[_failing(3), DONE]))
    assert startup.notes(found) == []


def test_a_step_that_may_fail_is_worth_a_note() -> None:
    agent = {"state": "failed", "detail": "apt\nE: no route"}
    found, _ = _wait(FakeApi(a=[_told("done", steps={"ops-agent": agent})]))
    (note,) = startup.notes(found)
    assert "the step ops-agent failed on a" in note.what
    assert note.why.endswith("E: no route")


@pytest.mark.parametrize("text", ["", "{", "[1]", "null"])
def test_what_can_not_be_read_counts_as_not_told(text: str) -> None:
    assert Startup.of({"startup": text}).state == ""


@pytest.mark.parametrize(
    ("state", "expected"), [("done", True), ("skipped", False), ("failed", False)]
)
def test_a_notebook_is_expected_only_where_there_is_one(*, state: str, expected: bool) -> None:
    told = Startup.of(_told("done", steps={"notebook": {"state": state}}))
    assert told.has_notebook is expected


def test_an_interrupt_does_not_wait_for_a_thousand_looks(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    api = FakeApi(**{f"vm{number}": [DONE] for number in range(200)})
    original: Callable[..., dict[str, str]] = api.guest_attributes

    def fail(path: str, namespace: str) -> dict[str, str]:
        if path.endswith("vm3"):
            raise KeyboardInterrupt
        return original(path, namespace)

    monkeypatch.setattr(api, "guest_attributes", fail)
    reader = Reader(cast("GoogleApi", api), PLACE, Clock(0.1))
    with pytest.raises(KeyboardInterrupt):
        reader.read(api.vms)
    assert len(api.asked) < 100
