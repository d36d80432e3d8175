"""Jobs on clusters of each kind, from the command line to the end: Run, Jobs, Logs, Cancel."""

import re
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.runs import cluster_side
from tests.runs.conftest import Ended, Rehearsal, Rehearse
from tests.runs.job_lines import (
    GKE,
    QUEUED,
    RAY,
    RAYJOB,
    SLOW,
    TRAIN,
    TWO,
    begin,
    fetch,
    folder,
    job_of,
    run,
    there,
    when,
)

__all__ = ["folder", "there"]  # the fixtures


def test_a_folder_runs_on_all_vms_and_what_it_says_is_shown_once(
    there: Rehearse, folder: Path
) -> None:
    rehearsal = there()
    ended = run(rehearsal, "--", "torchrun", "train.py", "--epochs", "3", folder=folder)
    assert ended.code == 0, ended.said
    assert re.findall(r"^epoch \d$", ended.said, re.MULTILINE) == ["epoch 1", "epoch 2"]
    job = job_of(ended)
    # On Ray the program is the head's, and its tasks are anybody's.
    settings = rehearsal.settings
    on_ray = settings.get("ORCHESTRATOR_TYPE") == "ray" or "ENABLE_RAY_OPERATOR" in settings
    machines = 1 if on_ray else 2
    assert (job["name"], job["state"], len(job["machines"])) == ("train-1", "succeeded", machines)
    on_gke = settings.get("ORCHESTRATOR_TYPE") == "gke"
    hint = "" if on_ray or on_gke else ", but --rehearse=run-programs does"
    assert job["why"] == f"would run here: a rehearsal runs no program{hint}"
    assert "; would run here: a rehearsal runs no program" in ended.said
    assert "This is a rehearsal: torchrun train.py --epochs 3 was not run here" in ended.said

    again = run(rehearsal, "--", "torchrun", "train.py", folder=folder)
    assert job_of(again)["name"] == "train-2"
    sent = [name for name in rehearsal.objects() if "/jobs/files/" in name]
    assert len(sent) == 1, "what has not changed does not travel again"
    listed = rehearsal.run("Jobs").document["jobs"]
    assert [job["name"] for job in listed] == ["train-1", "train-2"]
    logs = rehearsal.run("Logs", behind=("train-1",))
    assert re.findall(r"^epoch \d$", logs.said, re.MULTILINE) == ["epoch 1", "epoch 2"]
    every = rehearsal.run("Logs", "--rank=all", "--tail=1", behind=("train-1",))
    assert re.findall(r"^\S* ?epoch \d$", every.said, re.MULTILINE) == [
        f"[{it}] epoch 2" for it in range(machines)
    ]
    assert rehearsal.run("Logs", "--rank=last").code == 2
    beyond = rehearsal.run("Logs", "--rank=9", behind=("train-1",))
    assert (beyond.code, beyond.problem["fix"]) == (2, f"--rank {machines - 1}, or --rank all")

    over = rehearsal.run("Ssh", behind=("train-1",))
    assert over.code == (8 if settings.get("ORCHESTRATOR_TYPE") == "gke" else 2)
    assert "does not run" in over.problem["what"]
    ended = fetch(rehearsal, "train-1")
    gone = {"gke": (8, "machines-gone"), "ray": (2, "without-effect")}
    if kind := settings.get("ORCHESTRATOR_TYPE"):
        # Pods are gone with what was in them, and Ray's folder with its program.
        assert (ended.code, ended.problem["code"]) == gone[kind]
        return
    assert ended.code == 0, ended.said
    assert "This is a rehearsal: no program ran" in ended.said
    assert ended.document["fetched"]["files"] == 1
    (rehearsal.folder / "here" / "train.py").write_text("mine")
    refused = fetch(rehearsal, "train-1", "train.py", "--rank=1")
    assert (refused.code, refused.problem["code"]) == (2, "approval-needed")
    agreed = fetch(rehearsal, "train-1", "train.py", "--rank=1", "--yes")
    assert agreed.document["fetched"]["overwritten"] == ["train.py"]
    assert (rehearsal.folder / "here" / "train.py").read_text() == TRAIN
    nowhere = fetch(rehearsal, "train-1", "logs")
    assert (nowhere.code, nowhere.problem["code"]) == (2, "invalid-command-line")


