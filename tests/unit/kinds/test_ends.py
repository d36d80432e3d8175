"""When machines end automatically."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

from provision.kinds import ends
from provision.time.clock import Clock

if TYPE_CHECKING:
    from pathlib import Path


def test_a_rehearsed_end_is_as_far_away_as_the_time_that_is_left_and_by_the_cloud_s_clock(
    tmp_path: Path,
) -> None:
    file = tmp_path / "clock"
    file.write_text("3600 1800003600")

    end = ends.moment(7200, Clock(0.02, file))

    assert dt.datetime.fromisoformat(end).timestamp() == 1_800_000_000 + 7200
