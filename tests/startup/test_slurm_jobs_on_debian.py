"""Jobs of Run through real Slurm, on three VMs with real systems and four GPUs each."""

from __future__ import annotations

import json
import re
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.startup.sandbox import PAYLOAD
from tests.startup.slurm_group import GPUS, NAMES, SlurmGroup

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm.slurm_jobs import user_of

# The first of them makes a root with Slurm, which takes minutes where none is kept.
_UNIT = "aiinfra-slurm.service"
_COPIED = 16.0  # seconds until slurmctld has written what it knows, and that is copied
_DROP = f"/run/systemd/system/{_UNIT}.d"

pytestmark = pytest.mark.timeout(900)


class Jobs:
    """What the tool asks for, and how far it is."""

    def __init__(self, slurm: SlurmGroup) -> None:
        self.slurm = slurm
        self._index: list[dict[str, Any]] = []

    def ask(self, name: str, *command: str, **more: Any) -> None:
        """Ask for a job, as the tool does."""
        job = {"name": name, "command": list(command), "env": {}, **more}
        self.slurm.group.write(f"jobs/{name}.json", json.dumps(job).encode())
        self._index.append({"name": name, "cancelled": False})
        self._write()

    def cancel(self, name: str) -> None:
        """Cancel a job, as the tool does."""
        for job in self._index:
            job["cancelled"] |= job["name"] == name
        self._write()

    def forget(self) -> None:
        """What is over leaves the index, as the tool sees to it."""
        self._index = []
        self._write()

    def _write(self) -> None:
        self.slurm.group.write("jobs/index.json", json.dumps({"jobs": self._index}).encode())

    def course(self, name: str) -> dict[str, Any]:
        """How far a job is."""
        found: dict[str, Any] = json.loads(
            self.slurm.group.read(f"vms/jobs/{name}/course.json") or "{}"
        )
        return found

    def when(self, name: str, *states: str) -> dict[str, Any]:
        """The course of a job once it is in one of these states."""
        self.slurm.until(lambda: self.course(name).get("state") in states)
        return self.course(name)

    def over(self, name: str) -> dict[str, Any]:
        """The course of a job once it is over."""
        return self.when(name, "succeeded", "failed", "cancelled")

    def log(self, name: str, attempt: int = 1) -> str:
        """What rank 0 has said."""
        return self.slurm.group.log(name, attempt)


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    """Three VMs whose nodes are idle."""
    with SlurmGroup(tmp_path_factory.mktemp) as made:
        made.wait_for_nodes()
        yield Jobs(made)


# They run at once if each sees the other.
MEETS = """\
echo "$NODE_RANK of $NNODES x $NPROC_PER_NODE on $(hostname)"
touch /srv/shared/$1
for _ in $(seq 600); do [[ -e /srv/shared/$2 ]] && exit; sleep 0.1; done
exit 7
"""
# What another job's environment and files would be read by, beside it on each VM.
INTRUDER = """\
id --groups --name
touch /srv/shared/intruder
until [[ -e /srv/shared/secret ]]; do sleep 0.1; done
cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep 'private-of[-]another'
ls /var/lib/aiinfra-job/secret-1 2>/dev/null
cat /etc/slurm/slurm.key 2>/dev/null
sbatch --comment=' aiinfra:secret-1:9' --wrap=true 2>&1 | grep --count 'may not have aiinfra: in'
"""
# As many as there are GPUs have begun before the first of them ends.
COUNTS = """\
cd /srv/shared/tasks
echo "$SLURMD_NODENAME $CUDA_VISIBLE_DEVICES" >$JOB_INDEX-$JOB_ATTEMPT
for _ in $(seq 600); do (($(ls | wc -l) >= 12)) && break; sleep 0.1; done
(($(ls | wc -l) >= 12)) || exit 7
[[ $JOB_INDEX != 5 || $JOB_ATTEMPT != 1 ]] || exit 8
"""
AGAIN = """\
echo "attempt $JOB_ATTEMPT" >>/srv/shared/again
until [[ -e /srv/shared/go ]]; do sleep 0.1; done
"""
# As if VMs had been made with a MAX_RUN_DURATION; their uptime is this machine's.
_ENDS = """\
sed --in-place "s/\\"max_run_seconds\\": null/\\"max_run_seconds\\": \
$(($(cut --delimiter=. --fields=1 /proc/uptime) + {seconds}))/" /opt/aiinfra/config.json
grep --quiet 'max_run_seconds": [1-9]' /opt/aiinfra/config.json
systemctl restart aiinfra-agent
"""
_ENDS_NEVER = """\
sed --in-place 's/"max_run_seconds": [0-9]*/"max_run_seconds": null/' /opt/aiinfra/config.json
systemctl restart aiinfra-agent"""