@pytest.mark.parametrize(
    ("command", "code", "what"),
    [
        (("bash", "-c", "echo no module; exit 3"), 3, "exit code 3, first on"),
        (("torchrum", "train.py"), 127, "command not found"),
        (("bash", "-c", "true; python3 other.py"), 2, "exit code 2"),
    ],
    ids=["fails", "not_found", "no_script"],
)
def test_a_job_that_fails_ends_with_8_and_says_where_and_why(
    there: Rehearse, folder: Path, command: tuple[str, ...], code: int, what: str
) -> None:
    ended = run(there(), "--name=bad", "--", *command, folder=folder)
    assert ended.code == 8, ended.said
    assert ended.problem["code"] == "job-failed"
    assert ended.problem["what"].startswith("bad-1 failed: ")
    assert what in ended.problem["what"]
    failure = job_of(ended)["failure"]
    assert (failure["rank"], failure["exit_code"]) == (0, code)
    assert failure["tail"] in ended.problem["why"]
    (begun,) = (line for line in ended.said.splitlines() if line.lstrip().startswith("done  job"))
    assert "bad-1: it has begun" in begun, ended.said


def test_a_job_whose_image_is_not_there_fails_at_once_and_holds_no_machines(
    standing: Rehearse,
) -> None:
    rehearsal = standing(GKE, scenario="missing", rate=0.01)
    rehearsal.settings |= GKE
    image = "us-docker.pkg.dev/my-project/team/tarin:1"
    ended = run(rehearsal, "--", "echo", "a", JOB_OPTIONS=f"--image={image}")
    assert (ended.code, job_of(ended)["state"]) == (8, "failed"), ended.said
    assert ended.problem["code"] == "job-failed"
    assert "its image can't be pulled: " in ended.problem["what"]
    assert f"{image}: not found" in ended.problem["what"]
    assert "correct --image" in ended.problem["fix"]
    left = job_of(rehearsal.run("Jobs", behind=("echo-1",)))
    assert left["state"] == "cancelled"
    assert "its image can't be pulled" in left["why"]
    # Only an image that its registry does not have ends a job.
    assert run(rehearsal, "--", "echo", "b", JOB_OPTIONS="--image ghcr.io/a/b:1").code == 0


def test_a_job_is_cancelled_from_elsewhere_while_it_is_followed(
    there: Rehearse, folder: Path
) -> None:
    rehearsal = there(rate=0.02)
    started = begin(rehearsal, "--", "python3", "train.py", folder=folder)
    when(rehearsal, started, "epoch 1")
    cancelled = rehearsal.run("Cancel", behind=("train",))
    assert cancelled.code == 0, cancelled.said
    ended = rehearsal.finish(started)
    assert (ended.code, job_of(ended)["state"]) == (8, "cancelled")
    again = rehearsal.run("Cancel", behind=("train-1",))
    assert (again.code, job_of(again)["state"]) == (0, "cancelled"), "twice is no error"


def test_several_jobs_are_cancelled_by_their_names_or_all_if_somebody_agrees(
    there: Rehearse,
) -> None:
    rehearsal = there(rate=0.02)
    for number in range(4):
        options = ("--name=j", "--detach", f"--env=RATE={number}")
        submitted = run(rehearsal, *options, "--", "sleep", "1000000")
        assert submitted.code == 0, submitted.said

    def states(ended: Ended) -> dict[str, str]:
        assert ended.code == 0, ended.said
        return {it["name"]: it["state"] for it in ended.document["jobs"]}

    wrong = rehearsal.run("Cancel", behind=("j-2", "k-1"))
    assert (wrong.code, wrong.problem["code"]) == (5, "no-job")
    assert set(states(rehearsal.run("Jobs")).values()) <= {"waiting", "preparing", "running"}
    two = rehearsal.run("Cancel", behind=("j-2", "j-4", "j"))
    assert states(two) == {"j-2": "cancelled", "j-4": "cancelled"}
    refused = rehearsal.run("Cancel", "--all")
    assert (refused.code, refused.problem["code"]) == (2, "approval-needed")
    assert "2 jobs: j-1, j-3" in refused.problem["what"]
    every = rehearsal.run("Cancel", "--all", "--yes")
    assert states(every) == {"j-1": "cancelled", "j-3": "cancelled"}
    assert rehearsal.run("Cancel", "--all").code == 0, "nobody is asked about nothing"


