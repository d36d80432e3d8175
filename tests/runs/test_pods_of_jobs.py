"""A job's pods, with the programs that run in them: real bash, a real program beside it."""

import dataclasses
import hashlib
import http.server
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from provision.kinds.gke.kubernetes import job_attendant, kueue, run_jobs
from provision.kinds.gke.kubernetes.facts import GpuPool
from provision.kinds.gke.kubernetes.objects import Object
from provision.settings.choices import Priority, RestartOn
from provision.settings.job_options import JobArray
from provision.settings.storage import JobMount
from tests.kubernetes import samples

LINES = 100_000
PREFIX = "np-deployment/pods/jobs/train-1/"


class _Storage(http.server.BaseHTTPRequestHandler):
    """A bucket and a metadata server, as far as pods ask them."""

    objects: dict[str, bytes]

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if "token" in parts.path:
            self._say({"access_token": "t", "expires_in": 3600})
        elif parts.path.endswith("/o"):
            prefix = parse_qs(parts.query)["prefix"][0]
            found = {k: v for k, v in self.objects.items() if k.startswith(prefix)}
            self._say({"items": [{"name": k, "size": str(len(v))} for k, v in found.items()]})
        else:
            self._say(self.objects[unquote(parts.path.rpartition("/")[2])])

    def do_POST(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        name = query["name"][0]
        content = self.rfile.read(int(self.headers["Content-Length"]))
        if "ifGenerationMatch" in query and name in self.objects:
            self.send_error(412)
            return
        self.objects[name] = content
        self._say({})

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the library's name
        """Say nothing."""

    def _say(self, answer: Any) -> None:
        text = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)


