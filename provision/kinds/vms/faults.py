"""Which VMs of a group are at fault, found by trying parts of it: a pure search by halving.

A bandwidth between machines needs two of them, so a failure is never one VM's alone. A VM is at
fault when it fails together with VMs that have all passed with others. Whoever has failed with
nobody but such as have not passed either stays a suspect.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

Vms = tuple[str, ...]
"""The names of VMs that are tried together."""

_PAIR = 2
_SPARE = 2
"""Rounds beyond those that one bad VM takes: for several bad ones, and odd numbers."""


@dataclass(frozen=True)
class Tried:
    """What came of trying VMs together.

    Attributes:
        vms: The VMs, two at least.
        passed: Whether they were as fast as they should be.
    """

    vms: Vms
    passed: bool


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What is known after some rounds.

    Attributes:
        good: VMs that passed with others.
        faulty: VMs that failed, each with nobody but good ones.
        suspects: VMs that failed, but only with such as have not passed either.
        together: The smallest groups that failed although all their VMs are good.
    """

    good: Vms
    faulty: Vms
    suspects: Vms
    together: tuple[Vms, ...]


def most_rounds(count: int) -> int:
    """The most rounds that are worth while, the first with all VMs together.

    Args:
        count: The number of VMs.
    """
    return 1 if count <= _PAIR else 1 + math.ceil(math.log2(count)) + _SPARE


def find(tried: Sequence[Tried]) -> Finding:
    """What the tries so far tell."""
    good = {vm for one in tried if one.passed for vm in one.vms}
    failed = [one.vms for one in tried if not one.passed]
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


def next_round(tried: Sequence[Tried]) -> list[Vms]:
    """The groups to try next, at the same time: no VM is in two of them.

    Args:
        tried: What was tried so far, the whole group first.

    Returns:
        None that was tried before; empty if there is nothing left to learn.
    """
    known = find(tried)
    before = {frozenset(one.vms) for one in tried}
    groups: list[Vms] = []
    alone: list[str] = []
    for part in _parts(tried, known):
        if len(part) >= _PAIR:
            groups.append(part)
        else:
            alone += part
    groups = [it for it in groups if frozenset(it) not in before]
    pairs = _with_good(alone, known.good) if known.good else _among(alone, before)
    return [*groups, *(it for it in pairs if frozenset(it) not in before)]


def _parts(tried: Sequence[Tried], known: Finding) -> Iterator[Vms]:
    """The suspects in parts, each of which is to be tried without the other suspects."""
    failed = sorted((one.vms for one in tried if not one.passed), key=len)
    suspects, faulty = set(known.suspects), set(known.faulty)
    for vms in failed:
        cell = _sorted(suspects.intersection(vms))
        suspects -= set(cell)
        if not cell:
            continue
        # What a faulty VM explains says nothing of the others: they are tried without it.
        if faulty.intersection(vms) or len(cell) == 1:
            yield cell
        else:
            half = (len(cell) + 1) // 2
            yield cell[:half]
            yield cell[half:]


def _with_good(alone: Sequence[str], good: Vms) -> list[Vms]:
    """Each VM with a good one, as far as there are good ones."""
    return [(one, other) for one, other in zip(alone, good, strict=False)]


def _among(alone: Sequence[str], before: set[frozenset[str]]) -> list[Vms]:
    """Pairs of VMs of which none is known to be good; such as were not tried yet."""
    free = list(alone)
    pairs: list[Vms] = []
    while free:
        one = free.pop(0)
        other = next((it for it in free if frozenset((one, it)) not in before), None)
        if other is not None:
            free.remove(other)
            pairs.append((one, other))
    return pairs


def _sorted(vms: Iterable[str]) -> Vms:
    return tuple(sorted(vms))
