"""Jobs, done by the agents of several VMs on the simulated Cloud Storage.

The agents are threads as in test_agents; each part of a job is a process, as systemd would start
it, but of who runs the test. test_jobs_on_debian has the unit, its user, and a real training.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote
from urllib.request import Request, urlopen

import pytest

from tests.startup import test_agents
from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD
from tests.startup.test_agents import BUCKET, FOLDER, State, Vm, state

if str(PAYLOAD / "lib") not in sys.path:
    sys.path.append(str(PAYLOAD / "lib"))

from aiinfra_vm import jobs
from aiinfra_vm.job_node import Unit
from aiinfra_vm.jobs import Course
from aiinfra_vm.members import Member

__all__ = ["state"]  # the fixture

_PROGRAM = """\
import json, pathlib, signal, sys
from aiinfra_vm import containers, job, job_mounts, jobs, secrets, storage
secrets._TRIES = 1
job.CONTAINED = pathlib.Path(sys.argv[4] + ".env")
job_mounts.MADE = pathlib.Path(sys.argv[4] + ".mounts")
job_mounts.MADE.parent.mkdir(exist_ok=True)
ask = containers.metadata.get
containers.metadata.get = lambda path: sys.argv[5] if path.endswith("startup-script") else ask(path)
asked = json.loads(sys.argv[1])
course = jobs.course(json.dumps(asked["course"]).encode())
node = course.node(asked["name"], asked["instance_id"])
wanted, shared = (storage.Folder(sys.argv[2], f"{sys.argv[3]}/{it}") for it in ("jobs", "vms"))
home, pace = pathlib.Path(sys.argv[4]), float(sys.argv[6])
runner = job.Runner(course, node, wanted, shared, home, pace=pace)
signal.signal(signal.SIGTERM, runner.stop)
runner.run()
"""


# In place of startup.sh, of which a job begins the step containers.
_CONTAINERS = """\
[[ $1 == step && $2 == containers ]] || exit 9
[[ $JOB_IMAGE != *missing* ]] || { echo "the image $JOB_IMAGE can't be pulled"; exit 1; }
"""
# In place of docker: what it is to run, with the environment that a container would have.
_DOCKER = """\
#!/bin/bash
echo "$* ${GREETING-}" >>"${0%/*}/calls"
[[ $1 == run ]] || exit 0
while shift; [[ $1 == -* ]]; do
  case $1 in
    --workdir=*) cd "${1#*=}" || exit 125 ;;
    --env-file=*) mapfile -t variables <"${1#*=}" && stat --format=%a "${1#*=}" ;;
  esac
