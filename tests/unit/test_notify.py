"""Who does not look at the terminal is told, safely, and nothing waits for them."""

import dataclasses
import json
import socket
import time
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from provision import cli, notify
from provision.documents.events import Milestone, WaitingEvent, stamp
from provision.documents.job import Job, JobState
from provision.documents.status import End, EndedBy
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import Problem
from provision.intake import load
from provision.settings.masking import Veil
from provision.time.clock import Clock
from tests.receiver import PATH, receiver
from tests.unit.conftest import MANDATORY

SLACK = f"https://hooks.slack.com/services/{PATH}"
TOLD: dict[str, Any] = {"event": "milestone", "text": "np: 2 < 3 & <!channel>", "words": "x"}


def _sent(url: str, *milestones: Mapping[str, Any]) -> list[Problem]:
    notes: list[Problem] = []
    sender = notify.Sender(url, notes.append)
    for it in milestones:
        sender.tell(it)
    sender.close()
    return notes


@pytest.mark.loopback
def test_a_milestone_is_sent_whole_and_in_order() -> None:
    with receiver() as server:
        assert not _sent(server.url, TOLD, TOLD | {"words": "y"})

    assert [body["words"] for _, body in server.got] == ["x", "y"]
    assert server.got[0] == (f"/hook/{PATH}?token=1", TOLD)


@pytest.mark.parametrize("status", [302, 307, 404, 500])
@pytest.mark.loopback
def test_a_failure_is_one_note_without_the_url_and_redirects_are_not_followed(status: int) -> None:
    with receiver(status) as server:
        notes = _sent(server.url, TOLD, TOLD)

    assert [path for path, _ in server.got] == [f"/hook/{PATH}?token=1"] * 2
    (note,) = notes
    assert note.why == f"it answered {status}"
    assert PATH not in str(note)


@pytest.mark.loopback
def test_who_can_not_be_reached_is_one_note_without_the_url() -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        (note,) = _sent(f"http://127.0.0.1:{held.getsockname()[1]}/{PATH}", TOLD, TOLD)

    assert "127.0.0.1 could not be told" in note.what
    assert PATH not in str(note)


@pytest.mark.loopback
def test_the_end_of_a_run_waits_for_some_seconds_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notify, "_PATIENCE", 0.1)
    with receiver(sleeps=1.0) as server:
        before = time.monotonic()
        (note,) = _sent(server.url, TOLD)
        assert time.monotonic() - before < 0.9

    assert "within 0.1 seconds" in note.why


def test_a_chat_gets_a_text_alone_that_formats_nothing() -> None:
    told = json.loads(notify._body(SLACK, TOLD))
    assert told == {"text": "np: 2 &lt; 3 &amp; &lt;!channel&gt;"}
    told = json.loads(notify._body("https://chat.googleapis.com/v1/spaces/a/messages?key=b", TOLD))
    assert told == {"text": TOLD["text"]}
    assert json.loads(notify._body("https://hooks.slack.com.example.com/services/a", TOLD)) == TOLD


@pytest.mark.parametrize(
    "url",
    [
        "http://example.com/hook",
        "https://me:s3cret@example.com/hook",
        "ftp://localhost/x",
        "https:///hook",
        "https://example.com:0/",
        "https://example.com/a b",
        "command:notify-send",
        f"htps://hooks.slack.com/services/{PATH}",
    ],
)
def test_a_url_that_is_none_is_refused_without_being_shown(url: str) -> None:
    (problem,) = load(MANDATORY | {"NOTIFY": url}).problems

    assert problem.setting == "NOTIFY"
    assert "is no URL to tell" in problem.what
    assert "s3cret" not in str(problem)
    assert PATH not in str(problem)
    assert "NOTIFY" not in problem.alternatives.settings


@pytest.mark.parametrize("url", [SLACK, "http://[::1]:8080/x", "https://a.example.com/?key=b&c=d"])
def test_a_url_is_taken_and_in_nothing_that_is_kept(url: str) -> None:
    found = load(MANDATORY | {"NOTIFY": f'"{url}"'})

    assert found.settings is not None
    assert found.settings.notify == url
    assert found.effective["NOTIFY"] == "***"
    assert url not in json.dumps(found.effective)
    assert PATH not in str(found.effective)


