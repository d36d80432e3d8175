"""Jobs of Run on a Ray cluster of two VMs, told as documents on standard output.

Arguments: a folder, the Python that has Ray and PyTorch, and its environment as JSON. There is no
systemd and no agent here: this begins what the unit begins, and says what the agent that leads
says (tests/startup/test_jobs.py has agents).
"""

import json
import shlex
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.startup import ray_scenario
from tests.startup.environments import Environment
from tests.startup.room import Machine, Room, environment_of, of_unit
from tests.startup.test_jobs import packed

SECRET = "a-value-of-secret-manager"  # noqa: S105 - a made-up one
_VERSION = "projects/p/secrets/key/versions/1"
_CONFIG = {"ray": {"version": "2.60.0"}, "secrets": [{"name": "KEY", "resource": _VERSION}]}
_UNIT = "aiinfra-job"
_SECONDS = 240

# Says what it has itself, and what a task on the other VM has; then it fails.
_MAIN = """\
import json, os, sys, ray, helper
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
print("the key is", os.environ["KEY"])
print("more\\n" * 10)  # Ray's record of a job that failed has its last ten lines
ray.init(log_to_driver=False)
own = ray.get_runtime_context().get_node_id()
(other,) = [it["NodeID"] for it in ray.nodes() if it["Alive"] and it["NodeID"] != own]
look = ray.remote(num_cpus=0)(helper.look)
there = ray.get(look.options(scheduling_strategy=On(other, soft=False)).remote())
print(json.dumps([sys.argv[1:], helper.look(), there]))
sys.exit(7)
"""
_HELPER = """\
import os, pathlib, ray
def look():
    names = ("LEVEL", "KEY", "JOB_NAME", "JOB_ATTEMPT")
    about = {name: os.environ.get(name, "")[:5] for name in names}
    ran_on = ray.util.get_node_ip_address()
    return {**about, "ran_on": ran_on, "uid": os.getuid(), "data": pathlib.Path("data").read_text()}
"""
# Saves for longer than Ray waits by default, and has a task that would go on for ever.
_LONG = """\
import signal, sys, time, ray
def save(*_):
    print("saving", flush=True)
    time.sleep(5)
    print("saved", flush=True)
    sys.exit(0)
ray.init()
@ray.remote(num_cpus=0)
def nap(): time.sleep(9000)
napping = nap.remote()
signal.signal(signal.SIGTERM, save)
print("begun", flush=True)
while True: time.sleep(0.2)
"""
_FILES = {
    "main.py": _MAIN,
    "helper.py": _HELPER,
    "long.py": _LONG,
    "run.sh": '#!/bin/sh\nexec python main.py "$@"\n',
    "data": "kept\n",
    ".gitignore": "data\n",
    "train.py": (Path(__file__).parents[2] / "examples/recipes/ray-train/train.py").read_text(),
}


class _Job:
    """One job, begun on the head as its unit would be."""

    def __init__(self, room: Room, head: Machine, name: str, command: Sequence[str]) -> None:
        self.name = name
        self._room = room
        self._head = head
        claim = json.loads(room.object("ray/head.json"))
        self._node = {"rank": 0, "name": head.name, "address": head.address}
        self._node["instance_id"] = claim["instance_id"]
        archive, sha256 = packed(_FILES)
        room.write(f"jobs/files/{sha256}.tar.gz", archive)
        asked = {"name": name, "command": command, "env": {"LEVEL": "high"}, "files": sha256}
        room.write(f"jobs/{name}.json", json.dumps(asked).encode())
        self.lead("running")
        about = {"name": head.name, "instance_id": claim["instance_id"], "course": self._course}
        put = (
            f"mkdir -p /run/aiinfra && echo {shlex.quote(json.dumps(about))} >/run/aiinfra/job.json"
        )
        head.run(put, user="root")
        self._runner = threading.Thread(target=self._run, daemon=True)
        self._runner.start()

    def lead(self, state: str, why: str = "") -> None:
        """Say how far it is, as the agent that leads does."""
        self._course = {
            "name": self.name, "state": state, "why": why, "attempt": 1, "nodes": [self._node],
        }  # fmt: skip
        self._room.write("vms/job.json", json.dumps(self._course).encode())

    def _run(self) -> None:
        variables = environment_of(_UNIT) | self._head.variables
        given = " ".join(shlex.quote(f"{name}={text}") for name, text in variables.items())
        (start,) = of_unit(_UNIT, "ExecStart")
        stops = [it.removeprefix("-") for it in of_unit(_UNIT, "ExecStopPost")]
        for command in (start, *stops):
            with suppress(RuntimeError):
                unit = f"cd / && exec env -i {given} {command}"
                self._head.run(unit, user="root", seconds=_SECONDS)

    def says(self, words: str) -> None:
        """Wait until it has said something."""
        _until(lambda: words in self.log() or not self._runner.is_alive(), self.log)
        assert words in self.log(), self.ended()

    def log(self) -> str:
        """What it has said."""
        pieces = sorted(self._room.names(f"vms/jobs/{self.name}/logs/1/0/"))
        return b"".join(map(self._room.object, pieces)).decode()

    def stopped(self) -> None:
        """Wait until its unit has stopped."""
        self._runner.join(_SECONDS)
        assert not self._runner.is_alive(), self.log()

    def ended(self) -> dict[str, Any]:
        """What is told of its end, and what Ray says of it then."""
        self.stopped()
        report = json.loads(self._room.object(f"vms/jobs/{self.name}/nodes/{self._head.name}.json"))
        return {"report": report, "log": self.log(), "status": self.status()}

    def status(self) -> str:
        """What Ray says of it."""
        return self._head.run(f"ray job status {self.name}-1 2>/dev/null || true")


