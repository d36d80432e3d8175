"""How long before the end of MAX_RUN_DURATION a program is told: a part of the run."""

import pytest

from provision.settings.model import Settings
from provision.spec import cluster

MANDATORY = {"project_id": "my-project", "name_prefix": "np", "zone": "us-central1-a"}


@pytest.mark.parametrize(
    ("run", "notice"), [("10m", 120), ("1h", 360), ("7d", 600), ("12h", 600), (None, None)]
)
def test_it_is_a_tenth_of_the_run_from_2_minutes_to_10(run: str | None, notice: int | None) -> None:
    settings = Settings(MANDATORY | ({"max_run_duration": run} if run else {}))
    assert cluster.vms(settings).stop_notice == notice
