"""The life of a Ray cluster of three VMs, told as documents on standard output.

Arguments: a folder, the Python that has Ray and PyTorch, and its environment as JSON.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.startup.environments import Environment
from tests.startup.room import Machine, Room

# One task on each node, each saying where it ran, and as whom.
_EVERYWHERE = """
import json, os, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init(log_to_driver=False)
where = lambda: (ray.util.get_node_ip_address(), os.getuid())
here = ray.remote(num_cpus=0)(where)
nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
tasks = [here.options(scheduling_strategy=On(node, soft=False)).remote() for node in nodes]
print(json.dumps(sorted(ray.get(tasks, timeout=30))))
"""
# A job that has to do with every VM for as long as it is not told to end, and counts.
_LONG_JOB = """
import pathlib, time, ray
ray.init()
work = ray.remote(num_cpus=0, max_retries=-1, scheduling_strategy="SPREAD")(lambda: time.sleep(0.3))
turns = 0
while not pathlib.Path("/tmp/finish").exists():
    ray.get([work.remote() for _ in range(6)])
    turns += 1
    pathlib.Path("/tmp/turns").write_text(str(turns))
print("turns:", turns)
"""
# What was tried on a Ray without a token: a program, by the dashboard and by Ray's client.
_BY_DASHBOARD = """
import json, sys, urllib.request
head, *token = sys.argv[1:]
headers = {"Content-Type": "application/json"}
if token: headers["Authorization"] = "Bearer " + token[0]
body = json.dumps({"entrypoint": "id -u"}).encode()
url = "http://%s:8265/api/jobs/" % head
print(urllib.request.urlopen(urllib.request.Request(url, body, headers)).read().decode())
"""
_BY_CLIENT = """
import os, sys, ray
ray.init("ray://%s:10001" % sys.argv[1])
print("uid", ray.get(ray.remote(lambda: os.getuid()).remote()))
"""
_PYTHON = "/opt/aiinfra/ray/bin/python"
_SECONDS = 250  # for the cluster to be what is waited for
_EXPIRY = 5  # seconds, as the room starts the service
_AWAY = 3 * _EXPIRY  # as two minutes are to the 45 seconds of a real lease


def _tell(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def _python(program: str, *arguments: str) -> str:
    quoted = program.replace("'", "'\\''")
    return f"python -c '{quoted}' {' '.join(arguments)}"


def _run_over(machines: list[Machine]) -> tuple[list[str], list[int]]:
    """The addresses and users that tasks ran on, once the former are those of these machines."""
    wanted = sorted(machine.address for machine in machines)
    deadline = time.monotonic() + _SECONDS
    said = ""
    while time.monotonic() < deadline:
        try:
            said = machines[0].run(_python(_EVERYWHERE))
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            said = str(error)
        else:
            # Ray may still have said something after it.
            told = next((line for line in said.splitlines() if line.startswith("[[")), "[]")
            found: list[tuple[str, int]] = json.loads(told)
            if [address for address, _ in found] == wanted:
                return wanted, sorted({user for _, user in found})
        time.sleep(0.5)
    journals = "\n".join(f"{it.name}:\n{it.journal()[-1500:]}" for it in machines)
    raise AssertionError(f"no task ran on {wanted}: {said}\n{journals}")


def _head(machines: list[Machine]) -> Machine:
    """The machine whose journal says that it is the head."""
    (head,) = [machine for machine in machines if "this VM is the head" in machine.journal()]
    return head


def _began(machines: list[Machine]) -> int:
    """How often a VM has begun to be the head or a worker, in all."""
    return sum(len(re.findall("this VM is ", machine.journal())) for machine in machines)


class Job:
    """The long job: how far it is, and its end."""

    def __init__(self, submitter: Machine, head: Machine) -> None:
        self._submitter = submitter
        self._head = head
        submitter.run("mkdir -p ~/job && cat >~/job/long.py <<'END'\n" + _LONG_JOB + "\nEND")
        said = submitter.run("ray job submit --no-wait --working-dir ~/job -- python long.py")
        found = re.search(r"raysubmit_\w+", said)
        assert found, said
        self.name = found[0]
        self.goes_on()

    def goes_on(self) -> int:
        """Wait until it has done more than up to now; how much."""
        before = self._turns()
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            if (turns := self._turns()) > before + 1:
                return turns
            time.sleep(0.3)
        raise AssertionError(
            f"the job stands still: {self.status()}\n{self._head.journal()[-3000:]}"
        )

    def status(self) -> str:
        """What Ray says of it."""
        return self._submitter.run(f"ray job status {self.name}")

    def finish(self) -> str:
        """End it, and what Ray says of it then."""
        self._head.run("touch /tmp/finish")
        deadline = time.monotonic() + 30
        while "RUNNING" in (said := self.status()) and time.monotonic() < deadline:
            time.sleep(0.5)
        return said

    def _turns(self) -> int:
        return int(self._head.run("cat /tmp/turns 2>/dev/null || echo 0"))


def _documented() -> list[str]:
    """The commands of the guide's first part, as they stand there."""
    guide = (Path(__file__).parents[2] / "docs/how-to/ray.md").read_text("utf-8")
    return re.findall(r"^    ((?:cd|python|ray) .*)$", guide.partition("\n## ")[0], re.MULTILINE)


