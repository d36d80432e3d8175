"""The story of `make rehearse`, as whoever has just cloned the project sees it."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

_TREE = Path(__file__).parents[2]
_LONGEST = 64
"""Lines: it is to be read, not scrolled through. News of a wait do not count: a slow machine has
more of them."""
_NEWS = "\x1b[2m  "
_PICTURE = _TREE / "docs" / "rehearsal.svg"
# What differs from run to run.
_DIFFERS = (
    r"\d+:\d\d|\d{4}-\d\d-\d\dT[\d:]+Z|(?<=-vm-)\w{4}|(?<=aiinfra-cluster=)\w+"
    r"|(?<=checks in )[\d.]+ s|(?<= ran )[\dmins ]+ on|(?<=about )\$[\d.]+"
    r"|(?<=cost at most )\$[\d.]+|(?<=up to )\d+ \w+|(?<=Told in )\d+|(?<=browser: ).*"
)


def _words(picture: Path) -> list[str]:
    """The words that a picture shows, without the news of waits and without what differs."""
    root = ET.parse(picture).getroot()  # noqa: S314 - ours
    rows = [
        ("".join(it.itertext()), [part.get("class") for part in it]) for it in root if it.get("x")
    ]
    told = " ".join(
        text for text, looks in rows if not text.startswith("  ...") and looks != ["c2"]
    )
    return re.sub(_DIFFERS, "<>", " ".join(told.split())).split("$ ")


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
        "4 x a3-ultragpu-8g",
        "GPUDirect-RDMA (gIB)",
        "us-central1-b has none now",
        "4 of 4 VMs have started up",
        "/h from now on",
        "rank 0 of 4: step 3, loss 0.33",
        "train-1 succeeded",
        "Destroyed ",
        "The simulated cloud is empty, but for the bucket",
        f"open in a browser: {report}",
    ):
        assert words in told.stdout
    assert "4 \N{MULTIPLICATION SIGN} a3-ultragpu-8g" in report.read_text()
    drawn = ET.fromstring(picture.read_text())  # noqa: S314 - made by us
    assert "".join(drawn.itertext()).count("aiinfra --env-file") == 3
    assert _words(picture) == _words(_PICTURE), "make picture renews the README's"


def test_the_picture_of_the_readme_is_of_such_a_story() -> None:
    drawn = "".join(ET.parse(_PICTURE).getroot().itertext())  # noqa: S314 - ours
    assert "4 of 4 VMs have started up" in drawn
    assert str(_TREE) not in drawn
