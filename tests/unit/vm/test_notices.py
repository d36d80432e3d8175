"""Notices of a VM's end: which maintenance is near, and when a run is over."""

import datetime as dt
import threading
import time
from pathlib import Path

import pytest
from aiinfra_vm import configuration, metadata, notices

NOW = dt.datetime(2026, 12, 1, 18, 58, tzinfo=dt.UTC).timestamp()


PENDING = '{"maintenance_status": "PENDING", '
NOT_NEAR = [
    *("{ }", "NONE", '"NONE"', "", f'{PENDING}"window_start_time": "soon"}}'),
    '{ "error": "no notifications have been received yet, try again later" }',
    f'{PENDING}"window_start_time": "2026-12-01T19:00:01Z"}}',
]
NEAR = [
    '{"maintenance_status": "ONGOING"}',
    '{"maintenanceStatus": "ONGOING"}',
    f'{PENDING}"window_start_time": "2026-12-01T18:59:59Z"}}',
    f'{PENDING}"windowStartTime": "2026-12-01T18:59:59Z"}}',
]


@pytest.mark.parametrize("text", [*NEAR, *NOT_NEAR])
def test_a_maintenance_is_near_two_minutes_before(text: str) -> None:
    assert notices.is_near(text, NOW) is (text in NEAR)


def test_a_run_is_reckoned_from_the_first_boot_and_one_that_was_outlived_has_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    uptime, kept = tmp_path / "uptime", tmp_path / "run-ends"
    uptime.write_text("100.5 0.0\n")
    monkeypatch.setattr(notices, "_UPTIME", uptime)
    monkeypatch.setattr(time, "time", lambda: NOW)
    ends = notices.end_of_run(kept, 3600)
    assert ends == pytest.approx(NOW - 100 + 3600, abs=5)
    uptime.write_text("5.0 0.0\n")  # after a reboot
    assert notices.end_of_run(kept, 3600) == ends
    assert notices.end_of_run(kept, 7200) == ends, "a new setting is for new VMs"
    uptime.write_text("100.5 0.0\n")
    kept.write_text(str(NOW - 500))
    assert notices.end_of_run(kept, 3600) == pytest.approx(NOW + 3500, abs=5)
    # Without a limit there is no end.
    kept.unlink()
    assert notices.end_of_run(kept, None) is None
    assert list(tmp_path.iterdir()) == [uptime]


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
