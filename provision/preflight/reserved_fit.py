"""Whether a reservation can give machines at all, and gives such machines to this project."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.preflight.check import CheckNote
from provision.preflight.reserved import assured, gpus_in_words, last, properties, wanted_gpus

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.reserved import Asked, Document
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_SETTLING: Final = frozenset({"CREATING", "UPDATING"})


def check(ctx: CheckContext[ClusterSpec], asked: Asked, found: Document) -> Iterator[Finding]:
    """Compare a reservation, as Google returns it, with what the settings ask of it."""
    yield from _usable(asked, found)
    yield from _shared(ctx, asked, found)
    for pool in asked.pools:
        yield from _fitting(asked, pool, found)


def _usable(asked: Asked, found: Document) -> Iterator[Finding]:
    status = found.get("status", "READY")
    if status in _SETTLING:
        what = f"the reservation {asked.path.name} is {status}"
        why = "Google gives machines of one that is READY"
        fix = "nothing: Create waits for it"
        yield CheckNote(
            Problem(
                code=Code.RESERVATION_UNUSABLE, setting=asked.setting, what=what, why=why, fix=fix
            )
        )
    elif status != "READY" and assured(found):  # else there is more to say of it
        yield Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"the reservation {asked.path.name} is {status}",
            why="Google gives machines only of one that is READY",
            fix="use another reservation",
        )
    if not found.get("specificReservationRequired"):
        yield Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"the reservation {asked.path.name} can't be named",
            why="it is open: any machine that fits uses it (specificReservationRequired is false),"
            " and Google refuses machines that name such a one",
            fix=f"remove {asked.setting}: machines on demand that fit then use it automatically\n"
            "or create another with: gcloud compute reservations create ..."
            " --require-specific-reservation",
        )


def _shared(ctx: CheckContext[ClusterSpec], asked: Asked, found: Document) -> Iterator[Finding]:
    share = found.get("shareSettings") or {}
    kind, projects = share.get("shareType", "LOCAL"), set(share.get("projectMap") or {})
    if asked.owner == ctx.project or kind == "ORGANIZATION":
        return
    number = _number(ctx)
    if asked.owner == number or projects & {ctx.project, number}:
        return
    yield Problem(
        code=Code.RESERVATION_UNUSABLE,
        setting=asked.setting,
        what=f"the reservation {asked.path.name} of {asked.owner} is not shared with {ctx.project}",
        why=f"it is shared with: {', '.join(sorted(projects)) or 'no other project'}",
        fix=f"ask its owner to run: gcloud compute reservations update {asked.path.name} --project"
        f" {asked.owner} --zone {asked.zone} --add-share-with={ctx.project}",
    )


def _number(ctx: CheckContext[ClusterSpec]) -> str:
    """The number of the deployment's project, which may stand for its ID."""
    found = ctx.answers.get(Service.RESOURCE_MANAGER, f"projects/{ctx.project}")
    return str(found.get("projectNumber", ""))


def _fitting(asked: Asked, pool: Pool, found: Document) -> Iterator[Finding]:
    own = properties(found)
    if not own:
        return  # made from a template that has them: Google compares
    has = list(_differences(pool, own))
    if has:
        yield Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"the reservation {asked.path.name} has {', '.join(it[0] for it in has)} in"
            f" {asked.zone}, the settings ask for {', '.join(it[1] for it in has)} in"
            f" {pool.zone}",
            why="Google gives only machines that are exactly what is reserved",
            fix=" and ".join(it[2] for it in has) + ", or another reservation",
        )


def _differences(pool: Pool, own: Document) -> Iterator[tuple[str, str, str]]:
    """What a reservation has, what is asked for instead, and what to write."""
    if own.get("machineType") != pool.machine_type:
        kind = str(own.get("machineType"))
        key = "vm_type=" if pool.setting == "GKE_NODE_POOLS" else "VM_TYPE="
        yield kind, pool.machine_type, f"{key}{kind}"
        return
    reserved = {
        last(it["acceleratorType"]): int(it.get("acceleratorCount", 0))
        for it in own.get("guestAccelerators") or []
    }
    wanted = wanted_gpus(pool)
    if wanted is not None and reserved != wanted and (reserved or pool.attached):
        kind, count = next(iter(reserved.items()), ("", 0))
        mend = f"ACCELERATOR_TYPE={kind} and GPU_COUNT={count}" if reserved else "no GPUs"
        yield gpus_in_words(reserved), gpus_in_words(wanted), mend
    platform = own.get("minCpuPlatform")
    if platform:
        needs = "a reservation without a minimum CPU platform"
        yield f"CPUs of {platform} or newer", "machines without a minimum CPU platform", needs
    if own.get("localSsds") and not pool.local_ssds:
        count = len(own["localSsds"])
        needs = "a reservation without local SSDs"
        yield f"{count} local SSDs to attach", "machines without them", needs
