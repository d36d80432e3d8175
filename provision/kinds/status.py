"""The status of a deployment, as every kind tells it: what is wrong, when it ends, what it costs.

Nothing is written and no lock is taken.
"""

from __future__ import annotations

import dataclasses
import datetime as dt
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final, Protocol, Self, TypedDict, TypeVar

from provision import __version__
from provision.catalogue import machines
from provision.catalogue.filestores import Tier
from provision.codes import Code
from provision.cost import estimate
from provision.documents import json_object
from provision.documents.status import (
    About,
    End,
    EndedBy,
    Filestore,
    LockHolder,
    SoFar,
    Status,
    Trouble,
    Waiting,
)
from provision.errors import Problem
from provision.google.api import GoogleApiError, Service
from provision.settings.resource_paths import ReservationPath
from provision.settings.storage import Share
from provision.spec.cluster import ClusterSpec
from provision.spec.topology import gpu_words
from provision.state import history, liveness
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from provision.catalogue import fabrics
    from provision.catalogue.prices import Prices
    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.cost import Cost, Part
    from provision.spec.pools import Pool
    from provision.state.folder import StateFolder
    from provision.state.record import Record
    from provision.terraform.lock import Lock
    from provision.time.clock import Clock

T = TypeVar("T")
K = TypeVar("K")
_CONSOLE: Final = "https://console.cloud.google.com"
_SHARE: Final = ("name", "path", "ip", "share")
_HALF_WAY: Final = Trouble(
    about=About.CLUSTER,
    what="a Destroy began and stopped half-way",
    why=("what is left of it, listed with --full, may be billed",),
    fix="run Destroy again to remove the rest, or Create to make the cluster again",
)

NOT_THERE: Final = "somebody deleted it, or no Create has come so far as to make it"
"""Why a part of a cluster that has a record does not exist."""
_LONG: Final = 86400.0
"""Seconds for which a run that lives does not hold the lock."""
_OLDER_STATE: Final = Trouble(
    about=About.CLUSTER,
    what="Terraform's state of it is older than what the last Create has left",
    why=("somebody restored an older version of the object; what runs goes on",),
    fix="run Plan, which says what differs, then Create; or restore the newest version of the"
    " object terraform/state/default.tfstate",
)
_STATELESS: Final = Trouble(
    about=About.CLUSTER,
    what="Terraform's state of it is gone, or names nothing",
    why=("somebody deleted the object, or no Create has come to its end; what runs goes on",),
    fix="run Create: it takes over what there is; or restore an older version of the object"
    " terraform/state/default.tfstate",
)


def look(
    context: Context,
    cloud: Cloud,
    record: Record,
    kind: Kind[ClusterSpec],
    before: Status | None = None,
) -> Status:
    """Collect the status of a deployment; `before`: what an earlier look of this run returned."""
    if record.newer_tool:
        context.note([_newer_tool(record.newer_tool)])
    is_one_of_all = cloud.lists is not None and cloud.lists.of_all
    done = () if is_one_of_all else history.of(cloud.folder)
    outputs = cloud.folder.outputs()
    lock = cloud.folder.lock()
    held, changing = _of_lock(lock, cloud.folder, context.clock) if lock else ([], [])
    found = kind.status(context, cloud, record, before)
    if changing:
        # What is not there yet is being made.
        there = tuple(it for it in found.trouble if it.why != (NOT_THERE,))
        found = dataclasses.replace(found, trouble=there)
    if record.removing:
        # What is missing was removed by this program, and by nobody else.
        found = dataclasses.replace(found, trouble=() if lock else (_HALF_WAY,))
    addresses = cloud.folder.addresses()
    if not (record.removing or lock or addresses):
        found = dataclasses.replace(found, trouble=(*found.trouble, _STATELESS))
    elif not lock and cloud.folder.serial() < record.serial:
        found = dataclasses.replace(found, trouble=(*found.trouble, _OLDER_STATE))
    return dataclasses.replace(
        found,
        kind=record.kind,
        name=record.name_prefix,
        project=record.project_id,
        cluster_id=record.cluster_id,
        zone=record.zone,
        trouble=(*held, *found.trouble),
        waiting=(*changing, *found.waiting),
        ends=(*found.ends, *_reservations(context, cloud, record)),
        history=tuple(it.done for it in done),
        in_all=history.in_all(done, context.clock.now(), context.clock.cloud),
        locked_by=lock.who if lock else None,
        lock=LockHolder(who=lock.who, operation=lock.operation, since=lock.created, id=lock.id)
        if lock
        else None,
        resources=tuple(sorted(addresses)),
        filestores=tuple(
            Filestore(**{name: json_object.text(it.get(name)) for name in _SHARE})
            for it in json_object.objects(outputs.get("filestores"))
        ),
        links=_links(record, kind, outputs),
        last_log=None if is_one_of_all else cloud.folder.last_log(),
        state=cloud.folder.location.url,
    )


