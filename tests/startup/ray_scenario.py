"""The life of a Ray cluster of three VMs, told as documents on standard output.

Arguments: a folder, the Python that has Ray and PyTorch, and its environment as JSON.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from tests.startup.room import Machine, Room

# One task on each node, each saying where it ran.
_JOB = """
import json, ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy as On
ray.init(address="auto", log_to_driver=False)
here = ray.remote(num_cpus=0)(ray.util.get_node_ip_address)
nodes = [node["NodeID"] for node in ray.nodes() if node["Alive"]]
tasks = [here.options(scheduling_strategy=On(node, soft=False)).remote() for node in nodes]
print(json.dumps({"ran_on": sorted(ray.get(tasks, timeout=30))}))
"""
_SECONDS = 100  # for the cluster to be what is waited for


def _tell(event: str, **facts: object) -> None:
    sys.stdout.write(json.dumps({"event": event, **facts}) + "\n")
    sys.stdout.flush()


def _run_over(machines: list[Machine]) -> list[str]:
    """The addresses that a job ran on, once they are those of these machines."""
    wanted = sorted(machine.address for machine in machines)
    deadline = time.monotonic() + _SECONDS
    said = ""
    while time.monotonic() < deadline:
        try:
            said = machines[0].run("-c", _JOB)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            said = str(error)
        else:
            found: list[str] = json.loads(said.splitlines()[-1])["ran_on"]
            if found == wanted:
                return found
        time.sleep(0.5)
    journals = "\n".join(f"{it.name}:\n{it.journal()[-1500:]}" for it in machines)
    raise AssertionError(f"no job ran on {wanted}: {said}\n{journals}")


def _head(machines: list[Machine]) -> Machine:
    """The machine whose journal was the last to say that it is the head."""
    heads = [machine for machine in machines if "this VM is the head" in machine.journal()]
    (head,) = heads
    return head


def main() -> None:
    """Three VMs join; a job; samples; the head dies; the others go on; it comes back."""
    folder, python, variables = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
    with Room(folder) as room:
        machines = [Machine(number, folder, python, variables) for number in (1, 2, 3)]
        try:
            for machine in machines:
                room.boot(machine)
            _tell("joined", ran_on=_run_over(machines))
            for program in ("one_gpu.py", "many_gpus.py"):
                said = machines[0].run(f"/mnt/opt/samples/{program}", "--epochs=4")
                results = [json.loads(line) for line in said.splitlines() if line[:1] == "{"]
                _tell(program, results=results)
            head = _head(machines)
            head.kill()
            others = [machine for machine in machines if machine is not head]
            ran_on = _run_over(others)
            _tell("head killed", ran_on=ran_on, was=head.name, by=_head(others).name)
            room.boot(head)
            _tell("head came back", ran_on=_run_over([*others, head]))
        finally:
            for machine in machines:
                machine.kill()


if __name__ == "__main__":
    main()
