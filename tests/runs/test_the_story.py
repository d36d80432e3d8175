"""The story of `make rehearse`, as whoever has just cloned the project sees it."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

_TREE = Path(__file__).parents[2]
_LONGEST = 54
"""Lines: it is to be read, not scrolled through. News of a wait do not count: a slow machine has
more of them."""
_NEWS = "\x1b[2m  "


@pytest.mark.slow(
    sibling="tests/runs/test_the_life_of_a_cluster.py"
    "::test_an_env_list_becomes_a_cluster_and_goes_away_again"
)
def test_the_story_is_short_whole_and_true(tmp_path: Path) -> None:
    report, picture = tmp_path / "report.html", tmp_path / "story.svg"
    told = subprocess.run(
        [
            *(sys.executable, "-m", "rehearsal", "story"),
            *("--report", str(report), "--picture", str(picture)),
        ],
        # What stands in the caller's environment is no part of it.
        env={**os.environ, "INSTANCE_COUNT": "3", "ACTION": "Status"},
        cwd=_TREE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout
    lasting = [line for line in told.stdout.splitlines() if not line.startswith(_NEWS)]
    assert len(lasting) <= _LONGEST, told.stdout
    for words in (
        "16 x a3-highgpu-8g",
        "us-central1-a has none now",
        "16 of 16 VMs have started up",
        "/h from now on",
        "No changes: what exists is what the settings describe.",
        "Destroyed ",
        "The simulated cloud is empty, but for the bucket",
        f"open in a browser: {report}",
    ):
        assert words in told.stdout
    assert "16 \N{MULTIPLICATION SIGN} a3-highgpu-8g" in report.read_text()
    drawn = ET.fromstring(picture.read_text())  # noqa: S314 - made by us
    assert "".join(drawn.itertext()).count("aiinfra --env-file") == 3


def test_the_picture_of_the_readme_is_of_such_a_story() -> None:
    drawn = "".join(ET.parse(_TREE / "docs/rehearsal.svg").getroot().itertext())  # noqa: S314 - ours
    assert "16 of 16 VMs have started up" in drawn
    assert str(_TREE) not in drawn
