"""When Google refuses machines for a reason that no waiting fixes: who has to change what."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import constraints
from provision.errors import Problem
from provision.google import refusals
from provision.google.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.spec.pools import Group

_REASONS: Final[Mapping[Refusal, str]] = {
    Refusal.PERMISSION: "an account lacks a permission",
    Refusal.API_OFF: "the project has not enabled the API",
    Refusal.POLICY: "a policy of the organization forbids it",
    Refusal.MISSING: "something that they need does not exist",
    Refusal.RESERVATION: "the reservation does not exist, or does not fit",
    Refusal.RESERVED_OUT: "the reservation has no machines left",
    Refusal.CONFIGURATION: "what is asked for does not go together",
    Refusal.ADDRESSES: "the subnetwork has no free IP addresses",
}


def problem(
    kind: Refusal, group: Group, found: Sequence[Mapping[str, Any]], standing: str
) -> Problem:
    """What is wrong for good, in Google's words, and what fixes it."""
    said = "\n".join(dict.fromkeys(map(refusals.words, found)))
    return Problem(
        code=kind.code,
        setting=_setting(kind),
        what=f"Google refuses the {group.members}: {_REASONS[kind]}; {standing}",
        why=f"{said}\nwaiting does not fix that",
        fix="\n".join(
            [
                *filter(None, _mending(kind, group, said)),
                f"then run Create again; Destroy removes all that the {group.called} has",
            ]
        ),
    )


def _setting(kind: Refusal) -> str:
    match kind:
        case Refusal.RESERVATION | Refusal.RESERVED_OUT:
            return "RESERVATION_NAME"
        case Refusal.CONFIGURATION:
            return "VM_TYPE"
        case _:
            return ""


def _mending(kind: Refusal, group: Group, said: str) -> list[str]:
    match kind:
        case Refusal.PERMISSION | Refusal.API_OFF:
            return [
                refusals.remedy(said)
                or "grant the account that Google names what it lacks, in this project"
            ]
        case Refusal.POLICY:
            name = refusals.constraint(said)
            known = constraints.named(name)
            asking = constraints.exception_for(name, group.project)
            return [asking, known.instead if known else ""]
        case Refusal.MISSING:
            return ["check the setting that names it, or create it again"]
        case Refusal.RESERVATION | Refusal.RESERVED_OUT:
            listing = f"gcloud compute reservations list --project {group.project}"
            fitting = f"one in {group.zone} whose machine type is {group.machine_type}"
            return [f"list what there is with: {listing}", f"set RESERVATION_NAME to {fitting}"]
        case Refusal.ADDRESSES:
            return ["ask for fewer machines (INSTANCE_COUNT), or free addresses in the subnetwork"]
        case _:
            return ["change what Google names (VM_TYPE, the disk's type or the image)"]