done
exec env -i PATH="$PATH" LD_LIBRARY_PATH=/of/the/image "${variables[@]}" "${@:2}"
"""


class _Process(Unit):
    """In place of a unit: a process of the same program, at most one."""

    pace = 0.02

    def __init__(self, folder: Path, programs: Path) -> None:
        super().__init__(folder)
        self._programs = programs
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, course: Course, member: Member) -> None:
        about = {"name": member.name, "instance_id": member.instance_id}
        document = json.dumps({**about, "course": course.document()})
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", _PROGRAM, document, BUCKET, FOLDER,
             str(self.asked / "homes" / member.name), _CONTAINERS, str(self.pace)],
            env={
                **os.environ,
                "PYTHONPATH": str(self._programs / "lib"),
                "PATH": f"{self._programs}/bin:{os.environ['PATH']}",
            },
        )  # fmt: skip

    def is_active(self) -> bool:
        return self.process is not None and self.process.poll() is None


def packed(files: Mapping[str, str]) -> tuple[bytes, str]:
    """An archive of a folder, and its SHA-256."""
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, text in files.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(text.encode()), 0o755
            archive.addfile(about, io.BytesIO(text.encode()))
    return made.getvalue(), hashlib.sha256(made.getvalue()).hexdigest()


class World:
    """VMs, their folder, and the tool's part in it."""

    def __init__(self, folder: Path, state: State) -> None:
        folder.mkdir(exist_ok=True)
        self._folder = folder
        self.state = state
        self.vms: dict[str, Vm] = {}
        self._units: dict[str, _Process] = {}
        self._index: list[dict[str, Any]] = []
        self.programs = folder / "programs"
        shutil.copytree(PAYLOAD / "lib", self.programs / "lib")
        (self.programs / "config.json").write_text(json.dumps({"gpus": {"count": 8}}))

    def boot(self, name: str, life: int = 1) -> None:
        """Boot a VM."""
        unit = _Process(self._folder, self.programs)
        self._units[name] = unit
        self.vms[name] = Vm(self._folder, name, life, unit)

    def group(self, *names: str) -> None:
        """Boot some, and say that there are no others."""
        self.state.write("vms/group.json", {"instance_count": len(names)})
        for name in names:
            self.boot(name)
        test_agents._agree(list(self.vms.values()), len(names))

    def process(self, name: str) -> subprocess.Popen[bytes]:
        """The runner of a VM."""
        found = self._units[name].process
        assert found is not None
        return found

    def submit(self, name: str, *command: str, **more: Any) -> None:
        """Ask for a job, as the tool does."""
        self.state.write(f"jobs/{name}.json", {"name": name, "command": command, "env": {}} | more)
        self._index.append({"name": name, "cancelled": False})
        self.state.write("jobs/index.json", {"jobs": self._index})

    def cancel(self, name: str) -> None:
        """Cancel a job, as the tool does."""
        for job in self._index:
            job["cancelled"] |= job["name"] == name
        self.state.write("jobs/index.json", {"jobs": self._index})

    def send(self, files: Mapping[str, str], *, named: str = "") -> str:
        """Send a folder under its archive's SHA-256, or another; what it is named by."""
        archive, sha256 = packed(files)
        sha256 = named or sha256
        path = f"upload/storage/v1/b/{BUCKET}/o?uploadType=media&name="
        name = quote(f"{FOLDER}/jobs/files/{sha256}.tar.gz")
        request = Request(f"{self.state.url}/{path}{name}", data=archive)  # noqa: S310 - loopback
        with urlopen(request):  # noqa: S310 - loopback
            return sha256

    def course(self, name: str) -> dict[str, Any]:
        """How far a job is."""
        over = self.state.read(f"vms/jobs/{name}/course.json")
        now = self.state.read("vms/job.json") or {}
        found: dict[str, Any] = over or (now if now.get("name") == name else {})
        return found

    def when(self, name: str, *states: str) -> dict[str, Any]:
        """The course of a job once it is in one of these states."""
        test_agents._wait(lambda: self.course(name).get("state") in states)
        return self.course(name)

    def over(self, name: str) -> dict[str, Any]:
        """The course of a job once it is over."""
        return self.when(name, "succeeded", "failed", "cancelled")

    def log(self, name: str, rank: int = 0, attempt: int = 1) -> str:
        """What a rank has said; its pieces must fit together."""
        said = b""
        for piece in self.state.names(f"vms/jobs/{name}/logs/{attempt}/{rank}/"):
            assert int(piece.rpartition("/")[2]) == len(said), "a piece is missing, or there twice"
            path = f"storage/v1/b/{BUCKET}/o/{quote(f'{FOLDER}/{piece}', safe='')}?alt=media"
            said += self.state._ask(path, "GET")
        return said.decode()

    def close(self) -> None:
        """End all."""
        for vm in self.vms.values():
            vm.stop()
        for unit in self._units.values():
            if unit.process is not None:
                unit.process.kill()
                unit.process.wait()


@pytest.fixture
def world(tmp_path: Path, state: State) -> Iterator[World]:
    """A world without VMs."""
    made = World(tmp_path, state)
    yield made
    made.close()


