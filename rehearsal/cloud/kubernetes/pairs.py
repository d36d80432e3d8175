"""Pairs of nodes that a script measures where all together are too slow, as it stands in it."""

from __future__ import annotations

import re
from typing import Final

_LOOP: Final = re.compile(r"for pairs in (.*?); do")
_PAIR: Final = re.compile(r"(\d+)-(\d+)")
_BARS: Final = re.compile(r"out >= ([\d.]+) && within >= ([\d.]+) && average >= ([\d.]+)")
_WORD: Final = re.compile(r'echo "(\S+) \$\{pair%-\*\}')


def of(script: str) -> list[tuple[int, int]]:
    """The pairs of all rounds, by the numbers of their nodes."""
    loop = _LOOP.search(script)
    found = _PAIR.findall(loop.group(1)) if loop else []
    return [(int(one), int(other)) for one, other in found]


def searches(script: str, out_of_place: float, in_place: float, average: float) -> bool:
    """Whether a script goes on to its pairs, after it has reached this with all nodes."""
    bars = _BARS.search(script)
    if bars is None:
        return False
    least = map(float, bars.groups())
    return any(
        reached < enough
        for reached, enough in zip((out_of_place, in_place, average), least, strict=True)
    )


def word(script: str) -> str:
    """What a script writes before the output of a pair."""
    found = _WORD.search(script)
    return found.group(1) if found else ""