def _until_all_are_told(machine: Machine, nodes: int) -> None:
    """Wait for `ray status` to name all nodes: Ray writes it later than tasks begin to run."""
    deadline = time.monotonic() + _SECONDS
    while machine.run("ray status").count(" 1 node_") < nodes and time.monotonic() < deadline:
        time.sleep(1)


def _users(machines: list[Machine], head: Machine) -> None:
    """What people are told to do, on a VM that is not the head and as a user of no right."""
    worker = next(machine for machine in machines if machine is not head)
    _until_all_are_told(worker, len(machines))
    _tell("documented", said={command: worker.run(command) for command in _documented()})
    submitted = worker.run("ray job submit --working-dir . -- python one_gpu.py --epochs 1")
    _tell("submitted", said=submitted)
    token = worker.run("cat /run/aiinfra-ray/token")
    ask = "curl --silent --max-time 20 --output /dev/null --write-out '%{http_code}'"
    ask = f"{ask} http://localhost:8265/api/version"
    with_token = f"{ask} --header 'Authorization: Bearer {token}'"
    _tell("dashboard", codes={it.name: [it.run(ask), it.run(with_token)] for it in machines})


def _strangers(room: Room, stranger: Machine, head: Machine) -> None:
    """Programs of a VM that is none of the cluster's."""
    token = room.object("ray/token").decode()
    dashboard = f"{_PYTHON} -c '{_BY_DASHBOARD}' {head.address}"
    client = f"{_PYTHON} -c '{_BY_CLIENT}' {head.address}"
    without = "unset RAY_AUTH_MODE RAY_AUTH_TOKEN_PATH; "
    wrong = "unset RAY_AUTH_TOKEN_PATH; export RAY_AUTH_TOKEN=wrong; "
    right = f"unset RAY_AUTH_TOKEN_PATH; export RAY_AUTH_TOKEN={token}; "
    # Ray's client gives up after half a minute.
    with ThreadPoolExecutor() as pool:
        refused = [
            pool.submit(stranger.fails, how + client, user="nobody") for how in (without, wrong)
        ]
    _tell(
        "strangers",
        dashboard=stranger.fails(dashboard, user="nobody"),
        dashboard_wrong=stranger.fails(f"{dashboard} wrong", user="nobody"),
        dashboard_right=stranger.run(f"{dashboard} {token}", user="nobody"),
        client=refused[0].result(),
        client_wrong=refused[1].result(),
        client_right=_at_last(lambda: stranger.run(right + client, user="nobody")),
    )


def _at_last(attempt: Callable[[], str]) -> str:
    """What succeeds in one of three tries: Ray looks at its client server too early at times."""
    for _ in range(2):
        try:
            return attempt()
        except RuntimeError:
            time.sleep(1)
    return attempt()


