"""What settings of GKE alone say: node pools, the queues of teams, and when it may upgrade."""

# No deferred annotations: pydantic reads them as it makes the class.

import enum
import re
from dataclasses import dataclass
from typing import Annotated, Final, Self

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field

from provision import words
from provision.settings import parsing
from provision.settings.parsing import InvalidValueError, shorten
from provision.settings.values import (
    AcceleratorName,
    Count,
    DiskSize,
    DiskTypeWord,
    Gpus,
    MachineTypeName,
    MostNodes,
    Nodes,
    PoolName,
    ReservationName,
    RunSeconds,
    Switch,
    Zone,
)


class NodePool(BaseModel):
    """One GPU node pool; for None, the cluster-wide setting of that name applies."""

    # The settings' own validator has the rules of this one: few need one that reads it alone.
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: PoolName
    vm_type: MachineTypeName
    accelerator_type: AcceleratorName | None = None
    gpu_count: Gpus | None = None
    zone: Zone | None = None
    count: Count | None = None
    min: Nodes | None = None
    max: MostNodes | None = None
    flex_start: Switch | None = None
    queued: Switch | None = None
    spot: Switch | None = None
    reservation: ReservationName | None = None
    max_run_duration: RunSeconds | None = None
    compact: Switch | None = None
    disk_size_gb: DiskSize | None = None
    disk_type: DiskTypeWord | None = None


_OTHER_NAMES: Final = {
    **dict.fromkeys(("machine", "machine_type", "instance_type", "type"), "vm_type"),
    **dict.fromkeys(("node_count", "nodes", "num_nodes", "replicas", "size"), "count"),
    **dict.fromkeys(("accelerator", "gpu", "gpu_type"), "accelerator_type"),
    "gpus": "gpu_count",
    **dict.fromkeys(("min_nodes", "min_node_count"), "min"),
    **dict.fromkeys(("max_nodes", "max_node_count"), "max"),
    "flex": "flex_start",
    "preemptible": "spot",
    "disk_size": "disk_size_gb",
}
"""What gcloud, Cluster Toolkit and others call the keys."""


def _parse(text: str) -> list[dict[str, str]]:
    return parsing.pools(text, NodePool.model_fields, _OTHER_NAMES)


NodePools = Annotated[tuple[NodePool, ...], BeforeValidator(_parse)]