def _until(is_so: Callable[[], bool], said: Callable[[], str]) -> None:
    deadline = time.monotonic() + _SECONDS
    while not is_so():
        assert time.monotonic() < deadline, said()
        time.sleep(0.5)


def _tell(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def _story(room: Room, machines: list[Machine]) -> None:
    ray_scenario._run_over(machines)
    head = ray_scenario._head(machines)
    (other,) = (it.address for it in machines if it is not head)
    job = _Job(room, head, "fails-1", ["./run.sh", "a b", "$HOME"])
    ended = job.ended()
    shown = head.run("ray job list")
    _tell("failed", **ended, head=head.address, other=other, shown=shown)

    _tell("not found", **_Job(room, head, "none-1", ["torchrum", "train.py"]).ended())

    for number, epochs in ((1, "2"), (2, "3")):
        command = ["python", "train.py", "--storage", "/srv", "--epochs", epochs]
        ended = _Job(room, head, f"spiral-{number}", command).ended()
        kept = len(list((room.folder / "shared/spiral").glob("*/state.pt")))
        _tell(f"trained {number}", **ended, kept=kept)

    job = _Job(room, head, "long-1", ["python", "long.py"])
    job.says("begun")
    _tell("leaks", found=_words_of_processes(machines))
    job.lead("stopping", "it was cancelled")
    _tell("cancelled", **job.ended())
    _until(lambda: not _left(machines), lambda: str(_left(machines)))

    job = _Job(room, head, "killed-1", ["python", "long.py"])
    job.says("begun")
    head.run("kill -9 $(pgrep -f '[a]iinfra_vm.(job$|ray_job)')", user="root")
    job.stopped()
    _until(lambda: not _left(machines), lambda: str(_left(machines)))
    _tell("killed", status=job.status())


def _words_of_processes(machines: list[Machine]) -> list[str]:
    """The command lines of any process that have the secret."""
    said = [it.run("cat /proc/[0-9]*/cmdline || true", user="root") for it in machines]
    return [line for text in said for line in text.split("\0") if SECRET in line]


def _left(machines: list[Machine]) -> list[str]:
    """The processes of the long job, or of a task of it, that are still there."""
    said = [it.run("ps -eo args", user="root").splitlines() for it in machines]
    return [line for lines in said for line in lines if "long.py" in line or "ray::nap" in line]


def main() -> None:
    """Two VMs join; one job fails, one can't be found, two train, one is cancelled, one killed."""
    folder = Path(sys.argv[1])
    environment = Environment(Path(sys.argv[2]), json.loads(sys.argv[3]))
    with Room(folder) as room:
        machines = [Machine(number, folder, environment) for number in (1, 2)]
        try:
            for machine in machines:
                room.boot(machine, values={_VERSION: SECRET.encode()}, config=_CONFIG)
            _story(room, machines)
        finally:
            for machine in machines:
                machine.kill()


if __name__ == "__main__":
    main()