MEGA = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "a3-megagpu-8g", **TWO}
SOCKETS = "NCCL goes by sockets, not by the network of the GPUs"
ALONE = "its processes on 2 machines have not connected to each other"


@pytest.mark.parametrize(
    ("settings", "events"),
    [
        (TWO, [f"after 60 s {ALONE}: does each train alone?"]),
        pytest.param(MEGA, [f"{SOCKETS}, at a fraction"], marks=SLOW),
    ],
    ids=["vms", "gke"],
)
def test_what_looks_like_a_waste_of_machines_is_told_unless_somebody_says_it_is_none(
    standing: Rehearse, settings: dict[str, str], events: list[str]
) -> None:
    rehearsal = standing(settings, rate=0.02)
    rehearsal.settings |= settings
    line = "echo h:1:1 [0] NCCL INFO Using network Socket; sleep"
    started = begin(rehearsal, "--nodes", "2", "--", "bash", "-c", f"{line} 280")
    when(rehearsal, started, events[-1])
    while_it_runs = rehearsal.finish(rehearsal.start("Jobs"))
    ended = rehearsal.finish(started)

    assert ended.code == 0, ended.said
    told = job_of(ended)["events"]
    assert [it.startswith(start) for it, start in zip(told, events, strict=True)], told
    assert ended.said.count(told[0]) == 1, "once in what is followed"
    assert re.search(rf"runs on 2 machines.*; ({ALONE}|{SOCKETS})", while_it_runs.said)

    own = ("--nodes", "2", "--env", "AIINFRA_GUARD=no")
    silenced = run(rehearsal, *own, "--", "bash", "-c", f"{line} 80")
    assert (silenced.code, job_of(silenced)["events"]) == (0, [])


@pytest.mark.slow(sibling="::test_a_job_is_cancelled_from_elsewhere_while_it_is_followed")
def test_ctrl_c_lets_a_job_go_on_which_another_run_follows_to_its_end(
    there: Rehearse, folder: Path
) -> None:
    rehearsal = there(rate=0.01)
    started = begin(rehearsal, "--", "python3", "train.py", folder=folder)
    when(rehearsal, started, "epoch 1")
    started.send_signal(signal.SIGINT)
    left = rehearsal.finish(started)
    assert left.code == 130
    assert left.problem["what"] == "train-1 is no longer followed, and goes on"
    assert "aiinfra Logs train-1 --follow" in left.problem["fix"]
    assert "aiinfra Cancel train-1" in left.problem["fix"]
    going = job_of(rehearsal.run("Jobs", behind=("train-1",)))
    assert going["state"] == "running"
    assert 0 <= going["silent"] < 900
    is_there = rehearsal.settings.get("ORCHESTRATOR_TYPE") != "ray"
    assert going["fetch"] == ("aiinfra Fetch train-1" if is_there else "")
    fetched = fetch(rehearsal, "train-1", "train.py")
    assert fetched.code == (0 if is_there else 2), fetched.said
    entered = rehearsal.run("Ssh", behind=("train",))
    on_gke = rehearsal.settings.get("ORCHESTRATOR_TYPE") == "gke"
    assert entered.code == 0, entered.said
    ways = "kubectl exec -it " if on_gke else f"gcloud compute ssh {going['machines'][0]} "
    assert job_of(entered)["shell"].startswith(ways)

    followed = rehearsal.run("Logs", "--follow")
    assert followed.code == 0, followed.said
    assert re.findall(r"^epoch \d$", followed.said, re.MULTILINE) == ["epoch 1", "epoch 2"]


@pytest.mark.slow(sibling="::test_a_job_is_cancelled_from_elsewhere_while_it_is_followed")
def test_of_two_at_once_the_second_says_what_it_waits_for(there: Rehearse, folder: Path) -> None:
    rehearsal = there(rate=0.005)
    first = run(rehearsal, "--detach", "--", "python3", "train.py", folder=folder)
    assert first.code == 0, first.said
    second = run(rehearsal, "--", "echo", "second", folder=folder)
    assert second.code == 0, second.said
    assert "train-1 is before it" in second.said
    assert "second" in second.said.splitlines()
    assert job_of(rehearsal.run("Jobs", behind=("train-1",)))["state"] == "succeeded"