class SystemPool(BaseModel):
    """The node pool for system pods."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    vm_type: MachineTypeName = "e2-standard-4"
    min: Count = 1
    max: Count = 3
    disk_size_gb: DiskSize = 100
    spot: Switch = False
    zone: Zone | None = None  # None: ZONE


def _parse_one(text: str) -> dict[str, str]:
    first, *more = parsing.pools(text, SystemPool.model_fields, _OTHER_NAMES)
    if more:
        raise InvalidValueError("has several pools", "a cluster has one for system pods")
    return first


TheSystemPool = Annotated[SystemPool, BeforeValidator(_parse_one)]

_QUEUE_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
"""An object's name in Kubernetes (RFC 1123), short enough to be a label's value."""
LOCAL_QUEUE: Final = "dws-local-queue"
"""The queue of all, in the namespace of jobs."""
CLUSTER_QUEUE: Final = "dws-cluster-queue"
"""The same of the cluster."""
_TAKEN: Final = frozenset({CLUSTER_QUEUE, LOCAL_QUEUE})


def _queue(text: str) -> str:
    if not _QUEUE_NAME.fullmatch(text):
        raise InvalidValueError(
            "is not the name of a queue", "lower-case letters, digits and hyphens"
        )
    return text


QueueName = Annotated[str, AfterValidator(_queue)]


@dataclass(frozen=True, kw_only=True)
class Queue:
    """A queue, and the GPUs that are its own."""

    name: QueueName
    gpus: Annotated[int, Field(ge=0)]


def _queues(text: str) -> tuple[Queue, ...]:
    """`<queue>:<GPUs>,...`, each name once."""
    found: list[Queue] = []
    for item in parsing.comma_list(text):
        name, colon, gpus = (part.strip() for part in item.partition(":"))
        if not colon or not _QUEUE_NAME.fullmatch(name) or name in _TAKEN:
            raise InvalidValueError(
                f"has {shorten(item)}, which is not a queue with its GPUs",
                "<queue>:<GPUs>, separated by commas; a name has lower-case letters, digits and"
                f" hyphens, and is none of {', '.join(sorted(_TAKEN))}",
                fix=_fixed(text),
            )
        if name in {queue.name for queue in found}:
            raise InvalidValueError(f"names {name} twice", "each queue once")
        found.append(Queue(name=name, gpus=parsing.whole_number(gpus)))
        if found[-1].gpus < 0:
            raise InvalidValueError(
                f"has {words.counted(found[-1].gpus, 'GPU')} for {name}", "0 or more"
            )
    return tuple(found)


def _fixed(text: str) -> str:
    """The same with colons and commas, where other signs stand in their place."""
    form = re.compile(rf"(?P<name>{_QUEUE_NAME.pattern})[=:](?P<gpus>[0-9]{{1,6}})")
    pairs = [form.fullmatch(it) for it in re.split(r"[\s,;]+", text.strip(" ,;"))]
    names = {it["name"] for it in pairs if it}
    is_whole = all(pairs) and len(names) == len(pairs) and not names & _TAKEN
    return ",".join(f"{it['name']}:{it['gpus']}" for it in pairs if it) if is_whole else ""


Queues = Annotated[tuple[Queue, ...], BeforeValidator(_queues)]

HOLD: Final = "hold"
"""The word for no window: nodes are upgraded when the user says so."""

_FORM: Final = re.compile(
    r"(?P<days>[a-z]{3}(?: ?, ?[a-z]{3})*) +(?P<from>\d\d?:\d\d) ?- ?(?P<to>\d\d?:\d\d)",
    re.IGNORECASE,
)
_EXAMPLE: Final = "Sat,Sun 02:00-08:00"
_DAY: Final = 24 * 60  # minutes
_SHORTEST: Final = 4 * 60
"""Minutes that Google counts as a window (GKE, "Configure maintenance windows and
exclusions", read 2026-11-23)."""
_IN_A_WEEK: Final = 12 * 60
"""Minutes of windows in a week: Google wants 48 hours in any 32 days, which have at least four of
each weekday (same page)."""


class Weekday(enum.StrEnum):
    """A day of the week, by its name in a recurrence rule (RFC 5545)."""

    MON = "MO"
    TUE = "TU"
    WED = "WE"
    THU = "TH"
    FRI = "FR"
    SAT = "SA"
    SUN = "SU"


@dataclass(frozen=True, kw_only=True)
class Window:
    """A window of some hours on some days of each week, in UTC."""

    days: tuple[Weekday, ...]  # the days on which it begins, in the order of the week
    start: int  # minutes from midnight to its beginning
    minutes: int  # how long it is

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """The window of a text such as "Sat,Sun 02:00-08:00"; None for `hold`."""
        if text.lower() == HOLD:
            return None
        found = _FORM.fullmatch(text)
        if not found:
            raise InvalidValueError(
                "is neither hold nor a weekly window",
                f"hold, or days and hours in UTC, such as {_EXAMPLE}",
                fix=HOLD,
            )
        start, end = _minutes(found["from"]), _minutes(found["to"])
        window = cls(days=_days(found["days"]), start=start, minutes=(end - start) % _DAY or _DAY)
        window._require_enough()
        return window

    def _require_enough(self) -> None:
        if self.minutes < _SHORTEST:
            raise InvalidValueError(
                f"has windows of {words.duration(self.minutes * 60)}",
                "Google counts windows of 4 hours and more",
                fix=_EXAMPLE,
            )
        if self.minutes * len(self.days) < _IN_A_WEEK:
            raise InvalidValueError(
                f"has {words.duration(self.minutes * len(self.days) * 60)} a week",
                "Google wants 48 hours in any 32 days, so 12 a week",
                fix=_EXAMPLE,
            )


def _minutes(text: str) -> int:
    hours, minutes = map(int, text.split(":"))
    if hours > 24 or minutes > 59 or hours * 60 + minutes > _DAY:  # noqa: PLR2004 - a day has 24
        raise InvalidValueError(
            f"has {text}, which is no time of day", "00:00 to 24:00", fix=_EXAMPLE
        )
    return hours * 60 + minutes


def _days(text: str) -> tuple[Weekday, ...]:
    named = {part.strip().upper() for part in text.split(",")}
    unknown = sorted(named - set(Weekday.__members__))
    if unknown:
        raise InvalidValueError(
            f"has {unknown[0].capitalize()}, which is no day of the week",
            f"the days are {', '.join(name.capitalize() for name in Weekday.__members__)}",
            fix=_EXAMPLE,
        )
    return tuple(day for day in Weekday if day.name in named)


Maintenance = Annotated[Window | None, BeforeValidator(Window.parse)]
