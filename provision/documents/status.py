"""What exists of a deployment and the state that it is in, as Status tells it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final, Self, TypeVar

from provision.documents.cost import Cost

# The longest lists of a Status without --full: so its JSON stays under 64 KB, whatever happens.
_MOST_THINGS: Final = 8
_MOST_NAMES: Final = 8
_MOST_LINES: Final = 3
_MOST_CHARACTERS: Final = 400


class PoolMode(enum.StrEnum):
    """How the machines of a pool are got; a pool of system nodes has a mode of its own."""

    STANDARD = "standard"
    SPOT = "spot"
    RESERVATION = "reservation"
    RESERVATION_BOUND = "reservation_bound"
    FLEX_START = "flex_start"
    QUEUED = "queued"
    FLEX_START_QUEUED = "flex_start_queued"
    SYSTEM = "system"


class About(enum.StrEnum):
    """What a trouble or a wait is about."""

    CLUSTER = "cluster"
    POOL = "pool"
    MACHINES = "machines"
    START_UP = "start_up"
    REQUEST = "request"
    JOB = "job"
    LOCK = "lock"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, kw_only=True)
class Trouble:
    """Something that is broken: one cause, and all that have it."""

    about: About  # what it is about
    what: str  # what is wrong, such as "2 VMs failed in the step command"
    count: int = 1  # how many have it
    names: tuple[str, ...] = ()  # their names; without --full the first ones
    why: tuple[str, ...] = ()  # what Google, Kubernetes or a VM says of it, a line each
    fix: str = ""  # what fixes it; "" if nothing but waiting does
    by_itself: bool = False  # whether it may go away, since Google goes on trying


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Something that is under way or waits, and is no failure."""

    about: About  # what it is about
    what: str  # what waits and for what, such as "1 VM is at the step ray"
    count: int = 1  # how many wait so
    names: tuple[str, ...] = ()  # their names; without --full the first ones
    seconds: int | None = None  # for how long; None if not known
    why: tuple[str, ...] = ()  # what Google, Kubernetes or a VM says of it, a line each
    advice: str = ""  # what can be done about it; "" if there is nothing to do but wait
    # when that ends automatically, in RFC 3339 format; None for never, or if not known
    until: str | None = None
    until_seconds: int | None = None  # the seconds until then
    then: str = ""  # what happens then; "" for nothing


@dataclass(frozen=True, kw_only=True)
class PoolNow:
    """A group of VMs or a node pool: what was asked for, and what is."""

    name: str  # the name of the managed instance group or of the node pool
    machine_type: str  # the machine type that new ones get; "" if not known
    zone: str  # the zone; "" for several
    mode: PoolMode | None  # how they are got; None if not known
    gpus: str = ""  # what GPUs each has, such as "2 x A100 40 GB"; "" for none, or if not known
    # the number asked for; None where it scales automatically, or is not known
    asked: int | None = None
    least: int | None = None  # the least number of a pool that scales; None for others
    most: int | None = None  # the greatest number of a pool that scales; None for others
    there: int | None  # how many exist; None if not known
    ready: int | None  # how many of them run and are ready for work; None if not known


class EndedBy(enum.StrEnum):
    """What ends something.

    `RUN`: The end of its run. `RESERVATION`: The end of its reservation. `MAINTENANCE`: The
    maintenance of its host, after which it comes back. `NEVER`: Nothing.
    """

    RUN = "run_duration"
    RESERVATION = "reservation"
    MAINTENANCE = "maintenance"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class End:
    """When something ends automatically."""

    what: str  # what ends, such as "4 VMs" or "the reservation r"
    how: EndedBy  # what ends it
    # when the first of them ends, in RFC 3339 format; None if that is not yet known
    first: str | None = None
    last: str | None = None  # when the last of them ends
    first_seconds: int | None = None  # the seconds until then
    last_seconds: int | None = None  # the seconds until the last
    words: str = ""  # what else is to be said of it; "" for nothing


@dataclass(frozen=True, kw_only=True)
class Older:
    """Machines that are older than the settings, all with the same differences."""

    differences: tuple[str, ...]  # what differs, in words
    count: int  # how many
    names: tuple[str, ...]  # their names; without --full the first ones
    # what replaces them: "Create --replace-vms", or "Destroy, then Create"
    fix: str = "Create --replace-vms"


@dataclass(frozen=True, kw_only=True)
class Happened:
    """What has happened to machines within a day, as Google tells of it."""

    event: str  # "preempted", "host-error", "maintenance" or "remade"
    count: int  # how often
    names: tuple[str, ...]  # the machines, those first that it happened to most often
    last: str  # when it happened last, in RFC 3339 format
    words: str  # all of that as a sentence


_Thing = TypeVar("_Thing")
_Named = TypeVar("_Named", Trouble, Waiting, Older, Happened)


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """What has been billed of what exists now; what has ended before is not in it."""

    # USD since each part came, by list prices, of the parts whose price and age are known
    usd: Decimal
    hours: Decimal  # the age of the oldest of them, in hours
    unknown: tuple[str, ...] = ()  # the names of the others; with any, `usd` is a minimum
    is_estimate: bool = False  # whether one of the prices is an estimate


