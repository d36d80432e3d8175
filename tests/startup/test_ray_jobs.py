"""Jobs of Run on real Ray, on two VMs of one machine.

A file of its own, so that they run beside those of the cluster itself: each takes minutes.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.startup import environments, room
from tests.startup.ray_job_scenario import SECRET
from tests.startup.test_ray import RAYS_OWN

# The first test makes the environment, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(1800)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What became of jobs of Run, by event."""
    folder: Path = tmp_path_factory.mktemp("jobs")
    environment = environments.ray_and_torch()
    arguments = (str(folder), str(environment.python), json.dumps(environment.variables))
    events = room.enter("tests.startup.ray_job_scenario", *arguments, seconds=1200)
    return {event["event"]: event for event in events}


def test_a_job_of_run_has_its_folder_on_another_vm_and_its_exit_code_comes_back(
    jobs: dict[str, dict[str, Any]],
) -> None:
    event = jobs["failed"]

    assert event["report"]["code"] == 7, event
    arguments, here, there = json.loads(_results_of_list(event["log"]))
    assert arguments == ["a b", "$HOME"]
    about: dict[str, Any] = {
        "LEVEL": "high",
        "KEY": SECRET[:5],
        "JOB_NAME": "fails",
        "JOB_ATTEMPT": "1",
    }
    about |= {"uid": RAYS_OWN, "data": "kept\n"}
    assert here == about | {"ran_on": event["head"]}
    assert there == about | {"ran_on": event["other"]}
    assert "'fails-1-1' failed" in event["status"]
    assert "submission_id='fails-1-1'" in event["shown"]


def _results_of_list(said: str) -> str:
    return next(line for line in said.splitlines() if line[:2] == "[[")


def test_a_secret_of_a_job_is_nothing_that_ray_or_a_command_line_shows(
    jobs: dict[str, dict[str, Any]],
) -> None:
    assert "the key is ***" in jobs["failed"]["log"]
    assert SECRET not in jobs["failed"]["shown"]
    assert jobs["leaks"]["found"] == []


def test_a_command_that_ray_can_not_find_has_the_code_of_a_shell(
    jobs: dict[str, dict[str, Any]],
) -> None:
    report = jobs["not found"]["report"]

    assert (report["code"], report["cause"]) == (127, "command not found")


def test_the_recipe_trains_on_both_vms_and_its_next_run_goes_on_from_the_checkpoint(
    jobs: dict[str, dict[str, Any]],
) -> None:
    told = []
    for event in (jobs["trained 1"], jobs["trained 2"]):
        assert event["report"]["code"] == 0, event
        assert event["kept"] == 2
        (metrics,) = re.findall(r"^spiral is through: (.*)", event["log"], re.MULTILINE)
        told.append(json.loads(metrics))
    first, second = told
    assert (first["workers"], first["began"], first["epoch"]) == (2, 0, 2)
    assert (second["workers"], second["began"], second["epoch"]) == (2, 2, 3)
    assert second["loss"] < 1.0, "a guess among three arms is 1.1"


def test_what_is_cancelled_has_time_to_save_and_nothing_of_it_is_left(
    jobs: dict[str, dict[str, Any]],
) -> None:
    event = jobs["cancelled"]

    assert "saved" in event["log"].splitlines()
    assert "stopped" in event["status"]


def test_a_job_whose_runner_is_killed_is_ended_by_its_unit(jobs: dict[str, dict[str, Any]]) -> None:
    assert "stopped" in jobs["killed"]["status"]
