"""Jobs whose machines were lost, and that Google has none for where they were."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.runs.job_lines import job_of, when

A, B = "us-central1-a", "us-central1-b"
SPOT = {"ENABLE_SPOT": "yes", "INSTANCE_COUNT": "2", "ZONE": f"{A},{B}", "CAPACITY_TIMEOUT": "12h"}
RATE = 0.004
"""Wall seconds for a second of Google's: a patience of ten minutes is five seconds, the least."""
TRAIN = ("--restarts=3", "--", "python3", "train.py")
SLOW = pytest.mark.slow(sibling="::test_a_job_that_lost_its_machines_goes_on_in_the_next_zone")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program that goes on until something has happened to its machines."""
    made = tmp_path / "code"
    made.mkdir()
    program = 'import time\nprint("epoch 1")\ntime.sleep(3600)\nprint("epoch 2")\n'
    (made / "train.py").write_text(program)
    return made


def _there(standing: Rehearse, **more: str) -> Rehearsal:
    rehearsal = standing(SPOT | more, rate=RATE)
    rehearsal.settings |= SPOT | more
    return rehearsal


def _groups(rehearsal: Rehearsal) -> list[str]:
    """The zones with a group of ours."""
    groups = (it for it in rehearsal.resources() if "/instanceGroupManagers/" in it)
    return [it.split("/zones/")[1].split("/")[0] for it in groups if "resizeRequests" not in it]


def _vms(rehearsal: Rehearsal) -> list[str]:
    """The paths of the VMs."""
    return [it.partition(" ")[2] for it in rehearsal.resources() if "/instances/" in it]


def _lose(rehearsal: Rehearsal, number: int, zones: str = A, way: str = "*") -> None:
    """Have Google take VMs back, and have no others in these zones."""
    rehearsal.stock({"zones": zones, "machines": 0, "way": way})
    for vm in _vms(rehearsal)[:number]:
        rehearsal.google("POST", f"compute/v1/{vm}/simulateMaintenanceEvent")


def _notes(ended: Ended) -> str:
    return "\n".join(f"{it['what']}\n{it['why']}\n{it['fix']}" for it in ended.document["notes"])


def _begin(rehearsal: Rehearsal, folder: Path, *options: str) -> Any:
    started = rehearsal.start("Run", f"--copy={folder}", *options, behind=TRAIN)
    when(rehearsal, started, "epoch 1")
    return started


@pytest.mark.parametrize(
    ("lost", "options"),
    [(2, ()), pytest.param(1, ("--yes",), marks=SLOW)],
    ids=["all", "one"],
)
def test_a_job_that_lost_its_machines_goes_on_in_the_next_zone(
    standing: Rehearse, folder: Path, lost: int, options: tuple[str, ...]
) -> None:
    rehearsal = _there(standing)
    started = _begin(rehearsal, folder, "--create", *options)
    _lose(rehearsal, lost)
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert f"np is to go on where Google has all machines: {A} has no a2-highgpu-2g" in ended.said
    assert re.search(rf"It tries {A} for \$[\d.]+/h, {B} for \$[\d.]+/h", ended.said)
    assert f"From {A} to {B}: {A} has no a2-highgpu-2g available now" in ended.said
    assert _groups(rehearsal) == [B]
    job = job_of(ended)
    assert (job["name"], job["attempt"], job["state"]) == ("train-1", 2, "succeeded")
    assert re.findall(r"^epoch \d$", ended.said, re.MULTILINE) == ["epoch 1", "epoch 1", "epoch 2"]
    assert "attempt 1 failed" in job["events"][0]
    assert not rehearsal.object("deployment.json")["searching"]


@SLOW
def test_machines_that_run_end_only_if_somebody_agrees_and_else_the_job_waits_where_it_is(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing)
    started = _begin(rehearsal, folder, "--create")
    _lose(rehearsal, 1)
    when(rehearsal, started, "train-1 waits on where it is")
    rehearsal.stock()
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert "This move would end machines; np stays where it is" in _notes(ended)
    assert "--yes agrees to it beforehand" in _notes(ended)
    assert _groups(rehearsal) == [A]
    assert job_of(ended)["attempt"] == 2


@SLOW
def test_where_nothing_has_any_the_job_is_kept_and_a_later_run_brings_it_on(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing)
    started = _begin(rehearsal, folder, "--create")
    _lose(rehearsal, 2, "*")
    when(rehearsal, started, "None of 2 zones has all machines now: again in")
    rehearsal.kill(started)
    listed = rehearsal.run("Jobs", behind=("train-1",))
    assert "aiinfra Run --again train-1 --create" in _notes(listed)
    left = job_of(listed)
    assert (left["state"], left["attempt"]) == ("waiting", 1), left
    assert "has no a2-highgpu-2g available now: 0 of 2 VMs run" in left["why"]
    short = rehearsal.run("Run", "--create", "--again=train-1", CAPACITY_TIMEOUT="75m")
    assert short.code == 75, short.said
    assert "run aiinfra Run --again train-1 --create to go on from there" in short.problem["fix"]
    # As if it had been killed on its way from one zone to the next.
    (zone,) = _groups(rehearsal)
    rehearsal.google(
        "DELETE",
        f"compute/v1/projects/my-project/zones/{zone}/instanceGroupManagers/np-mig",
    )
    (left,) = rehearsal.run("Jobs").document["jobs"]
    assert (left["state"], left["why"]) == ("waiting", "np has no group of VMs"), left
    rehearsal.stock()
    ended = rehearsal.run("Run", "--create", "--again=train-1")
    assert ended.code == 0, ended.said
    assert "train-1 is not over, and is followed" in ended.said
    assert (job_of(ended)["name"], job_of(ended)["attempt"]) == ("train-1", 2)
    assert len(rehearsal.run("Jobs").document["jobs"]) == 1


@SLOW
def test_who_may_make_nothing_is_told_what_does_and_follows_the_job_there(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing)
    rehearsal.settings["ZONE"] = A
    of_one_zone = _begin(rehearsal, folder, "--create")
    plain = rehearsal.start("Logs", "--follow", behind=("train-1",))
    _lose(rehearsal, 2)
    for started, words in (
        (of_one_zone, "fix: ZONE=any, or zones in their order"),
        (plain, "fix:"),
    ):
        when(rehearsal, started, words)
        assert "aiinfra Run --again train-1 --create" in " ".join(rehearsal.said(started).split())
    moved = rehearsal.run("Run", "--create", "--again=train-1", ZONE=f"{A},{B}")
    assert moved.code == 0, moved.said
    for started in (of_one_zone, plain):
        assert rehearsal.finish(started).code == 0
    assert _groups(rehearsal) == [B]


@SLOW
def test_of_two_that_wait_one_moves_the_cluster_and_both_see_the_end(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing)
    first = _begin(rehearsal, folder, "--create")
    second = rehearsal.elsewhere().start("Run", "--create", "--again=train-1")
    when(rehearsal, second, "train-1 is not over")
    _lose(rehearsal, 2)
    ended = [rehearsal.finish(it) for it in (first, second)]
    assert [it.code for it in ended] == [0, 0], ended[0].said + ended[1].said
    assert _groups(rehearsal) == [B]
    assert [job_of(it)["attempt"] for it in ended] == [2, 2]


@SLOW
def test_the_way_after_the_one_that_has_none_is_the_next(standing: Rehearse, folder: Path) -> None:
    more = {"ZONE": A, "CAPACITY": "spot,on_demand"}
    rehearsal = standing({"INSTANCE_COUNT": "2"} | more, rate=RATE)
    rehearsal.settings |= {"INSTANCE_COUNT": "2"} | more
    started = _begin(rehearsal, folder, "--create")
    _lose(rehearsal, 2, way="SPOT")
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert f"From {A} (spot) to {A} (on demand): " in ended.said
    assert job_of(ended)["attempt"] == 2


@SLOW
def test_flex_start_vms_that_are_gone_are_asked_for_again(standing: Rehearse, folder: Path) -> None:
    flex = {"ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "1d", "INSTANCE_COUNT": "2"}
    rehearsal = standing(flex, rate=RATE)
    rehearsal.settings |= flex
    started = _begin(rehearsal, folder, "--create")
    where = f"compute/v1/projects/my-project/zones/{A}"
    manager = f"{where}/instanceGroupManagers/np-mig"
    rehearsal.google("POST", f"{manager}/deleteInstances", {"instances": _vms(rehearsal)})
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert "there is no request for another one" in ended.said
    assert job_of(ended)["attempt"] == 2
    assert sum("resizeRequests/" in it for it in rehearsal.resources()) >= 1


@SLOW
def test_what_max_cost_leaves_is_for_the_machines_that_come_again(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing, MAX_COST="36")
    started = _begin(rehearsal, folder, "--create")
    _lose(rehearsal, 2)
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    (told,) = re.findall(r"MAX_COST=36: at most \$[\d.]+ are spent, so Google .*", ended.said)
    assert "deletes each VM that comes now" in told
    recorded = rehearsal.object("deployment.json")["settings"]["MAX_RUN_DURATION"]
    assert recorded < 4 * 3600


@SLOW
def test_a_job_without_a_restart_left_ends_where_all_machines_are_lost(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing, INSTANCE_COUNT="1")  # of two, the other would say that it failed
    started = rehearsal.start(
        "Run", f"--copy={folder}", "--create", behind=("--", "python3", "train.py")
    )
    when(rehearsal, started, "epoch 1")
    _lose(rehearsal, 1)
    ended = rehearsal.finish(started)
    assert (ended.code, ended.problem["code"]) == (8, "job-failed"), ended.said
    assert "its machines were lost, and no restart is left" in ended.problem["what"]
    assert "--restarts" in ended.problem["fix"]
    assert _groups(rehearsal) == [A]
    rehearsal.stock({"zones": A, "machines": 0})
    ended = rehearsal.run("Run", "--create", "--again=train-1", "--restarts=3")
    assert ended.code == 0, ended.said
    assert [it["name"] for it in rehearsal.run("Jobs").document["jobs"]] == ["train-1", "train-2"]
    assert _groups(rehearsal) == [B]


@SLOW
def test_a_job_on_gke_goes_on_with_the_pool_of_a_fixed_size(
    standing: Rehearse, folder: Path
) -> None:
    gke = SPOT | {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24"}
    rehearsal = standing(gke, rate=RATE)
    rehearsal.settings |= gke
    started = _begin(rehearsal, folder, "--create", "--yes", "--nodes=2")
    rehearsal.stock({"zones": A, "machines": 0})
    for vm in _vms(rehearsal):
        if "nodepool" in vm:
            rehearsal.google("POST", f"compute/v1/{vm}/simulateMaintenanceEvent")
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert f"From {A} to {B}: {A} has no g2-standard-24 available now" in ended.said
    assert job_of(ended)["attempt"] == 2


@SLOW
def test_nodes_of_another_pool_that_would_go_too_end_only_if_somebody_agrees(
    standing: Rehearse, folder: Path
) -> None:
    pools = "name=lost,vm_type=g2-standard-24,count=1;name=other,vm_type=g2-standard-12,count=1"
    gke = SPOT | {"ORCHESTRATOR_TYPE": "gke", "GKE_NODE_POOLS": pools}
    del gke["INSTANCE_COUNT"]
    rehearsal = standing(gke, rate=RATE)
    rehearsal.settings |= gke
    started = _begin(rehearsal, folder, "--create", "--machine=g2-standard-24")
    other = rehearsal.run(
        "Run", "--detach", "--machine=g2-standard-12", f"--copy={folder}", "--name=beside",
        behind=TRAIN,
    )  # fmt: skip
    assert other.code == 0, other.said
    rehearsal.stock({"zones": A, "machines": 0})
    for vm in _vms(rehearsal):
        if "-lost-" in vm:
            rehearsal.google("POST", f"compute/v1/{vm}/simulateMaintenanceEvent")
    when(rehearsal, started, "train-1 waits on where it is")
    rehearsal.stock()
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    assert "beside-1 still runs on those that are left" in _notes(ended)
    (beside,) = (it for it in rehearsal.run("Jobs").document["jobs"] if it["name"] == "beside-1")
    assert beside["attempt"] == 1


@SLOW
def test_the_same_run_again_follows_a_job_that_waits_for_lost_machines(
    standing: Rehearse, folder: Path
) -> None:
    rehearsal = _there(standing)
    started = _begin(rehearsal, folder, "--create")
    _lose(rehearsal, 2, "*")
    when(rehearsal, started, "None of 2 zones has all machines now: again in")
    rehearsal.kill(started)
    again = rehearsal.start("Run", f"--copy={folder}", "--create", behind=TRAIN)
    when(rehearsal, again, "train-1 waits already, with the same command and folder")
    rehearsal.stock()
    ended = rehearsal.finish(again)
    assert ended.code == 0, ended.said
    assert [it["name"] for it in rehearsal.run("Jobs").document["jobs"]] == ["train-1"]


@SLOW
def test_a_move_that_did_not_end_is_no_yes_to_the_end_of_the_cluster(
    standing: Rehearse, folder: Path
) -> None:
    gke = SPOT | {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "1"}
    rehearsal = standing(gke, rate=RATE)
    rehearsal.settings |= gke
    started = _begin(rehearsal, folder, "--create")
    rehearsal.stock({"zones": "*", "machines": 0})
    for vm in _vms(rehearsal):
        if "nodepool" in vm:
            rehearsal.google("POST", f"compute/v1/{vm}/simulateMaintenanceEvent")
    when(rehearsal, started, "None of 2 zones has all machines now: again in")
    rehearsal.kill(started)
    assert rehearsal.object("deployment.json")["searching"]
    changed = rehearsal.run("Create", GKE_PODS_RANGE="10.64.0.0/16", CAPACITY_TIMEOUT="5m")
    assert (changed.code, changed.problem["code"]) == (2, "approval-needed"), changed.said
