"""Jobs on clusters of each kind, from the command line to the end: Run, Jobs, Logs, Cancel."""

from __future__ import annotations

import re
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.runs import cluster_side

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.runs.conftest import Ended, Rehearsal

TWO = {"INSTANCE_COUNT": "2"}
GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", **TWO}
KINDS = {"none": TWO, "gke": GKE}
QUEUED = {
    "ORCHESTRATOR_TYPE": "gke",
    "VM_TYPE": "g2-standard-24",
    "ENABLE_QUEUED_PROVISIONING": "yes",
    "ENABLE_FLEX_START": "yes",
    "GKE_MAX_NODE_COUNT": "4",
}
TRAIN = """\
import time
print("epoch 1")
time.sleep(900)
print("epoch 2")
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of code."""
    made = tmp_path / "code"
    made.mkdir()
    (made / "train.py").write_text(TRAIN)
    return made


@pytest.fixture(params=KINDS)
def there(request: pytest.FixtureRequest, standing: Callable[..., Rehearsal]) -> Any:
    """Make a rehearsal with a cluster of two machines, of each kind."""
    settings = KINDS[request.param]

    def make(**how: Any) -> Rehearsal:
        rehearsal = standing(settings, **how)
        rehearsal.settings |= settings
        return rehearsal

    return make


def _run(rehearsal: Rehearsal, *words: str, folder: Path | None = None, **settings: str) -> Ended:
    return rehearsal.finish(_begin(rehearsal, *words, folder=folder, **settings))


def _begin(rehearsal: Rehearsal, *words: str, folder: Path | None = None, **settings: str) -> Any:
    empty = rehearsal.folder / "empty"
    empty.mkdir(exist_ok=True)
    copied = f"--copy={folder or empty}"
    return rehearsal.start("Run", copied, **settings, behind=words)


def _when(rehearsal: Rehearsal, started: Any, words: str) -> None:
    """Wait until a started program has said something."""
    deadline = time.monotonic() + 90
    while words not in rehearsal.said(started):
        assert time.monotonic() < deadline, rehearsal.said(started)
        time.sleep(0.05)


def _job(ended: Ended) -> dict[str, Any]:
    (job,) = ended.document["jobs"]
    assert isinstance(job, dict)
    return job


