"""Which machines are at fault, by their GPUs and by trying parts of them, and what fixes them.

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
from typing import TYPE_CHECKING, Any

from provision import words
from provision.catalogue import bandwidths
from provision.codes import Code
from provision.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provision.catalogue.machines import Gpu
    from provision.documents.checks import NodeCheck, VmCheck


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
    alone = (vms for vms, rest in zip(failed, left, strict=True) if not rest)
    whole = sorted(dict.fromkeys(alone), key=len)
    return Finding(
        good=_sorted(good),
        faulty=_sorted(faulty),
        suspects=_sorted(suspects),
        together=tuple(
            vms for vms in whole if not any(set(it) < set(vms) for it in whole if it != vms)
        ),
    )


def next_round(tried: Sequence[Tried]) -> list[Members]:
    """The groups to try next, at the same time: no machine is in two, and none was tried before."""
    known = find(tried)
    before = {frozenset(one.members) for one in tried}
    parts = list(_parts(tried, known))
    groups = [part for part in parts if len(part) >= _PAIR]
    alone = [part[0] for part in parts if len(part) < _PAIR]
    # Each with a good one, as far as there are good ones.
    pairs = list(zip(alone, known.good, strict=False)) if known.good else _among(alone, before)
    return [it for it in (*groups, *pairs) if frozenset(it) not in before]


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
        # What a faulty machine explains says nothing of the others: they are tried without it.
        is_known = len(cell) == 1 or faulty.intersection(vms)
        half = len(cell) if is_known else (len(cell) + 1) // 2
        yield from filter(None, (cell[:half], cell[half:]))


def _among(alone: Sequence[str], before: set[frozenset[str]]) -> list[tuple[str, str]]:
    """Pairs that were not tried yet, of machines that are not known to be good."""
    free = list(alone)
    pairs = []
    while free:
        one = free.pop(0)
        other = next((it for it in free if frozenset((one, it)) not in before), None)
        if other is not None:
            free.remove(other)
            pairs.append((one, other))
    return pairs


def _sorted(vms: Iterable[str]) -> Members:
    return tuple(sorted(vms))


# ------------------------------------------------------------------ the GPUs of one


def faults_of_gpus(
    gpus: Sequence[Mapping[str, Any]], error: str, count: int | None, kind: Gpu | None
) -> Iterator[str]:
    """What is wrong, by what nvidia-smi says, and where it failed by the `error`.

    Uncorrected errors of the memory since the boot are a fault, and so are repairs that failed or
    wait; errors of the past that were repaired are none (NVIDIA's pages on memory errors). Each GPU
    has `name`, `ecc_volatile` (None where it does not count errors), and as far as it is known
    `repair_failed` and `repair_pending`.
    """
    if error:
        yield error
    if count is not None and len(gpus) != count:
        yield f"{len(gpus)} GPUs instead of {count}"
    yield from strange([str(gpu.get("name")) for gpu in gpus], kind)
    errors = {n: gpu["ecc_volatile"] for n, gpu in enumerate(gpus) if gpu.get("ecc_volatile")}
    if errors:
        total = sum(errors.values())
        yield f"{total} uncorrected memory (ECC) errors since its boot, on {_numbered(errors)}"
    if broken := [n for n, gpu in enumerate(gpus) if gpu.get("repair_failed")]:
        yield f"{_numbered(broken)} can't repair its memory any more"
    if pending := [n for n, gpu in enumerate(gpus) if gpu.get("repair_pending")]:
        yield f"{_numbered(pending)} waits for a restart to repair its memory"


def strange(names: Sequence[str], kind: Gpu | None) -> list[str]:
    """GPUs of another kind than they should be, in words; at most one line."""
    if kind is None:
        return []
    # A part of an RTX PRO 6000 calls itself "RTX Pro 6000".
    other = sorted({it for it in names if kind.model.casefold() not in it.casefold()})
    return [f"{', '.join(other)} instead of {kind.model}"] if other else []


def memory_errors(gpus: Sequence[Mapping[str, Any]]) -> int | None:
    """The uncorrected memory errors of all since the boot; None where no GPU counts them."""
    known = [gpu["ecc_volatile"] for gpu in gpus if gpu.get("ecc_volatile") is not None]
    return sum(known) if known else None


def _numbered(numbers: Iterable[int]) -> str:
    return words.listed([f"GPU {number}" for number in numbers])


# ------------------------------------------------------------------ in words


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """What fixes a bad machine of a certain kind."""

    members: str  # what the machines are called: "VMs" or "nodes"
    another: Callable[[Members], str]  # how to get another machine in the place of some
    more: str  # how to have one more, to tell the bad one of two
    closer: str  # how to have machines that stand closer to each other


def failed(what: str, *, why: str = "", fix: str) -> Problem:
    """A problem that a test has found."""
    return Problem(code=Code.TEST_FAILED, what=what, why=why, fix=fix)


def of_single(
    checked: Mapping[str, VmCheck | NodeCheck],
    machine_type: Callable[[str], str],
    fix: Callable[[str], str],
) -> list[Problem]:
    """What is wrong with machines on their own, by their names."""
    return [
        failed(
            f"{name}: {'; '.join(it.faults)}",
            why=f"its machine type is {machine_type(name)}",
            fix=fix(name),
        )
        for name, it in checked.items()
        if it.faults
    ]


def problems(
    finding: Finding, tried: Sequence[Tried], bar: str, remedies: Remedies
) -> Iterator[Problem]:
    """What is wrong between machines. `bar`: what measurements are judged by."""
    members, suspects = remedies.members, finding.suspects
    bad = [it for it in tried if not it.passed]
    for name in finding.faulty:
        yield failed(
            f"{name} is at fault: {worst(tried, name)}",
            why=f"it failed with nobody but {members} that passed with others; {bar}",
            fix=remedies.another((name,)),
        )
    if suspects:
        last = next(it.why for it in reversed(bad) if set(suspects) & set(it.members))
        yield failed(
            f"between {words.listed(suspects)}: {last}",
            why=f"which of them is at fault shows only beside two that are not; {bar}",
            fix=f"{remedies.another(suspects)}; or {remedies.more}",
        )
    for together in finding.together:
        why = next(it.why for it in bad if it.members == together)
        yield failed(
            f"{len(together)} {members} together: {why}",
            why=f"parts of them are as fast as they should be; {bar}",
            fix=remedies.closer,
        )


def bar(machine_type: str, reference: bandwidths.Reference | None) -> str:
    """What measurements are judged by."""
    if reference is None:
        return f"there is no published figure for {machine_type}"
    return (
        f"{reference.tolerance:.0%} of the {reference.peak:g} GB/s published for"
        f" {bandwidths.MACHINES} x {machine_type} is {reference.least:.1f} GB/s"
    )


def reached(bandwidth: float | None, machines: int, expected: float | None) -> str:
    """A bandwidth in GB/s that is good enough, beside the published one; None for no network."""
    if bandwidth is None or expected is None:
        shown = "nothing" if bandwidth is None else f"{bandwidth:.1f} GB/s"
        return f"{shown}, without a verdict: no figure is published for this machine"
    more = "" if machines <= bandwidths.MACHINES else " (none is for more)"
    return (
        f"{bandwidth:.1f} GB/s, {bandwidth / expected:.0%} of the {expected:g} GB/s published for"
        f" {bandwidths.MACHINES}{more}: good"
    )


def worst(tried: Sequence[Tried], name: str) -> str:
    """Why the smallest group with a machine failed."""
    bad = [it for it in tried if name in it.members and not it.passed]
    return min(bad, key=lambda it: len(it.members)).why
