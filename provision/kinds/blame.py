"""Whose fault a bandwidth that is too low is, in words: the same for VMs and for nodes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision import words
from provision.catalogue import bandwidths
from provision.codes import Code
from provision.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from provision.catalogue.bandwidths import Reference
    from provision.kinds.faults import Finding, Members, Tried


@dataclass(frozen=True, kw_only=True)
class Remedies:
    """What fixes a bad machine of a certain kind."""

    members: str  # what the machines are called: "VMs" or "nodes"
    another: Callable[[Members], str]  # how to get another machine in the place of some
    more: str  # how to have one more, to tell the bad one of two
    closer: str  # how to have machines that stand closer to each other


def problems(
    finding: Finding, tried: Sequence[Tried], bar: str, remedies: Remedies
) -> list[Problem]:
    """What is wrong between machines."""
    members = remedies.members
    found = [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{name} is at fault: {worst(tried, name)}",
            why=f"it failed with nobody but {members} that passed with others; {bar}",
            fix=remedies.another((name,)),
        )
        for name in finding.faulty
    ]
    if finding.suspects:
        found.append(
            Problem(
                code=Code.TEST_FAILED,
                what=f"between {words.listed(finding.suspects)}: {_last(tried, finding.suspects)}",
                why=f"which of them is at fault shows only beside two that are not; {bar}",
                fix=f"{remedies.another(finding.suspects)}; or {remedies.more}",
            )
        )
    return found + [
        Problem(
            code=Code.TEST_FAILED,
            what=f"{len(together)} {members} together: {_why(tried, together)}",
            why=f"parts of them are as fast as they should be; {bar}",
            fix=remedies.closer,
        )
        for together in finding.together
    ]


def bar(machine_type: str, reference: Reference | None) -> str:
    """What measurements are judged by."""
    if reference is None:
        return f"there is no published figure for {machine_type}"
    return (
        f"{reference.tolerance:.0%} of the {reference.peak:g} GB/s published for"
        f" {bandwidths.MACHINES} x {machine_type} is {reference.least:.1f} GB/s"
    )


def reached(bandwidth: float | None, machines: int, expected: float | None) -> str:
    """A bandwidth that is good enough, beside the published one, as the end of a sentence.

    `bandwidth`: in GB/s; None where there was no network to measure.
    """
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
    failed = [it for it in tried if name in it.members and not it.passed]
    return min(failed, key=lambda it: len(it.members)).why


def _last(tried: Sequence[Tried], suspects: Members) -> str:
    failed = [it for it in tried if set(suspects) & set(it.members) and not it.passed]
    return failed[-1].why


def _why(tried: Sequence[Tried], members: Members) -> str:
    return next(it.why for it in tried if it.members == members and not it.passed)
