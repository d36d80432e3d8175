"""Which machines of several are at fault, found by trying parts of them: two pure searches.

A bandwidth between machines needs two of them, so a failure is never one's alone. A machine is at
fault when it fails together with machines that have all passed with others. Whoever has failed with
nobody but such as have not passed either stays a suspect.

Where each round is asked for alone, halving takes the fewest machines out of what is well
(`next_round`). Where all rounds have to be known before the first, as in a job that measures
alone, pairs do it in two or three (`pairs`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Members = tuple[str, ...]
"""The names of machines, VMs or nodes, that are tried together."""

_PAIR = 2
_SPARE = 2
"""Rounds beyond those that one bad VM takes: for several bad ones, and odd numbers."""


@dataclass(frozen=True)
class Tried:
    """What came of trying machines together."""

    members: Members  # the machines, two at least
    passed: bool  # whether they were as fast as they should be
    bandwidth: float | None = None  # what they reached, in GB/s; None if the measurement failed
    why: str = ""  # why that is not good enough; "" if it is


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is known after some rounds."""

    good: Members  # machines that passed with others
    faulty: Members  # machines that failed, each with nobody but good ones
    suspects: Members  # machines that failed, but only with such as have not passed either
    # the smallest groups that failed although all their machines are good
    together: tuple[Members, ...]


def most_rounds(count: int) -> int:
    """The most rounds that are worth while, the first with all machines together."""
    return 1 if count <= _PAIR else 1 + math.ceil(math.log2(count)) + _SPARE


def find(tried: Sequence[Tried]) -> Finding:
    """What the tries so far tell."""
    good = {it for one in tried if one.passed for it in one.members}
    failed = [one.members for one in tried if not one.passed]
    left = [[vm for vm in vms if vm not in good] for vms in failed]
    faulty = {vms[0] for vms in left if len(vms) == 1}
    suspects = {vm for vms in left for vm in vms} - faulty
    whole = sorted({vms for vms, rest in zip(failed, left, strict=True) if not rest}, key=len)
    return Finding(
        good=_sorted(good),
        faulty=_sorted(faulty),
        suspects=_sorted(suspects),
        together=tuple(
            vms for vms in whole if not any(set(it) < set(vms) for it in whole if it != vms)
        ),
    )


def next_round(tried: Sequence[Tried]) -> list[Members]:
    """The groups to try next, at the same time: no machine is in two of them.

    Returns None that was tried before; empty if there is nothing left to learn.
    """
    known = find(tried)
    before = {frozenset(one.members) for one in tried}
    groups: list[Members] = []
    alone: list[str] = []
    for part in _parts(tried, known):
        if len(part) >= _PAIR:
            groups.append(part)
        else:
            alone += part
    groups = [it for it in groups if frozenset(it) not in before]
    pairs = _with_good(alone, known.good) if known.good else _among(alone, before)
    return [*groups, *(it for it in pairs if frozenset(it) not in before)]


def pairs(count: int) -> list[list[tuple[int, int]]]:
    """Rounds of pairs in which each machine is tried with two others, where there are as many.

    So each has a pair beside the one with a faulty machine, and a faulty one fails in both of its
    pairs: one of three or more is found, and several unless three of them stand in a row. Returns
    two rounds, or three for an odd number; the pairs of a round have no machine in common and can
    be tried at the same time. None for fewer than three machines: there is nothing to tell apart.
    """
    if count <= _PAIR:
        return []
    ring = [(number, (number + 1) % count) for number in range(count)]
    even = count - count % _PAIR
    rounds = [ring[0:even:_PAIR], ring[1:even:_PAIR]]
    return rounds if even == count else [*rounds, ring[-1:]]


def _parts(tried: Sequence[Tried], known: Finding) -> Iterator[Members]:
    """The suspects in parts, each of which is to be tried without the other suspects."""
    failed = sorted((one.members for one in tried if not one.passed), key=len)
    suspects, faulty = set(known.suspects), set(known.faulty)
    for vms in failed:
        cell = _sorted(suspects.intersection(vms))
        suspects -= set(cell)
        if not cell:
            continue
        # What a faulty machine explains says nothing of the others: they are tried without it.
        if faulty.intersection(vms) or len(cell) == 1:
            yield cell
        else:
            half = (len(cell) + 1) // 2
            yield cell[:half]
            yield cell[half:]


def _with_good(alone: Sequence[str], good: Members) -> list[Members]:
    """Each machine with a good one, as far as there are good ones."""
    return [(one, other) for one, other in zip(alone, good, strict=False)]


def _among(alone: Sequence[str], before: set[frozenset[str]]) -> list[Members]:
    """Pairs of machines of which none is known to be good; such as were not tried yet."""
    free = list(alone)
    pairs: list[Members] = []
    while free:
        one = free.pop(0)
        other = next((it for it in free if frozenset((one, it)) not in before), None)
        if other is not None:
            free.remove(other)
            pairs.append((one, other))
    return pairs


def _sorted(vms: Iterable[str]) -> Members:
    return tuple(sorted(vms))
