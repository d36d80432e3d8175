import time
from pathlib import Path

import pytest

from provision.errors import SettingsError
from provision.time.clock import Clock

REHEARSED = {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "http://127.0.0.1:4000/compute/v1/"}


def test_a_rehearsals_clock_runs_as_it_is_told() -> None:
    clock = Clock.of(REHEARSED | {"CLOUD_CLOCK_RATE": "0.02"})
    assert clock.wall(100) == pytest.approx(2)
    assert clock.cloud(2) == pytest.approx(100)
    assert clock.since(time.time() - 1) == pytest.approx(50, abs=5)


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"GOOGLE_COMPUTE_CUSTOM_ENDPOINT": "https://compute.private.example.com/compute/v1/"},
        {"GOOGLE_STORAGE_CUSTOM_ENDPOINT": "http://127.0.0.1:4000/storage/v1/"},
    ],
)
def test_googles_own_clock_runs_as_ours_whatever_is_asked(environ: dict[str, str]) -> None:
    assert Clock.of(environ | {"CLOUD_CLOCK_RATE": "0"}) == Clock(1.0)


@pytest.mark.parametrize("rate", ["fast", "-1", "nan", "inf"])
def test_a_rate_that_is_none_is_told(rate: str) -> None:
    with pytest.raises(SettingsError) as caught:
        Clock.of(REHEARSED | {"CLOUD_CLOCK_RATE": rate})
    assert caught.value.problems[0].setting == "CLOUD_CLOCK_RATE"


def test_nobody_s_file_makes_googles_own_clock_stand_still(tmp_path: Path) -> None:
    file = tmp_path / "clock"
    file.write_text("3600 0")
    clock = Clock.of({"CLOUD_CLOCK_FILE": str(file), "CLOUD_CLOCK_RATE": "0.02"})

    clock.stand()
    assert clock.now() == pytest.approx(time.time(), abs=5)
    assert file.read_text() == "3600 0"


def test_what_is_still_to_come_has_not_been_waited_for() -> None:
    assert Clock().since(time.time() + 60) == 0
