"""Notices of a VM's end: which maintenance is near, and when a run is over."""

from __future__ import annotations

import datetime as dt
import threading
import time
from typing import TYPE_CHECKING

import pytest
from aiinfra_vm import configuration, metadata, notices

if TYPE_CHECKING:
    from pathlib import Path

NOW = dt.datetime(2026, 12, 1, 18, 58, tzinfo=dt.UTC).timestamp()


@pytest.mark.parametrize(
    ("text", "near"),
    [
        ("{ }", False),
        ("NONE", False),
        ('"NONE"', False),
        ("", False),
        ('{ "error": "no notifications have been received yet, try again later" }', False),
        ('{"maintenance_status": "ONGOING"}', True),
        ('{"maintenanceStatus": "ONGOING"}', True),
        ('{"maintenance_status": "PENDING", "window_start_time": "2026-12-01T18:59:59Z"}', True),
        ('{"maintenance_status": "PENDING", "windowStartTime": "2026-12-01T18:59:59Z"}', True),
        ('{"maintenance_status": "PENDING", "window_start_time": "2026-12-01T19:00:01Z"}', False),
        ('{"maintenance_status": "PENDING", "window_start_time": "soon"}', False),
    ],
)
def test_a_maintenance_is_near_two_minutes_before(text: str, *, near: bool) -> None:
    assert notices.is_near(text, NOW) is near


@pytest.fixture
def uptime(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "uptime"
    file.write_text("100.5 0.0\n")
    monkeypatch.setattr(notices, "_UPTIME", file)
    return file


def test_a_run_is_reckoned_from_the_first_boot(
    uptime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    kept = tmp_path / "run-ends"
    ends = notices.end_of_run(kept, 3600)
    assert ends == pytest.approx(NOW - 100 + 3600, abs=5)

    uptime.write_text("5.0 0.0\n")  # after a reboot

    assert notices.end_of_run(kept, 3600) == ends
    assert notices.end_of_run(kept, 7200) == ends, "a new setting is for new VMs"


def test_a_vm_that_outlives_its_run_has_a_new_one(
    uptime: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(time, "time", lambda: NOW)
    kept = tmp_path / "run-ends"
    kept.write_text(str(NOW - 500))
    assert uptime.exists()
    assert notices.end_of_run(kept, 3600) == pytest.approx(NOW + 3500, abs=5)


def test_without_a_limit_there_is_no_end(tmp_path: Path) -> None:
    assert notices.end_of_run(tmp_path / "run-ends", None) is None
    assert list(tmp_path.iterdir()) == []


def test_the_end_is_told_some_time_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(configuration, "load", lambda: {"stop_notice": 1000})
    for question in ("get", "changed"):  # which are never answered
        monkeypatch.setattr(metadata, question, lambda *_: threading.Event().wait())
    told: list[str] = []
    heard = threading.Event()

    def tell(why: str) -> None:
        told.append(why)
        heard.set()

    notices.watch(tell, time.time() + 1002)

    assert told == []
    assert heard.wait(600)
    assert told == ["its MAX_RUN_DURATION is over"]
