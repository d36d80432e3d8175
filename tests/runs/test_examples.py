"""Each story of `examples/`: Create, Status, Create again without changes, Destroy to nothing."""

from pathlib import Path

import pytest
from dotenv import dotenv_values

from rehearsal.inventory import stays
from tests.runs import rights
from tests.runs.conftest import Rehearsal
from tests.runs.reading import to_read

EXAMPLES = Path(__file__).parents[2] / "examples"
STORIES = sorted(path for path in EXAMPLES.glob("*.list") if "gke" not in path.name)
NOTHING = {"add": 0, "change": 0, "destroy": 0}


def _name(path: Path) -> str:
    return path.name.partition(".")[0]


def _settings(path: Path) -> dict[str, str]:
    return {name: value for name, value in dotenv_values(path).items() if value}


@pytest.mark.slow(
    sibling="tests/runs/test_the_life_of_a_cluster.py::test_an_env_list_becomes_a_cluster_and_goes_away_again"
)
@pytest.mark.parametrize("path", STORIES, ids=_name)
def test_a_story_comes_stays_and_goes(rehearsal: Rehearsal, path: Path) -> None:
    rehearsal.settings = _settings(path)
    rehearsal.presume()
    before = rehearsal.resources()
    count = int(rehearsal.settings.get("INSTANCE_COUNT", "1"))

    created = rehearsal.run("Create")
    assert created.code == 0, created.said
    assert len(created.document["connection"]["vms"]) == count
    assert len(to_read(created.said)) <= 40, created.said

    asked = len(rehearsal.requests())
    status = rehearsal.run("Status")
    assert status.code == 0, status.said
    assert rehearsal.writes(since=asked) == []
    image = created.document["image"]
    assert image["resolved"]
    assert status.document["status"]["image"]["name"] == image["name"]
    assert status.document["status"]["last_log"].endswith("-create.log")
    vms = status.document["status"]["vms"]
    assert [(vm["status"], vm["startup"]["state"]) for vm in vms] == count * [("RUNNING", "done")]

    again = rehearsal.run("Create")
    assert again.code == 0, again.said
    assert again.document["changes"] == NOTHING
    assert "No changes" in again.said

    destroyed = rehearsal.run("Destroy")
    assert destroyed.code == 0, destroyed.said
    left = [line for line in rehearsal.resources() if not stays(line)]
    assert left == [line for line in before if not stays(line)]

    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)
