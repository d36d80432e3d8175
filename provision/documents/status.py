"""What exists of a deployment and the state that it is in, as Status tells it."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any, Final, Self, TypeVar

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

    about: Annotated[About, "what it is about"]
    what: Annotated[str, 'what is wrong, such as "2 VMs failed in the step command"']
    count: Annotated[int, "how many have it"] = 1
    names: Annotated[tuple[str, ...], "their names; without --full the first ones"] = ()
    why: Annotated[tuple[str, ...], "what Google, Kubernetes or a VM says of it, a line each"] = ()
    fix: Annotated[str, 'what fixes it; "" if nothing but waiting does'] = ""
    by_itself: Annotated[bool, "whether it may go away, since Google goes on trying"] = False


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """Something that is under way or waits, and is no failure."""

    about: Annotated[About, "what it is about"]
    what: Annotated[str, 'what waits and for what, such as "1 VM is at the step ray"']
    count: Annotated[int, "how many wait so"] = 1
    names: Annotated[tuple[str, ...], "their names; without --full the first ones"] = ()
    seconds: Annotated[int | None, "for how long; None if not known"] = None
    why: Annotated[tuple[str, ...], "what Google, Kubernetes or a VM says of it, a line each"] = ()
    advice: Annotated[str, 'what can be done about it; "" if there is nothing to do but wait'] = ""
    until: Annotated[
        str | None,
        "when that ends automatically, in RFC 3339 format; None for never, or if not known",
    ] = None
    until_seconds: Annotated[int | None, "the seconds until then"] = None
    then: Annotated[str, 'what happens then; "" for nothing'] = ""


@dataclass(frozen=True, kw_only=True)
class PoolNow:
    """A group of VMs or a node pool: what was asked for, and what is."""

    name: Annotated[str, "the name of the managed instance group or of the node pool"]
    machine_type: Annotated[str, 'the machine type that new ones get; "" if not known']
    zone: Annotated[str, 'the zone; "" for several']
    mode: Annotated[PoolMode | None, "how they are got; None if not known"]
    gpus: Annotated[
        str, 'what GPUs each has, such as "2 x A100 40 GB"; "" for none, or if not known'
    ] = ""
    asked: Annotated[
        int | None, "the number asked for; None where it scales automatically, or is not known"
    ] = None
    least: Annotated[int | None, "the least number of a pool that scales; None for others"] = None
    most: Annotated[int | None, "the greatest number of a pool that scales; None for others"] = None
    there: Annotated[int | None, "how many exist; None if not known"]
    ready: Annotated[int | None, "how many of them run and are ready for work; None if not known"]


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

    what: Annotated[str, 'what ends, such as "4 VMs" or "the reservation r"']
    how: Annotated[EndedBy, "what ends it"]
    first: Annotated[
        str | None, "when the first of them ends, in RFC 3339 format; None if that is not yet known"
    ] = None
    last: Annotated[str | None, "when the last of them ends"] = None
    first_seconds: Annotated[int | None, "the seconds until then"] = None
    last_seconds: Annotated[int | None, "the seconds until the last"] = None
    words: Annotated[str, 'what else is to be said of it; "" for nothing'] = ""


@dataclass(frozen=True, kw_only=True)
class Older:
    """Machines that are older than the settings, all with the same differences."""

    differences: Annotated[tuple[str, ...], "what differs, in words"]
    count: Annotated[int, "how many"]
    names: Annotated[tuple[str, ...], "their names; without --full the first ones"]
    fix: Annotated[str, 'what replaces them: "Create --replace-vms", or "Destroy, then Create"'] = (
        "Create --replace-vms"
    )


@dataclass(frozen=True, kw_only=True)
class Happened:
    """What has happened to machines within a day, as Google tells of it."""

    event: Annotated[str, '"preempted", "host-error", "maintenance" or "remade"']
    count: Annotated[int, "how often"]
    names: Annotated[tuple[str, ...], "the machines, those first that it happened to most often"]
    last: Annotated[str, "when it happened last, in RFC 3339 format"]
    words: Annotated[str, "all of that as a sentence"]


_Thing = TypeVar("_Thing")
_Named = TypeVar("_Named", Trouble, Waiting, Older, Happened)


@dataclass(frozen=True, kw_only=True)
class SoFar:
    """What has been billed of what exists now; what has ended before is not in it."""

    usd: Annotated[
        Decimal,
        "USD since each part came, by list prices, of the parts whose price and age are known",
    ]
    hours: Annotated[Decimal, "the age of the oldest of them, in hours"]
    unknown: Annotated[
        tuple[str, ...], "the names of the others; with any, `usd` is a minimum"
    ] = ()
    is_estimate: Annotated[bool, "whether one of the prices is an estimate"] = False


@dataclass(frozen=True, kw_only=True)
class InAll:
    """What a deployment has cost since it began, what has ended meanwhile included."""

    usd: Annotated[
        Decimal,
        "USD at most, by list prices: as if everything that was asked for had run all the time",
    ]
    since: Annotated[str, "when it began, in RFC 3339 format"]


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a run has done to a deployment."""

    at: Annotated[str, "when it released the lock, in RFC 3339 format"]
    action: Annotated[str, "the action"]
    version: Annotated[str, "the version of this program"]
    who: Annotated[str, 'who ran it, "user@host"']
    ended: Annotated[str, '"done", or the code of the problem that it ended with']


