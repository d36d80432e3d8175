import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rehearsal import clock, session
from rehearsal.cloud import real_programs
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.wire import Request

pytestmark = pytest.mark.loopback

BUCKETS = "/storage/v1/b"
HOUR = 3600.0


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """Put the clock of this machine forward; only so does it go on at all."""
    moments = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: moments[-1])
    return lambda seconds: moments.append(moments[-1] + seconds)


def _bucket(cloud: Cloud, name: str) -> Any:
    """When the cloud has made a bucket, by its own time."""
    query = {"project": "my-project"}
    body = f'{{"name": "{name}"}}'.encode()
    made = cloud.answer(Request(method="POST", path=BUCKETS, query=query, body=body))
    assert made is not None
    assert isinstance(made.body, dict)
    return made.body["timeCreated"]


def _cloud(folder: Path) -> Cloud:
    return Cloud(database=folder / session.DATABASE, environ={clock.VARIABLE: "0.02"})


def test_time_goes_on_while_a_cloud_is_served_and_stands_still_while_none_is(
    tmp_path: Path, later: Callable[[float], None]
) -> None:
    with _cloud(tmp_path) as cloud:
        assert _bucket(cloud, "first-1") == "2027-01-15T08:00:00.000Z"
        later(60)
        assert _bucket(cloud, "later-1") == "2027-01-15T08:01:00.000Z"
        later(60)
    later(10 * HOUR)
    with _cloud(tmp_path) as cloud:
        assert _bucket(cloud, "again-1") == "2027-01-15T08:02:00.000Z"
        later(HOUR)
        assert _bucket(cloud, "more-1") == "2027-01-15T09:02:00.000Z"


def test_time_stands_still_at_a_question_until_anybody_asks_the_cloud(
    tmp_path: Path, later: Callable[[float], None]
) -> None:
    file = tmp_path / clock.FILE
    with _cloud(tmp_path) as cloud:
        clock.stand(file)
        later(HOUR)
        clock.stand(file)
        later(HOUR)
        assert clock.now(file) == time.time() - 2 * HOUR
        assert _bucket(cloud, "answer-1") == "2027-01-15T08:00:00.000Z"
        later(1)
        assert _bucket(cloud, "after-1") == "2027-01-15T08:00:01.000Z"
        assert clock.now(file) == time.time() - 2 * HOUR


def test_time_is_no_faster_than_ours_while_programs_are_really_run(
    tmp_path: Path, later: Callable[[float], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with _cloud(tmp_path) as cloud:
        assert _bucket(cloud, "first-1") == "2027-01-15T08:00:00.000Z"
        monkeypatch.setattr(real_programs, "are_running", lambda: True)
        assert _bucket(cloud, "begins-1") == "2027-01-15T08:00:00.000Z"
        later(100)
        assert _bucket(cloud, "runs-1") == "2027-01-15T08:00:02.000Z"
        monkeypatch.setattr(real_programs, "are_running", lambda: False)
        later(100)
        assert _bucket(cloud, "ended-1") == "2027-01-15T08:00:04.000Z"
        later(100)
        assert _bucket(cloud, "after-1") == "2027-01-15T08:01:44.000Z"


def test_a_clock_that_never_stood_still_is_ours(
    tmp_path: Path, later: Callable[[float], None]
) -> None:
    later(1)
    assert clock.now(tmp_path / clock.FILE) == time.time() == clock.go(tmp_path / clock.FILE)
    assert not list(tmp_path.iterdir())
