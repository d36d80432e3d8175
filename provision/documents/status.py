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
    """Something that is broken: one cause, and all that have it.

    Attributes:
        about: What it is about.
        what: What is wrong, such as "2 VMs failed in the step command".
        count: How many have it.
        names: Their names; without --full the first ones.
        why: What Google, Kubernetes or a VM says of it, a line each.
        fix: What fixes it; "" if nothing but waiting does.
        by_itself: Whether it may go away, since Google goes on trying.
    """

    about: About
    what: str
    count: int = 1
    names: tuple[str, ...] = ()
    why: tuple[str, ...] = ()
    fix: str = ""
    by_itself: bool = False


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Something that is under way or waits, and is no failure.

    Attributes:
        about: What it is about.
        what: What waits and for what, such as "1 VM is at the step ray".
        count: How many wait so.
        names: Their names; without --full the first ones.
        seconds: For how long; None if not known.
        why: What Google, Kubernetes or a VM says of it, a line each.
        advice: What can be done about it; "" if there is nothing to do but wait.
        until: When that ends automatically, in RFC 3339 format; None for never, or if not known.
        until_seconds: The seconds until then.
        then: What happens then; "" for nothing.
    """

    about: About
    what: str
    count: int = 1
    names: tuple[str, ...] = ()
    seconds: int | None = None
    why: tuple[str, ...] = ()
    advice: str = ""
    until: str | None = None
    until_seconds: int | None = None
    then: str = ""


@dataclass(frozen=True, kw_only=True)
class PoolNow:
    """A group of VMs or a node pool: what was asked for, and what is.

    Attributes:
        name: The name of the managed instance group or of the node pool.
        machine_type: The machine type that new ones get; "" if not known.
        zone: The zone; "" for several.
        mode: How they are got; None if not known.
        gpus: What GPUs each has, such as "2 x A100 40 GB"; "" for none, or if not known.
        asked: The number asked for; None where it scales automatically, or is not known.
        least: The least number of a pool that scales; None for others.
        most: The greatest number of a pool that scales; None for others.
        there: How many exist; None if not known.
        ready: How many of them run and are ready for work; None if not known.
    """

    name: str
    machine_type: str
    zone: str
    mode: PoolMode | None
    gpus: str = ""
    asked: int | None = None
    least: int | None = None
    most: int | None = None
    there: int | None
    ready: int | None


class EndedBy(enum.StrEnum):
    """What ends something.

    Attributes:
        RUN: The end of its run.
        RESERVATION: The end of its reservation.
        MAINTENANCE: The maintenance of its host, after which it comes back.
        NEVER: Nothing.
    """

    RUN = "run_duration"
    RESERVATION = "reservation"
    MAINTENANCE = "maintenance"
    NEVER = "never"


@dataclass(frozen=True, kw_only=True)
class End:
    """When something ends automatically.

    Attributes:
        what: What ends, such as "4 VMs" or "the reservation r".
        how: What ends it.
        first: When the first of them ends, in RFC 3339 format; None if that is not yet known.
        last: When the last of them ends.
        first_seconds: The seconds until then.
        last_seconds: The seconds until the last.
        words: What else is to be said of it; "" for nothing.
    """

    what: str
    how: EndedBy
    first: str | None = None
    last: str | None = None
    first_seconds: int | None = None
    last_seconds: int | None = None
    words: str = ""


@dataclass(frozen=True, kw_only=True)
class Older:
    """Machines that are older than the settings, all with the same differences.

    Attributes:
        differences: What differs, in words.
        count: How many.
        names: Their names; without --full the first ones.
        fix: What replaces them: "Create --replace-vms", or "Destroy, then Create".
    """

    differences: tuple[str, ...]
    count: int
    names: tuple[str, ...]
    fix: str = "Create --replace-vms"


_Thing = TypeVar("_Thing")
_Named = TypeVar("_Named", Trouble, Waiting, Older)


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """What has been billed of what exists now; what has ended before is not in it.

    Attributes:
        usd: USD since each part came, by list prices, of the parts whose price and age are known.
        hours: The age of the oldest of them, in hours.
        unknown: The names of the others; with any, `usd` is a minimum.
        is_estimate: Whether one of the prices is an estimate.
    """

    usd: Decimal
    hours: Decimal
    unknown: tuple[str, ...] = ()
    is_estimate: bool = False


@dataclass(frozen=True, kw_only=True)
class LockHolder:
    """Who is changing the deployment.

    Attributes:
        who: The holder, "user@host".
        operation: What it does, in Terraform's words.
        since: When it took the lock, as Terraform writes it.
        id: The lock's ID.
    """

    who: str
    operation: str
    since: str
    id: str


@dataclass(frozen=True, kw_only=True)
class Filestore:
    """A Filestore share of the cluster.

    Attributes:
        name: The instance's name.
        path: Where it is mounted.
        ip: Its IP address.
        share: The path of the share on it.
    """

    name: str
    path: str
    ip: str
    share: str = ""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What each kind of cluster has; fields without a value are left out of the JSON.

    Attributes:
        kind: The kind, such as "mig" or "gke"; None if nothing is deployed.
        words: What it is in a few words, such as "VM group"; "" if nothing is deployed.
        name: NAME_PREFIX.
        project: The project.
        cluster_id: The value of the label `aiinfra-cluster` on everything that can carry one.
        zone: The zone of the machines.
        trouble: What is broken, the worst first.
        waiting: What is under way or waits; empty if nothing is pending.
        machines: What was asked for, and what is, by group or node pool.
        ends: When what ends automatically does so.
        out_of_date: The machines that are older than the settings.
        cost: What it costs now and at most, by list prices; None if that is not known.
        so_far: What has been billed of what exists now; None in the same case.
        locked_by: Who is changing it, "user@host"; None for nobody.
        lock: The lock of that run.
        resources: The addresses in Terraform's state.
        filestores: The Filestore shares.
        links: Pages of the Google Cloud console: title -> URL.
        last_log: The URL of the newest log.
        state: The folder with the state, "gs://...".
        shortened: Whether lists were cut short; --full has all of them.
    """

    kind: str | None = None
    words: str = ""
    name: str = ""
    project: str = ""
    cluster_id: str | None = None
    zone: str | None = None
    trouble: tuple[Trouble, ...] = ()
    waiting: tuple[Waiting, ...] = ()
    machines: tuple[PoolNow, ...] = ()
    ends: tuple[End, ...] = ()
    out_of_date: tuple[Older, ...] = ()
    cost: Cost | None = None
    so_far: SoFar | None = None
    locked_by: str | None = None
    lock: LockHolder | None = None
    resources: tuple[str, ...] = ()
    filestores: tuple[Filestore, ...] = ()
    links: dict[str, str] = dataclasses.field(default_factory=dict)
    last_log: str | None = None
    state: str = ""
    shortened: bool = False

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
