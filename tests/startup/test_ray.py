"""Real Ray on three VMs of one machine, its lease in the simulated Cloud Storage."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.startup import environments, room

if TYPE_CHECKING:
    from pathlib import Path

ALL = ["10.77.0.11", "10.77.0.12", "10.77.0.13"]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What happened to the cluster, by event."""
    folder: Path = tmp_path_factory.mktemp("room")
    environment = environments.ray_and_torch()
    arguments = (str(folder), str(environment.python), json.dumps(environment.variables))
    events = room.enter("tests.startup.ray_scenario", *arguments, seconds=900)
    return {event["event"]: event for event in events}


# The first of them makes the environment, which takes minutes where none is kept.
pytestmark = [pytest.mark.timeout(900), pytest.mark.xdist_group("ray")]


def test_three_vms_join_and_a_job_runs_on_all(told: dict[str, dict[str, Any]]) -> None:
    assert told["joined"]["ran_on"] == ALL


def test_the_cluster_goes_on_with_another_head_when_its_vm_is_killed(
    told: dict[str, dict[str, Any]],
) -> None:
    assert len(told["head killed"]["ran_on"]) == 2
    assert told["head killed"]["by"] != told["head killed"]["was"]


def test_a_head_that_comes_back_joins_the_cluster_of_the_new_one(
    told: dict[str, dict[str, Any]],
) -> None:
    assert told["head came back"]["ran_on"] == ALL


def test_the_sample_for_one_gpu_learns(told: dict[str, dict[str, Any]]) -> None:
    (result,) = told["one_gpu.py"]["results"]

    assert result["losses"][-1] < result["losses"][0] / 2
    assert result["accuracy"] > 0.8


def test_the_sample_for_many_gpus_runs_on_all_vms_and_averages_gradients(
    told: dict[str, dict[str, Any]],
) -> None:
    results = told["many_gpus.py"]["results"]

    assert sorted(result["node"] for result in results) == ALL
    assert len({result["weights"] for result in results}) == 1
    assert all(result["accuracy"] > 0.8 for result in results)