@dataclasses.dataclass
class Node:
    """Where a pod runs: its folder, and the bucket that it reaches."""

    folder: Path
    objects: dict[str, bytes]
    environ: dict[str, str]

    def container(self, thing: Object) -> subprocess.Popen[bytes]:
        """Start the job's container, as the kubelet would without a GPU network."""
        command = [
            word.replace("/run/aiinfra-job", str(self.folder)).replace("$$", "$")
            for word in _container(thing)["command"]
        ]
        (self.folder / "folder").mkdir(exist_ok=True)
        return subprocess.Popen(command, env=self.environ, stdout=subprocess.DEVNULL)

    def beside(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start what goes with it."""
        program = Path(job_attendant.__file__).read_text()
        return subprocess.Popen([sys.executable, "-c", program, *arguments], env=self.environ)

    def log(self, attempt: int = 1) -> bytes:
        """What is kept of it, in whole: each piece begins where the last one ends."""
        pieces = sorted(it for it in self.objects if it.startswith(f"{PREFIX}logs/{attempt}/0/"))
        text = b""
        for name in pieces:
            assert int(name.rpartition("/")[2]) == len(text)
            text += self.objects[name]
        return text

    def run(self, *command: str, told: bool = False) -> dict[str, Any]:
        """Run a program to its end; what is kept of that."""
        keeper = self.beside("keep", "b", PREFIX)
        with self.container(_job_set(command)) as job:
            if told:
                while not (self.folder / "folder/ready").exists():
                    time.sleep(0.02)
                job.send_signal(signal.SIGTERM)
        assert keeper.wait(600) == 0
        end: dict[str, Any] = json.loads(self.objects[f"{PREFIX}ends/1/0.json"])
        assert job.returncode == end["code"]
        return end

    def run_on_ray(self, *command: str, attempt: int, told: bool = False) -> dict[str, Any]:
        """Run a program as the head of Ray does, in a pod of its own; what is kept of its end."""
        self.evict()
        own = str(self.folder)
        thing = run_jobs.RAY_JOB.build(
            samples.TWO_QUEUED, samples.wanted(samples.TWO_QUEUED, command)
        )
        (head,) = thing["spec"]["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]["containers"]
        environ = {key: it for key, it in self.environ.items() if key != "JOB_RESTART"}
        given = {it["name"]: it["value"] for it in head["env"]}
        ours = {
            key: it.replace("$$", "$").replace(run_jobs.SHARED, own) for key, it in given.items()
        }
        write = head["command"][0].replace(run_jobs.SHARED, own)
        (self.folder / "folder").mkdir()
        subprocess.run(["/bin/bash", "-c", write], env={**environ, **ours}, check=True)
        keeper = [
            sys.executable,
            "-c",
            Path(job_attendant.__file__).read_text(),
            "keep",
            "b",
            PREFIX,
        ]
        with (
            subprocess.Popen(keeper, env=environ) as beside,
            subprocess.Popen(
                thing["spec"]["entrypoint"].replace(run_jobs.SHARED, own).split(),
                env=environ,
                stdout=subprocess.DEVNULL,
            ) as job,
        ):
            if told:
                while not (self.folder / "folder/ready").exists():
                    time.sleep(0.02)
                stop = [
                    it.replace(run_jobs.SHARED, own)
                    for it in head["lifecycle"]["preStop"]["exec"]["command"]
                ]
                threading.Thread(target=job.wait).start()
                subprocess.run(stop, env=environ, check=True, timeout=600)
                assert job.poll() is not None, "the pod waits for it"
            assert beside.wait(600) == 0
        end: dict[str, Any] = json.loads(self.objects[f"{PREFIX}ends/{attempt}/0.json"])
        assert job.returncode == end["code"]
        return end

    def evict(self) -> None:
        """Let the pod go, with all that is in it."""
        shutil.rmtree(self.folder)
        self.folder.mkdir()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """A node with a bucket."""
    with _served() as (objects, port):
        secrets = tmp_path / "secrets"
        secrets.mkdir()
        (secrets / "TOKEN").write_text("hunter2-hunter2")
        (tmp_path / "job").mkdir()
        variables = {
            "AIINFRA_SHARED": str(tmp_path / "job"),
            "AIINFRA_SECRETS": str(secrets),
            "AIINFRA_EVERY": "0.1",
            "GCE_METADATA_HOST": f"127.0.0.1:{port}",
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE": f"http://127.0.0.1:{port}/",
            "NODE_RANK": "0",
            "JOB_RESTART": "0",
            "NODE_NAME": "node-1",
        }
        yield Node(tmp_path / "job", objects, {**os.environ, **variables})


@contextmanager
def _served() -> Iterator[tuple[dict[str, bytes], int]]:
    objects: dict[str, bytes] = {}
    handler = type("Handler", (_Storage,), {"objects": objects})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield objects, server.server_address[1]
        server.shutdown()


def _job_set(command: tuple[str, ...] = ("true",), **asked: Any) -> Object:
    facts = samples.TWO_QUEUED
    return run_jobs.JOB_SET.build(facts, samples.wanted(facts, command, **asked))


def _pod(thing: Object) -> Object:
    (job,) = (it["template"] for it in thing["spec"].get("replicatedJobs", [{"template": thing}]))
    pod: Object = job["spec"]["template"]["spec"]
    return pod


def _container(thing: Object) -> Object:
    container: Object = _pod(thing)["containers"][0]
    # What comes before is for the network of GPUs, which this machine has not.
    command = container["command"]
    scripts = (run_jobs.PROGRAM, run_jobs.TASK)
    at = next(number for number, it in enumerate(command) if it in scripts)
    return container | {"command": command[at - 2 :]}


def test_of_many_lines_none_is_lost_and_none_is_doubled_and_secrets_are_masked(node: Node) -> None:
    end = node.run("bash", "-c", f"seq {LINES}; echo $TOKEN-hunter2-hunter2; echo '$HOME $(A)'")
    expected = [*map(str, range(1, LINES + 1)), "-***", "$HOME $(A)"]
    assert node.log().decode().splitlines() == expected
    assert (end["code"], end["told"], end["vm"]) == (0, False, "node-1")
    assert end["tail"].splitlines() == expected[-20:]
    assert json.loads(node.objects[f"{PREFIX}began.json"])["began"] <= end["ended"]
    # It has read them all, and a program may say more than the disk has room for.
    assert (node.folder / "log").stat().st_blocks * 512 < LINES


def test_a_pod_that_begins_again_after_an_eviction_goes_on_with_the_log(node: Node) -> None:
    node.run("echo", "first")
    node.evict()
    node.run("echo", "second")
    assert node.log() == b"first\nsecond\n"


def test_that_nccl_goes_by_sockets_is_kept_where_there_is_a_network_of_gpus(node: Node) -> None:
    line = "echo h:1:1 [0] NCCL INFO Using network"
    node.run("bash", "-c", f"{line} Socket")
    assert "sockets" not in json.loads(node.objects[f"{PREFIX}began.json"])
    node.environ["AIINFRA_FABRIC"] = "yes"
    for attempt, said in enumerate(["gIB", "Socket", "Socket"], start=1):
        node.evict()
        node.environ["JOB_RESTART"] = str(attempt)
        with node.container(_job_set(("bash", "-c", f"{line} {said}"))):
            assert node.beside("keep", "b", PREFIX).wait(600) == 0
    told = json.loads(node.objects[f"{PREFIX}began.json"])
    assert (told["sockets"], told["began"] > 0) == (3, True)

    def is_asked(pool: GpuPool, nodes: int = 2, **asked: Any) -> bool:
        wanted = samples.wanted(samples.facts(pool), **asked)
        thing = run_jobs.JOB_SET.build(
            samples.facts(pool), dataclasses.replace(wanted, pool=pool, nodes=nodes)
        )
        (keep,) = (it for it in _pod(thing)["initContainers"] if it["name"] == "keep-log")
        return "AIINFRA_FABRIC" in {it["name"] for it in keep["env"]}

    assert is_asked(samples.MEGA)
    assert not is_asked(samples.MEGA, nodes=1)
    assert not is_asked(samples.MEGA, env={"AIINFRA_GUARD": "no"})
    assert not is_asked(samples.T4)


def test_a_task_knows_its_number_and_a_pod_that_has_none_ends_and_keeps_nothing(
    node: Node,
) -> None:
    facts = samples.TWO_QUEUED
    command = ("bash", "-c", "echo task $JOB_INDEX of attempt $JOB_ATTEMPT; exit 3")
    wanted = samples.wanted(facts, command, array=JobArray(7, 9))
    thing = run_jobs.JOB.build(facts, dataclasses.replace(wanted, nodes=1, slots=3))
    (array,) = (it["value"] for it in _container(thing)["env"] if it["name"] == "AIINFRA_ARRAY")
    for index in ("1", "3"):
        node.environ |= {"AIINFRA_ARRAY": array, "JOB_COMPLETION_INDEX": index, "NODE_RANK": index}
        keeper = node.beside("keep", "b", PREFIX)
        with node.container(thing) as job:
            pass
        if index == "1":
            assert job.returncode == 0
            time.sleep(1)
            keeper.send_signal(signal.SIGTERM)
            assert keeper.wait(600) == 0
            assert not node.objects
    assert keeper.wait(600) == 0
    assert job.returncode == 3
    end = json.loads(node.objects[f"{PREFIX}ends/1/8.json"])
    assert (end["rank"], end["code"], end["tail"]) == (8, 3, "task 8 of attempt 1")
    assert end["began"] <= end["ended"]
    assert f"{PREFIX}began.json" in node.objects


@pytest.mark.parametrize(
    ("command", "code"), [("exit 3", 3), ("torchrum train.py", 127), ("kill -9 $$", 137)]
)
def test_the_exit_code_is_that_of_the_program(node: Node, command: str, code: int) -> None:
    end = node.run("bash", "-c", command)
    assert (end["code"], end["told"]) == (code, False)


@pytest.mark.parametrize(
    ("code", "asked", "restart", "hopeless", "paused"),
    [
        *((3, "2 600 30", 0, True, "30"), (3, "2 600 30", 2, False, None)),
        *((3, "2 0 30", 1, False, "20"), (3, "9 0 30", 8, False, "300")),
        *((127, "2 600 0", 0, True, "0"), (0, "2 600 30", 0, False, None)),
    ],
)
def test_a_program_that_fails_at_once_says_so_and_another_waits_before_its_restart(  # noqa: PLR0913 - a case in words
    node: Node, code: int, asked: str, restart: int, paused: str | None, *, hopeless: bool
) -> None:
    sleep = node.folder.parent / "sleep"
    sleep.write_text(f'#!/bin/sh\n[ "$1" = 10 ] || echo "$1" >>{sleep}s\n')
    sleep.chmod(0o755)
    node.environ |= {"AIINFRA_AGAIN": asked, "PATH": f"{sleep.parent}:{os.environ['PATH']}"}
    node.environ["JOB_RESTART"] = str(restart)
    with node.container(_job_set(("bash", "-c", f"exit {code}"))) as job:
        pass
    assert job.returncode == (run_jobs.HOPELESS if hopeless else code)
    assert (node.folder / "code").read_text().split() == [str(code)]
    slept = sleep.with_name("sleeps")
    assert (slept.read_text().strip() if slept.exists() else None) == paused


def test_what_fails_at_once_ends_the_set_unless_all_failures_are_to_be_begun_again() -> None:
    def told(**asked: Any) -> dict[str, str]:
        env = _container(_job_set(restarts=3, **asked))["env"]
        return {it["name"]: it.get("value", "") for it in env}

    assert told()["AIINFRA_AGAIN"] == "3 600 30"
    assert told(restart_on=RestartOn.ANY)["AIINFRA_AGAIN"] == "3 0 30"
    assert told(restart_on=RestartOn.LOST)["AIINFRA_AGAIN"] == "3 604800 30"
    rules = _job_set(restarts=3)["spec"]["failurePolicy"]["rules"]
    assert rules[1]["onJobFailureMessagePatterns"] == ["exit code 121 matching"]


@pytest.mark.slow(sibling="::test_the_exit_code_is_that_of_the_program")
def test_a_signal_to_the_pod_reaches_the_program_which_has_time_to_save(node: Node) -> None:
    script = "trap 'echo saved; exit 75' TERM; touch ready; sleep 30 & wait"
    end = node.run("bash", "-c", script, told=True)
    assert (end["code"], end["told"], end["tail"]) == (75, True, "saved")


@pytest.mark.slow(sibling="::test_a_head_on_which_ray_began_nothing_is_no_attempt")
def test_on_ray_each_head_takes_the_next_attempt_but_for_one_that_was_told_to_end(
    node: Node,
) -> None:
    line = """echo "it's $JOB_ATTEMPT" '$(A) $$'; exit 3"""
    assert node.run_on_ray("bash", "-c", line, attempt=1)["code"] == 3
    assert node.log() == b"it's 1 $(A) $$\n"
    script = "trap 'echo saved; exit 75' TERM; touch ready; sleep 30 & wait"
    end = node.run_on_ray("bash", "-c", script, attempt=2, told=True)
    assert (end["code"], end["told"], end["tail"]) == (75, True, "saved")
    # As an evicted JobSet, it goes on with the log.
    node.run_on_ray("bash", "-c", "echo again $JOB_ATTEMPT", attempt=2)
    assert node.log(2) == b"saved\nagain 2\n"
    attempts = [it for it in node.objects if "/attempts/" in it]
    assert attempts == [f"{PREFIX}attempts/1", f"{PREFIX}attempts/2"]


def test_a_head_on_which_ray_began_nothing_is_no_attempt(node: Node) -> None:
    environ = {key: it for key, it in node.environ.items() if key != "JOB_RESTART"}
    program = Path(job_attendant.__file__).read_text()
    with subprocess.Popen([sys.executable, "-c", program, "keep", "b", PREFIX], env=environ) as it:
        time.sleep(1)
        it.send_signal(signal.SIGTERM)
        assert it.wait(600) == 0
    assert not node.objects


def test_a_folder_is_unpacked_if_it_is_the_one_that_was_asked_for(node: Node) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        member = tarfile.TarInfo("src/train.py")
        member.size = 2
        archive.addfile(member, io.BytesIO(b"hi"))
    right = f"files/{hashlib.sha256(packed.getvalue()).hexdigest()}.tar.gz"
    wrong = f"files/{'0' * 64}.tar.gz"
    node.objects |= {right: packed.getvalue(), wrong: packed.getvalue()}
    assert node.beside("fetch", "b", wrong).wait(600) == 1
    assert not (node.folder / "folder").exists()
    assert node.beside("fetch", "b", right).wait(600) == 0
    assert (node.folder / "folder/src/train.py").read_text() == "hi"


def test_a_job_says_what_its_processes_need_and_what_somebody_set_wins() -> None:
    given = {"MASTER_PORT": "1", "PRICE": "$5 $(NNODES)"}
    container = _container(_job_set(env=given, image="i:1"))
    values = {it["name"]: it.get("value", "") for it in container["env"]}
    assert len(values) == len(container["env"])
    assert {"PET_NNODES", "PET_NODE_RANK", "JAX_PROCESS_ID", "JOB_NAME"} <= values.keys()
    assert {"JAX_COORDINATOR_IP", "GPUS_PER_NODE", "JOB_IDENTIFIER"} <= values.keys()
    assert values["NCCL_PLUGIN_PATH"] == "/usr/local/nvidia/lib64"
    assert (values["MASTER_PORT"], values["PRICE"]) == ("1", "$$5 $$(NNODES)")
    assert container["image"] == "i:1"


def test_a_job_has_a_bucket_of_its_own_as_a_volume_of_its_pods() -> None:
    own = (JobMount.of("my-runs:/mnt/runs"), JobMount.of("my-data:/mnt/data:ro"))
    facts = samples.TWO_QUEUED.also_having((), own)
    thing = run_jobs.JOB_SET.build(facts, samples.wanted(facts, mounts=own))
    (part,) = thing["spec"]["replicatedJobs"]
    template = part["template"]["spec"]["template"]
    assert template["metadata"]["annotations"]["gke-gcsfuse/volumes"] == "true"
    pod = template["spec"]
    volumes = {it["name"]: it["csi"] for it in pod["volumes"] if "csi" in it}
    said = {
        name: (it["driver"], it["readOnly"], it["volumeAttributes"]["bucketName"])
        for name, it in volumes.items()
    }
    driver = "gcsfuse.csi.storage.gke.io"
    assert said == {
        "mnt-runs": (driver, False, "my-runs"), "mnt-data": (driver, True, "my-data"),
    }  # fmt: skip
    assert "implicit-dirs" in volumes["mnt-runs"]["volumeAttributes"]["mountOptions"].split(",")
    mounts = {it["name"]: it["mountPath"] for it in pod["containers"][0]["volumeMounts"]}
    assert (mounts["mnt-runs"], mounts["mnt-data"]) == ("/mnt/runs", "/mnt/data")


def test_a_time_limit_is_the_queues_and_restarts_are_the_sets() -> None:
    thing = _job_set(seconds=3600, restarts=2, queue="team-a", priority=Priority.HIGH)
    labels = thing["metadata"]["labels"]
    assert labels[kueue.MOST_SECONDS] == "3600"
    assert labels["kueue.x-k8s.io/queue-name"] == "team-a"
    assert labels["kueue.x-k8s.io/priority-class"] == "high"
    assert thing["spec"]["failurePolicy"]["maxRestarts"] == 2
