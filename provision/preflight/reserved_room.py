"""How many machines a reservation has left, and what else to know of it before using it."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.codes import Code
from provision.errors import Problem
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.preflight.check import CheckNote
from provision.preflight.reserved import SKIP, assured, last

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.reserved import Asked, Document
    from provision.spec.cluster import ClusterSpec

_GONE: Final = "TERMINATED"


@dataclass(frozen=True)
class Part:
    """What machines are taken from: the reservation, or the block of it that is named."""

    name: str
    count: int  # the number of its machines
    used: int  # how many of them are used


def check(ctx: CheckContext[ClusterSpec], asked: Asked, found: Document) -> Iterator[Finding]:
    """Compare what is left with what is asked for, and tell health, end and maintenance."""
    blocks = _blocks(ctx, asked) if assured(found) else {}
    if isinstance(blocks, Problem):
        yield blocks
    else:
        part = _part(asked, found, blocks)
        yield from [part] if isinstance(part, Problem) else left(ctx, asked, part)
        for name, block in blocks.items():
            yield from _degraded(asked, name, block.get("healthInfo") or {})
    yield from _health(asked, found)
    yield from _end(asked, found)
    yield from _maintenance(asked, found)


def _part(asked: Asked, found: Document, blocks: Mapping[str, Document]) -> Part | Problem:
    """The reservation, or the smallest part of it that is named."""
    specific = found.get("specificReservation") or {}
    name = f"the reservation {asked.path.name}"
    if not specific:
        return Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"{name} is not one of VMs",
            why="it has no specificReservation; those of TPUs have an aggregate one",
            fix="use a reservation of VMs",
        )
    count, used = int(specific.get("count", 0)), int(specific.get("inUseCount", 0))
    if count and not assured(found):
        return Problem(
            code=Code.RESERVATION_FULL,
            setting=asked.setting,
            what=f"{name} has none of its {count} machines yet",
            why="its time has not begun: Google adds the machines then (assuredCount is 0)",
            fix=f"run Create once it has begun; {SKIP}",
        )
    if not blocks:
        return Part(name, min(count, assured(found)), used)
    words, block = list(blocks.items())[-1]
    return Part(f"{words} of {name}", int(block.get("count", 0)), int(block.get("inUseCount", 0)))


def _blocks(ctx: CheckContext[ClusterSpec], asked: Asked) -> Mapping[str, Document] | Problem:
    """The block and the sub-block that are named, by what to call them; {} if none is."""
    path, url = asked.path, f"{asked.url}/reservationBlocks"
    named = [("block", path.block, url)]
    named += [("sub-block", path.sub_block, f"{url}/{path.block}/reservationSubBlocks")]
    found: dict[str, Document] = {}
    for kind, name, parent in named:
        if name is None:
            continue
        answer = ctx.answers.find(Service.COMPUTE, f"{parent}/{name}")
        if answer is None:
            there = ", ".join(it["name"] for it in ctx.answers.listed(parent))
            whole = asked.text.partition("/reservationBlocks/")[0]
            return Problem(
                code=Code.RESERVATION_UNUSABLE,
                setting=asked.setting,
                what=f"the reservation {path.name} has no {kind} {name}",
                why=f"it has: {there}" if there else f"it has no {kind}s: only dense capacity has",
                fix=f"write {whole} for any{', or choose one of them' if there else ''}",
            )
        found[f"the {kind} {name}"] = answer.get("resource", answer)
    return found


def left(ctx: CheckContext[ClusterSpec], asked: Asked, part: Part) -> Iterator[Finding]:
    """Compare what a part has left with what is asked for."""
    now = sum(pool.size.first for pool in asked.pools)
    most = sum(pool.size.most for pool in asked.pools)
    own = _own(ctx, asked)
    free = max(0, part.count - part.used)
    if max(now, most) - own <= free:
        return
    too_few = now - own > free
    wanted = f"{now - own}" if too_few else f"up to {most - own}"
    more = f" more, besides the {own} that this deployment has" if own else ""
    one_pool = asked.pools[0].setting != "GKE_NODE_POOLS"
    amount = f"INSTANCE_COUNT={free + own}" if one_pool else f"at most {free + own} nodes"
    elsewhere = "wait until others have ended, or use another reservation"
    said = Problem(
        code=Code.RESERVATION_FULL,
        setting=asked.setting,
        what=f"{part.name} has {free} of {part.count} machines left, the settings ask for"
        f" {wanted}{more}",
        why=f"{part.used} of them are used, and Google refuses more than there are",
        fix=f"{amount}, or {elsewhere}; {SKIP}" if free + own else f"{elsewhere}; {SKIP}",
    )
    yield said if too_few else CheckNote(said)


def _own(ctx: CheckContext[ClusterSpec], asked: Asked) -> int:
    """How many of the reservation's machines this deployment uses already."""
    if ctx.record is None:
        return 0
    cluster_id = ctx.record.cluster_id
    found = ctx.answers.machines_with(ctx.project, MARKER, cluster_id, after=asked.url)
    return sum(
        any(asked.covers(text, ctx.project) for text in _named_by(vm))
        and last(vm["zone"]) == asked.zone
        and vm.get("status") != _GONE
        for vm in found
    )