def test_jobs_run_side_by_side_in_whole_vms_and_in_parts(jobs: Jobs) -> None:
    jobs.ask("whole-1", "bash", "-c", MEETS, "-", "whole", "part", nodes=2)
    jobs.ask("part-1", "bash", "-c", MEETS, "-", "part", "whole", nodes=1, gpus=2)
    for name, says in (("whole-1", "0 of 2 x 4"), ("part-1", "0 of 1 x 2")):
        course = jobs.over(name)
        assert course["state"] == "succeeded", (course, jobs.log(name))
        # Slurm's order of ranks is neither that of names nor that of squeue.
        assert f"{says} on {course['nodes'][0]['name']}" in jobs.log(name)


def test_a_job_beside_another_reads_neither_its_environment_nor_its_files(jobs: Jobs) -> None:
    env = {"HF_TOKEN": "private-of-another"}
    words = ("-", "secret", "intruder-is-through")
    jobs.ask("secret-1", "bash", "-c", MEETS, *words, nodes=3, gpus=1, env=env)
    jobs.ask("intruder-1", "bash", "-c", INTRUDER, nodes=3, gpus=1)
    jobs.over("intruder-1")
    (jobs.slurm.group.shared / "intruder-is-through").touch()
    user, refused = jobs.log("intruder-1").splitlines()
    assert re.fullmatch(r"aiinfra-job-\d\d", user), "its only group is its own"
    assert refused == "1"
    assert jobs.over("secret-1")["state"] == "succeeded"
    # Who has the same user later finds the folder closed.
    twin = next(it for it in map("twin-{}".format, range(9999)) if user_of(it, ()) == user)
    jobs.ask(twin, "ls", "/var/lib/aiinfra-job/intruder-1", nodes=1, gpus=1)
    assert jobs.over(twin)["failure"]["code"] == 2
    assert "Permission denied" in jobs.log(twin)


def test_an_array_has_all_gpus_and_begins_again_what_failed(jobs: Jobs) -> None:
    tasks = jobs.slurm.group.shared / "tasks"
    tasks.mkdir()
    tasks.chmod(0o777)
    array = {"first": 0, "last": 19, "most": None}
    more = {"gpus": 1, "array": array, "restarts": 1, "restart_on": "any"}
    jobs.ask("many-1", "bash", "-c", COUNTS, **more)
    course = jobs.over("many-1")
    assert course["state"] == "succeeded", course
    assert (course["attempt"], course["tasks"]["succeeded"]) == (2, 20)
    assert "1 of 20 tasks failed, first task 5 (train-vm-" in course["events"][0]
    assert "exit code 8; restart 1 of 1" in course["events"][0]
    places = {it.read_text() for it in tasks.iterdir()}
    assert len(places) == len(NAMES) * GPUS, places


def test_a_job_without_a_limit_begins_before_its_vms_end_and_one_that_can_not_end_waits(
    jobs: Jobs,
) -> None:
    for name in NAMES:
        jobs.slurm.run(_ENDS.format(seconds=3000), on=name)
    jobs.slurm.until(lambda: jobs.slurm.run("scontrol show res").count("=ends-train-vm-") == 3)
    # As its head would have written it, who sends a job without a limit is told.
    told, head = "sed -i '/^local ends/s/{}/{}/' /etc/slurm/job_submit.lua", jobs.slurm.head()
    jobs.slurm.run(told.format("false", "true"), on=head)
    for limit, is_told in (("", True), ("--time=1", False), ("--time-min=1", False)):
        sent = f"sbatch {limit} --hold --chdir=/ --output=/dev/null --wrap=true 2>&1"
        said = jobs.slurm.run(f"runuser -u nobody -- {sent}")
        assert ("does not begin" in said) is is_told, said
    jobs.slurm.run("scancel --user=nobody")
    jobs.ask("hour-1", "true", nodes=1, seconds=3600)
    jobs.ask("endless-1", "bash", "-c", "until [[ -e /srv/shared/ends ]]; do sleep 0.1; done")
    jobs.when("endless-1", "running")
    limits = "squeue --noheader --name=endless-1 --format=%l"
    jobs.slurm.until(lambda: "UNLIMITED" in jobs.slurm.run(limits))
    (jobs.slurm.group.shared / "ends").touch()
    assert jobs.over("endless-1")["state"] == "succeeded"
    why = "its VMs end before it would"
    jobs.slurm.until(lambda: jobs.course("hour-1")["why"].startswith(why))
    jobs.slurm.run(told.format("true", "false"), on=head)
    for name in NAMES:
        jobs.slurm.run(f"{_ENDS_NEVER}; scontrol delete reservation=ends-{name}", on=name)
    assert jobs.over("hour-1")["state"] == "succeeded"


