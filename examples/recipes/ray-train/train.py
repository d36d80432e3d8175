"""Ray Train on all GPUs of a Ray cluster, with checkpoints that the next run goes on from.

    python train.py --name spiral --storage /mnt/data/ray --epochs 20

Ray starts a worker for each GPU, else for each VM, and PyTorch averages their gradients. The first
worker saves after each epoch; a lost VM costs the epochs since the last one. A run of the same name
goes on where that one was, and does nothing if it was through.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tempfile
from pathlib import Path
from typing import Any

import ray
import torch
from ray import train
from ray.train.torch import TorchTrainer, get_device, prepare_model

ARMS, POINTS, BATCH = 3, 1500, 100
FILE = "state.pt"


def points(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points of a spiral, and the arm of each; another seed draws other points."""
    random = torch.Generator().manual_seed(seed)
    radius = torch.rand(POINTS, generator=random)
    arm = torch.randint(ARMS, (POINTS,), generator=random)
    angle = 4 * radius + arm * (2 * math.pi / ARMS) + 0.1 * torch.randn(POINTS, generator=random)
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), arm


def work(options: dict[str, Any]) -> None:
    """What each worker does, all at the same pace."""
    context, device = train.get_context(), get_device()
    torch.manual_seed(0)
    width = options["width"]
    layers = (torch.nn.Linear(2, width), torch.nn.Tanh(), torch.nn.Linear(width, ARMS))
    model = prepare_model(torch.nn.Sequential(*layers))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    bare = getattr(model, "module", model)
    begin, kept = 0, train.get_checkpoint()
    if kept is not None:
        with kept.as_directory() as folder:
            state = torch.load(Path(folder, FILE), map_location=device)
        begin = state["epoch"]
        bare.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    rank, ranks = context.get_world_rank(), context.get_world_size()
    for epoch in range(begin + 1, options["epochs"] + 1):
        rows, arms = (it.to(device) for it in points(epoch * ranks + rank))
        for some, right in zip(rows.split(BATCH), arms.split(BATCH), strict=True):
            loss = torch.nn.functional.cross_entropy(model(some), right)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        metrics = {"epoch": epoch, "loss": loss.item(), "workers": ranks, "began": begin}
        with tempfile.TemporaryDirectory() as folder:
            checkpoint = None
            if rank == 0:
                state = {"epoch": epoch, "model": bare.state_dict()}
                state["optimizer"] = optimizer.state_dict()
                torch.save(state, Path(folder, FILE))
                checkpoint = train.Checkpoint.from_directory(folder)
            train.report(metrics, checkpoint=checkpoint)


def main() -> int:
    """Train on all of the cluster; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--name", default="spiral", help="of the run, and of its folder")
    parser.add_argument("--storage", required=True, help="a mount that all VMs have")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--width", type=int, default=64, help="of the model")
    options = parser.parse_args()
    ray.init()
    gpus = int(ray.cluster_resources().get("GPU", 0))
    workers = gpus or sum(node["Alive"] for node in ray.nodes())
    trainer = TorchTrainer(
        work,
        train_loop_config={"epochs": options.epochs, "width": options.width},
        scaling_config=train.ScalingConfig(
            num_workers=workers, use_gpu=gpus > 0, placement_strategy="SPREAD"
        ),
        run_config=train.RunConfig(
            name=options.name,
            storage_path=options.storage,
            failure_config=train.FailureConfig(max_failures=3),
            checkpoint_config=train.CheckpointConfig(num_to_keep=2),
        ),
    )
    # Of a run that was through before, the last metrics again.
    print(f"{options.name} is through: {json.dumps(trainer.fit().metrics)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