def _named_by(vm: Mapping[str, Any]) -> list[str]:
    return list((vm.get("reservationAffinity") or {}).get("values") or [])


def _health(asked: Asked, found: Document) -> Iterator[Finding]:
    health = (found.get("resourceStatus") or {}).get("healthInfo") or {}
    yield from _degraded(asked, f"the reservation {asked.path.name}", health)


def _degraded(asked: Asked, what: str, health: Mapping[str, Any]) -> Iterator[Finding]:
    if health.get("healthStatus") != "DEGRADED":
        return
    bad = {key: count for key, count in health.items() if key.startswith("degraded") and count}
    counts = ", ".join(f"{count} {_words(key)}" for key, count in bad.items())
    yield CheckNote(
        Problem(
            code=Code.DEGRADED,
            setting=asked.setting,
            what=f"Google reports {what} as degraded",
            why=f"degraded: {counts}" if counts else "Google does not say what of it",
            fix="use a healthy block, or be ready for machines that fail or do not come",
        )
    )


def _words(key: str) -> str:
    part = key.removeprefix("degraded").removesuffix("Count")
    return {"SubBlock": "sub-blocks", "Infra": "parts of the infrastructure"}.get(
        part, f"{part.lower()}s"
    )


def _end(asked: Asked, found: Document) -> Iterator[Finding]:
    end = found.get("deleteAtTime")
    if end and dt.datetime.fromisoformat(end) <= dt.datetime.now(dt.UTC):
        yield Problem(
            code=Code.RESERVATION_UNUSABLE,
            setting=asked.setting,
            what=f"the reservation {asked.path.name} has ended at {end}",
            why="Google gives no machines of it any more, and deletes it",
            fix="use another reservation",
        )
    elif end:
        yield CheckNote(
            Problem(
                code=Code.ENDS_SOON,
                setting=asked.setting,
                what=f"the reservation {asked.path.name} ends at {end}",
                why="Google deletes it then; machines that are bound to it are deleted with it",
                fix="save what you need before that time",
            )
        )


def _maintenance(asked: Asked, found: Document) -> Iterator[Finding]:
    status = found.get("resourceStatus") or {}
    planned = (status.get("reservationMaintenance") or {}).get("upcomingGroupMaintenance") or {}
    if planned.get("windowStartTime"):
        grouped = found.get("schedulingType") == "GROUPED"
        together = "all hosts of a block together" if grouped else "host by host"
        yield CheckNote(
            Problem(
                code=Code.ENDS_SOON,
                setting=asked.setting,
                what=f"Google plans maintenance of the reservation {asked.path.name} from"
                f" {planned['windowStartTime']} on",
                why=f"machines with GPUs stop for it, {together}",
                fix="save checkpoints, or begin it before: gcloud compute reservations"
                f" perform-maintenance {asked.path.name} --zone {asked.zone} --project"
                f" {asked.owner}",
            )
        )