SHOW = """\
#!/bin/bash
echo "$NODE_RANK of $NNODES at $PET_MASTER_ADDR:$PET_MASTER_PORT x $PET_NPROC_PER_NODE $GREETING"
cat data/numbers
"""


def test_a_folder_is_run_on_all_vms_which_know_their_ranks(world: World) -> None:
    world.group("vm-1", "vm-2")
    files = world.send({"show.sh": SHOW, "data/numbers": "1 2 3\n"})

    world.submit("show-1", "./show.sh", env={"GREETING": "hello there"}, files=files)

    course = world.over("show-1")
    assert course["state"] == "succeeded", course
    lines = [world.log("show-1", rank).splitlines() for rank in (0, 1)]
    first = course["nodes"][0]["address"]
    for rank in (0, 1):
        assert re.fullmatch(rf"{rank} of 2 at {first}:2\d{{4}} x 8 hello there", lines[rank][0])
        assert lines[rank][1] == "1 2 3"
    assert lines[0][0][1:] == lines[1][0][1:]


def test_a_job_has_secrets_of_its_own_or_ends_with_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = "projects/my-project/secrets/hf-token/versions/latest"
    own = {"secrets": {"HF_TOKEN": version}, "env": {"GREETING": "hello"}}
    values = {
        "service-accounts/default/token": '{"access_token": "token-of-the-vm"}',
        "service-accounts/default/email": "np-nodes@my-project.iam.gserviceaccount.com",
    }
    world.group("vm-1")
    with MetadataServer(values, secrets={version: b"hf_of-the-job"}) as server:
        monkeypatch.setenv("GCE_METADATA_HOST", server.host)
        endpoint = "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"
        monkeypatch.setenv(endpoint, f"http://{server.host}/")
        world.submit("own-1", "bash", "-c", 'echo "$GREETING ${#HF_TOKEN} $HF_TOKEN"', **own)
        assert world.over("own-1")["state"] == "succeeded"
        assert world.log("own-1") == "hello 13 ***\n"

        server.deny = 1
        world.submit("own-2", "true", **own, restarts=3)
        refused = world.over("own-2")
    cause = refused["failure"]["cause"]
    assert f"the secret of HF_TOKEN can't be read: {version}: 403, Permission denied" in cause
    grant = "add-iam-policy-binding hf-token --project my-project --role roles/secretmanager"
    assert grant in cause
    assert cause.endswith("serviceAccount:np-nodes@my-project.iam.gserviceaccount.com")
    assert refused["attempt"] == 1, "another attempt would end so, too"
    astray = {"name": "a-1", "command": ["true"], "secrets": {"HF_TOKEN": "../../v1/other"}}
    with pytest.raises(ValueError, match="not as it must be"):
        jobs.spec(json.dumps(astray).encode(), "a-1")


# In place of mount and umount: one is another name of a bucket's folder.
_MOUNT = """\
#!/bin/bash
echo "${0##*/} $*" >>"${0%/*}/calls"
[[ ${0##*/} == umount ]] && exec rm "$2"
[[ $5 != closed ]] || { echo "googleapi: Error 403: does not have storage.objects.list"; exit 1; }
rmdir "$6" && ln -s "${0%/*}/$5" "$6"
"""


