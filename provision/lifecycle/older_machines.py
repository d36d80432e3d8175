"""What is to be said of machines that are older than what the settings describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.documents.older_machine import OlderMachine
from provision.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from provision.context import Context
    from provision.deployment.deployment import OutOfDate

_MOST: Final = 5
"""Machines that are named with what differs; the JSON has all."""


def tell(context: Context, found: Sequence[OutOfDate]) -> None:
    """Put them into the report, and note them."""
    context.report.out_of_date = [
        OlderMachine(name=one.name, differences=one.differences) for one in found
    ]
    if found:
        context.note([note(found)])


def note(found: Sequence[OutOfDate]) -> Problem:
    """What differs, and what fixes it."""
    lines = [f"{one.name}: {'; '.join(one.differences)}" for one in found[:_MOST]]
    if len(found) > _MOST:
        lines.append(f"and {words.listed([one.name for one in found[_MOST:]])}")
    instead = dict.fromkeys(f"{one.instead}\nor " for one in found if one.instead)
    count = "1 VM is" if len(found) == 1 else f"{len(found)} VMs are"
    return Problem(
        code=Code.OUT_OF_DATE,
        what=f"{count} not what Create would make now",
        why="\n".join(lines),
        fix=f"{''.join(instead)}to replace them, boot disks included: {found[0].fix}; they run, and"
        " are billed, as they are until then",
    )
