"""STOP_NOTICE: shorter than the run, and by default a part of it."""

from __future__ import annotations

import pytest

from provision.intake import load

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np", "ZONE": "us-central1-a"}


@pytest.mark.parametrize(
    ("run", "notice"), [("10m", 120), ("1h", 360), ("7d", 600), ("12h", 600), (None, None)]
)
def test_by_default_it_is_a_tenth_of_the_run_from_2_minutes_to_10(
    run: str | None, notice: int | None
) -> None:
    settings = load(MANDATORY | ({"MAX_RUN_DURATION": run} if run else {})).settings
    assert settings is not None
    assert settings.stop_notice == notice


@pytest.mark.parametrize(
    ("run", "words"), [("10m", "is not shorter than"), (None, "is set without MAX_RUN_DURATION")]
)
def test_one_that_the_run_has_no_room_for_is_refused(run: str | None, words: str) -> None:
    given = {"STOP_NOTICE": "10m"} | ({"MAX_RUN_DURATION": run} if run else {})
    (problem,) = load(MANDATORY | given).problems
    assert problem.setting == "STOP_NOTICE"
    assert words in problem.what
