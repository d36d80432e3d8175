"""Draw blows at random moments, and judge what is left: `python -m tests.chaos --number 100`.

Prints the seed first, then a line for each case with faults and the command that does this very
case again, then how many faults there were of each kind. Ends with 1 if there was any. A seed
draws the same cases for any number of workers.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import multiprocessing
import random
import secrets
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from tests.chaos import cases
from tests.chaos.chaos import Kind, of_process, verdict_in

if TYPE_CHECKING:
    from tests.chaos.cases import Case
    from tests.chaos.chaos import Chaos, Fault

_MOST_FAULTS = 4
"""Of a case in its line."""

_SIGN_OF_LIFE = 20
"""Cases between two lines that say how far it is."""


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--number", type=int, default=10, help="how many cases are drawn")
    parser.add_argument("--seed", type=int, help="draws the same cases again")
    parser.add_argument("--action", choices=cases.ACTIONS, help="what alone is hit")
    parser.add_argument("--case", type=cases.Case.parse, help="this one case alone")
    parser.add_argument("--workers", type=int, default=1, help="how many are tried at a time")
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    return parser.parse_args()


def _drawn(chaos: Chaos, seed: int, number: int, actions: Sequence[str]) -> Iterator[Case]:
    dice = random.Random(seed)  # noqa: S311 - to be drawn again, not to be secret
    for _ in range(number):
        yield cases.draw(dice, chaos.profile, actions)


def _shown(faults: list[Fault]) -> str:
    """The faults in one line; one mishap can be seen in many resources."""
    rest = len(faults) - _MOST_FAULTS
    more = [f"and {rest} more"] if rest > 0 else []
    return "; ".join([*map(str, faults[:_MOST_FAULTS]), *more])


def main() -> int:
    """Carry out what the command line asks for; returns the exit code."""
    arguments = _arguments()
    seed = secrets.randbelow(1 << 32) if arguments.seed is None else arguments.seed
    counts: Counter[Kind] = Counter()
    done = missed = 0
    if arguments.case is None:
        _say(f"seed {seed}")
    processes = multiprocessing.get_context("spawn")
    with (
        tempfile.TemporaryDirectory(prefix="chaos-") as name,
        ProcessPoolExecutor(arguments.workers, processes) as workers,
    ):
        folder = Path(name)
        actions = [arguments.action] if arguments.action else cases.ACTIONS
        drawn, judged = itertools.tee(
            [arguments.case]
            if arguments.case
            else _drawn(of_process(folder), seed, arguments.number, actions)
        )
        verdicts = workers.map(functools.partial(verdict_in, folder), drawn)
        for case, verdict in zip(judged, verdicts, strict=True):
            done += 1
            missed += not verdict.has_struck
            counts.update(fault.kind for fault in verdict.faults)
            if verdict.faults:
                _say(f"FAILED {_shown(verdict.faults)}; again: make chaos CASE='{case}'")
            elif arguments.verbose:
                _say(f"{'passed' if verdict.has_struck else 'missed'} {case}")
            elif done % _SIGN_OF_LIFE == 0:
                _say(f"{done} of {arguments.number} cases done")
    totals = ", ".join(f"{counts[kind]} {kind.value}" for kind in Kind)
    _say(f"{done} cases ({missed} ended before the blow): {totals}")
    return 1 if counts else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
