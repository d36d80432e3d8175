"""Launchers on three machines: each line of the page meets the others by what a job is given.

The machines are processes of this one, with the ranks that a VM's runner and a pod set.
"""

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.startup import environments, sandbox

sys.path.insert(0, str(sandbox.PAYLOAD / "lib"))

from aiinfra_vm import job, jobs, peers

pytestmark = pytest.mark.timeout(600)

PAGE = Path(__file__).parents[2] / "docs/how-to/launchers.md"
MACHINES = 3
TRAIN = """\
import os, torch, torch.distributed as dist
dist.init_process_group("gloo")
total = torch.tensor([1.0])
dist.all_reduce(total)
print(f"met {int(total)} of {dist.get_world_size()}, rank {dist.get_rank()}", flush=True)
"""
ACCELERATE = """\
import torch
from accelerate import Accelerator
it = Accelerator(cpu=True)
total = it.reduce(torch.tensor([1.0]), "sum")
print(f"met {int(total)} of {it.num_processes}, rank {it.process_index}", flush=True)
"""
TRAINER = """\
import torch, torch.distributed as dist
from transformers import Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def forward(self, x):
        return {"loss": self.layer(x).square().mean()}
it = TrainingArguments("out", max_steps=2, use_cpu=True, report_to=[], save_strategy="no")
Trainer(Model(), it, train_dataset=[{"x": torch.ones(1)}] * 64).train()
total = torch.tensor([1.0])
dist.all_reduce(total)
print(f"met {int(total)} of {it.world_size}, rank {it.process_index}", flush=True)
"""
_PROGRAMS = {"accelerate": ACCELERATE, "Hugging Face Trainer": TRAINER}
JAX = """\
import os, jax
import jax.numpy as jnp
from jax.experimental import multihost_utils
{begin}
total = multihost_utils.process_allgather(jnp.ones(1)).sum()
print(f"met {{int(total)}} of {{jax.process_count()}}, rank {{jax.process_index()}}", flush=True)
"""
# As MaxText's max_utils.py begins on GPUs.
MAXTEXT = JAX.format(
    begin="""
where = f"{os.environ['JAX_COORDINATOR_IP']}:{os.environ['JAX_COORDINATOR_PORT']}"
jax.distributed.initialize(where, int(os.environ["NNODES"]), int(os.environ["NODE_RANK"]))
"""
)
OWN_JAX = JAX.format(
    begin="""
jax.distributed.initialize(num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
                           process_id=int(os.environ["JAX_PROCESS_ID"]))
"""
)


def _line(name: str) -> list[str]:
    """The line of a launcher in the page's table, behind `--`."""
    row = rf"^\| {name} \| `([^`]*)` \| run"
    (line,) = re.findall(row, PAGE.read_text("utf-8"), re.MULTILINE)
    # accelerate passes on a --tee of its own, which Debian's PyTorch knows on older Pythons alone.
    return shlex.split(line.replace("accelerate launch", "accelerate launch --tee 1"))


@dataclass(frozen=True)
class Case:
    name: str
    program: str
    python: Path
    variables: Mapping[str, str]


def _case(name: str) -> Case:
    if name in {"JAX", "MaxText"}:
        found = environments.ray_and_torch()
        version = "3.11" if found.variables else f"3.{sys.version_info.minor}"
        folder = environments.jax(version)
        variables = {"PYTHONPATH": str(folder), "JAX_PLATFORMS": "cpu"}
        return Case(name, MAXTEXT if name == "MaxText" else OWN_JAX, found.python, variables)
    found = environments.launchers()
    return Case(name, _PROGRAMS.get(name, TRAIN), found.python, found.variables)


@pytest.mark.parametrize("name", ["torchrun", *_PROGRAMS, "JAX", "MaxText"])
def test_the_line_of_a_launcher_meets_the_other_machines(name: str, tmp_path: Path) -> None:
    case = _case(name)
    (tmp_path / "train.py").write_text(case.program)
    nodes = tuple(jobs.Node(rank, f"vm-{rank}", "1", "127.0.0.1") for rank in range(MACHINES))
    course = jobs.Course(f"{name.lower().replace(' ', '-')}-1", nodes=nodes, attempt=1)
    path = f"{case.python.parent}:{os.environ['PATH']}"
    began = [
        subprocess.Popen(
            _line(name),
            cwd=tmp_path,
            env={
                "PATH": path,
                "HOME": str(tmp_path),
                "CUDA_VISIBLE_DEVICES": "",
                **case.variables,
                **job.ranks(course, node, peers.Slots(1)),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for node in nodes
    ]
    said = "".join(one.communicate(timeout=300)[0] for one in began)
    assert [one.returncode for one in began] == [0] * MACHINES, said
    met = re.findall(r"met (\d) of (\d), rank (\d)", said)
    assert sorted(met) == [("3", "3", str(rank)) for rank in range(MACHINES)], said