def _newer_tool(version: str) -> Problem:
    return Problem(
        code=Code.NEWER_TOOL,
        what=f"version {version} of this program changed this cluster last; this is {__version__}",
        why="what the newer one does otherwise is not known here; a Create would change it back",
        fix=f"use the image of version {version}",
    )


def _of_lock(lock: Lock, folder: StateFolder, clock: Clock) -> tuple[list[Trouble], list[Waiting]]:
    if liveness.is_stale(folder, lock):
        what = f"a run was killed that was changing it since {lock.created}, and left it locked"
        none = f"no process of that run of {lock.who}, on this machine, is left"
        go_on = "run Create --yes to go on, or Destroy --yes: each releases the lock first"
        why = none, lock.operation
        return [Trouble(about=About.LOCK, what=what, why=why, fix=go_on)], []
    free = (
        f"if you are sure that this run is dead, run its action again with --break-lock {lock.id}"
    )
    if clock.since(lock.taken or clock.now()) <= _LONG:
        what = f"{lock.who} is changing it since {lock.created}"
        return [], [Waiting(about=About.LOCK, what=what, why=(lock.operation,), advice=free)]
    what = f"{lock.who} holds the lock since {lock.created}, and nobody else can change it"
    why = "no run holds it for a day: machines are waited for without it", lock.operation
    return [Trouble(about=About.LOCK, what=what, why=why, fix=free)], []


def _links(record: Record, kind: Kind[ClusterSpec], outputs: Mapping[str, Any]) -> dict[str, str]:
    """Pages of the Google Cloud console: title -> URL."""
    project = f"project={record.project_id}"
    title, page = kind.page(record)
    links = {
        title: f"{_CONSOLE}/{page}?{project}",
        "Bucket": f"{_CONSOLE}/storage/browser?{project}",
        "Quotas": f"{_CONSOLE}/iam-admin/quotas?{project}",
    }
    dashboard = json_object.text(json_object.inner(outputs.get("dashboard")).get("url"))
    return links | ({"Dashboard": dashboard} if dashboard else {})


# ------------------------------------------------------------------ what is wrong


def gpus_of(machine_type: str, attached: str | None = None, count: int = 0) -> str:
    """The GPUs of each machine, such as "2 x A100 40 GB"; "" for none, or if not known."""
    if attached and count:
        return f"{count} x {gpu_words(attached)}"
    machine = machines.lookup(machine_type)
    if machine is None or machine.family.gpu is None:
        return ""
    # A machine may have a part of one, such as "1/8".
    return f"{machine.part or machine.gpus or 0} x {gpu_words(machine.family.gpu.name)}"


class Named(Protocol):
    """What has a name."""

    @property
    def name(self) -> str:
        """The name."""


def alike(things: Iterable[T], what: Callable[[T], K]) -> dict[K, list[T]]:
    """Things by what is said of them, in the order in which that comes first."""
    found: dict[K, list[T]] = {}
    for thing in things:
        found.setdefault(what(thing), []).append(thing)
    return found


class Who(TypedDict):
    """Some machines or jobs, as troubles and waits have them."""

    count: int
    names: tuple[str, ...]


def who(them: Sequence[Named]) -> Who:
    """Things with names, all of them."""
    return Who(count=len(them), names=tuple(it.name for it in them))


def trouble(
    problem: Problem,
    about: About,
    names: Sequence[str] = (),
    *,
    count: int = 0,
    passes: bool = False,
) -> Trouble:
    """A problem as Status has it; `passes`: whether it may go away, since Google goes on trying."""
    return Trouble(
        about=about,
        what=problem.what,
        count=count or max(1, len(names)),
        names=tuple(names),
        why=tuple(dict.fromkeys(problem.why.splitlines())),
        fix=problem.fix,
        by_itself=passes,
    )


# ------------------------------------------------------------------ when machines end


def seconds_of(moment: str | None) -> float | None:
    """An RFC 3339 moment as Unix epoch; None where there is none, or it can't be read."""
    try:
        return dt.datetime.fromisoformat(moment).timestamp() if moment else None
    except (ValueError, OverflowError):
        return None


def until(moment: str, clock: Clock) -> int:
    """Seconds of cloud time until a moment in RFC 3339 format; 0 for one in the past."""
    return int(clock.until(dt.datetime.fromisoformat(moment).timestamp()))


def age(moment: str, clock: Clock) -> float:
    """Seconds of cloud time since a moment in RFC 3339 format."""
    return clock.since(dt.datetime.fromisoformat(moment).timestamp())


def moment(seconds: float, clock: Clock) -> str:
    """The time so many seconds of cloud time from now, in RFC 3339 format."""
    then = dt.datetime.fromtimestamp(clock.now() + seconds, dt.UTC)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")