@pytest.mark.slow(sibling="::test_a_job_is_cancelled_from_elsewhere_while_it_is_followed")
def test_one_that_waits_behind_another_can_be_given_up_with_75_and_cancelled(
    there: Rehearse, folder: Path
) -> None:
    rehearsal = there(rate=0.01)
    run(rehearsal, "--detach", "--", "sleep", "90000", folder=folder)
    ended = run(rehearsal, "--wait=60s", "--", "echo", "second", folder=folder)
    assert ended.code == 75
    assert ended.problem["why"].startswith("--wait is over")
    again = run(rehearsal, "--wait=60s", "--", "echo", "second", folder=folder)
    assert (again.code, job_of(again)["name"]) == (75, "echo-1"), again.said
    assert "echo-1 waits already" in again.said
    other = run(rehearsal, "--detach", "--", "echo", "third", folder=folder)
    assert job_of(other)["name"] == "echo-2"
    assert rehearsal.run("Cancel", behind=("echo-2",)).code == 0
    assert "echo-1 has not begun: sleep-1 is before it" in ended.problem["what"]
    status = rehearsal.run("Status")
    assert [it["name"] for it in status.document["jobs"]] == ["sleep-1", "echo-1"]
    assert re.search(r"^sleep-1 +running ", status.said, re.MULTILINE), status.said
    cancelled = rehearsal.run("Cancel", behind=("echo-1",))
    assert (cancelled.code, job_of(cancelled)["state"]) == (0, "cancelled"), cancelled.said


def _lose_a_vm(rehearsal: Rehearsal) -> None:
    group = "compute/v1/projects/my-project/zones/us-central1-a/instanceGroupManagers/np-mig"
    listed = rehearsal.google("POST", f"{group}/listManagedInstances")
    lost = listed["managedInstances"][1]["instance"]
    rehearsal.google("POST", f"{group}/recreateInstances", {"instances": [lost]})


def _lose_a_node(rehearsal: Rehearsal) -> None:
    """Delete the VM of a node; GKE makes none in its place before somebody asks for one."""
    project = "compute/v1/projects/my-project"
    found = rehearsal.google("GET", f"{project}/aggregated/instances")["items"]
    nodes = [
        f"{zone}/instances/{vm['name']}"
        for zone, listed in found.items()
        for vm in listed.get("instances", ())
        if "nodepool-1" in vm["name"]
    ]
    rehearsal.google("DELETE", f"{project}/{nodes[1]}")


def _lose_the_head(rehearsal: Rehearsal) -> None:
    """Let the head of Ray go without a word; KubeRay makes another one, which knows of no job."""
    cluster = cluster_side.kubectl(rehearsal, rehearsal.object("connection.json"))
    (head,) = cluster.all("v1", "Pod", "default", "ray.io/node-type=head")
    cluster.delete("v1", "Pod", head["metadata"]["name"], "default")


@pytest.mark.parametrize(
    ("settings", "lose"),
    [
        pytest.param(TWO, _lose_a_vm, id="none"),
        pytest.param(QUEUED, _lose_a_node, id="gke", marks=SLOW),
        pytest.param(RAYJOB, _lose_the_head, id="gke_ray", marks=SLOW),
    ],
)
def test_a_machine_that_is_lost_costs_an_attempt_and_not_the_job(
    standing: Rehearse, folder: Path, settings: dict[str, str], lose: Callable[[Rehearsal], None]
) -> None:
    rehearsal = standing(settings, rate=0.01)
    rehearsal.settings |= settings
    command = ("--nodes=2", "--restarts=1", "--", "python3", "train.py")
    started = begin(rehearsal, *command, folder=folder)
    when(rehearsal, started, "epoch 1")
    lose(rehearsal)
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    job = job_of(ended)
    assert (job["attempt"], len(job["events"])) == (2, 1), ended.said
    assert re.search("attempt 1 failed: .* was lost, or .*; restart 1 of 1", ended.said)