@dataclass(frozen=True, kw_only=True)
class InAll:
    """What a deployment has cost since it began, what has ended meanwhile included."""

    # USD at most, by list prices: as if everything that was asked for had run all the time
    usd: Decimal
    since: str  # when it began, in RFC 3339 format


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a run has done to a deployment."""

    at: str  # when it let go of the lock, in RFC 3339 format
    action: str  # the action
    version: str  # the version of this program
    who: str  # who ran it, "user@host"
    ended: str  # "done", or the code of the problem that it ended with


@dataclass(frozen=True, kw_only=True)
class LockHolder:
    """Who is changing the deployment."""

    who: str  # the holder, "user@host"
    operation: str  # what it does, in Terraform's words
    since: str  # when it took the lock, as Terraform writes it
    id: str  # the lock's ID


@dataclass(frozen=True, kw_only=True)
class Filestore:
    """A Filestore share of the cluster."""

    name: str  # the instance's name
    path: str  # where it is mounted
    ip: str  # its IP address
    share: str = ""  # the path of the share on it


@dataclass(frozen=True, kw_only=True)
class Status:
    """What each kind of cluster has; fields without a value are left out of the JSON."""

    kind: str | None = None  # the kind, such as "mig" or "gke"; None if nothing is deployed
    words: str = ""  # what it is in a few words, such as "VM group"; "" if nothing is deployed
    name: str = ""  # NAME_PREFIX
    project: str = ""  # the project
    # the value of the label `aiinfra-cluster` on everything that can carry one
    cluster_id: str | None = None
    zone: str | None = None  # the zone of the machines
    trouble: tuple[Trouble, ...] = ()  # what is broken, the worst first
    waiting: tuple[Waiting, ...] = ()  # what is under way or waits; empty if nothing is pending
    machines: tuple[PoolNow, ...] = ()  # what was asked for, and what is, by group or node pool
    ends: tuple[End, ...] = ()  # when what ends automatically does so
    out_of_date: tuple[Older, ...] = ()  # the machines that are older than the settings
    # what it costs now and at most, by list prices; None if that is not known
    cost: Cost | None = None
    so_far: SoFar | None = None  # what has been billed of what exists now; None in the same case
    # what it has cost since it began, after Destroy in `ending`; None if that is not known
    in_all: InAll | None = None
    happened: tuple[Happened, ...] = ()  # what has happened to machines within a day
    history: tuple[Done, ...] = ()  # what runs have done to it, the first first
    locked_by: str | None = None  # who is changing it, "user@host"; None for nobody
    lock: LockHolder | None = None  # the lock of that run
    resources: tuple[str, ...] = ()  # the addresses in Terraform's state
    filestores: tuple[Filestore, ...] = ()  # the Filestore shares
    # pages of the Google Cloud console: title -> URL
    links: dict[str, str] = dataclasses.field(default_factory=dict)
    last_log: str | None = None  # the URL of the newest log
    state: str = ""  # the folder with the state, "gs://..."
    shortened: bool = False  # whether lists were cut short; --full has all of them

    @property
    def is_pending(self) -> bool:
        """Whether something is under way or waits, so that a later look may find another state."""
        return bool(self.waiting) or any(one.by_itself for one in self.trouble)

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is known to be broken, and not all could be looked at."""
        return bool(self.trouble) and all(it.about is About.KUBERNETES for it in self.trouble)

    @property
    def news(self) -> object:
        """What differs from another look only where something has happened, not by time alone."""
        return (
            self.kind,
            self.locked_by,
            self.machines,
            [(one.about, one.what, one.names) for one in self.trouble],
            [(one.about, one.what, one.names, one.why) for one in self.waiting],
            self.out_of_date,
        )

    def short(self) -> Self:
        """The same with lists of a limited length: the broken first, and counts of all."""
        cut = dataclasses.replace(
            self,
            trouble=tuple(_with_few_names(it, why=lines(it.why)) for it in few(self.trouble)),
            waiting=tuple(_with_few_names(it, why=lines(it.why)) for it in few(self.waiting)),
            out_of_date=tuple(map(_with_few_names, few(self.out_of_date))),
            happened=tuple(map(_with_few_names, self.happened)),
            history=self.history[-_MOST_THINGS:],
        )
        return dataclasses.replace(cut, shortened=cut != self)


def few(things: Sequence[_Thing]) -> Sequence[_Thing]:
    """The first of a list."""
    return things[:_MOST_THINGS]


def lines(texts: Iterable[str]) -> tuple[str, ...]:
    """The first of some texts, cut short together."""
    found: list[str] = []
    left = _MOST_CHARACTERS
    for text in list(texts)[:_MOST_LINES]:
        if left > 0:
            found.append(cut(text, left))
            left -= len(text)
    return tuple(found)


def cut(text: str, most: int = _MOST_CHARACTERS) -> str:
    """A text of limited length."""
    return text if len(text) <= most else text[: max(0, most - 3)] + "..."


def _with_few_names(thing: _Named, **changes: Any) -> _Named:
    return dataclasses.replace(thing, names=thing.names[:_MOST_NAMES], **changes)