@dataclass(frozen=True, kw_only=True)
class LockHolder:
    """Who is changing the deployment."""

    who: Annotated[str, 'the holder, "user@host"']
    operation: Annotated[str, "what it does, in Terraform's words"]
    since: Annotated[str, "when it took the lock, as Terraform writes it"]
    id: Annotated[str, "the lock's ID"]


@dataclass(frozen=True, kw_only=True)
class Filestore:
    """A Filestore share of the cluster."""

    name: Annotated[str, "the instance's name"]
    path: Annotated[str, "where it is mounted"]
    ip: Annotated[str, "its IP address"]
    share: Annotated[str, "the path of the share on it"] = ""


@dataclass(frozen=True, kw_only=True)
class Status:
    """What each kind of cluster has; fields without a value are left out of the JSON."""

    kind: Annotated[str | None, 'the kind, such as "mig" or "gke"; None if nothing is deployed'] = (
        None
    )
    words: Annotated[
        str, 'what it is in a few words, such as "VM group"; "" if nothing is deployed'
    ] = ""
    name: Annotated[str, "NAME_PREFIX"] = ""
    project: Annotated[str, "the project"] = ""
    cluster_id: Annotated[
        str | None, "the value of the label `aiinfra-cluster` on everything that can carry one"
    ] = None
    zone: Annotated[str | None, "the zone of the machines"] = None
    trouble: Annotated[tuple[Trouble, ...], "what is broken, the worst first"] = ()
    waiting: Annotated[
        tuple[Waiting, ...], "what is under way or waits; empty if nothing is pending"
    ] = ()
    machines: Annotated[
        tuple[PoolNow, ...], "what was asked for, and what is, by group or node pool"
    ] = ()
    ends: Annotated[tuple[End, ...], "when what ends automatically does so"] = ()
    out_of_date: Annotated[tuple[Older, ...], "the machines that are older than the settings"] = ()
    cost: Annotated[
        Cost | None, "what it costs now and at most, by list prices; None if that is not known"
    ] = None
    so_far: Annotated[
        SoFar | None, "what has been billed of what exists now; None in the same case"
    ] = None
    in_all: Annotated[
        InAll | None,
        "what it has cost since it began, after Destroy in `ending`; None if that is not known",
    ] = None
    happened: Annotated[tuple[Happened, ...], "what has happened to machines within a day"] = ()
    history: Annotated[tuple[Done, ...], "what runs have done to it, the first first"] = ()
    locked_by: Annotated[str | None, 'who is changing it, "user@host"; None for nobody'] = None
    lock: Annotated[LockHolder | None, "the lock of that run"] = None
    resources: Annotated[tuple[str, ...], "the addresses in Terraform's state"] = ()
    filestores: Annotated[tuple[Filestore, ...], "the Filestore shares"] = ()
    links: Annotated[dict[str, str], "pages of the Google Cloud console: title -> URL"] = (
        dataclasses.field(default_factory=dict)
    )
    last_log: Annotated[str | None, "the URL of the newest log"] = None
    state: Annotated[str, 'the folder with the state, "gs://..."'] = ""
    shortened: Annotated[bool, "whether lists were cut short; --full has all of them"] = False

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
