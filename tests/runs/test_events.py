"""`--output ndjson`: what a program reads of a run while it goes on, however it ends."""

import contextlib
import datetime as dt
import json
import signal
from typing import Any

from provision.documents.events import EventKind
from provision.documents.timeline import OnInterrupt, StageName, StageState
from tests import output_schema
from tests.forked import Started
from tests.runs.conftest import Rehearsal, Rehearse
from tests.waiting import until

NDJSON = ("--output", "ndjson")
FLEX = {"VM_TYPE": "a3-highgpu-8g", "ENABLE_FLEX_START": "yes", "CAPACITY_TIMEOUT": "2h"}


def _events(rehearsal: Rehearsal, started: Started) -> list[dict[str, Any]]:
    """The lines of a run that has ended, each of which is an event with its time."""
    events = [json.loads(line) for line in rehearsal.result(started).splitlines()]
    for event in events:
        output_schema.require_line(event)
    times = [dt.datetime.fromisoformat(event["time"]) for event in events]
    assert {moment.utcoffset() for moment in times} == {dt.timedelta()}
    assert {event["event"] for event in events} <= set(EventKind)
    assert [event["event"] for event in events].index(EventKind.RESULT) == len(events) - 1
    return events


def _stages(events: list[dict[str, Any]], *, ended: bool) -> list[tuple[str, str]]:
    found = [it["stage"] for it in events if it["event"] == EventKind.STAGE]
    return [(it["name"], it["state"]) for it in found if ("ended" in it) == ended]


def test_each_stage_is_told_with_its_times_whether_the_run_succeeds_or_fails(
    rehearse: Rehearse,
) -> None:
    rehearsal = rehearse(scenario="stockout")
    started = rehearsal.start("Create", *NDJSON)
    assert started.ended(100) == 7
    events = _events(rehearsal, started)
    (problem,) = [it["problem"] for it in events if it["event"] == EventKind.PROBLEM]
    result = events[-1]
    assert result["problems"] == [problem]
    assert (result["ok"], result["exit_code"]) == (False, 7)
    failed = (StageName.MACHINES, StageState.FAILED)
    assert _stages(events, ended=True)[-1] == failed
    assert (result["timeline"][-1]["name"], result["timeline"][-1]["state"]) == failed

    rehearsal = rehearse()
    started = rehearsal.start("Create", *NDJSON)
    assert started.ended(100) == 0
    events = _events(rehearsal, started)
    result = events[-1]
    assert (result["ok"], result["exit_code"]) == (True, 0)
    assert result["connection"]["vms"]
    began, ended = _stages(events, ended=False), _stages(events, ended=True)
    assert {state for _, state in ended} == {StageState.DONE}
    assert sorted(name for name, _ in began) == sorted(name for name, _ in ended)
    order = [StageName.CONNECT, StageName.CHECKS, StageName.PLAN, StageName.STARTUP]
    assert [name for name, _ in ended if name in order] == order
    # What a run comes to, at its end: the same stages as they were told on the way.
    told = [it["stage"] for it in events if it["event"] == EventKind.STAGE]
    by_begin = sorted((it for it in told if "ended" in it), key=lambda it: it["began"])
    assert result["timeline"] == by_begin


def test_an_interrupt_while_a_request_waits_is_the_last_event(rehearse: Rehearse) -> None:
    rehearsal = rehearse(scenario="never")
    rehearsal.environ["CLOUD_CLOCK_RATE"] = "0.02"  # two hours are 144 s
    started = rehearsal.start("Create", *NDJSON, **FLEX)

    def so_far() -> str:
        with contextlib.suppress(FileNotFoundError):  # it has yet to start
            return rehearsal.result(started)
        return ""

    until(lambda: f'"stage": "{StageName.REQUESTS}"' in so_far(), so_far)
    started.send_signal(signal.SIGINT)
    assert started.ended(100) == 130
    events = _events(rehearsal, started)
    waiting, *_ = [it for it in events if it["event"] == EventKind.WAITING]
    assert waiting["on_interrupt"] == OnInterrupt.STAYS_QUEUED
    assert waiting["most"] == 7200
    assert "is waiting in Google's queue" in waiting["words"]
    assert _stages(events, ended=True)[-1] == (StageName.REQUESTS, StageState.INTERRUPTED)
    assert events[-1]["exit_code"] == 130
    assert "the request stays in the queue" in " ".join(rehearsal.said(started).split())
