"""Real Slurm on three VMs with real systems: from the start-up step to a head that moves."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from tests.startup.slurm_group import GPUS, NAMES, PARTITION, SlurmGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

# The first of them makes a root with Slurm, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)

USUAL = f"""\
#!/bin/bash
#SBATCH --job-name=pretrain
#SBATCH --partition={PARTITION}
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gres=gpu:a100:{GPUS}
#SBATCH --constraint=a100
#SBATCH --cpus-per-task=8
#SBATCH --time=00:10:00
#SBATCH --output=/srv/shared/%x-%j.out
#SBATCH --requeue

set -euo pipefail
export MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export MASTER_PORT=29500
srun python3 /srv/shared/meet.py
"""
MEET = """\
import os, socket, time
rank, master = int(os.environ["SLURM_PROCID"]), (os.environ["MASTER_ADDR"], 29500)
if rank == 0:
    with socket.create_server(("", master[1])) as server:
        other = server.accept()[0].recv(100).decode()
    print("rank 0 met", other, os.environ["CUDA_VISIBLE_DEVICES"], os.environ["NCCL_SOCKET_IFNAME"])
else:
    for _ in range(100):
        try:
            with socket.create_connection(master) as to:
                to.sendall(f"rank {rank}".encode())
            break
        except OSError:
            time.sleep(0.2)
"""
# Each waits for the others: one after the other they would never end.
SIDE_BY_SIDE = (
    "echo $CUDA_VISIBLE_DEVICES >/srv/shared/side-$SLURM_JOB_ID;"
    f" until [ $(ls /srv/shared/side-* | wc -l) = {GPUS} ]; do sleep 0.2; done"
)
# A line for each way to the key, which says what came of it.
INTRUDER = """\
import socket, subprocess, sys
port, *addresses = sys.argv[1:]
print("file", subprocess.run(["cat", "/etc/slurm/slurm.key"], capture_output=True).returncode)
for address in addresses:
    for own in (0, 600):
        with socket.socket() as asking:
            asking.settimeout(10)
            try:
                asking.bind(("", own))
                asking.connect((address, int(port)))
                print("port", own, len(asking.recv(4096)))
            except OSError as error:
                print("port", own, type(error).__name__)
