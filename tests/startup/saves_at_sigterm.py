"""What VMs without PyTorch run in place of a training: it saves at SIGTERM and goes on."""

import argparse
import json
import os
import signal
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

KEPT = 2


@dataclass
class State:
    """What is trained: here, the square root of two by small steps."""

    step: int = 0
    value: float = 1.0

    def train(self) -> None:
        """Make one step."""
        self.step += 1
        self.value -= 0.001 * (self.value**2 - 2)


def save(folder: Path, state: State) -> None:
    """Write a checkpoint under a new name: in a bucket it is there when it is closed, and whole."""
    (folder / f"checkpoint-{state.step:09}.json").write_text(json.dumps(asdict(state)))
    for old in sorted(folder.glob("checkpoint-*.json"))[:-KEPT]:
        old.unlink()


def load(folder: Path) -> State:
    """The newest checkpoint; a new state where there is none."""
    found = sorted(folder.glob("checkpoint-*.json"))
    return State(**json.loads(found[-1].read_text())) if found else State()


def main() -> int:
    """Train to the last step, or until SIGTERM; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--checkpoints", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--every", type=int, default=1000, help="steps between checkpoints")
    options = parser.parse_args()
    options.checkpoints.mkdir(parents=True, exist_ok=True)

    stopping = False

    def stop(*_: object) -> None:
        # No more than this: the step that is under way ends first.
        nonlocal stopping
        stopping = True

    signal.signal(signal.SIGTERM, stop)
    # All ranks load, and one saves: they are at the same step.
    saves = os.environ.get("NODE_RANK", "0") == "0"
    state = load(options.checkpoints)
    print(f"begins at step {state.step}", flush=True)  # noqa: T201 - the job's log
    while state.step < options.steps and not stopping:
        state.train()
        time.sleep(0.001)
        if saves and state.step % options.every == 0:
            save(options.checkpoints, state)
    if saves:
        save(options.checkpoints, state)
    print(f"{'stopped' if stopping else 'through'} at step {state.step}", flush=True)  # noqa: T201
    return 0


if __name__ == "__main__":
    sys.exit(main())