@pytest.mark.slow(
    sibling="tests/unit/kinds/gke/kubernetes/test_status.py"
    "::test_a_refusal_that_no_other_request_changes_is_known"
)
def test_a_job_whose_nodes_google_will_never_give_ends_with_the_cause(standing: Rehearse) -> None:
    rehearsal = standing(QUEUED, scenario="quota", rate=0.01)
    rehearsal.settings |= QUEUED
    ended = run(rehearsal, "--", "true")
    assert (ended.code, ended.problem["code"]) == (8, "job-failed"), ended.said
    assert "Google refuses its nodes: Quota 'NVIDIA_L4_GPUS' exceeded" in ended.problem["what"]
    assert "request a higher quota NVIDIA_L4_GPUS of us-central1" in ended.problem["fix"]
    left = job_of(rehearsal.run("Jobs", behind=("true-1",)))
    assert (left["state"], "Limit: 0.0" in left["why"]) == ("cancelled", True)


def test_the_time_of_a_job_ends_it(there: Rehearse, folder: Path) -> None:
    rehearsal = there(rate=0.01)
    ended = run(rehearsal, "--time=5m", "--restarts=3", "--", "python3", "train.py", folder=folder)
    assert ended.code == 8
    assert "--time is over" in ended.problem["what"]
    assert job_of(ended)["attempt"] == 1
    assert "epoch 2" not in ended.said


def test_a_job_gets_its_command_and_its_variables_from_settings_too(
    there: Rehearse, folder: Path
) -> None:
    rehearsal = there()
    is_ray = rehearsal.settings.get("ORCHESTRATOR_TYPE") == "ray"
    elsewhere = "" if is_ray else " --nodes 2 --image ghcr.io/a/b:1"
    here = () if is_ray else ("--nodes=1",)
    ended = run(
        rehearsal, "--env", "LEVEL=high", "--env=EMPTY=", *here, folder=folder,
        JOB_COMMAND='echo "from the settings"', JOB_ENV='{ LEVEL = "low", MORE = "yes" }',
        JOB_OPTIONS=f"--name told{elsewhere}",
    )  # fmt: skip
    assert ended.code == 0, ended.said
    assert "from the settings" in ended.said.splitlines()
    assert (job_of(ended)["name"], len(job_of(ended)["machines"])) == ("told-1", 1)
    assert rehearsal.cloud is not None
    spec = rehearsal.object("jobs/told-1.json")
    assert spec["image"] == ("" if is_ray else "ghcr.io/a/b:1")
    assert spec["env"] == {"LEVEL": "high", "MORE": "yes", "EMPTY": ""}
    assert "low" not in str(ended.document["settings"]["JOB_ENV"])


def test_a_bug_is_not_begun_again_unless_any_failure_is_and_that_is_told(
    there: Rehearse,
) -> None:
    rehearsal = there()
    if "ENABLE_RAY_OPERATOR" in rehearsal.settings:
        pytest.skip("KubeRay begins it again in any case")
    command = ("--name=bad", "--restarts=1", "--", "bash", "-c", "echo no module; exit 3")
    ended = run(rehearsal, *command)
    assert (ended.code, job_of(ended)["attempt"]) == (8, 1), ended.said
    (event,) = job_of(ended)["events"]
    assert "no restart: " in event
    assert "another attempt would do the same; --restart-on any" in event
    assert event in ended.said
    assert job_of(ended)["failure"]["exit_code"] == 3
    ended = run(rehearsal, "--restart-on=any", *command)
    assert (ended.code, job_of(ended)["attempt"]) == (8, 2), ended.said


@pytest.mark.parametrize(
    ("options", "why"),
    [("--image ghcr.io/a/b:1", "the VMs' own Ray"), ("--nodes 1", "go to all VMs")],
)
def test_what_ray_has_no_use_for_is_refused_with_the_reason_before_google_is_asked(
    rehearsal: Rehearsal, options: str, why: str
) -> None:
    ended = rehearsal.finish(
        rehearsal.start("Run", **RAY, JOB_OPTIONS=options, behind=("--", "true"))
    )
    assert (ended.code, ended.problem["setting"]) == (2, "JOB_OPTIONS")
    assert why in ended.problem["why"]
    assert not rehearsal.requests()