"""
TASK = "echo $SLURM_ARRAY_TASK_ID >>/srv/shared/tasks; sleep 3"


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmGroup]:
    """Three VMs whose nodes are idle, and a person on each."""
    with SlurmGroup(tmp_path_factory.mktemp) as made:
        made.wait_for_nodes()
        for name in NAMES:
            made.run("useradd --uid 1500 --create-home --shell /bin/bash ana", on=name)
        yield made


def _others(slurm: SlurmGroup) -> list[str]:
    return [name for name in NAMES if name != slurm.head()]


def _submit(slurm: SlurmGroup, command: str, *options: str, user: str = "ana") -> str:
    """Submit a job from the last of the VMs; its number."""
    said = slurm.run(f"sbatch {' '.join(options)} --wrap='{command}'", on=NAMES[2], user=user)
    return said.split()[-1]


def _state(slurm: SlurmGroup, job: str, on: str = NAMES[2]) -> str:
    """The state of a job; "" where nobody says it."""
    try:
        said = slurm.run(f"timeout 3 scontrol show job {job} --oneliner", on=on)
    except RuntimeError:
        return ""
    return " ".join(re.findall(r" JobState=(\w+)", said))


def _wait_for(slurm: SlurmGroup, job: str, state: str = "COMPLETED", on: str = NAMES[2]) -> None:
    slurm.until(lambda: set(_state(slurm, job, on).split()) == {state})


def test_three_vms_are_idle_nodes_and_one_alone_runs_slurmctld(slurm: SlurmGroup) -> None:
    assert slurm.nodes() == dict.fromkeys(NAMES, "idle")
    running = [it for it in NAMES if slurm.run("pgrep -x slurmctld || true", on=it)]
    assert running == [slurm.head()]
    assert slurm.run("systemctl is-enabled slurmctld.service || true") == "masked\n"


def test_four_jobs_of_one_gpu_each_run_side_by_side_on_one_vm(slurm: SlurmGroup) -> None:
    options = ("--gpus=1", f"--nodelist={NAMES[1]}", "--output=/dev/null")
    jobs = [_submit(slurm, SIDE_BY_SIDE, *options) for _ in range(GPUS)]

    for job in jobs:
        _wait_for(slurm, job)

    seen = [(slurm.group.shared / f"side-{job}").read_text().strip() for job in jobs]
    assert sorted(seen) == [str(gpu) for gpu in range(GPUS)]


def test_a_script_in_the_usual_form_runs_unchanged_and_has_nccls_variables(
    slurm: SlurmGroup,
) -> None:
    for name in NAMES:
        env = "/etc/aiinfra/nccl.env"
        slurm.run(f"mkdir -p /etc/aiinfra; echo NCCL_SOCKET_IFNAME=ens4 >{env}", on=name)
    (slurm.group.shared / "train.sbatch").write_text(USUAL)
    (slurm.group.shared / "meet.py").write_text(MEET)

    said = slurm.run("sbatch /srv/shared/train.sbatch", on=NAMES[2], user="ana")

    _wait_for(slurm, said.split()[-1])
    (log,) = slurm.group.shared.glob("pretrain-*.out")
    assert log.read_text() == "rank 0 met rank 1 0,1,2,3 ens4\n"


def test_a_job_of_run_has_a_folder_of_its_own_and_does_not_get_the_key(slurm: SlurmGroup) -> None:
    (slurm.group.shared / "intruder.py").write_text(INTRUDER)
    addresses = [slurm.run("hostname --ip-address", on=it).strip() for it in NAMES]
    program = f"python3 /srv/shared/intruder.py 569 {' '.join(addresses)}"
    who = (
        "--uid=aiinfra-job-07",
        "--gid=aiinfra-job-07",
        "--comment=aiinfra:sly-1:1",
        "--chdir=/tmp",
    )

    command = f"cd /var/lib/aiinfra-job/sly-1 && {program}"
    job = _submit(slurm, command, *who, "--output=/srv/shared/sly.out", user="root")
    _wait_for(slurm, job)

    told = (slurm.group.shared / "sly.out").read_text().splitlines()
    refused = ["port 0 0", "port 600 PermissionError"]
    assert told == ["file 1", *refused * len(NAMES)]
    with pytest.raises(RuntimeError, match="the comment may not have aiinfra: in it"):
        _submit(slurm, "true", "--comment=aiinfra:sly-1:1", "--output=/dev/null")
    # Else squeue would have lines of the user's own, which root acts upon.
    for option in ("--job-name=", "--comment=", "--gres=gpu:", "--gpus="):
        with pytest.raises(RuntimeError, match="no option control characters"):
            _submit(slurm, "true", f"{option}$'a\\nb:1'", "--output=/dev/null")
    # Neither cron nor at begins anything in its name when it is over (tried, 2026-11-29).
    assert slurm.run("getent shadow aiinfra-job-07", on=NAMES[1]).endswith(":1:\n")
    # Root of a VM gets it by the same program.
    ours = slurm.run(f"python3 /srv/shared/intruder.py 569 {addresses[0]}", on=NAMES[1])
    assert ours.splitlines()[1:] == ["port 0 0", "port 600 1025"]


def test_a_vm_whose_gpus_are_missing_is_drained_with_the_reason_and_back_when_they_are(
    slurm: SlurmGroup,
) -> None:
    (sick,) = _others(slurm)[:1]
    slurm.run("echo 'NVIDIA L4, 580.65.06, 0' >/simulated/gpus", on=sick)
    job = _submit(slurm, "true", f"--nodelist={sick}", "--output=/dev/null")
    slurm.until(lambda: slurm.nodes().get(sick) in {"drained", "draining"})
    reason = slurm.run("sinfo --noheader --list-reasons --format=%E")
    assert reason == f"aiinfra: 1 GPUs instead of {GPUS}\n"

    slurm.run("rm /simulated/gpus; systemctl restart aiinfra-slurm", on=sick)

    _wait_for(slurm, job)
    slurm.wait_for_nodes()


def test_jobs_outlive_their_head_and_an_old_head_that_boots_again_runs_nothing_twice(
    slurm: SlurmGroup,
) -> None:
    head, (first, second) = slurm.head(), _others(slurm)
    there = (f"--nodelist={first},{second}", "--nodes=2", f"--gpus-per-node={GPUS}")
    slow = 'srun --ntasks-per-node=1 sh -c "sleep 25; hostname"'
    long = _submit(slurm, slow, *there, "--output=/srv/shared/long.out")
    _wait_for(slurm, long, "RUNNING")
    array = (
        "--job-name=follows",
        "--array=0-11",
        "--gpus=1",
        f"--exclude={head}",
        "--output=/dev/null",
    )
    tasks = _submit(slurm, TASK, *array)
    slurm.until(lambda: b"follows" in slurm.copied().get("job_state", b""))

    slurm.vms[head].kill()

    slurm.until(lambda: slurm.head() in {first, second})
    _wait_for(slurm, long, on=first)
    assert sorted((slurm.group.shared / "long.out").read_text().split()) == [first, second]
    slurm.until((slurm.group.shared / "tasks").exists)
    slurm.vms[head].turn_on()
    _wait_for(slurm, tasks, on=first)
    slurm.wait_for_nodes()
    assert slurm.head() != head
    assert slurm.run("pgrep -x slurmctld || true", on=head) == ""
    told = (slurm.group.shared / "tasks").read_text().split()
    assert sorted(map(int, told)) == list(range(12))
    # No number of the old head's is given again.
    new = _submit(slurm, "true", "--output=/dev/null")
    assert int(new) >= (int(long) // 10_000 + 1) * 10_000
    _wait_for(slurm, new)


def test_a_head_whose_lease_another_vm_has_ends_slurmctld_and_follows(
    slurm: SlurmGroup,
) -> None:
    head, other = slurm.head(), _others(slurm)[0]
    lease = json.loads(slurm.group.read("vms/slurm/head.json") or "")
    values = slurm.vms[other].server.values
    lease |= {"vm": other, "instance_id": values["id"], "life": "another"}
    lease |= {"address": values["network-interfaces/0/ip"]}

    slurm.group.write("vms/slurm/head.json", json.dumps(lease).encode())

    slurm.until(lambda: not slurm.run("pgrep -x slurmctld || true", on=head))
    slurm.until(lambda: slurm.nodes(head) == dict.fromkeys(NAMES, "idle"))
    assert slurm.run("scontrol ping", on=head).startswith(f"Slurmctld(primary) at {other} is UP")
    assert slurm.run("pgrep -x slurmctld || true", on=head) == ""


def test_a_vm_that_is_made_again_with_another_address_is_a_node_again(slurm: SlurmGroup) -> None:
    lost = _others(slurm)[0]
    key = slurm.run("sha256sum /etc/slurm/slurm.key", on=lost)
    before = slurm.run("hostname --ip-address", on=lost)
    slurm.vms[lost].kill()

    slurm.add(lost)

    slurm.until(lambda: slurm.nodes(slurm.head()).get(lost) == "idle")
    slurm.until(lambda: slurm.nodes(lost).get(lost) == "idle")
    assert slurm.run("hostname --ip-address", on=lost) != before
    assert slurm.run("sha256sum /etc/slurm/slurm.key", on=lost) == key
    assert slurm.run(f"srun --nodelist={lost} hostname", on=slurm.head()) == f"{lost}\n"
