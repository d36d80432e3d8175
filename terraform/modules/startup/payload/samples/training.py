"""A small classification with PyTorch: what the samples train, on whatever device there is.

Points in the plane belong to one of three arms of a spiral. No download: each worker draws its own
points from its own seed.
"""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

if TYPE_CHECKING:
    from collections.abc import Iterator

ARMS = 3
_POINTS = 3000
_BATCH = 100
_NOISE = 0.1  # radians


def surroundings() -> dict[str, Any]:
    """What Ray has to bring to the other VMs: these files, unless `ray job submit` brought them."""
    if "RAY_JOB_CONFIG_JSON_ENV_VAR" in os.environ:
        return {}
    return {"working_dir": str(Path(__file__).resolve().parent)}


def device() -> torch.device:
    """The GPU that Ray gave to this process, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def model() -> torch.nn.Module:
    """A network that can tell the arms apart; the same at each call."""
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Linear(2, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, 64),
        torch.nn.Tanh(),
        torch.nn.Linear(64, ARMS),
    )


def points(seed: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Points and the arm of each; another seed draws other points of the same spiral."""
    random = torch.Generator().manual_seed(seed)
    radius = torch.rand(_POINTS, generator=random)
    arm = torch.randint(ARMS, (_POINTS,), generator=random)
    noise = _NOISE * torch.randn(_POINTS, generator=random)
    angle = 4 * radius + arm * (2 * math.pi / ARMS) + noise
    return torch.stack([radius * angle.cos(), radius * angle.sin()], dim=1), arm


def train(network: torch.nn.Module, epochs: int, seed: int) -> Iterator[float]:
    """Train in place; yields each epoch's mean loss."""
    place = device()
    inputs, arms = (tensor.to(place) for tensor in points(seed))
    optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
    for _ in range(epochs):
        total = 0.0
        for start in range(0, _POINTS, _BATCH):
            batch = slice(start, start + _BATCH)
            loss = torch.nn.functional.cross_entropy(network(inputs[batch]), arms[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item()
        yield total * _BATCH / _POINTS


def accuracy(network: torch.nn.Module, seed: int) -> float:
    """The share of points, of a seed that was not trained with, whose arm is told right."""
    place = device()
    inputs, arms = (tensor.to(place) for tensor in points(seed))
    with torch.no_grad():
        right = network(inputs).argmax(dim=1) == arms
    return float(right.float().mean())