def test_what_fails_on_ray_is_begun_again_as_often_as_it_may(standing: Rehearse) -> None:
    rehearsal = standing(RAYJOB)
    rehearsal.settings |= RAYJOB
    command = ("--name=bad", "--restarts=1", "--", "bash", "-c", "echo no module; exit 3")
    ended = run(rehearsal, *command)
    assert (ended.code, job_of(ended)["attempt"]) == (8, 2), ended.said
    (event,) = job_of(ended)["events"]
    assert re.fullmatch(
        r"attempt 1 failed: exit code 3, first on \S+ \(rank 0\); restart 1 of 1", event
    )
    assert ended.said.splitlines().count("no module") == 2


@pytest.mark.parametrize(
    ("settings", "setting", "fix"),
    [
        (GKE, "ENABLE_RAY_OPERATOR", "ENABLE_RAY_OPERATOR=yes and Create"),
        (TWO, "ORCHESTRATOR_TYPE", "ORCHESTRATOR_TYPE=ray for Ray on VMs"),
        (RAY, "ORCHESTRATOR_TYPE", "remove --ray"),
    ],
    ids=["gke", "none", "ray"],
)
def test_a_cluster_without_rays_operator_takes_no_job_of_ray(
    standing: Rehearse, settings: dict[str, str], setting: str, fix: str
) -> None:
    rehearsal = standing(settings)
    rehearsal.settings |= settings
    refused = run(rehearsal, "--ray", "--", "true")
    assert (refused.code, refused.problem["setting"]) == (2, setting), refused.said
    assert fix in refused.problem["fix"]
    assert not [name for name in rehearsal.objects() if "/jobs/true" in name]


def test_more_vms_than_there_are_and_no_command_are_refused_at_once(there: Rehearse) -> None:
    rehearsal = there()
    many = run(rehearsal, "--nodes=3", "--", "true")  # none at all are for Ray
    assert (many.code, many.problem["setting"]) == (2, "--nodes")
    nothing = run(rehearsal)
    assert (nothing.code, nothing.problem["setting"]) == (2, "JOB_COMMAND")
    unknown = rehearsal.run("Logs", behind=("nobody",))
    assert (unknown.code, unknown.problem["code"]) == (5, "no-job")


@pytest.mark.parametrize(
    ("settings", "option", "setting"),
    [
        (TWO, "--copy=nowhere", ""),
        (TWO, "--nodes=3", "--nodes"),
        (GKE, "--nodes=9", "--nodes"),
        (GKE, "--ray", "ENABLE_RAY_OPERATOR"),
        (GKE, "--queue=nobodys", "--queue"),
    ],
    ids=["folder", "vms", "nodes", "ray", "queue"],
)
def test_a_job_that_could_never_run_is_refused_before_a_cluster_is_made_for_it(
    rehearsal: Rehearsal, folder: Path, settings: dict[str, str], option: str, setting: str
) -> None:
    rehearsal.settings |= settings
    options = ["--create", "--yes", f"--copy={folder}", option]
    refused = rehearsal.run("Run", *options, behind=("--", "true"))
    assert (refused.code, refused.problem["setting"]) == (2, setting), refused.said
    assert rehearsal.writes() == []


@pytest.mark.parametrize(
    ("behind", "settings"),
    [(("--", "torchrun", "trian.py"), {}), ((), {"JOB_COMMAND": "torchrun trian.py > log"})],
    ids=["line", "setting"],
)
@pytest.mark.parametrize("options", [(), ("--create", "--destroy-after")], ids=["there", "made"])
def test_a_command_that_can_not_begin_is_refused_before_anything_is_made(
    rehearsal: Rehearsal,
    folder: Path,
    behind: tuple[str, ...],
    settings: dict[str, str],
    options: tuple[str, ...],
) -> None:
    ended = rehearsal.run("Run", *options, f"--copy={folder}", behind=behind, **TWO, **settings)
    assert (ended.code, ended.problem["code"]) == (2, "invalid-command-line"), ended.said
    assert ended.problem["setting"] == "".join(settings)
    assert ended.problem["fix"].startswith("did you mean train.py?")
    assert "is copied" not in ended.said
    assert rehearsal.writes() == []


