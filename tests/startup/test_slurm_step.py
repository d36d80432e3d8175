"""What srun begins on a VM, as processes on the simulated Cloud Storage; here the test is the head.

test_slurm_jobs_on_debian has it in real steps of Slurm.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD
from tests.startup.test_agents import BUCKET, FOLDER, PACE, State, state
from tests.startup.test_jobs import World
from tests.waiting import until

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import agent, disk_health, job_room, notices, slurm_queue, storage
from aiinfra_vm.members import Member

__all__ = ["state"]  # the fixture

_PROGRAM = """\
import json, pathlib, signal, sys
from aiinfra_vm import jobs, secrets, slurm_step, storage
secrets._TRIES = 1
name, attempt, bucket, folder, home, index = sys.argv[1:]
node = jobs.Node(0, "vm-1", "11", "127.0.0.1")
course = jobs.Course(name, jobs.State.RUNNING, attempt=int(attempt), nodes=(node,))
wanted, shared = (storage.Folder(bucket, f"{folder}/{it}") for it in ("jobs", "vms"))
task = json.loads(index)
step = slurm_step.Step(course, node, wanted, shared, pathlib.Path(home), task, 2, pace=0.02)
signal.signal(signal.SIGTERM, step.stop)
sys.exit(step.run())
"""


class Steps:
    """The steps of one VM."""

    def __init__(self, folder: Path, state: State) -> None:
        self.world = World(folder, state)
        self.home = folder / "homes"
        self._begun: list[subprocess.Popen[bytes]] = []

    def begin(
        self, name: str, attempt: int = 1, task: int | None = None
    ) -> subprocess.Popen[bytes]:
        """Begin one as srun does, in the folder that the Prolog has made."""
        (self.home / name).mkdir(parents=True, exist_ok=True)
        words = [name, str(attempt), BUCKET, FOLDER, str(self.home), json.dumps(task)]
        process = subprocess.Popen(
            [sys.executable, "-S", "-c", _PROGRAM, *words],
            env={
                **os.environ,
                "PYTHONPATH": str(self.world.programs / "lib"),
                "CUDA_VISIBLE_DEVICES": "2,3",
            },
        )
        self._begun.append(process)
        return process

    def report(self, job: str, of: str = "vm-1") -> Any:
        """What a VM, or a task, has said last."""
        return self.world.state.read(f"vms/jobs/{job}/nodes/{of}.json") or {}

    def say(self, job: str, **course: Any) -> None:
        """How far the job is, as the head says it."""
        self.world.state.write(f"vms/jobs/{job}/course.json", {"name": job, **course})

    def close(self) -> None:
        """End all."""
        for process in self._begun:
            process.kill()
            process.wait()


@pytest.fixture
def steps(tmp_path: Path, state: State) -> Iterator[Steps]:
    """A VM without steps."""
    made = Steps(tmp_path, state)
    yield made
    made.close()


SHOW = (
    'echo "$JOB_INDEX $NPROC_PER_NODE $CUDA_VISIBLE_DEVICES ${HOME##*/} $(cat data)"; echo >>data'
)
WAITS = "echo here; sleep 600"


def test_tasks_of_an_array_share_a_folder_and_have_reports_and_logs_of_their_own(
    steps: Steps,
) -> None:
    files = steps.world.send({"data": "1 2 3\n"})
    steps.world.submit("eval-1", "bash", "-c", SHOW, files=files)
    begun = [steps.begin("eval-1", task=index) for index in (4, 7)]
    assert [it.wait() for it in begun] == [0, 0]
    for index in (4, 7):
        line = steps.world.log("eval-1", index).splitlines()[0]
        assert line.startswith(f"{index} 2 2,3 .home 1 2 3"), line
        told = steps.report("eval-1", f"task-{index}")
        assert (told["phase"], told["code"], told["attempt"]) == ("ended", 0, 1)
    # It was unpacked once: the second time would have undone what the first task wrote.
    assert (steps.home / "eval-1/data").read_text() == "1 2 3\n\n\n"


def test_the_head_ends_it_by_its_course_and_slurm_by_a_signal(steps: Steps) -> None:
    steps.world.submit("long-1", "bash", "-c", WAITS)
    # The head may not have seen that it has begun, and then sees it.
    steps.say("long-1", state="waiting", attempt=0)
    step = steps.begin("long-1")
    until(lambda: "here" in steps.world.log("long-1"))
    steps.say("long-1", state="preparing", attempt=1)
    time.sleep(0.5)
    assert step.poll() is None
    steps.say("long-1", state="stopping", attempt=1, why="it was cancelled")
    assert step.wait() == 143
    told = steps.report("long-1")
    assert (told["why"], told["told"], told["code"]) == ("it was cancelled", True, 143)

    # Slurm's head has lost this one, and the next has begun here already.
    step = steps.begin("long-1", attempt=2)
    until(lambda: "here" in steps.world.log("long-1", attempt=2))
    later = {"attempt": 3, "instance_id": "11", "phase": "running"}
    steps.world.state.write("vms/jobs/long-1/nodes/vm-1.json", later)
    steps.say("long-1", state="waiting", attempt=2)
    assert step.wait() == 143
    assert steps.report("long-1") == later

    step = steps.begin("long-1", attempt=3)
    until(lambda: "here" in steps.world.log("long-1", attempt=3))
    step.send_signal(signal.SIGTERM)
    assert step.wait() == 143
    told = steps.report("long-1")
    assert told["told"] is False

    # What a state of Slurm's brings back of a job that is over ends.
    step = steps.begin("long-1", attempt=4)
    until(lambda: "here" in steps.world.log("long-1", attempt=4))
    steps.say("long-1", state="succeeded", attempt=4)
    assert step.wait() == 143
    assert told["why"].startswith("Slurm has ended it")


def test_the_agent_of_a_vm_with_slurm_begins_no_job_makes_room_and_says_when_the_vm_ends(
    steps: Steps, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[str, float]] = []
    monkeypatch.setattr(notices, "run_ends", lambda: 2e9)
    monkeypatch.setattr(notices, "watch", lambda *_: None)
    monkeypatch.setattr(slurm_queue, "reserve", lambda *what: told.append(what))
    member = Member("vm-1", "11", "127.0.0.1", "b007")
    shared, wanted = (storage.Folder(BUCKET, f"{FOLDER}/{it}") for it in ("vms", "jobs"))
    config = {"slurm": {"partition": "g2"}, "gpus": {"count": 2}}
    made = agent.Agent(shared, wanted, member, config, PACE, tmp_path)
    monkeypatch.setattr(disk_health, "percent", lambda _: job_room.FULL)
    (old := tmp_path / "var/lib/aiinfra-job/old-1").mkdir(parents=True)
    steps.say("old-1", state="succeeded")
    assert not made._is_job_wanted()
    steps.world.state.write("vms/group.json", {"instance_count": 1})
    steps.world.submit("train-1", "true")
    thread = threading.Thread(target=made.run, daemon=True)
    thread.start()
    until(lambda: told and steps.world.state.read("vms/roster.json") and not old.exists())
    time.sleep(0.5)
    assert told == [("vm-1", 2e9)]
    assert steps.world.state.read("vms/job.json") is None
    # What IDLE_TIMEOUT asks: a job that is not over keeps the VMs, in Slurm's queue or not.
    assert made._is_job_wanted()
    steps.say("train-1", state="waiting")
    assert made._is_job_wanted()
    steps.say("train-1", state="succeeded")
    assert not made._is_job_wanted()
    made.stop()
    thread.join(10)


def test_each_task_has_its_own_time_and_what_takes_root_is_refused(steps: Steps) -> None:
    steps.world.submit("timed-1", "bash", "-c", WAITS, seconds=1)
    assert steps.begin("timed-1", task=0).wait() == 143
    told = steps.report("timed-1", "task-0")
    assert (told["why"], told["final"]) == ("--time is over", True)
    mount = {"bucket": "my-data", "path": "/mnt/data"}
    for more, word in (({"image": "debian"}, "--image"), ({"mounts": [mount]}, "--mount")):
        name = f"root-{word[2]}"
        steps.world.submit(name, "true", **more)
        assert steps.begin(name).wait() == 1
        told = steps.report(name)
        assert (told["phase"], told["final"]) == ("refused", True)
        assert word in told["why"]


def test_its_secrets_are_in_no_log(steps: Steps, monkeypatch: pytest.MonkeyPatch) -> None:
    version = "projects/my-project/secrets/hf-token/versions/latest"
    values = {"service-accounts/default/token": '{"access_token": "token-of-the-vm"}'}
    with MetadataServer(values, secrets={version: b"hf_of-the-job"}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.host)
        endpoint = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
        monkeypatch.setenv(endpoint, f"http://{server.host}/")
        shows = 'echo "${#HF_TOKEN} $HF_TOKEN"'
        steps.world.submit("own-1", "bash", "-c", shows, secrets={"HF_TOKEN": version})
        assert steps.begin("own-1").wait() == 0
    assert steps.world.log("own-1") == "13 ***\n"
