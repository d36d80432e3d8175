"""Answers for all files of a bucket's folder: each process takes its share, and none twice.

    torchrun infer.py --input /mnt/data/questions --output /mnt/data/answers

Each `*.jsonl` has a JSON object with a `text` in every line; its answers are a file of the same
name, which is there when it is whole. A file that has answers is left out, so a second run does
what the first one did not, after a SIGTERM as well (exit code 75). `Model` stands for yours: its
weights are made up, or those in the file of `--model`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from pathlib import Path

import torch

BATCH = 64
LABELS = ("calm", "glad", "sad", "angry")
STOPPED = 75


class Model(torch.nn.Module):
    """A small classifier of texts by their bytes."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = torch.nn.EmbeddingBag(256, 64)
        self.head = torch.nn.Linear(64, len(LABELS))

    def forward(self, texts: list[str], device: torch.device) -> torch.Tensor:
        """The share of each label, a row for each text."""
        rows = [text.encode() or b" " for text in texts]
        ends = torch.tensor([0, *map(len, rows)]).cumsum(0)[:-1]
        flat = torch.tensor(list(b"".join(rows)))
        found: torch.Tensor = self.head(self.embedding(flat.to(device), ends.to(device)))
        return found.softmax(dim=1)


def answers(model: Model, device: torch.device, lines: list[str]) -> list[str]:
    """A line for each line, with all that stands there and what the model says."""
    asked = [json.loads(line) for line in lines]
    told = []
    for begin in range(0, len(asked), BATCH):
        some = asked[begin : begin + BATCH]
        with torch.no_grad():
            shares, places = model([it["text"] for it in some], device).cpu().max(dim=1)
        told += [
            json.dumps({**it, "label": LABELS[place], "share": round(share, 4)})
            for it, place, share in zip(some, places.tolist(), shares.tolist(), strict=True)
        ]
    return told


def share_of(folder: Path, done: Path, rank: int, ranks: int) -> list[Path]:
    """The files of this process that have no answers; whose a file is follows from all names."""
    return [
        file for file in sorted(folder.glob("*.jsonl"))[rank::ranks]
        if not (done / file.name).exists()
    ]  # fmt: skip


def main() -> int:
    """Answer this process's share, or as much of it until SIGTERM; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", type=Path, required=True)
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--model", type=Path, help="a file of weights")
    options = parser.parse_args()
    told: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: told.append(number))

    rank, ranks, gpu = (
        int(os.environ.get(name, usual))
        for name, usual in (("RANK", 0), ("WORLD_SIZE", 1), ("LOCAL_RANK", 0))
    )
    device = torch.device("cuda", gpu) if torch.cuda.is_available() else torch.device("cpu")
    model = Model().eval()
    if options.model:
        model.load_state_dict(torch.load(options.model, map_location="cpu"))
    model.to(device)
    options.output.mkdir(parents=True, exist_ok=True)
    mine = share_of(options.input, options.output, rank, ranks)
    for number, file in enumerate(mine):
        if told:
            print(f"rank {rank}: stopped with {len(mine) - number} files to do", flush=True)
            return STOPPED
        try:
            lines = answers(model, device, file.read_text("utf-8").splitlines())
        except (ValueError, KeyError, TypeError) as error:
            sys.exit(f"{file} has a line that is no JSON object with a text: {error!r}")
        draft = options.output / f"{file.name}.draft"
        draft.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        draft.replace(options.output / file.name)
    print(f"rank {rank}: {len(mine)} files done", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