def test_without_a_cluster_there_are_no_jobs(rehearsal: Rehearsal) -> None:
    assert run(rehearsal, "--", "true").problem["code"] == "no-cluster"


def test_a_destroy_takes_all_that_jobs_have_left(there: Rehearse, folder: Path) -> None:
    rehearsal = there()
    assert run(rehearsal, "--", "true", folder=folder).code == 0
    assert rehearsal.run("Destroy").code == 0
    assert not [name for name in rehearsal.objects() if "job" in name]


@pytest.mark.slow(
    sibling="tests/unit/vm/test_idle.py"
    "::test_no_vm_ends_within_the_timeout_after_work_of_any_and_all_do_after_it"
)
def test_vms_without_work_are_off_until_the_next_create_which_starts_them(
    rehearse: Rehearse, folder: Path
) -> None:
    rehearsal = rehearse(rate=0.0005)
    asked = {**TWO, "IDLE_TIMEOUT": "4h"}
    created = rehearsal.run("Create", **asked)
    assert created.code == 0, created.said
    assert "without a job" in created.document["plan"]["contents"]["idle"]
    group = "projects/my-project/zones/us-central1-a/instanceGroupManagers/np-mig"
    policy = rehearsal.google("GET", f"compute/v1/{group}")["instanceLifecyclePolicy"]
    assert policy["defaultActionOnFailure"] == "DO_NOTHING"
    ended = run(rehearsal, "--", "sleep", "20000", folder=folder, IDLE_TIMEOUT="4h")
    assert ended.code == 0, "a job is work, however long it takes"
    deadline = time.monotonic() + 600
    while (status := rehearsal.run("Status", **asked)).document["status"]["running"]:
        assert time.monotonic() < deadline, status.said
        time.sleep(1)
    (trouble,) = status.document["status"]["trouble"]
    assert "powered off as they were idle" in trouble["what"]
    assert "Create" in trouble["fix"]

    again = rehearsal.run("Create", **asked)
    assert again.code == 0, again.said
    assert "again" in again.said
    assert again.document["plan"]["change"] == "nothing"
    assert rehearsal.run("Status", **asked).document["status"]["running"] == 2