def test_nobodys_words_have_a_part_of_the_url() -> None:
    for url in (SLACK, f"https://example.com/hook/{PATH}?token=1"):
        found, veil = load(MANDATORY | {"NOTIFY": url}), Veil()
        veil.learn(found.private_texts, found.private_maps)
        path = url.partition("//")[2].partition("/")[2]
        assert PATH not in veil(f"{url}: Max retries exceeded with url: /{path} (Caused by x)")


@pytest.mark.loopback
def test_nothing_that_the_program_prints_has_the_url(capsys: pytest.CaptureFixture[str]) -> None:
    with receiver(500) as server:
        environ = MANDATORY | {"NOTIFY": server.url, "STARTUP_COMMAND": f"curl {server.url}"}
        cli.main(["Validate", "--offline", "--output", "json"], environ)
    out, err = capsys.readouterr()

    assert json.loads(out)["settings"]["NOTIFY"] == "***"
    assert PATH not in out + err
    assert not server.got  # --offline asks nobody


JOB = Job(name="train-1", state=JobState.RUNNING, submitted="", attempt=1, machines=("a",))
WAITS = WaitingEvent(
    time="",
    stage=StageName.MACHINES,
    words="0 of 2 VMs run",
    passed=1799.0,
    most=21600.0,
    on_interrupt=OnInterrupt.KEEPS,
    is_news=False,
)


def _due(
    watch: notify.Watch, waits: WaitingEvent | None = None, job: Job | None = None
) -> list[str]:
    return [f"{what}: {told}. {fix}" for what, told, fix in watch.due(waits, job, Clock())]


def _after(hours: float, waits: WaitingEvent = WAITS) -> WaitingEvent:
    return dataclasses.replace(waits, passed=hours * 3600)


def test_a_wait_is_told_of_after_half_an_hour_then_more_and_more_seldom() -> None:
    watch = notify.Watch()
    assert not _due(watch, WAITS)
    (told,) = _due(watch, _after(0.5))
    assert told == (
        "waiting: machines: still waits after 30 min of 6 h 0 min: 0 of 2 VMs run."
        " aiinfra Status shows it; aiinfra Destroy gives it up"
    )
    later = [it for it in range(1, 80) if _due(watch, _after(it))]
    assert later == [2, 8, 24, 48, 72]


def test_a_job_that_runs_is_no_wait_and_one_that_waits_can_be_cancelled() -> None:
    stage = dataclasses.replace(_after(3), stage=StageName.JOB)
    assert not _due(notify.Watch(), stage, JOB)
    waiting = dataclasses.replace(JOB, attempt=0, state=JobState.WAITING)
    (told,) = _due(notify.Watch(), stage, waiting)
    assert "aiinfra Cancel train-1 gives it up" in told


def _at(seconds: float) -> str:
    return stamp(time.time() + seconds)


def test_what_ends_for_good_within_half_an_hour_is_told_once() -> None:
    watch = notify.Watch()
    watch.learn(
        [
            End(what="2 VMs", how=EndedBy.RUN, first_seconds=1000),
            End(what="the reservation r", how=EndedBy.RESERVATION, first_seconds=4000),
            End(what="a host", how=EndedBy.MAINTENANCE, first_seconds=100),
            End(what="3 VMs", how=EndedBy.RUN, first_seconds=0),
        ],
        Clock(),
    )
    (told,) = _due(watch)
    assert told.startswith(f"{Milestone.ENDS_SOON}: 2 VMs: 16 min until the end. save")
    assert not _due(watch)
    timed = dataclasses.replace(JOB, ends=_at(600))
    (told,) = _due(watch, job=timed)
    assert "the time of train-1: 9 min until the end" in told


def test_round_amounts_that_a_job_has_cost_are_told_each_once() -> None:
    watch, told = notify.Watch(), []
    for usd in (1, 9.99, 10.01, 12, 49, 50, 260, 300, 1001):
        told += _due(watch, job=dataclasses.replace(JOB, cost=Decimal(str(usd))))
    assert [it.split("≈")[0] for it in told] == [
        f"amount: train-1 has cost more than ${usd}: " for usd in ("10", "20", "50", "200", "1,000")
    ]
    over = dataclasses.replace(JOB, cost=Decimal(5000), state=JobState.SUCCEEDED)
    assert not _due(watch, job=over)
