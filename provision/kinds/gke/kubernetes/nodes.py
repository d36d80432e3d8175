"""The nodes of a cluster as Kubernetes tells of them: when they end, and what is wrong with them.

Sources: GKE's device plugin (GoogleCloudPlatform/container-engine-accelerators, read 2026-11-22)
for the condition and the events of XIDs; Google's "Manage AI-optimized GKE clusters" (read
2026-11-23) and the autoscaler's source (2026-08-21) for labels, annotations and taints; one user's
node (GKE 1.35, A4, 2026-08-19) for what is in `node.gke.io/upcoming-maintenance`.
"""

from __future__ import annotations

import contextlib
import datetime as dt
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import kueue
from provision.kinds.gke.kubernetes.objects import conditions, holds
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from provision.kinds.gke.kubernetes.client import Cluster
    from provision.kinds.gke.kubernetes.objects import Object

CORDONED: Final = "aiinfra-cluster/cordoned"
"""The annotation with the reason and how to undo it, for whoever looks at the node."""
_RUN: Final = "cloud.google.com/gke-max-run-duration-seconds"
"""The label of nodes with the longest run of their pool, in seconds."""
_SCHEDULED: Final = "cloud.google.com/scheduled-maintenance-time"
"""The label with the beginning of the host's maintenance, in seconds of the Unix epoch."""
_UPCOMING: Final = "node.gke.io/upcoming-maintenance"
_ACTIVE: Final = "cloud.google.com/active-node-maintenance"
_REPORTED: Final = "cloud.google.com/fault-behavior"
_REPORT: Final = "cloud.google.com/report-and-replace-status"
_LEAVING: Final = frozenset(
    {
        "cloud.google.com/impending-node-termination",
        "cloud.google.com/maintenance-window-started",
    }
)
"""The taints of nodes that are about to be stopped; the second one was seen by one user."""
_XID: Final = "XidCriticalError"
_XID_EVENT: Final = "XIDError"
_XID_WORDS: Final = re.compile(r"XID=(\d+)")
_CLOCK: Final = Clock()
_OF_PROGRAMS: Final = frozenset({"13", "31", "43", "45"})
"""XIDs that a program causes rather than a GPU (NVIDIA's "XID errors"): no fault of the node."""


@dataclass(frozen=True, kw_only=True)
class Maintenance:
    """The maintenance of a node's host, during which the node is down."""

    begins: str = ""  # when it begins, in RFC 3339 format; "" if that is not told
    # Google's words for why, such as "FAILURE_GPU_XID"; () if it does not say
    reasons: tuple[str, ...] = ()
    is_ongoing: bool = False  # whether it has begun
    can_begin_now: bool = False  # whether one may have it begin earlier

    @property
    def is_repair(self) -> bool:
        """Whether Google has found a fault of the host."""
        return any(one.startswith("FAILURE") for one in self.reasons)


@dataclass(frozen=True, kw_only=True)
class Node:
    """One node."""

    name: str
    zone: str = ""
    created: str = ""  # when it was created, in RFC 3339 format; "" if not known
    # when Google deletes it at the end of its run, likewise; "" for never, or not known
    ends: str = ""
    unready: str = ""  # Kubernetes' reason and message where it is not ready; "" for a ready node
    cordoned: bool = False  # whether somebody has taken it out of use
    gpus: int = 0  # how many GPUs Kubernetes counts; 0 before the driver is installed
    usable: int = 0  # how many of them pods may have
    # the XIDs for which the device plugin calls a GPU broken, as the node's condition has them
    xids: tuple[str, ...] = ()
    # other XIDs of its GPUs in the last hour, but for those that programs cause
    recent: tuple[str, ...] = ()
    # the next or present maintenance of its host; None for none
    maintenance: Maintenance | None = None
    # what somebody has reported to Google as its fault, and how far that is; "" for nothing
    reported: str = ""
    is_leaving: bool = False  # whether it is about to be stopped


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The existing nodes of one pool."""

    pool: str
    each: tuple[Node, ...]

    @property
    def count(self) -> int:
        """The number of nodes."""
        return len(self.each)

    @property
    def ready(self) -> int:
        """The number of ready nodes."""
        return sum(not node.unready for node in self.each)

    @property
    def created(self) -> tuple[str, ...]:
        """When each node was created, in RFC 3339 format, as far as it is known."""
        return tuple(node.created for node in self.each if node.created)

    @property
    def ends(self) -> tuple[str, ...]:
        """When each node is deleted at the end of its run, likewise; the soonest first."""
        # All timestamps end with Z, so they sort as text.
        return tuple(sorted(node.ends for node in self.each if node.ends))

    @property
    def unready(self) -> tuple[str, ...]:
        """The nodes that are not ready, each with Kubernetes' reason and message."""
        return tuple(node.unready for node in self.each if node.unready)


def read(
    things: Iterable[Object], events: Iterable[Object] = (), clock: Clock = _CLOCK
) -> tuple[Nodes, ...]:
    """The nodes of each pool.

    `things`: the nodes as the API returns them, all with the label of their pool.
    """
    seen = _seen(events)
    pools: dict[str, list[Node]] = {}
    for thing in things:
        pool = thing["metadata"]["labels"][kueue.POOL_LABEL]
        xids = seen.get(thing["metadata"]["name"], ())
        pools.setdefault(pool, []).append(_node(thing, xids, clock))
    return tuple(Nodes(pool=pool, each=tuple(nodes)) for pool, nodes in sorted(pools.items()))


