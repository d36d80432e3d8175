"""The check of reservations: that they are there, fit the machines, and have some left.

From what it reads also come the provisioning model and the placement of the machines.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.catalogue import machines
from provision.catalogue.machines import Binding
from provision.codes import Code
from provision.documents import json_object
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.google.owner import MARKER
from provision.google.resources import last
from provision.preflight import future
from provision.preflight.check import Effect, Finding, note, refuse, seen
from provision.preflight.future import SKIP, is_over
from provision.settings.resource_paths import ReservationPath
from provision.state import reservations as state

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.preflight.check import CheckContext, Document
    from provision.spec.cluster import ClusterSpec
    from provision.spec.pools import Pool

_DENSE: Final = "DENSE"
_SETTLING: Final = frozenset({"CREATING", "UPDATING"})
_GONE: Final = "TERMINATED"


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """A reservation that pools name, in one zone."""

    text: str  # as the settings name it
    path: ReservationPath
    owner: str  # the project that owns it
    zone: str
    pools: Sequence[Pool]  # whose machines come from it

    @property
    def setting(self) -> str:
        return "RESERVATION_NAME" if self.pools[0].zone_setting == "ZONE" else "GKE_NODE_POOLS"

    @property
    def name(self) -> str:
        return f"the reservation {self.path.name}"

    @property
    def url(self) -> str:
        return f"projects/{self.owner}/zones/{self.zone}/reservations/{self.path.name}"

    def covers(self, text: str, project: str) -> bool:
        """Whether a name or path is of this reservation, or of this part of it."""
        path = ReservationPath.parse(text)
        if path is None or (path.owner(project), path.name) != (self.owner, self.path.name):
            return False
        parts = ((self.path.block, path.block), (self.path.sub_block, path.sub_block))
        return all(own in {None, other} for own, other in parts)

    @property
    def machines(self) -> str:
        types = dict.fromkeys(
            pool.machine_type + (f" with {_words(_wanted_gpus(pool))}" if pool.attached else "")
            for pool in self.pools
        )
        return f"{' and '.join(types)} in {self.zone}"

    def refuse(self, what: str, *, why: str, fix: str) -> Finding:
        """That it can't be used."""
        code = Code.RESERVATION_UNUSABLE
        return refuse(code, setting=self.setting, what=what, why=why, fix=fix)

    def note(self, code: Code, what: str, *, why: str, fix: str) -> Finding:
        """What is worth knowing of it."""
        return note(code, setting=self.setting, what=what, why=why, fix=fix)


