"""Launchers on three machines: each line of the page meets the others by what a job is given.

The machines are processes of this one on Debian 13, with the ranks that a VM's runner and a pod
set.
"""

import json
import re
import shlex
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests import debian
from tests.debian import NoDebianError
from tests.startup import environments, roots, sandbox

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
# Debian's PyTorch also has MPI, which accelerate prefers on CPUs.
ACCELERATE = """\
import torch
from accelerate import Accelerator, InitProcessGroupKwargs
it = Accelerator(cpu=True, kwargs_handlers=[InitProcessGroupKwargs(backend="gloo")])
total = it.reduce(torch.tensor([1.0]), "sum")
print(f"met {int(total)} of {it.num_processes}, rank {it.process_index}", flush=True)
"""
TRAINER = """\
import torch, torch.distributed as dist
from transformers import HfArgumentParser, Trainer, TrainingArguments
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def forward(self, x):
        return {"loss": self.layer(x).square().mean()}
own = {"max_steps": 2, "use_cpu": True, "ddp_backend": "gloo", "save_strategy": "no"}
parser = HfArgumentParser(TrainingArguments)
parser.set_defaults(report_to="none", **own)
(it,) = parser.parse_args_into_dataclasses()
trainer = Trainer(Model(), it, train_dataset=[{"x": torch.ones(1)}] * 64)
trainer.train()
total = torch.tensor([1.0])
dist.all_reduce(total)
print("wrapped by", type(trainer.model_wrapped).__name__)
print(f"met {int(total)} of {it.world_size}, rank {it.process_index}", flush=True)
"""
# It would have a compiler make what shares memory on a machine.
DEEPSPEED = f"""\
import deepspeed.ops
deepspeed.ops.__compatible_ops__["deepspeed_shm_comm"] = False
{TRAINER}
assert type(trainer.model_wrapped).__name__ == "DeepSpeedEngine"
"""
LIGHTNING = """\
import os, torch
from lightning import LightningModule, Trainer
class Model(LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(1, 1)
    def training_step(self, batch, number):
        return self.layer(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.SGD(self.parameters(), 0.1)
it = {trainer}
it.fit(Model(), torch.utils.data.DataLoader(torch.ones(2, 1)))
total = it.strategy.reduce(torch.tensor([1.0]), reduce_op="sum")
print(f"met {int(total)} of {it.world_size}, rank {it.global_rank}", flush=True)
"""
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


PROGRAMS = {
    "torchrun": TRAIN,
    "accelerate": ACCELERATE,
    "JAX": OWN_JAX,
    "MaxText": MAXTEXT,
    "Hugging Face Trainer": TRAINER,
    "Lightning": LIGHTNING,
    "DeepSpeed": DEEPSPEED,
    "torchtune": TRAIN,
}
DS = {"train_micro_batch_size_per_gpu": "auto", "zero_allow_untested_optimizer": True}
# What differs on CPUs, and where Python finds the launchers.
ON_CPUS = """\
echo 127.0.0.1 $(hostname) >>/etc/hosts
export PATH=/opt/launchers/bin:$PATH PYTHONPATH=/opt/launchers
export CUDA_VISIBLE_DEVICES= JAX_PLATFORMS=cpu OMP_NUM_THREADS=1 \\
"""


def _row(name: str) -> tuple[str, str]:
    """The line of a launcher in the page's table, behind `--`, and what it says behind that."""
    row = rf"^\| {name} \| `([^`]*)`([^|]*)\| run"
    ((line, more),) = re.findall(row, PAGE.read_text("utf-8"), re.MULTILINE)
    return line, more


@pytest.fixture(scope="module")
def root() -> roots.Root:
    try:
        return environments.launchers()
    except NoDebianError as error:
        pytest.fail(f"launchers can't be tested here: {error}", pytrace=False)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_line_of_a_launcher_meets_the_other_machines(
    name: str, root: roots.Root, tmp_path: Path
) -> None:
    line, more = _row(name)
    nodes = tuple(jobs.Node(rank, f"vm-{rank}", "1", "127.0.0.1") for rank in range(MACHINES))
    course = jobs.Course(f"{name.lower().replace(' ', '-')}-1", nodes=nodes, attempt=1)
    work = tmp_path / "work"
    work.mkdir()
    program = PROGRAMS[name]
    if name == "Lightning":  # the page has the call that it takes
        program = program.replace("{trainer}", more.split("`")[1][:-1] + ", max_steps=2)")
    (work / "train.py").write_text(program)
    (work / "ds.json").write_text(json.dumps(DS | {"zero_optimization": {"stage": 1}}))
    (work / "a.yaml").touch()

    def run(node: jobs.Node) -> None:
        given = job.ranks(course, node, peers.Slots(1)).items()
        variables = " ".join(f"{key}={shlex.quote(text)}" for key, text in given)
        # Its own recipes train models of gigabytes.
        own = line.replace(" full_finetune_distributed ", " train ")
        script = f"{ON_CPUS}{variables}\ncd /mnt\n{own} >said-{node.rank} 2>&1"
        layer = tmp_path / node.name
        debian.run_in(root.layers[0], script, work, layer, root.layers[1:])

    with ThreadPoolExecutor(MACHINES) as pool:
        ran = [pool.submit(run, node) for node in nodes]
    said = "".join(it.read_text(errors="replace") for it in sorted(work.glob("said-*")))
    assert not any(it.exception() for it in ran), said
    met = re.findall(r"met (\d) of (\d), rank (\d)", said)
    assert sorted(met) == [("3", "3", str(rank)) for rank in range(MACHINES)], said