def cordon(cluster: Cluster, node: str, why: str) -> bool:
    """Let Kubernetes start no new pod on a node, and write on it why; those that run there stay.

    As `kubectl cordon` does. Returns whether the node still exists.
    """
    text = f"Test found: {why}; undo with: kubectl uncordon {node}"
    change = {"metadata": {"annotations": {CORDONED: text}}, "spec": {"unschedulable": True}}
    return cluster.merge("v1", "Node", node, change)


def _seen(events: Iterable[Object]) -> dict[str, list[str]]:
    """The name of a node -> the XIDs of the device plugin's events about it."""
    seen: dict[str, list[str]] = {}
    for event in events:
        about = event["involvedObject"]
        if event.get("reason") == _XID_EVENT and about.get("kind") == "Node":
            found = _XID_WORDS.findall(str(event.get("message")))
            seen.setdefault(str(about.get("name")), []).extend(found)
    return seen


def _node(thing: Object, seen: Sequence[str], clock: Clock) -> Node:
    metadata, status = thing["metadata"], thing.get("status") or {}
    labels = metadata.get("labels") or {}
    taints = {taint["key"] for taint in (thing.get("spec") or {}).get("taints") or []}
    gpus, usable = (_gpus(status, part) for part in ("capacity", "allocatable"))
    xids = _critical(thing)
    recent = sorted(set(seen) - _OF_PROGRAMS - set(xids), key=int)
    return Node(
        name=metadata["name"],
        zone=str(labels.get("topology.kubernetes.io/zone", "")),
        created=_created(thing),
        ends=_end(thing, clock),
        unready="" if holds(thing, "Ready") else _unready(thing),
        cordoned=bool((thing.get("spec") or {}).get("unschedulable")),
        gpus=gpus,
        usable=usable,
        xids=xids,
        recent=tuple(recent),
        maintenance=_maintenance(metadata),
        reported=_reported(labels),
        is_leaving=bool(taints & _LEAVING),
    )


def _gpus(status: Mapping[str, Any], part: str) -> int:
    return int((status.get(part) or {}).get(kueue.GPU) or 0)


def _critical(thing: Object) -> tuple[str, ...]:
    """The XIDs of the node's condition, whose reason has them as the keys of a JSON object."""
    if not holds(thing, _XID):
        return ()
    reason = str(conditions(thing)[_XID].get("reason", ""))
    with contextlib.suppress(ValueError):
        found = json.loads(reason)
        if isinstance(found, dict) and found:
            return tuple(str(it) for it in found)
    return (reason or "not told",)


def _created(thing: Object) -> str:
    return str(thing["metadata"].get("creationTimestamp") or "")


def _end(thing: Object, clock: Clock) -> str:
    """The end of a node's run: as GKE says it, or else from the longest run of its pool."""
    metadata = thing["metadata"]
    said = str((metadata.get("annotations") or {}).get(kueue.NODE_ENDS, ""))
    run = str((metadata.get("labels") or {}).get(_RUN, ""))
    if said or not (run.isdecimal() and _created(thing)):
        return said
    left = dt.timedelta(seconds=clock.wall(int(run)))
    return _moment(dt.datetime.fromisoformat(_created(thing)) + left)


def _moment(when: dt.datetime) -> str:
    return when.astimezone(dt.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def _unready(thing: Object) -> str:
    ready = conditions(thing).get("Ready", {})
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    message = str(ready.get("message", ""))
    return f"{thing['metadata']['name']} is not ready{reason}: {message}".rstrip(": ")


def _maintenance(metadata: Mapping[str, Any]) -> Maintenance | None:
    labels, told = metadata.get("labels") or {}, _upcoming(metadata.get("annotations") or {})
    scheduled = str(labels.get(_SCHEDULED, ""))
    ongoing = labels.get(_ACTIVE) == "ONGOING"
    if not (told or scheduled or ongoing):
        return None
    begins = ""
    with contextlib.suppress(ValueError):
        begins = _moment(dt.datetime.fromisoformat(str(told.get("window_start_time", ""))))
    if scheduled.isdecimal():
        begins = _moment(dt.datetime.fromtimestamp(int(scheduled), dt.UTC))
    why = told.get("maintenance_reason") or ()
    return Maintenance(
        begins=begins,
        reasons=(why,) if isinstance(why, str) else tuple(str(one) for one in why),
        is_ongoing=ongoing,
        can_begin_now=str(told.get("can_reschedule", "")).lower() == "true",
    )


def _upcoming(annotations: Mapping[str, str]) -> Mapping[str, Any]:
    """What the annotation tells of the maintenance; {} for nothing that is understood."""
    with contextlib.suppress(ValueError):
        found = json.loads(annotations.get(_UPCOMING, ""))
        if isinstance(found, dict):
            return found
    return {}


def _reported(labels: Mapping[str, str]) -> str:
    return ": ".join(filter(None, [labels.get(_REPORTED, ""), labels.get(_REPORT, "")]))
