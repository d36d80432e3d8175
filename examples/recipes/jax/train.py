"""JAX on several hosts: one process on each, all GPUs of all of them as one mesh.

    python train.py --steps 200

`Run` sets JAX_COORDINATOR_ADDRESS, JAX_NUM_PROCESSES and JAX_PROCESS_ID; without these it trains on
this host alone. First a sum over all devices is checked; then a small network learns a sine, each
device with rows of its own, and the hosts compare what they came to.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import TypeAlias

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

ROWS, WIDTH, RATE = 64, 32, 0.05  # rows of each device and step
Weights: TypeAlias = dict[str, jax.Array]


def join() -> None:
    """Meet the processes of the other hosts; the coordinator's address JAX reads itself."""
    if "JAX_NUM_PROCESSES" in os.environ:
        jax.distributed.initialize(
            num_processes=int(os.environ["JAX_NUM_PROCESSES"]),
            process_id=int(os.environ["JAX_PROCESS_ID"]),
        )


def check_sum(split: NamedSharding) -> None:
    """Add up a number of each device of all hosts.

    Raises:
        SystemExit: Some did not take part.
    """
    own = np.full(jax.local_device_count(), jax.process_index() + 1, np.float32)
    total = float(jax.jit(jnp.sum)(jax.make_array_from_process_local_data(split, own)))
    wanted = sum(device.process_index + 1 for device in jax.devices())
    if total != wanted:
        sys.exit(f"the sum over {jax.device_count()} devices is {total}, not {wanted}")


def loss_of(weights: Weights, rows: jax.Array) -> jax.Array:
    """How far the network is from the sine of these."""
    told = jnp.tanh(rows @ weights["in"] + weights["bias"]) @ weights["out"]
    return jnp.mean((told - jnp.sin(rows)) ** 2)


@jax.jit
def step_of(weights: Weights, rows: jax.Array) -> tuple[Weights, jax.Array]:
    """The weights after a step, and the loss before it; JAX averages over all devices."""
    loss, gradients = jax.value_and_grad(loss_of)(weights, rows)
    return jax.tree_util.tree_map(lambda it, by: it - RATE * by, weights, gradients), loss


def main() -> int:
    """Check the sum, train, compare; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    join()
    mesh = Mesh(np.asarray(jax.devices()), ("all",))
    split = NamedSharding(mesh, PartitionSpec("all"))
    check_sum(split)
    rank = jax.process_index()
    hosts = f"{jax.process_count()} hosts with {jax.device_count()} devices"
    print(f"host {rank}: {hosts} add up", flush=True)

    random = np.random.default_rng(0)  # the same first weights on all hosts
    first = {
        "in": random.normal(size=(1, WIDTH)),
        "bias": np.zeros(WIDTH),
        "out": random.normal(size=(WIDTH, 1)) / WIDTH,
    }
    whole = NamedSharding(mesh, PartitionSpec())
    weights = {name: jax.device_put(np.float32(it), whole) for name, it in first.items()}
    random = np.random.default_rng(rank)  # other rows on each
    for step in range(1, options.steps + 1):
        own = random.uniform(-3, 3, size=(ROWS * jax.local_device_count(), 1))
        rows = jax.make_array_from_process_local_data(split, np.float32(own))
        weights, loss = step_of(weights, rows)
        if rank == 0 and step % 50 == 0:
            print(f"step {step}: loss {float(loss):.4f}", flush=True)
    multihost_utils.assert_equal(weights, "the hosts came to different weights")
    if rank == 0:
        print(f"{hosts} came to a loss of {float(loss):.4f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
