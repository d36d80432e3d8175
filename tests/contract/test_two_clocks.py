"""The program and the simulated cloud read and write one clock, each with a module of its own."""

import time
from pathlib import Path

import pytest

from provision.settings import reading
from provision.time import clock as programs
from provision.time.clock import Clock
from rehearsal import clock as clouds
from rehearsal import session


def test_the_time_that_stands_still_for_one_stands_still_for_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moment = [1_800_000_000.0]
    monkeypatch.setattr(time, "time", lambda: moment[0])
    environ = session.environment("http://127.0.0.1:1", tmp_path, {"CLOUD_CLOCK_RATE": "0.02"})
    file, clock = tmp_path / clouds.FILE, Clock.of(environ)

    clock.stand()
    moment[0] += 120
    assert clock.now() == clouds.now(file) == moment[0] - 120
    assert clock.since(moment[0] - 130) == 500  # ten seconds of ours, at fifty times their speed
    clouds.go(file)
    moment[0] += 7
    assert clock.now() == clouds.now(file) == moment[0] - 120
    clouds.stand(file)
    moment[0] += 3600
    assert clock.now() == clouds.now(file) == moment[0] - 3720


def test_both_have_the_same_names_for_it() -> None:
    names = {clouds.VARIABLE, clouds.FILE_VARIABLE}
    assert {programs.VARIABLE, programs.FILE_VARIABLE} == names
    assert all(map(reading._OTHERS.fullmatch, names))
