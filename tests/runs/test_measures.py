"""What `make bench` prints: that each measure still finds what it counts."""

import sys
from pathlib import Path

import pytest

from tests.running import ran

ROOT = Path(__file__).parents[2]


def _measured(part: str) -> str:
    """What one part of it prints, of one run each."""
    done = ran([sys.executable, "-m", "bench", "--runs", "1", "--only", part], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_check_without_google_is_measured_against_python() -> None:
    told = _measured("validate")
    assert "| `Validate --offline` | " in told
    assert "| ratio, pair by pair, of processor time | " in told


@pytest.mark.slow(sibling="::test_a_check_without_google_is_measured_against_python")
def test_one_create_is_drawn_with_each_of_terraforms_commands() -> None:
    told = _measured("timeline")
    for command in ("version", "init", "plan", "show", "apply"):
        assert told.count(f"\nterraform {command} ") == 1


@pytest.mark.slow(sibling="::test_a_check_without_google_is_measured_against_python")
def test_the_requests_of_a_thousand_vms_are_counted() -> None:
    rows = dict(
        line.strip("| ").split(" | ")
        for line in _measured("start-up").splitlines()
        if line.startswith("| ") and "---" not in line and line != "| | |"
    )
    assert int(rows["requests for the VMs' start-up"]) >= int(rows["VMs"]) == 1000
