"""Refusals that no waiting mends end a Create at once (row 8 of the mistakes that were tried)."""

import pytest

from tests.runs.conftest import Rehearse

SLOW = pytest.mark.slow(sibling="::test_row_8_what_no_waiting_mends_ends_within_a_look")


@pytest.mark.parametrize(
    ("scenario", "settings", "why", "fix"),
    [
        ("policy-external-ip", {}, "compute.vmExternalIpAccess", "ENABLE_EXTERNAL_IP=no"),
        pytest.param(
            # Of an account that this run has made, the same may pass.
            "no-account",
            {"SERVICE_ACCOUNT": "default"},
            "does not have access to service account",
            "grant",
            marks=SLOW,
        ),
    ],
)
def test_row_8_what_no_waiting_mends_ends_within_a_look(
    rehearse: Rehearse, scenario: str, settings: dict[str, str], why: str, fix: str
) -> None:
    rehearsal = rehearse(scenario=scenario)

    # A policy is found before anything is made, unless nobody asks for it.
    unasked = {"CAPACITY_TIMEOUT": "7d", "SKIP_CHECKS": "policies"}
    ended = rehearsal.run("Create", **unasked, **settings)

    assert ended.code == 7, ended.said
    assert why in ended.problem["why"]
    assert fix in ended.problem["fix"]
    looks = [one for one in rehearsal.requests() if "listManagedInstances" in one["path"]]
    assert len(looks) <= 3
    assert rehearsal.run("Destroy").code == 0