def test_a_folder_runs_on_all_vms_and_what_it_says_is_shown_once(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there()
    ended = _run(rehearsal, "--", "torchrun", "train.py", "--epochs", "3", folder=folder)
    assert ended.code == 0, ended.said
    assert re.findall(r"^epoch \d$", ended.said, re.MULTILINE) == ["epoch 1", "epoch 2"]
    job = _job(ended)
    assert (job["name"], job["state"], len(job["machines"])) == ("train-1", "succeeded", 2)

    again = _run(rehearsal, "--", "torchrun", "train.py", folder=folder)
    assert _job(again)["name"] == "train-2"
    sent = [name for name in rehearsal.objects() if "/jobs/files/" in name]
    assert len(sent) == 1, "what has not changed does not travel again"
    listed = rehearsal.run("Jobs").document["jobs"]
    assert [job["name"] for job in listed] == ["train-1", "train-2"]
    logs = rehearsal.run("Logs", behind=("train-1",))
    assert re.findall(r"^epoch \d$", logs.said, re.MULTILINE) == ["epoch 1", "epoch 2"]


@pytest.mark.parametrize(
    ("command", "code", "what"),
    [
        (("bash", "-c", "echo no module; exit 3"), 3, "exit code 3, first on"),
        (("torchrum", "train.py"), 127, "command not found"),
        (("torchrun", "other.py"), 2, "exit code 2"),
    ],
    ids=["fails", "not_found", "no_script"],
)
def test_a_job_that_fails_ends_with_8_and_says_where_and_why(
    there: Callable[..., Rehearsal], folder: Path, command: tuple[str, ...], code: int, what: str
) -> None:
    ended = _run(there(), "--name=bad", "--", *command, folder=folder)
    assert ended.code == 8, ended.said
    assert ended.problem["code"] == "job-failed"
    assert ended.problem["what"].startswith("bad-1 failed: ")
    assert what in ended.problem["what"]
    failure = _job(ended)["failure"]
    assert (failure["rank"], failure["exit_code"]) == (0, code)
    assert failure["tail"] in ended.problem["why"]


def test_a_job_is_cancelled_from_elsewhere_while_it_is_followed(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there(rate=0.02)
    started = _begin(rehearsal, "--", "python3", "train.py", folder=folder)
    _when(rehearsal, started, "epoch 1")
    cancelled = rehearsal.run("Cancel", behind=("train",))
    assert cancelled.code == 0, cancelled.said
    ended = rehearsal.finish(started)
    assert (ended.code, _job(ended)["state"]) == (8, "cancelled")
    again = rehearsal.run("Cancel", behind=("train-1",))
    assert (again.code, _job(again)["state"]) == (0, "cancelled"), "twice is no error"


def test_ctrl_c_lets_a_job_go_on_which_another_run_follows_to_its_end(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there(rate=0.01)
    started = _begin(rehearsal, "--", "python3", "train.py", folder=folder)
    _when(rehearsal, started, "epoch 1")
    started.send_signal(signal.SIGINT)
    left = rehearsal.finish(started)
    assert left.code == 130
    assert left.problem["what"] == "train-1 is no longer followed, and goes on"
    assert "aiinfra Logs train-1 --follow" in left.problem["fix"]
    assert "aiinfra Cancel train-1" in left.problem["fix"]

    followed = rehearsal.run("Logs", "--follow")
    assert followed.code == 0, followed.said
    assert re.findall(r"^epoch \d$", followed.said, re.MULTILINE) == ["epoch 1", "epoch 2"]


def test_of_two_at_once_the_second_says_what_it_waits_for(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there(rate=0.005)
    first = _run(rehearsal, "--detach", "--", "python3", "train.py", folder=folder)
    assert first.code == 0, first.said
    second = _run(rehearsal, "--", "echo", "second", folder=folder)
    assert second.code == 0, second.said
    assert "train-1 is before it" in second.said
    assert "second" in second.said.splitlines()
    assert _job(rehearsal.run("Jobs", behind=("train-1",)))["state"] == "succeeded"


def test_one_that_waits_behind_another_can_be_given_up_with_75_and_cancelled(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there(rate=0.01)
    _run(rehearsal, "--detach", "--", "sleep", "90000", folder=folder)
    ended = _run(rehearsal, "--", "echo", "second", folder=folder, CAPACITY_TIMEOUT="10s")
    assert ended.code == 75
    assert "echo-1 still waits: sleep-1 is before it" in ended.problem["what"]
    status = rehearsal.run("Status")
    assert [it["name"] for it in status.document["jobs"]] == ["sleep-1", "echo-1"]
    assert re.search(r"^sleep-1 +running ", status.said, re.MULTILINE), status.said
    cancelled = rehearsal.run("Cancel", behind=("echo-1",))
    assert (cancelled.code, _job(cancelled)["state"]) == (0, "cancelled"), cancelled.said


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


@pytest.mark.parametrize(
    ("settings", "lose"), [(TWO, _lose_a_vm), (QUEUED, _lose_a_node)], ids=["none", "gke"]
)
def test_a_machine_that_is_lost_costs_an_attempt_and_not_the_job(
    standing: Callable[..., Rehearsal],
    folder: Path,
    settings: dict[str, str],
    lose: Callable[[Rehearsal], None],
) -> None:
    rehearsal = standing(settings, rate=0.005)
    rehearsal.settings |= settings
    command = ("--nodes=2", "--restarts=1", "--", "python3", "train.py")
    started = _begin(rehearsal, *command, folder=folder)
    _when(rehearsal, started, "epoch 1")
    lose(rehearsal)
    ended = rehearsal.finish(started)
    assert ended.code == 0, ended.said
    job = _job(ended)
    assert (job["attempt"], len(job["events"])) == (2, 1), ended.said
    assert re.search("attempt 1 failed: .* was lost, or .*; restart 1 of 1", ended.said)


def test_the_time_of_a_job_ends_it(there: Callable[..., Rehearsal], folder: Path) -> None:
    rehearsal = there(rate=0.01)
    ended = _run(rehearsal, "--time=5m", "--restarts=3", "--", "python3", "train.py", folder=folder)
    assert ended.code == 8
    assert "JOB_TIME is over" in ended.problem["what"]
    assert _job(ended)["attempt"] == 1
    assert "epoch 2" not in ended.said


def test_a_job_gets_its_command_and_its_variables_from_settings_too(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there()
    ended = _run(
        rehearsal, "--env", "LEVEL=high", "--env=EMPTY=", folder=folder,
        JOB_COMMAND='echo "from the settings"', JOB_ENV='{ LEVEL = "low", MORE = "yes" }',
        JOB_NAME="told", JOB_NODES="1",
    )  # fmt: skip
    assert ended.code == 0, ended.said
    assert "from the settings" in ended.said.splitlines()
    assert (_job(ended)["name"], len(_job(ended)["machines"])) == ("told-1", 1)
    assert rehearsal.cloud is not None
    spec = rehearsal.object("jobs/told-1.json")
    assert spec["env"] == {"LEVEL": "high", "MORE": "yes", "EMPTY": ""}
    assert "low" not in str(ended.document["settings"]["JOB_ENV"])


@pytest.mark.parametrize("kind", ["ray"])
def test_where_there_is_no_run_yet_it_says_what_to_use_before_google_is_asked(
    rehearsal: Rehearsal, kind: str
) -> None:
    ended = _run(rehearsal, "--", "true", ORCHESTRATOR_TYPE=kind)
    assert ended.code == 2
    assert ended.problem["what"].endswith("has no Run")
    assert "docs/how-to/" in ended.problem["fix"]
    assert not rehearsal.requests()


def test_more_vms_than_there_are_and_no_command_are_refused_at_once(
    there: Callable[..., Rehearsal],
) -> None:
    rehearsal = there()
    many = _run(rehearsal, "--nodes=3", "--", "true")
    assert (many.code, many.problem["setting"]) == (2, "JOB_NODES")
    nothing = _run(rehearsal)
    assert (nothing.code, nothing.problem["setting"]) == (2, "JOB_COMMAND")
    unknown = rehearsal.run("Logs", behind=("nobody",))
    assert (unknown.code, unknown.problem["code"]) == (5, "no-job")


def test_without_a_cluster_there_are_no_jobs(rehearsal: Rehearsal) -> None:
    assert _run(rehearsal, "--", "true").problem["code"] == "no-cluster"


def test_a_destroy_takes_all_that_jobs_have_left(
    there: Callable[..., Rehearsal], folder: Path
) -> None:
    rehearsal = there()
    assert _run(rehearsal, "--", "true", folder=folder).code == 0
    assert rehearsal.run("Destroy").code == 0
    assert not [name for name in rehearsal.objects() if "job" in name]


def test_jobs_of_others_are_listed_and_left_alone_and_a_name_never_comes_again(
    standing: Callable[..., Rehearsal], made_once: Callable[..., Any], folder: Path
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
    assert _run(rehearsal, *options, "--", "sleep", "90000", folder=folder).code == 0
    listed = rehearsal.run("Jobs").document["jobs"]
    assert [job["name"] for job in listed] == [theirs, "sleep-1"]
    refused = rehearsal.run("Cancel", behind=(theirs,))
    assert (refused.code, refused.problem["code"]) == (2, "without-effect")
    (ours,) = cluster.all("jobset.x-k8s.io/v1alpha2", "JobSet")
    assert ours["metadata"]["labels"]["kueue.x-k8s.io/priority-class"] == "high"

    assert "sleep-1" in rehearsal.run("Destroy").problem["what"], "it asks before jobs end"
    cluster.delete("jobset.x-k8s.io/v1alpha2", "JobSet", "sleep-1", "default")
    gone = _job(rehearsal.run("Jobs", behind=("sleep-1",)))
    assert (gone["state"], "its JobSet is gone" in gone["why"]) == ("failed", True)
    again = _run(rehearsal, *options, "--", "sleep", "1", folder=folder)
    assert _job(again)["name"] == "sleep-2"


@pytest.mark.parametrize(
    ("options", "setting"), [(("--queue=team-a",), "JOB_QUEUE"), (("--nodes=9",), "JOB_NODES")]
)
def test_what_a_cluster_can_never_run_is_refused_before_anything_is_written(
    standing: Callable[..., Rehearsal], options: tuple[str, ...], setting: str
) -> None:
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    refused = _run(rehearsal, *options, "--", "true")
    assert (refused.code, refused.problem["setting"]) == (2, setting)
    assert not [name for name in rehearsal.objects() if "/jobs/true" in name]