def test_a_copy_that_is_older_than_a_job_begins_it_once_more_and_drains_no_vm(jobs: Jobs) -> None:
    # The head's own VM is out of it, as its slurmd knows of no other head until the end.
    head = jobs.slurm.head()
    drained = "state=drain reason='aiinfra: it is about to be killed'"
    jobs.slurm.run(f"scontrol update nodename={head} {drained}", on=head)
    time.sleep(_COPIED)
    old = jobs.slurm.group.read("vms/slurm/state.json")
    assert old is not None
    jobs.ask("again-1", "bash", "-c", AGAIN, nodes=2)
    jobs.when("again-1", "running")
    jobs.slurm.run(f"mkdir {_DROP}; printf '[Service]\nRestart=no\n' >{_DROP}/no.conf", on=head)
    jobs.slurm.run(f"systemctl daemon-reload; systemctl kill --signal=KILL {_UNIT}", on=head)
    jobs.slurm.group.write("vms/slurm/state.json", old)
    jobs.slurm.until(lambda: jobs.course("again-1")["attempt"] == 2)
    jobs.when("again-1", "running")
    (jobs.slurm.group.shared / "go").touch()
    course = jobs.over("again-1")
    assert (course["state"], course["attempt"], course["failures"]) == ("succeeded", 2, 0), course
    begun = (jobs.slurm.group.shared / "again").read_text().splitlines()
    assert sorted(begun) == ["attempt 1"] * 2 + ["attempt 2"] * 2
    start = f"rm -r {_DROP}; systemctl daemon-reload; systemctl start --no-block {_UNIT}"
    jobs.slurm.run(start, on=head)
    jobs.slurm.wait_for_nodes()


def test_a_job_is_cancelled_and_its_vms_are_free_and_others_jobs_are_told(jobs: Jobs) -> None:
    jobs.slurm.run("sbatch --gpus=1 --output=/dev/null --job-name=mine --wrap='sleep 300'")
    jobs.ask("long-1", "bash", "-c", "trap 'echo saved; exit' TERM; sleep 300 & wait", nodes=1)
    jobs.ask("late-1", "true", nodes=3)
    jobs.when("long-1", "running")
    jobs.slurm.until(lambda: "in use" in jobs.course("late-1").get("why", ""))
    jobs.cancel("long-1")
    assert jobs.over("long-1")["state"] == "cancelled"
    assert "saved" in jobs.log("long-1")

    def told(name: str) -> Any:
        return json.loads(jobs.slurm.group.read(f"vms/slurm/{name}.json") or "{}")

    jobs.slurm.until(lambda: told("jobs").get("jobs"))
    (mine,) = told("jobs")["jobs"]
    assert (mine["user"], mine["title"], mine["state"], mine["gpus"]) == (
        "root",
        "mine",
        "RUNNING",
        1,
    )
    jobs.slurm.until(lambda: sum(it["gpus_in_use"] for it in told("nodes")["nodes"]) == 1)
    assert {it["gpus"] for it in told("nodes")["nodes"]} == {GPUS}
    jobs.slurm.run("scancel --name=mine")
    assert jobs.over("late-1")["state"] == "succeeded"


def test_a_vm_that_is_lost_is_named_and_its_job_begins_again_on_the_others(jobs: Jobs) -> None:
    jobs.ask("lost-1", "bash", "-c", AGAIN.replace("/go", "/goes-on"), nodes=2, restarts=1)
    jobs.when("lost-1", "running")
    head = jobs.slurm.head()
    names = [it["name"] for it in jobs.course("lost-1")["nodes"]]
    (gone, *_) = [name for name in names if name != head]
    jobs.slurm.vms.pop(gone).kill()
    jobs.slurm.until(lambda: jobs.course("lost-1")["attempt"] == 2)
    jobs.when("lost-1", "running")
    (jobs.slurm.group.shared / "goes-on").touch()
    course = jobs.over("lost-1")
    assert (course["state"], course["failures"]) == ("succeeded", 1), course
    assert f"({gone}), the VM {gone} was lost" in course["events"][0]
    assert gone not in [it["name"] for it in course["nodes"]]
