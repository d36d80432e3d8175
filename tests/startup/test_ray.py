"""Real Ray on three VMs of one machine, its lease and token in the simulated Cloud Storage."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.startup import environments, room
from tests.startup.sandbox import PAYLOAD

ALL = ["10.77.0.11", "10.77.0.12", "10.77.0.13"]
RAYS_OWN = 880  # the user aiinfra-ray


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What happened to the cluster, by event."""
    folder: Path = tmp_path_factory.mktemp("room")
    environment = environments.ray_and_torch()
    arguments = (str(folder), str(environment.python), json.dumps(environment.variables))
    events = room.enter("tests.startup.ray_scenario", *arguments, seconds=1200)
    return {event["event"]: event for event in events}


# The first of them makes the environment, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(1800)


def test_three_vms_join_and_run_tasks_as_a_user_without_rights(
    told: dict[str, dict[str, Any]],
) -> None:
    assert told["joined"]["ran_on"] == ALL
    assert told["joined"]["users"] == [RAYS_OWN]


def _results(said: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in said.splitlines() if line[:1] == "{"]


def test_the_guides_commands_do_what_it_says_for_a_user_without_rights(
    told: dict[str, dict[str, Any]],
) -> None:
    said = told["documented"]["said"]

    assert list(said) == [
        "ray status",
        "cd /opt/aiinfra/samples",
        "python one_gpu.py",
        "python many_gpus.py --epochs 20",
        "ray job submit --no-wait --working-dir . -- python many_gpus.py",
        "ray job list",
    ]
    assert said["ray status"].count(" 1 node_") == 3
    assert "entrypoint='python many_gpus.py'" in said["ray job list"]


def test_a_job_that_a_user_submits_has_the_files_beside_it(told: dict[str, dict[str, Any]]) -> None:
    assert "succeeded" in told["submitted"]["said"]
    assert '"accuracy"' in told["submitted"]["said"]


def test_the_head_tells_the_tool_of_a_job_that_a_user_submitted(
    told: dict[str, dict[str, Any]],
) -> None:
    (found,) = (it for it in told["listed"]["jobs"] if it["name"] == told["listed"]["job"])

    assert found["state"] == "RUNNING"
    assert found["since"] > 1.7e9


def test_the_sample_for_one_gpu_learns(told: dict[str, dict[str, Any]]) -> None:
    (result,) = _results(told["documented"]["said"]["python one_gpu.py"])

    assert result["losses"][-1] < result["losses"][0] / 2
    assert result["accuracy"] > 0.8


def test_the_sample_for_many_gpus_runs_on_all_vms_and_averages_gradients(
    told: dict[str, dict[str, Any]],
) -> None:
    results = _results(told["documented"]["said"]["python many_gpus.py --epochs 20"])

    assert sorted(result["node"] for result in results) == ALL
    assert len({result["weights"] for result in results}) == 1
    assert all(result["accuracy"] > 0.8 for result in results)


def test_the_dashboard_is_at_the_localhost_of_each_vm_for_who_has_the_token(
    told: dict[str, dict[str, Any]],
) -> None:
    codes = told["dashboard"]["codes"]

    assert list(codes) == [f"train-vm-{number}" for number in (1, 2, 3)]
    assert all(code == ["401", "200"] for code in codes.values())


@pytest.mark.parametrize("way", ["dashboard", "client"])
def test_a_program_of_another_vm_runs_nothing_without_the_token(
    told: dict[str, dict[str, Any]], way: str
) -> None:
    said = told["strangers"]

    refusals = {"dashboard": ("HTTP Error 401", "HTTP Error 403"), "client": ("Error", "Error")}
    assert refusals[way][0] in said[way]
    assert refusals[way][1] in said[f"{way}_wrong"]
    # The same programs, with the token: it was the token that they lacked.
    right = {"dashboard": '"submission_id"', "client": f"uid {RAYS_OWN}"}
    assert right[way] in said[f"{way}_right"]


def test_the_token_is_long_and_stands_nowhere_but_where_it_is_to(
    told: dict[str, dict[str, Any]],
) -> None:
    assert told["secret"] == {"event": "secret", "bytes": 64, "leaks": []}


@pytest.mark.parametrize("vm", ["head", "worker"])
def test_all_that_listens_for_other_vms_is_in_the_list_for_the_firewall(
    told: dict[str, dict[str, Any]], vm: str
) -> None:
    listed = json.loads((PAYLOAD / "ray-ports.json").read_text("utf-8"))
    workers = range(listed["first_worker"], listed["last_worker"] + 1)
    open_ports = told["ports"][vm]

    assert listed["node_manager"] in open_ports
    assert [it for it in open_ports if it not in listed.values() and it not in workers] == []


def test_a_job_goes_on_while_cloud_storage_is_away_and_its_lease_is_deleted(
    told: dict[str, dict[str, Any]],
) -> None:
    event = told["storage was away"]
    before, after = event["turns"]

    assert event["refused"]
    assert 0 < before < after
    assert event["began_anew"] == 0
    assert event["lease"] == event["head"]


def test_a_job_goes_on_when_a_workers_vm_is_killed_which_joins_again(
    told: dict[str, dict[str, Any]],
) -> None:
    event = told["a worker was killed"]

    assert event["ran_on"] == ALL
    assert event["turns"] > told["storage was away"]["turns"][1]
    assert "succeeded" in event["status"]


def test_the_cluster_goes_on_with_another_head_when_its_vm_is_killed(
    told: dict[str, dict[str, Any]],
) -> None:
    assert len(told["head killed"]["ran_on"]) == 2
    assert told["head killed"]["by"] != told["head killed"]["was"]


def test_a_head_that_comes_back_joins_the_cluster_of_the_new_one(
    told: dict[str, dict[str, Any]],
) -> None:
    assert told["head came back"]["ran_on"] == ALL
    assert told["head came back"]["token"]
