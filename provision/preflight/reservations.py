"""The check of reservations: that they are there, fit the machines, and have some left.

From what it reads also come the provisioning model and the placement of the machines.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import machines
from provision.catalogue.machines import Binding
from provision.codes import Code
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.preflight import future, reserved_fit, reserved_room
from provision.preflight.check import CheckNote, Settled
from provision.preflight.reserved import Asked, assured, last, properties
from provision.settings.resource_paths import ReservationPath
from provision.state import reservations as state

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.reserved import Document
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_FORBIDDEN: Final = 403
_DENSE: Final = "DENSE"


def reservation(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check every reservation that machines come from, and decide how they come from it."""
    decided: dict[str, Pool] = {}
    for asked in _asked(ctx):
        try:
            found = ctx.answers.find(Service.COMPUTE, asked.url)
        except GoogleApiError as error:
            if error.code != _FORBIDDEN:
                raise
            yield _unseen(asked, error)
            continue
        if found is None:
            others = _everywhere(ctx, asked)
            # Google may have made it since it was asked.
            found = next((it for it in others if last(it["zone"]) == asked.zone), None)
        if found is None:
            yield from _missing(ctx, asked, others)
            continue
        yield from reserved_fit.check(ctx, asked, found)
        yield from _room(ctx, asked, found)
        made, unseen = future.find(ctx, asked) if _is_open(asked, found) else (None, [])
        yield from unseen
        for pool in asked.pools:
            decided[pool.name] = _decide(ctx, asked, pool, found, made)
            yield from _terms(asked, pool, decided[pool.name])
    if decided:
        yield Settled(ctx.spec.with_each(lambda pool: decided.get(pool.name, pool)))


def is_needed(ctx: CheckContext[ClusterSpec]) -> bool:
    """Whether machines come from a reservation."""
    return any(pool.mode.means.reserved for pool in ctx.spec.pools)


def _asked(ctx: CheckContext[ClusterSpec]) -> Iterator[Asked]:
    together: dict[tuple[str, str], list[Pool]] = {}
    for pool in ctx.spec.pools:
        if pool.mode.means.reserved and pool.reservation:
            together.setdefault((pool.reservation, pool.zone), []).append(pool)
    for (text, zone), pools in together.items():
        path = ReservationPath.parse(text)
        if path is not None:
            owner = path.owner(ctx.project)
            yield Asked(text=text, path=path, owner=owner, zone=zone, pools=pools)


# ------------------------------------------------------------------ is it there


def _unseen(asked: Asked, error: GoogleApiError) -> CheckNote:
    return CheckNote(
        Problem(
            code=Code.NOT_CHECKED,
            setting=asked.setting,
            what=f"could not look at the reservation {asked.path.name} of {asked.owner}: neither"
            " whether it exists and fits the machines, nor how many it has left",
            why=error.message,
            fix=error.problems[0].fix
            or "ask its owner for the role Compute Viewer"
            " (roles/compute.viewer) in that project, to have it checked",
        )
    )


def _missing(
    ctx: CheckContext[ClusterSpec], asked: Asked, others: Sequence[Document]
) -> Iterator[Finding]:
    if not others:
        none = Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"there is no reservation {asked.path.name} in {asked.owner}",
            why=f"Google does not have it in {asked.zone}, where the machines are asked for",
            fix="list what there is with: gcloud compute reservations list --project"
            f" {asked.owner}\nif another project owns it, write"
            f" projects/<project>/reservations/{asked.path.name}",
        )
        yield from future.explained(ctx, asked, none, empty=True)
        return
    has = " and ".join(f"{_type(it)} in {last(it['zone'])}" for it in others)
    mend = f"ZONE={last(others[0]['zone'])}"
    if _type(others[0]) not in {pool.machine_type for pool in asked.pools}:
        mend += f" and VM_TYPE={_type(others[0])}"
    yield Problem(
        code=Code.RESERVATION_UNUSABLE,
        setting=asked.setting,
        what=f"the reservation {asked.path.name} has {has}, the settings ask for {asked.machines}",
        why="a reservation gives machines in its own zone only",
        fix=f"{mend}, or a reservation in {asked.zone}",
    )


def _everywhere(ctx: CheckContext[ClusterSpec], asked: Asked) -> Sequence[Document]:
    """Reservations of that name in all zones; none if these credentials may not list them."""
    try:
        return ctx.answers.everywhere(asked.owner, "reservations", asked.path.name)
    except GoogleApiError:
        return []


def _room(ctx: CheckContext[ClusterSpec], asked: Asked, found: Document) -> Iterator[Finding]:
    for one in reserved_room.check(ctx, asked, found):
        if isinstance(one, Problem) and one.code is Code.RESERVATION_FULL:
            yield from future.explained(ctx, asked, one, empty=not assured(found))
        else:
            yield one


# ------------------------------------------------------------------ what comes of it


def _is_open(asked: Asked, found: Document) -> bool:
    """Whether neither machines nor reservation tell alone whether they are bound to it."""
    open_ones = (machines.binding(it.machine_type) is Binding.SOMETIMES for it in asked.pools)
    return found.get("deploymentType") != _DENSE and any(open_ones)


def _decide(
    ctx: CheckContext[ClusterSpec],
    asked: Asked,
    pool: Pool,
    found: Document,
    made: Document | None,
) -> Pool:
    """The pool with the provisioning model and the placement that the reservation needs.

    A policy of another project is none that machines could have.
    """
    own = (found.get("resourcePolicies") or {}) if asked.owner == ctx.project else {}
    policies = tuple(sorted(last(it) for it in own.values()))
    bound = _is_bound(ctx, pool, found, made)
    return pool.reserved(bound=bound, policies=policies, read=True)


def _is_bound(
    ctx: CheckContext[ClusterSpec], pool: Pool, found: Document, made: Document | None
) -> bool:
    """Whether machines must be bound to the reservation.

    Cluster Toolkit binds them to dense capacity and to calendar mode, SkyPilot to dense capacity
    alone. Where no future reservation is seen, what is made already stays as it is.
    """
    match machines.binding(pool.machine_type):
        case Binding.ALWAYS:
            return True
        case Binding.NEVER:
            return False
        case Binding.SOMETIMES:
            if found.get("deploymentType") == _DENSE:
                return True
            if made is not None:
                return made.get("reservationMode") == "CALENDAR"
            before = state.kept(ctx.record, pool)
            return before is not None and before.mode.means.bound


def _terms(asked: Asked, pool: Pool, decided: Pool) -> Iterator[Finding]:
    """What does not go with how the machines come from the reservation."""
    bound = decided.mode.means.bound
    if bound and pool.max_run_seconds:
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="MAX_RUN_DURATION",
            what=f"can't be combined with the reservation {asked.path.name}",
            why="its machines are bound to it (RESERVATION_BOUND) and end with it: Google takes no"
            " other end",
            fix="remove MAX_RUN_DURATION",
        )
    if decided.compact and not bound:
        yield Problem(
            code=Code.CONFLICTING_SETTINGS,
            setting="ENABLE_COMPACT_PLACEMENT",
            what=f"can't be combined with the reservation {asked.path.name}",
            why="it is a plain reservation without a placement policy of its own: its machines"
            " are where it has them",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )


def _type(found: Document) -> str:
    return str(properties(found).get("machineType", "machines"))