def run_ends(remaining: Sequence[int], noun: str, clock: Clock) -> list[End]:
    """The end of machines that have these seconds of cloud time left; empty if there are none."""
    if not remaining:
        return []
    first, last = min(remaining), max(remaining)
    return [
        End(
            what=counted(len(remaining), noun),
            how=EndedBy.RUN,
            first=moment(first, clock),
            last=moment(last, clock),
            first_seconds=first,
            last_seconds=last,
        )
    ]


def never_ends(count: int, noun: str, more: str = "") -> End:
    """That machines have no end of their own."""
    return End(what=counted(count, noun), how=EndedBy.NEVER, words=more)


def _reservations(context: Context, cloud: Cloud, record: Record) -> Iterator[End]:
    """The ends of the reservations that machines come from, as far as Google tells them."""
    named = {one.reservation for one in record.reservations.values()}
    named.add(str(record.settings.get("RESERVATION_NAME") or ""))
    for text in sorted(named - {""}):
        path = ReservationPath.parse(text)
        if path is None:
            continue
        owner = path.owner(record.project_id)
        url = f"projects/{owner}/zones/{record.zone}/reservations/{path.name}"
        try:
            end = str((cloud.api.find(Service.COMPUTE, url) or {}).get("deleteAtTime") or "")
        except GoogleApiError:
            continue  # its owner lets nobody know
        if end:
            left = until(end, context.clock)
            yield End(
                what=f"the reservation {path.name}",
                how=EndedBy.RESERVATION,
                first=end,
                last=end,
                first_seconds=left,
                last_seconds=left,
                words="machines that are bound to it are deleted with it",
            )


# ------------------------------------------------------------------ what it costs

_HOUR: Final = 3600
_EXACT: Final = Decimal("0.01")


@dataclass(frozen=True, kw_only=True)
class Existing(ClusterSpec):
    """A cluster that exists, as far as its cost goes: by what Google says of its machines."""

    machines: tuple[Pool, ...]  # the machines that run jobs
    system_pools: tuple[Pool, ...] = ()  # those that run none
    makes_network: bool = False  # whether it has a network of its own
    has_control_plane: bool = False  # whether Google runs a control plane for it
    gpu_networks: tuple[fabrics.Network, ...] = ()  # which cost nothing
    # name of a pool -> how long each of its machines has existed, in hours of cloud time
    ages: Mapping[str, Sequence[float]]
    age: float | None  # how long all else has existed; None if not known

    @classmethod
    def of(cls, record: Record, **known: Any) -> Self:
        """That of a record, with what is known of it beside."""
        return cls(
            project_id=record.project_id,
            name_prefix=record.name_prefix,
            region=record.region,
            zone=record.zone,
            shares=shares(record),
            **known,
        )

    @property
    def pools(self) -> tuple[Pool, ...]:
        """All machines."""
        return (*self.machines, *self.system_pools)

    def with_each(self, change: Callable[[Pool], Pool]) -> Mapping[str, Any]:
        """The machines that run jobs, changed."""
        return {"machines": tuple(map(change, self.machines))}


def cost_of(existing: Existing | None, listed: Prices | None) -> tuple[Cost | None, SoFar | None]:
    """What a cluster costs now and at most, and what exists now has cost so far.

    None where not enough is known of it, or no prices are wanted.
    """
    if existing is None or listed is None:
        return None, None
    running = {pool.name: len(existing.ages.get(pool.name, ())) for pool in existing.pools}
    cost = estimate.of(existing, listed, running)
    return cost, _so_far(cost, existing)


def hours(created: str | None, clock: Clock) -> float | None:
    """The age of what came at a moment, in hours of cloud time; None if not known."""
    return age(created, clock) / _HOUR if created else None


def shares(record: Record) -> tuple[Share, ...]:
    """The Filestore shares that the last Create asked for."""
    return tuple(
        Share.model_construct(path=it["path"], tier=Tier(it["tier"]), size_gb=it["size_gb"])
        for it in record.settings.get("NFS_FILESHARE_LIST") or ()
    )


def _so_far(cost: Cost, existing: Existing) -> SoFar:
    spent = [(part, _spent(part, existing)) for part in cost.parts if part.now != 0]
    ages = [age for found in existing.ages.values() for age in found]
    return SoFar(
        usd=sum((usd for _, usd in spent if usd is not None), Decimal(0)).quantize(_EXACT),
        hours=Decimal(max([*ages, existing.age or 0.0])).quantize(_EXACT),
        unknown=tuple(part.name for part, usd in spent if usd is None),
        is_estimate=any(part.is_estimate for part, usd in spent if usd is not None),
    )


def _spent(part: Part, existing: Existing) -> Decimal | None:
    """What a part has cost since it came; None if its price or its age is not known."""
    if part.now is None:
        return None
    if part.pool is None:
        return None if existing.age is None else part.now * Decimal(existing.age)
    found = existing.ages[part.pool]
    return part.now / len(found) * Decimal(sum(found))