def reservation(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check every reservation that machines come from, and decide how they come from it."""
    decided: dict[str, Pool] = {}
    for asked in _asked(ctx):
        found, refused = seen(partial(ctx.answers.find, Service.COMPUTE, asked.url))
        if refused is not None:
            yield asked.note(
                Code.NOT_CHECKED,
                f"could not look at {asked.name} of {asked.owner}: neither"
                " whether it exists and fits the machines, nor how many it has left",
                why=refused.message,
                fix=refused.problems[0].fix
                or "ask its owner for the role Compute Viewer"
                " (roles/compute.viewer) in that project, to have it checked",
            )
            continue
        if found is None:
            others = _everywhere(ctx, asked)
            # Google may have made it since it was asked.
            found = next((it for it in others if last(it["zone"]) == asked.zone), None)
            if found is None:
                yield from _missing(ctx, asked, others)
                continue
        yield from _fit(ctx, asked, found)
        for one in _room(ctx, asked, found):
            if one.problem and one.stops and one.problem.code is Code.RESERVATION_FULL:
                yield from _explained(ctx, asked, one.problem, empty=not _assured(found))
            else:
                yield one
        # Whether neither machines nor reservation tell alone whether they are bound to it.
        open_ones = (machines.binding(it.machine_type) is Binding.SOMETIMES for it in asked.pools)
        made, unseen = None, list[Finding]()
        if found.get("deploymentType") != _DENSE and any(open_ones):
            made, unseen = _future(ctx, asked)
        yield from unseen
        # A policy of another project is none that machines could have.
        own = (found.get("resourcePolicies") or {}) if asked.owner == ctx.project else {}
        policies = tuple(sorted(last(it) for it in own.values()))
        for pool in asked.pools:
            bound = _is_bound(ctx, pool, found, made)
            decided[pool.name] = pool.reserved(bound=bound, policies=policies, read=True)
            yield from _terms(asked, pool, decided[pool.name])
    if decided:
        yield Finding(settled=ctx.spec.with_each(lambda pool: decided.get(pool.name, pool)))


def _asked(ctx: CheckContext[ClusterSpec]) -> Iterator[_Asked]:
    together: dict[tuple[str, str], list[Pool]] = {}
    for pool in ctx.spec.pools:
        if pool.mode.means.reserved and pool.reservation:
            together.setdefault((pool.reservation, pool.zone), []).append(pool)
    for (text, zone), pools in together.items():
        path = ReservationPath.parse(text)
        if path is not None:
            owner = path.owner(ctx.project)
            yield _Asked(text=text, path=path, owner=owner, zone=zone, pools=pools)


# ------------------------------------------------------------------ is it there


def _everywhere(ctx: CheckContext[ClusterSpec], asked: _Asked) -> Sequence[Document]:
    """Reservations of that name in all zones; none if these credentials may not list them."""
    try:
        return ctx.answers.everywhere(asked.owner, "reservations", asked.path.name)
    except GoogleApiError:
        return []


def _missing(
    ctx: CheckContext[ClusterSpec], asked: _Asked, others: Sequence[Document]
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
        yield from _explained(ctx, asked, none, empty=True)
        return
    types = [str(_properties(it).get("machineType", "machines")) for it in others]
    zones = [last(it["zone"]) for it in others]
    has = " and ".join(f"{kind} in {zone}" for kind, zone in zip(types, zones, strict=True))
    fix = f"ZONE={zones[0]}"
    if types[0] not in {pool.machine_type for pool in asked.pools}:
        fix += f" and VM_TYPE={types[0]}"
    yield asked.refuse(
        f"{asked.name} has {has}, the settings ask for {asked.machines}",
        why="a reservation gives machines in its own zone only",
        fix=f"{fix}, or a reservation in {asked.zone}",
    )


def _future(ctx: CheckContext[ClusterSpec], asked: _Asked) -> tuple[Document | None, list[Finding]]:
    """The future reservation that made a reservation, or is to make it; or why nobody knows."""
    path = f"projects/{asked.owner}/zones/{asked.zone}/futureReservations"
    there, refused = seen(lambda: ctx.answers.listed(path))
    if refused is None:
        return future.made(there or (), asked.path.name), []
    unseen = asked.note(
        Code.NOT_CHECKED,
        f"could not look for a future reservation of {asked.path.name} in {asked.owner}:"
        " whether it is still to come, or was bought in calendar mode",
        why=refused.message,
        fix="ask for compute.futureReservations.list in that project, which Compute Viewer"
        " (roles/compute.viewer) has",
    )
    return None, [unseen]


def _explained(
    ctx: CheckContext[ClusterSpec], asked: _Asked, short: Problem, *, empty: bool
) -> Iterator[Finding]:
    """Why a reservation is missing, empty or too small, and whether that passes."""
    found, unseen = _future(ctx, asked)
    yield from unseen
    is_missing = short.code is Code.RESERVATION_UNUSABLE
    if found is not None:
        where = f"--zone={asked.zone} --project={asked.owner}"
        told = future.told(found, short, asked.name, where, empty=empty)
        if is_missing:
            # It has the fields of the reservation that it makes.
            sku = json_object.inner(found.get("specificSkuProperties"))
            to_be = {**found, "specificReservation": sku, "status": "READY"}
            yield from _fit(ctx, asked, to_be)
        if empty and told.code is Code.WAITING:
            name = f"the future reservation {found['name']}"
            yield from _left(ctx, asked, name, future.count(found), 0)
        yield Finding(told)
    elif is_missing and not unseen:
        pool, buying = asked.pools[0], ""
        if asked.owner == ctx.project and future.is_sold(pool):
            buying = future.buying(ctx.project, asked.path.name, pool)
        yield Finding(dataclasses.replace(short, fix=short.fix + buying))
    else:
        yield Finding(short)


# ------------------------------------------------------------------ does it fit


def _fit(ctx: CheckContext[ClusterSpec], asked: _Asked, found: Document) -> Iterator[Finding]:
    """Compare a reservation, as Google returns it, with what the settings ask of it."""
    status = found.get("status", "READY")
    if status in _SETTLING:
        yield asked.note(
            Code.RESERVATION_UNUSABLE,
            f"{asked.name} is {status}",
            why="Google gives machines of one that is READY",
            fix="nothing: Create waits for it",
        )
    elif status != "READY" and _assured(found):  # else there is more to say of it
        yield asked.refuse(
            f"{asked.name} is {status}",
            why="Google gives machines only of one that is READY",
            fix="use another reservation",
        )
    if not found.get("specificReservationRequired"):
        yield asked.refuse(
            f"{asked.name} can't be named",
            why="it is open: any machine that fits uses it (specificReservationRequired is false),"
            " and Google refuses machines that name such a one",
            fix=f"remove {asked.setting}: machines on demand that fit then use it automatically\n"
            "or create another with: gcloud compute reservations create ..."
            " --require-specific-reservation",
        )
    yield from _shared(ctx, asked, found)
    own = _properties(found)
    if not own:
        return  # made from a template that has them: Google compares
    for pool in asked.pools:
        if differences := list(_differences(pool, own)):
            has, wants, fixes = zip(*differences, strict=True)
            yield asked.refuse(
                f"{asked.name} has {', '.join(has)} in {asked.zone}, the settings ask for"
                f" {', '.join(wants)} in {pool.zone}",
                why="Google gives only machines that are exactly what is reserved",
                fix=f"{' and '.join(fixes)}, or another reservation",
            )


def _shared(ctx: CheckContext[ClusterSpec], asked: _Asked, found: Document) -> Iterator[Finding]:
    share = found.get("shareSettings") or {}
    kind, projects = share.get("shareType", "LOCAL"), set(share.get("projectMap") or {})
    if asked.owner == ctx.project or kind == "ORGANIZATION":
        return
    # The number of the deployment's project may stand for its ID.
    project = ctx.answers.get(Service.RESOURCE_MANAGER, f"projects/{ctx.project}")
    number = str(project.get("projectNumber", ""))
    if asked.owner == number or projects & {ctx.project, number}:
        return
    yield asked.refuse(
        f"{asked.name} of {asked.owner} is not shared with {ctx.project}",
        why=f"it is shared with: {', '.join(sorted(projects)) or 'no other project'}",
        fix=f"ask its owner to run: gcloud compute reservations update {asked.path.name} --project"
        f" {asked.owner} --zone {asked.zone} --add-share-with={ctx.project}",
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
    wanted = _wanted_gpus(pool)
    if wanted is not None and reserved != wanted and (reserved or pool.attached):
        kind, count = next(iter(reserved.items()), ("", 0))
        fix = f"ACCELERATOR_TYPE={kind} and GPU_COUNT={count}" if reserved else "no GPUs"
        yield _words(reserved), _words(wanted), fix
    platform = own.get("minCpuPlatform")
    if platform:
        needs = "a reservation without a minimum CPU platform"
        yield f"CPUs of {platform} or newer", "machines without a minimum CPU platform", needs
    if own.get("localSsds") and not pool.local_ssds:
        count = len(own["localSsds"])
        needs = "a reservation without local SSDs"
        yield f"{words.counted(count, 'local SSD')} to attach", "machines without them", needs


def _properties(found: Document) -> Document:
    """What each machine of a reservation is; {} if Google keeps it in a template instead."""
    own: Document = (found.get("specificReservation") or {}).get("instanceProperties") or {}
    return own


def _wanted_gpus(pool: Pool) -> dict[str, int] | None:
    """The GPUs of each machine: type -> number; None if that is not known."""
    if pool.machine is None and not pool.attached:
        return None
    return {pool.gpu_type: pool.gpus} if pool.gpu_type else {}


def _words(gpus: Mapping[str, int] | None) -> str:
    return " and ".join(f"{count} x {kind}" for kind, count in (gpus or {}).items()) or "no GPUs"


# ------------------------------------------------------------------ what it has left


def _room(ctx: CheckContext[ClusterSpec], asked: _Asked, found: Document) -> Iterator[Finding]:
    """Compare what is left with what is asked for, and tell health, end and maintenance."""
    specific = found.get("specificReservation") or {}
    count, used = int(specific.get("count", 0)), int(specific.get("inUseCount", 0))
    parts, missing = _blocks(ctx, asked) if _assured(found) else ({}, None)
    if missing:
        yield missing
    elif not specific:
        yield asked.refuse(
            f"{asked.name} is not one of VMs",
            why="it has no specificReservation; those of TPUs have an aggregate one",
            fix="use a reservation of VMs",
        )
    elif count and not _assured(found):
        yield refuse(
            Code.RESERVATION_FULL,
            setting=asked.setting,
            what=f"{asked.name} has none of its {words.counted(count, 'machine')} yet",
            why="its time has not begun: Google adds the machines then (assuredCount is 0)",
            fix=f"run Create once it has begun; {SKIP}",
        )
    elif parts:
        name, part = list(parts.items())[-1]
        count, used = int(part.get("count", 0)), int(part.get("inUseCount", 0))
        yield from _left(ctx, asked, f"{name} of {asked.name}", count, used)
    else:
        yield from _left(ctx, asked, asked.name, min(count, _assured(found)), used)
    status = found.get("resourceStatus") or {}
    for name, health in {
        **{name: part.get("healthInfo") for name, part in parts.items()},
        asked.name: status.get("healthInfo"),
    }.items():
        yield from _degraded(asked, name, health or {})
    yield from _end(asked, found)
    yield from _maintenance(asked, found)


def _blocks(
    ctx: CheckContext[ClusterSpec], asked: _Asked
) -> tuple[Mapping[str, Document], Finding | None]:
    """The block and the sub-block that are named, by what to call them; what is not there."""
    path, url = asked.path, f"{asked.url}/reservationBlocks"
    found: dict[str, Document] = {}
    for kind, name, parent in (
        ("block", path.block, url),
        ("sub-block", path.sub_block, f"{url}/{path.block}/reservationSubBlocks"),
    ):
        if name is None:
            continue
        answer = ctx.answers.find(Service.COMPUTE, f"{parent}/{name}")
        if answer is None:
            there = ", ".join(it["name"] for it in ctx.answers.listed(parent))
            whole = asked.text.partition("/reservationBlocks/")[0]
            return {}, asked.refuse(
                f"{asked.name} has no {kind} {name}",
                why=f"it has: {there}" if there else f"it has no {kind}s: only dense capacity has",
                fix=f"write {whole} for any{', or choose one of them' if there else ''}",
            )
        found[f"the {kind} {name}"] = answer.get("resource", answer)
    return found, None


def _left(
    ctx: CheckContext[ClusterSpec], asked: _Asked, name: str, count: int, used: int
) -> Iterator[Finding]:
    """Compare what a part, of so many machines, has left with what is asked for."""
    now = sum(pool.size.first for pool in asked.pools)
    most = sum(pool.size.most for pool in asked.pools)
    own, free = _own(ctx, asked), max(0, count - used)
    if max(now, most) - own <= free:
        return
    too_few = now - own > free
    wanted = f"{now - own}" if too_few else f"up to {most - own}"
    more = f" more, besides the {own} that this deployment has" if own else ""
    one_pool = asked.pools[0].setting != "GKE_NODE_POOLS"
    amount = (
        f"INSTANCE_COUNT={free + own}"
        if one_pool
        else f"at most {words.counted(free + own, 'node')}"
    )
    elsewhere = "wait until others have ended, or use another reservation"
    yield note(
        Code.RESERVATION_FULL,
        Effect.STOPS if too_few else Effect.NOTE,
        setting=asked.setting,
        what=f"{name} has {free} of {words.counted(count, 'machine')} left, the settings ask for"
        f" {wanted}{more}",
        why=f"{used} of them are used, and Google refuses more than there are",
        fix=f"{amount}, or {elsewhere}; {SKIP}" if free + own else f"{elsewhere}; {SKIP}",
    )


def _own(ctx: CheckContext[ClusterSpec], asked: _Asked) -> int:
    """How many of the reservation's machines this deployment uses already."""
    if ctx.record is None:
        return 0
    cluster_id = ctx.record.cluster_id
    found = ctx.answers.machines_with(ctx.project, MARKER, cluster_id, after=asked.url)
    return sum(
        any(
            asked.covers(text, ctx.project)
            for text in (vm.get("reservationAffinity") or {}).get("values") or ()
        )
        and last(vm["zone"]) == asked.zone
        and vm.get("status") != _GONE
        for vm in found
    )


def _assured(found: Document) -> int:
    """How many of its machines Google has given; all, if Google does not say."""
    specific = found.get("specificReservation") or {}
    return int(specific.get("assuredCount", specific.get("count", 0)))


def _degraded(asked: _Asked, what: str, health: Mapping[str, Any]) -> Iterator[Finding]:
    if health.get("healthStatus") != "DEGRADED":
        return
    words = {"SubBlock": "sub-blocks", "Infra": "parts of the infrastructure"}
    bad = {
        key.removeprefix("degraded").removesuffix("Count"): count
        for key, count in health.items()
        if key.startswith("degraded") and count
    }
    counts = ", ".join(f"{count} {words.get(it, f'{it.lower()}s')}" for it, count in bad.items())
    yield asked.note(
        Code.DEGRADED,
        f"Google reports {what} as degraded",
        why=f"degraded: {counts}" if counts else "Google does not say what of it",
        fix="use a healthy block, or be ready for machines that fail or do not come",
    )


def _end(asked: _Asked, found: Document) -> Iterator[Finding]:
    end = found.get("deleteAtTime")
    if end and is_over(end):
        yield asked.refuse(
            f"{asked.name} has ended at {end}",
            why="Google gives no machines of it any more, and deletes it",
            fix="use another reservation",
        )
    elif end:
        yield asked.note(
            Code.ENDS_SOON,
            f"{asked.name} ends at {end}",
            why="Google deletes it then; machines that are bound to it are deleted with it",
            fix="save what you need before that time",
        )


def _maintenance(asked: _Asked, found: Document) -> Iterator[Finding]:
    status = found.get("resourceStatus") or {}
    planned = (status.get("reservationMaintenance") or {}).get("upcomingGroupMaintenance") or {}
    if planned.get("windowStartTime"):
        grouped = found.get("schedulingType") == "GROUPED"
        together = "all hosts of a block together" if grouped else "host by host"
        yield asked.note(
            Code.ENDS_SOON,
            f"Google plans maintenance of {asked.name} from {planned['windowStartTime']} on",
            why=f"machines with GPUs stop for it, {together}",
            fix="save checkpoints, or begin it before: gcloud compute reservations"
            f" perform-maintenance {asked.path.name} --zone {asked.zone} --project {asked.owner}",
        )


# ------------------------------------------------------------------ what comes of it


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


def _terms(asked: _Asked, pool: Pool, decided: Pool) -> Iterator[Finding]:
    """What does not go with how the machines come from the reservation."""
    bound = decided.mode.means.bound
    if bound and pool.max_run_seconds:
        yield refuse(
            Code.CONFLICTING_SETTINGS,
            setting="MAX_RUN_DURATION",
            what=f"can't be combined with {asked.name}",
            why="its machines are bound to it (RESERVATION_BOUND) and end with it: Google takes no"
            " other end",
            fix="remove MAX_RUN_DURATION",
        )
    if decided.compact and not bound:
        yield refuse(
            Code.CONFLICTING_SETTINGS,
            setting="ENABLE_COMPACT_PLACEMENT",
            what=f"can't be combined with {asked.name}",
            why="it is a plain reservation without a placement policy of its own: its machines"
            " are where it has them",
            fix="ENABLE_COMPACT_PLACEMENT=no",
        )