def _leaks(machines: list[Machine], token: str) -> list[str]:
    """Where the token stands but where it is to stand."""
    look = f"cat /proc/[0-9]*/cmdline /proc/[0-9]*/environ; grep -rhs {token[:20]} /tmp /var/lib"
    found = []
    for machine in machines:
        said = machine.run(f"{look} || true", user="root")
        lines = said.replace("\0", "\n").splitlines()
        # The search itself is a process.
        found += [line[:200] for line in lines if token[:20] in line and "grep -rhs" not in line]
        found += ["the journal"] if token[:20] in machine.journal() else []
    return found


def _ports(machines: list[Machine], head: Machine) -> dict[str, list[int]]:
    """The ports that other machines can reach on the head and on a worker."""
    worker = next(machine for machine in machines if machine is not head)
    found = {}
    for name, machine in (("head", head), ("worker", worker)):
        said = machine.run("ss --no-header --listening --numeric --tcp", user="root")
        places = [line.split()[3].rpartition(":") for line in said.splitlines()]
        found[name] = sorted({int(port) for at, _, port in places if "127.0.0.1" not in at})
    return found


def _listed(room: Room, job: Job) -> list[dict[str, object]]:
    """What the head says that others run, once the job is among it."""
    deadline = time.monotonic() + _SECONDS
    while "ray/jobs.json" not in room.names("ray/") or job.name not in (
        told := room.object("ray/jobs.json").decode()
    ):
        assert time.monotonic() < deadline, "the head tells of no job"
        time.sleep(0.5)
    found: list[dict[str, object]] = json.loads(told)["jobs"]
    return found


def _story(room: Room, machines: list[Machine], stranger: Machine) -> None:
    ran_on, users = _run_over(machines)
    _tell("joined", ran_on=ran_on, users=users)
    head = _head(machines)
    worker, other = (machine for machine in machines if machine is not head)
    _users(machines, head)
    _strangers(room, stranger, head)
    token = room.object("ray/token").decode()
    _tell("secret", bytes=len(token), leaks=_leaks(machines, token))
    _tell("ports", **_ports(machines, head))

    job = Job(worker, head)
    _tell("listed", job=job.name, jobs=_listed(room, job))
    began = _began(machines)
    room.wire.is_down = True
    time.sleep(_AWAY)
    turns = job.goes_on()
    room.wire.is_down = False
    room.object("ray/head.json", "DELETE")
    time.sleep(_EXPIRY + 3)
    _tell(
        "storage was away",
        turns=[turns, job.goes_on()],
        began_anew=_began(machines) - began,
        refused="could not be renewed" in head.journal(),
        lease=json.loads(room.object("ray/head.json"))["vm"],
        head=head.name,
    )

    other.kill()
    job.goes_on()
    room.boot(other)
    ran_on, _ = _run_over(machines)
    _tell("a worker was killed", ran_on=ran_on, turns=job.goes_on(), status=job.finish())

    head.kill()
    others = [machine for machine in machines if machine is not head]
    ran_on, _ = _run_over(others)
    _tell("head killed", ran_on=ran_on, was=head.name, by=_head(others).name)
    room.boot(head)
    ran_on, _ = _run_over([*others, head])
    _tell("head came back", ran_on=ran_on, token=room.object("ray/token").decode() == token)


def main() -> None:
    """Three VMs join; people and strangers come; storage, a worker and the head go and come."""
    folder = Path(sys.argv[1])
    environment = Environment(Path(sys.argv[2]), json.loads(sys.argv[3]))
    with Room(folder) as room:
        machines = [Machine(number, folder, environment) for number in (1, 2, 3)]
        stranger = Machine(9, folder, environment)
        try:
            for machine in machines:
                room.boot(machine)
            room.boot(stranger, ray=False)
            _story(room, machines, stranger)
        finally:
            for machine in (*machines, stranger):
                machine.kill()


if __name__ == "__main__":
    main()
