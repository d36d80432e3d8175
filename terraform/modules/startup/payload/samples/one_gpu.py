"""A training as one Ray task: Ray finds a GPU for it, on whichever VM has one free."""

from __future__ import annotations

import argparse
import json
import socket
from typing import Any

import ray
import training

_UNSEEN = 1_000_000  # a seed that no worker trains with


def train(epochs: int) -> dict[str, Any]:
    """Train on one GPU, or on the CPU."""
    network = training.model().to(training.device())
    losses = list(training.train(network, epochs, seed=0))
    return {
        "vm": socket.gethostname(),
        "device": str(training.device()),
        "losses": [round(loss, 4) for loss in losses],
        "accuracy": round(training.accuracy(network, _UNSEEN), 4),
    }


def main() -> None:
    """Join the cluster, or be one of a single machine, and print what came out as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--epochs", type=int, default=20)
    epochs = parser.parse_args().epochs
    ray.init(runtime_env=training.surroundings(), log_to_driver=False)
    gpus = 1 if ray.cluster_resources().get("GPU") else 0
    task = ray.remote(num_cpus=1, num_gpus=gpus)(train)
    print(json.dumps(ray.get(task.remote(epochs))))


if __name__ == "__main__":
    main()