def test_a_bucket_is_there_for_one_job_or_it_ends_with_the_reason(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Path("/mnt/aiinfra-test-of-a-job")  # nowhere else is anything mounted
    asked = {"bucket": "my-data", "path": str(own), "read_only": True}
    world.group("vm-1")
    world.submit("lack-1", "true", mounts=[asked], restarts=2)
    lacks = world.over("lack-1")["failure"]["cause"]
    assert lacks.startswith("this VM has no gcsfuse"), lacks

    programs = world.programs / "bin"
    (programs / "my-data").mkdir(parents=True)
    (programs / "my-data/numbers").write_text("1 2 3\n")
    for name in ("mount", "umount", "gcsfuse"):
        (programs / name).write_text(_MOUNT)
        (programs / name).chmod(0o755)
    world.submit("reads-1", "cat", f"{own}/numbers", mounts=[asked])
    assert world.over("reads-1")["state"] == "succeeded", world.course("reads-1")
    assert world.log("reads-1") == "1 2 3\n"
    mounted, unmounted = (programs / "calls").read_text().splitlines()
    assert re.fullmatch(rf"mount -t gcsfuse -o allow_other,\S+,ro my-data {own}", mounted)
    assert unmounted == f"umount --lazy {own}"
    assert not own.is_symlink()

    values = {
        "service-accounts/default/token": '{"access_token": "token-of-the-vm"}',
        "service-accounts/default/email": "np-nodes@p.iam.gserviceaccount.com",
    }
    with MetadataServer(values) as server, monkeypatch.context() as patched:
        patched.setenv("GCE_METADATA_HOST", server.host)
        world.submit("closed-1", "true", mounts=[asked | {"bucket": "closed", "read_only": False}])
        closed = world.over("closed-1")["failure"]["cause"]
    assert "gs://closed can't be mounted: googleapi: Error 403" in closed
    grant = "gs://closed --member serviceAccount:np-nodes@p.iam.gserviceaccount.com"
    assert closed.endswith(f"{grant} --role roles/storage.objectUser")
    assert not own.exists()

    own.mkdir()
    (own / "mine").touch()
    try:
        world.submit("used-1", "true", mounts=[asked])
        assert world.over("used-1")["failure"]["cause"].startswith(f"{own} has files on this VM")
        assert (own / "mine").exists()
    finally:
        shutil.rmtree(own)
    for path in ("/etc", "/mnt/../etc", "/mnt/localssd", "/mnt/a/b", "mnt/a"):
        astray = {"name": "a-1", "command": ["true"], "mounts": [asked | {"path": path}]}
        with pytest.raises(ValueError, match="not as it must be"):
            jobs.spec(json.dumps(astray).encode(), "a-1")


@pytest.fixture
def docker(world: World) -> Path:
    """What docker was called with, a line each."""
    program = world.programs / "bin" / "docker"
    program.parent.mkdir()
    program.write_text(_DOCKER)
    program.chmod(0o755)
    return program.with_name("calls")


def test_a_job_with_an_image_runs_in_a_container_as_it_would_without(
    world: World, docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LD_LIBRARY_PATH", "/of/the/fabric")
    world.group("vm-1")
    files = world.send({"show.sh": SHOW, "data/numbers": "1 2 3\n"})
    show = './show.sh; echo "$LD_LIBRARY_PATH"; exit 3'
    env = {"GREETING": "hello there"}

    world.submit("show-1", "bash", "-c", show, env=env, files=files, image="ghcr.io/a/b:1")

    course = world.over("show-1")
    assert course["failure"]["code"] == 3, course
    mode, first, second, libraries = world.log("show-1").splitlines()[:4]
    assert mode == "600"
    assert re.fullmatch(r"0 of 1 at \S+:2\d{4} x 8 hello there", first)
    assert second == "1 2 3"
    assert libraries == "/of/the/fabric:/of/the/image"
    before, begun, after = docker.read_text().splitlines()
    assert before == after == "rm --force aiinfra-job "
    assert re.search("--gpus=all --.* ghcr.io/a/b:1 sh -c ", begun)
    assert "hello there" not in begun, "neither a word of docker's, nor in its environment"
    assert not list(world.programs.parent.glob("homes/*.env"))


@pytest.mark.parametrize(
    ("image", "env", "why"),
    [
        ("ghcr.io/a/missing:1", {}, "the image ghcr.io/a/missing:1 can't be pulled"),
        ("ghcr.io/a/b:1", {"KEY": "a\nb"}, "KEY has more than one line"),
    ],
)
def test_a_job_whose_container_can_not_be_is_refused_before_it_begins(
    world: World, docker: Path, image: str, env: dict[str, str], why: str
) -> None:
    world.group("vm-1")
    world.submit("no-1", "true", env=env, image=image, restarts=3)
    course = world.over("no-1")
    assert course["state"] == "failed"
    assert why in course["failure"]["cause"]
    assert course["attempt"] == 1, "another attempt would end so, too"
    assert " run " not in docker.read_text() if docker.exists() else True


def test_100_000_lines_arrive_none_lost_and_none_doubled(world: World) -> None:
    world.group("vm-1")
    count = "for number in $(seq 100000); do echo line $number; done"

    world.submit("count-1", "bash", "-c", count)

    assert world.over("count-1")["state"] == "succeeded"
    assert world.log("count-1").splitlines() == [f"line {it}" for it in range(1, 100_001)]
    report = world.state.read("vms/jobs/count-1/nodes/vm-1.json")
    assert report["size"] == len(world.log("count-1"))


@pytest.mark.parametrize(
    ("command", "code", "cause", "said"),
    [
        (("bash", "-c", "echo no module >&2; exit 3"), 3, "", "no module"),
        (("torchrum", "train.py"), 127, "command not found", "torchrum"),
        (("bash", "-c", "kill -SEGV $$"), 139, "", ""),
        (("bash", "-c", "echo No space left on device; exit 1"), 1, "a disk is full", "No space"),
    ],
    ids=["fails", "not_found", "dies", "disk_full"],
)
def test_a_failure_has_its_exit_code_its_cause_and_its_last_lines(
    world: World, command: tuple[str, ...], code: int, cause: str, said: str
) -> None:
    world.group("vm-1")
    world.submit("bad-1", *command)
    course = world.over("bad-1")
    assert course["state"] == "failed"
    failure = course["failure"]
    assert (failure["vm"], failure["rank"], failure["code"], failure["cause"]) == (
        *("vm-1", 0), *(code, cause),
    )  # fmt: skip
    assert said in failure["tail"]


def test_one_that_fails_ends_it_on_all_and_a_restart_begins_on_all(world: World) -> None:
    world.group("vm-1", "vm-2")
    # The second attempt finds what the first left in the folder.
    program = "echo attempt $JOB_ATTEMPT; [ $JOB_ATTEMPT = 2 ] && exit 0; touch left;"
    world.submit(
        "one-1", "bash", "-c", program + "[ $NODE_RANK = 1 ] && exit 9; sleep 900",
        restarts=1, restart_on="any",
    )  # fmt: skip
    course = world.over("one-1")
    assert course["state"] == "succeeded", course
    assert course["attempt"] == 2
    assert course["events"] == [
        f"attempt 1 failed: rank 1 ({course['nodes'][1]['name']}), exit code 9; restart 1 of 1"
    ]
    assert world.log("one-1", rank=0, attempt=2) == "attempt 2\n"
    assert "SIGTERM: another VM of the job failed" in world.log("one-1", rank=0, attempt=1)


SAVES = """\
#!/usr/bin/env python3
import signal, sys, time
def save(*_):
    print("saved", flush=True)
    sys.exit(0)
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
while True: time.sleep(1)
"""


# Each machine at the address of its own, so that the kernel's table has both ends of a meeting.
_MEETS = """\
import os, socket, sys, time
first, rank = os.environ["MASTER_ADDR"], int(os.environ["NODE_RANK"])
print("h:1:1 [0] NCCL INFO", sys.argv[1], flush=True)
time.sleep(float(sys.argv[2]))
port = int(os.environ["MASTER_PORT"])
if rank == 0:
    listening = socket.create_server((first, port))
    meeting = listening.accept()[0]
else:
    own = (first[:-1] + str(rank + 1), 0)
    while True:
        try:
            meeting = socket.create_connection((first, port), source_address=own)
            break
        except ConnectionRefusedError:
            time.sleep(0.05)
time.sleep(float(sys.argv[3]))
"""
_SMI = """\
#!/bin/bash
if [[ $* == "--query-gpu=utilization.gpu --format=csv,noheader,nounits" ]]; then
  printf '90\\n46\\n'
  exit
fi
[[ $* == "--query-compute-apps=pid --format=csv,noheader" ]] || exit 9
[[ ! -e ${0%/*}/fails ]] || exit 15
cat "${0%/*}/pids"
"""


@pytest.fixture
def driver(world: World, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the processes that use GPUs; those of A3 Ultra, after a minute's 0.3 s."""
    monkeypatch.setattr(_Process, "pace", 0.005)
    fabric = {"kind": "gib", "interfaces": 8, "plugin": "1.1.0"}
    config = {"gpus": {"count": 8}, "fabric": fabric}
    (world.programs / "config.json").write_text(json.dumps(config))
    program = world.programs / "bin/nvidia-smi"
    program.parent.mkdir()
    program.write_text(_SMI)
    program.chmod(0o755)
    program.with_name("pids").touch()
    return program.with_name("pids")


def test_what_looks_like_a_waste_of_machines_is_told_and_taken_back(
    world: World, driver: Path
) -> None:
    world.group("vm-1", "vm-2")
    files = world.send({"train.py": _MEETS})
    run = (sys.executable, "train.py", "Using network Socket")

    world.submit("late-1", *run, "3", "4", files=files)
    test_agents._wait(lambda: "its machines uses" in world.course("late-1").get("why", ""))
    why = world.course("late-1")["why"].split("; ")
    driver.write_text("4711\n")
    events = world.over("late-1")["events"]

    assert why == [
        "its processes on 2 machines have not connected to each other",
        "no process on its machines uses a GPU",
        "NCCL goes by sockets, not by the network of the GPUs",
    ]
    told = sorted(it.partition(": ")[0].partition(", at a")[0] for it in events)
    assert told == sorted([
        f"after 60 s {why[0]}", why[2],
        "after 300 s it has machines on which no process uses a GPU (Jobs names them)",
        "its processes have connected to each other now", "its machines use their GPUs now",
    ]), events  # fmt: skip
    assert world.course("late-1")["state"] == "succeeded", "nothing is ended by it"
    assert world.course("late-1")["gpu_use"] == 68


def test_the_daemon_of_tcpxo_uses_no_gpu_for_a_job(world: World, driver: Path) -> None:
    fabric = {"kind": "tcpxo", "interfaces": 8, "plugin": "1.0.8", "daemon": "1.0.14"}
    config = {"gpus": {"count": 8}, "fabric": fabric}
    (world.programs / "config.json").write_text(json.dumps(config))
    docker = driver.with_name("docker")
    docker.write_text("#!/bin/sh\nprintf 'PID\\n4711\\n'\n")
    docker.chmod(0o755)
    driver.write_text("4711\n")  # which the driver names on each GPU
    world.group("vm-1")

    world.submit("idle-1", "sleep", "900")
    test_agents._wait(lambda: "its machines uses" in world.course("idle-1").get("why", ""))
    driver.write_text("4711\n4712\n")
    test_agents._wait(lambda: "use their GPUs now" in str(world.course("idle-1")["events"]))
    world.cancel("idle-1")
    assert world.over("idle-1")["state"] == "cancelled"


@pytest.mark.parametrize("silenced", ["meets", "says_no", "alone", "driver_fails"])
def test_nothing_is_told_of_a_job_that_is_in_order(
    world: World, driver: Path, silenced: str
) -> None:
    files = world.send({"train.py": _MEETS})
    network, meets, env = "Using network gIB", "0", {}
    vms, wait = ["vm-1", "vm-2"], "2.5"
    driver.write_text("4711\n")
    if silenced == "says_no":
        env, network, meets = {"AIINFRA_GUARD": "no"}, "Using network Socket", "2"
        driver.write_text("")
    elif silenced == "alone":
        vms, network = vms[:1], "Using network Socket"
    elif silenced == "driver_fails":
        driver.with_name("fails").touch()
    world.group(*vms)
    command: tuple[str, ...] = (sys.executable, "train.py", network, meets, wait)
    if silenced == "alone":
        command = ("bash", "-c", f'echo "NCCL INFO {network}"; sleep {wait}')
    world.submit("good-1", *command, env=env, files=files)
    course = world.over("good-1")
    assert (course["state"], course["events"]) == ("succeeded", [])


def test_what_is_cancelled_is_told_to_end_and_may_save(world: World) -> None:
    world.group("vm-1")
    world.submit("train-1", "./train.py", files=world.send({"train.py": SAVES}))
    test_agents._wait(lambda: "begun" in world.log("train-1"))

    world.cancel("train-1")

    assert world.over("train-1")["state"] == "cancelled"
    assert world.log("train-1").splitlines() == [
        "begun",
        "=== aiinfra: SIGTERM: it was cancelled ===",
        "saved",
    ]


def test_its_time_ends_it_in_the_same_order(world: World) -> None:
    world.group("vm-1")
    files = world.send({"train.py": SAVES})
    world.submit("train-1", "./train.py", files=files, seconds=1, restarts=3)
    course = world.over("train-1")
    assert (course["state"], course["failure"]["cause"]) == ("failed", "--time is over")
    assert course["attempt"] == 1
    assert world.log("train-1").splitlines()[-1] == "saved"


def test_of_two_jobs_the_second_waits_for_the_first_and_one_that_waits_can_be_cancelled(
    world: World,
) -> None:
    world.group("vm-1")
    files = world.send({"wait.sh": "#!/bin/bash\nuntil [ -e go ]; do sleep 0.1; done\n"})
    world.submit("a-1", "./wait.sh", files=files)
    world.when("a-1", "running")
    world.submit("b-1", "echo", "b")
    world.submit("c-1", "echo", "c")
    world.cancel("b-1")
    assert world.over("b-1")["state"] == "cancelled", "while the first goes on"
    (world._folder / "homes/vm-1/a-1/go").touch()
    assert world.over("a-1")["state"] == "succeeded"
    assert world.over("c-1")["state"] == "succeeded"
    assert world.log("c-1") == "c\n"
    assert not world.log("b-1")


def test_a_vm_that_is_lost_and_made_again_is_waited_for(world: World) -> None:
    world.group("vm-1", "vm-2")
    program = "[ $JOB_ATTEMPT = 2 ] || sleep 900"
    world.submit("train-1", "bash", "-c", program, restarts=1)
    world.when("train-1", "running")
    test_agents._wait(lambda: "vm-2" in json.dumps(world.course("train-1")))
    world.vms["vm-2"].die()
    runner = world.process("vm-2")
    os.kill(runner.pid, signal.SIGKILL)
    runner.wait()

    world.when("train-1", "waiting")
    world.boot("vm-2", life=2)

    course = world.over("train-1")
    assert (course["state"], course["attempt"]) == ("succeeded", 2), course
    assert "the VM vm-2 was lost" in course["events"][0]


def test_a_reboot_is_no_second_run_of_the_same_attempt(world: World) -> None:
    world.group("vm-1")
    world.submit("train-1", "bash", "-c", "echo begun; sleep 900")
    test_agents._wait(lambda: "begun" in world.log("train-1"))
    os.killpg(os.getpgid(_child_of(world.process("vm-1").pid)), signal.SIGKILL)
    world.process("vm-1").kill()
    world.process("vm-1").wait()

    course = world.over("train-1")

    assert (
        course["failure"]["cause"] == "the VM, or what runs the job on it, was restarted meanwhile"
    )
    assert world.log("train-1") == "begun\n"


def test_a_vm_that_has_not_read_the_roster_yet_begins_its_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "systemctl").write_text("#!/bin/sh\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    asked = tmp_path / "run/aiinfra/job.json"  # whose folder comes with the roster

    Unit(asked).start(Course("train-1"), Member("vm-1", "7", "10.0.0.2", "a-boot"))

    assert json.loads(asked.read_text())["course"]["name"] == "train-1"


@pytest.mark.parametrize(
    ("said", "is_active"), [("active", True), ("deactivating", True), ("inactive", False)]
)
def test_a_systemd_that_does_not_answer_says_nothing_of_a_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, *, is_active: bool
) -> None:
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\necho {said}\n")
    (tmp_path / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    assert Unit(tmp_path).is_active() is is_active
    refused = "echo Failed to connect to system scope bus >&2; exit 1"
    (tmp_path / "systemctl").write_text(f"#!/bin/sh\n{refused}\n")
    with pytest.raises(OSError, match="does not answer"):
        Unit(tmp_path).is_active()


def _child_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def test_what_somebody_forges_in_the_shared_folder_runs_nothing(
    world: World, tmp_path: Path
) -> None:
    world.group("vm-1")
    touch = ["touch", str(tmp_path / "forged")]
    spec = {"name": "evil-1", "command": touch, "env": {}, "nodes": 1, "restarts": 0}
    node = {"rank": 0, "name": "vm-1", "instance_id": "1", "address": "10.0.1.1"}
    course = {"name": "evil-1", "state": "running", "attempt": 1, "nodes": [node], "since": 0}
    for name in ("vms/jobs/evil-1.json", "vms/evil-1.json", "vms/jobs/evil-1/spec.json"):
        world.state.write(name, spec)
    world.state.write("vms/index.json", {"jobs": [{"name": "evil-1", "cancelled": False}]})
    world.state.write("vms/job.json", course | {"state": "preparing", "command": touch})
    test_agents._wait(lambda: (world.state.read("vms/job.json") or {}).get("state") == "cancelled")

    # Those that did not come from the tool have not kept its own jobs from running, either.
    world.submit("good-1", "echo", "good")
    assert world.over("good-1")["state"] == "succeeded"
    assert not (tmp_path / "forged").exists()


def test_a_course_that_somebody_spoils_is_begun_anew_with_an_attempt_of_its_own(
    world: World,
) -> None:
    world.group("vm-1")
    world.submit(
        "train-1", "bash", "-c", "echo attempt $JOB_ATTEMPT; [ $JOB_ATTEMPT = 2 ] || sleep 900"
    )
    test_agents._wait(lambda: "attempt" in world.log("train-1"))
    world.state.write("vms/job.json", {"name": "train-1", "nodes": [{"address": "$(reboot)"}]})
    course = world.over("train-1")
    assert (course["state"], course["attempt"]) == ("succeeded", 2)


def test_a_folder_that_is_not_what_was_sent_is_not_run(world: World) -> None:
    world.group("vm-1")
    sha256 = world.send({"show.sh": SHOW})
    world.send({"show.sh": SHOW + "echo more\n"}, named=sha256)
    world.submit("show-1", "./show.sh", files=sha256, restarts=5)
    course = world.over("show-1")
    assert (course["state"], course["attempt"]) == ("failed", 1)
    assert "the checksum differs" in course["failure"]["cause"]
    assert not world.log("show-1")


def test_a_job_that_can_not_be_read_is_over_and_the_next_one_runs(world: World) -> None:
    world.group("vm-1")
    world.submit("odd-1", "true", nodes="two")
    world.submit("next-1", "echo", "hi")
    assert world.over("next-1")["state"] == "succeeded"
    odd = world.course("odd-1")
    assert odd["state"] == "failed"
    assert odd["why"].startswith("what was asked for can't be read: ")