def test_jobs_of_others_are_listed_and_left_alone_and_a_name_never_comes_again(
    standing: Rehearse, made_once: Callable[..., Any], folder: Path
) -> None:
    rehearsal = standing(GKE, rate=0.01)
    rehearsal.settings |= GKE
    connection = made_once(GKE).created.document["connection"]
    cluster = cluster_side.kubectl(rehearsal, connection)
    sample = cluster_side.job(rehearsal, connection, "sample-job-np-nodepool-1.yaml")
    sample["spec"]["template"]["spec"]["containers"][0]["args"] = ["90000s"]
    sample = cluster.create(sample)
    theirs = f"Job {sample['metadata']['name']}"
    options = ("--nodes=1", "--priority=high", "--detach")
    assert run(rehearsal, *options, "--", "sleep", "90000", folder=folder).code == 0
    listed = rehearsal.run("Jobs").document["jobs"]
    assert [job["name"] for job in listed] == [theirs, "sleep-1"]
    refused = rehearsal.run("Cancel", behind=(theirs,))
    assert (refused.code, refused.problem["code"]) == (2, "without-effect")
    (ours,) = cluster.all("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert ours["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "high"

    assert "sleep-1" in rehearsal.run("Destroy").problem["what"], "it asks before jobs end"
    cluster.delete("jobset.x-k8s.io/v1alpha2", "JobSet", "sleep-1", "default")
    gone = job_of(rehearsal.run("Jobs", behind=("sleep-1",)))
    assert (gone["state"], "its JobSet is gone" in gone["why"]) == ("failed", True)
    again = run(rehearsal, *options, "--", "sleep", "1", folder=folder)
    assert job_of(again)["name"] == "sleep-2"


@pytest.mark.parametrize("is_queued", [True, False], ids=["queued", "alone"])
def test_what_others_submit_to_rays_operator_is_listed_with_what_it_waits_for(
    standing: Rehearse, made_once: Callable[..., Any], *, is_queued: bool
) -> None:
    rehearsal = standing(RAYJOB, rate=0.01)
    rehearsal.settings |= RAYJOB
    connection = made_once(RAYJOB).created.document["connection"]
    cluster = cluster_side.kubectl(rehearsal, connection)
    # Each wants all nodes, of which there are two; a cluster has them until somebody deletes it.
    for name in ("ray-cluster.yaml", "ray-job.yaml"):
        theirs = cluster_side.job(rehearsal, connection, name)
        if not is_queued:
            del theirs["metadata"]["labels"], theirs["spec"]["suspend"]
        cluster.create(theirs)
    listed = rehearsal.run("Jobs").document["jobs"]
    found = {job["name"].partition(" ")[0]: job for job in listed}
    assert found["RayCluster"]["state"] in {"preparing", "running"}
    assert found["RayJob"]["state"] == "waiting"
    assert found["RayJob"]["why"]


@pytest.mark.parametrize(
    ("options", "setting"), [(("--queue=team-a",), "--queue"), (("--nodes=9",), "--nodes")]
)
def test_what_a_cluster_can_never_run_is_refused_before_anything_is_written(
    standing: Rehearse, options: tuple[str, ...], setting: str
) -> None:
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    refused = run(rehearsal, *options, "--", "true")
    assert (refused.code, refused.problem["setting"]) == (2, setting)
    assert not [name for name in rehearsal.objects() if "/jobs/true" in name]


@pytest.mark.slow(
    sibling="tests/unit/kinds/gke/test_jobs.py"
    "::test_a_job_runs_on_the_pool_of_the_machine_or_gpu_that_it_names"
)
def test_a_job_goes_to_the_pool_of_the_machine_that_it_names(standing: Rehearse) -> None:
    pools = "name=a,vm_type=g2-standard-24,count=1;name=b,vm_type=a2-highgpu-1g,count=1"
    several = {"ORCHESTRATOR_TYPE": "gke", "GKE_NODE_POOLS": pools}
    rehearsal = standing(several, rate=0.01)
    rehearsal.settings |= several
    for machine, pool in (("a100", "np-b"), ("g2-standard-24", "np-a")):
        ended = run(rehearsal, f"--machine={machine}", "--", "true")
        assert ended.code == 0, ended.said
        assert f"The job takes 1 node of {pool}, " in ended.said
        (node,) = job_of(ended)["machines"]
        assert f"-{pool}-" in node
    refused = run(rehearsal, "--machine=h100", "--", "true")
    assert (refused.code, refused.problem["setting"]) == (2, "--machine")


def test_ssh_names_the_vm_of_a_rank_and_takes_no_command_from_the_bucket(
    standing: Rehearse,
) -> None:
    rehearsal = standing(TWO)
    told = rehearsal.object("connection.json")
    spoiled = {"name": "x; rm -rf ~", "rank": 7, "ssh": "rm -rf ~"}
    vms = [vm | {"ssh": "rm -rf ~"} for vm in told["vms"]]
    (path,) = [it for it in rehearsal.objects() if it.endswith("/connection.json")]
    bucket, _, name = path.removeprefix("b/").partition("/o/")
    rehearsal.google(
        "POST", f"upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}",
        {**told, "vms": [*vms, spoiled]},
    )  # fmt: skip
    for vm in told["vms"]:
        for word in (vm["name"], str(vm["rank"])):
            ended = rehearsal.run("Ssh", behind=(word,), **TWO)
            assert ended.code == 0, ended.said
            (shown,) = ended.document["connection"]["vms"]
            assert (shown["name"], shown["ssh"]) == (vm["name"], vm["ssh"])
    unknown = rehearsal.run("Ssh", behind=("7",), **TWO)
    assert (unknown.code, unknown.problem["what"]) == (2, "There is no VM 7")
    file = rehearsal.folder / "ssh"
    written = rehearsal.run("Ssh", f"--config={file}", **TWO)
    assert written.code == 0, written.said
    assert file.read_text().count("\nHost ") == len(told["vms"])
    assert "rm -rf" not in file.read_text()
    for vm in told["vms"]:
        asked = ["ssh", "-G", "-F", str(file), f"np-{vm['rank']}"]
        known = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        assert f"\nhostname {vm['external_ip'] or vm['name']}\n" in known
        assert "\nuser owner_example_com\n" in known
