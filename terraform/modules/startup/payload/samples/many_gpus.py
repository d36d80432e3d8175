"""The same training on every GPU of the cluster: one Ray worker each, gradients averaged.

Ray places the workers and tells them where the first one is; PyTorch does the rest
(DistributedDataParallel, over NCCL between GPUs and over Gloo between CPUs).
"""

from __future__ import annotations

import argparse
import json
import socket
from typing import Any

import ray
import torch
import training
from ray.util.placement_group import placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

_UNSEEN = 1_000_000  # a seed that no worker trains with


class Worker:
    """One process of the training, on one GPU or CPU; a Ray actor."""

    def address(self) -> str:
        """Where the others find this worker: its VM and a free port."""
        with socket.socket() as free:
            free.bind(("", 0))
            return f"tcp://{ray.util.get_node_ip_address()}:{free.getsockname()[1]}"

    def train(self, rank: int, world: int, first: str, epochs: int) -> dict[str, Any]:
        """Train with the others; all of them return, or none."""
        backend = "nccl" if training.device().type == "cuda" else "gloo"
        torch.distributed.init_process_group(
            backend, init_method=first, rank=rank, world_size=world
        )
        network = torch.nn.parallel.DistributedDataParallel(training.model().to(training.device()))
        losses = list(training.train(network, epochs, seed=rank))
        weights = torch.cat([weight.flatten() for weight in network.parameters()])
        accuracy = training.accuracy(network.module, _UNSEEN)
        torch.distributed.destroy_process_group()
        return {
            "rank": rank,
            "node": ray.util.get_node_ip_address(),
            "device": str(training.device()),
            "losses": [round(loss, 4) for loss in losses],
            "accuracy": round(accuracy, 4),
            # Equal on all workers, or their gradients were not averaged.
            "weights": round(float(weights.double().sum()), 4),
        }


def workers(number: int, *, gpus: bool) -> list[Any]:
    """As many workers, spread over the VMs, all placed before any starts."""
    bundle = {"CPU": 1.0, **({"GPU": 1.0} if gpus else {})}
    group = placement_group([bundle] * number, strategy="SPREAD")
    ray.get(group.ready())
    actor = ray.remote(num_cpus=1, num_gpus=int(gpus))(Worker)
    return [
        actor.options(
            scheduling_strategy=PlacementGroupSchedulingStrategy(
                group, placement_group_bundle_index=index
            )
        ).remote()
        for index in range(number)
    ]


def main() -> None:
    """Join the cluster, or be one of a single machine, and print a line of JSON per worker."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--workers", type=int, help="default: the GPUs, else the VMs")
    options = parser.parse_args()
    ray.init(runtime_env=training.surroundings(), log_to_driver=False)
    gpus = int(ray.cluster_resources().get("GPU", 0))
    number = options.workers or gpus or len(ray.nodes())
    team = workers(number, gpus=gpus > 0)
    first = ray.get(team[0].address.remote())
    done = [
        worker.train.remote(rank, number, first, options.epochs) for rank, worker in enumerate(team)
    ]
    for result in ray.get(done):
        print(json.dumps(result))


if __name__ == "__main__":
    main()
