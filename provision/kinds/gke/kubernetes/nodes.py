"""The nodes of a cluster as Kubernetes tells of them: when they end, and what is wrong with them.

Sources: GKE's device plugin (GoogleCloudPlatform/container-engine-accelerators, read 2026-11-22)
for the condition and the events of XIDs; Google's "Manage AI-optimized GKE clusters" (read
2026-11-23) and the autoscaler's source (2026-08-21) for labels, annotations and taints; one user's
node (GKE 1.35, A4, 2026-08-19) for what is in `node.gke.io/upcoming-maintenance`.
"""

from __future__ import annotations

import collections
import contextlib
import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.kinds.gke.kubernetes import kueue
from provision.kinds.gke.kubernetes.objects import Object, conditions, holds, later
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from provision.kinds.gke.kubernetes.client import Cluster

CORDONED: Final = "aiinfra-cluster/cordoned"
"""The annotation with the reason and how to undo it, for whoever looks at the node."""
_RUN: Final = "cloud.google.com/gke-max-run-duration-seconds"
"""The label of nodes with the longest run of their pool, in seconds."""
_SCHEDULED: Final = "cloud.google.com/scheduled-maintenance-time"
"""The label with the beginning of the host's maintenance, in seconds of the Unix epoch."""
_UPCOMING: Final = "node.gke.io/upcoming-maintenance"
_ACTIVE: Final = "cloud.google.com/active-node-maintenance"
_REPORTED: Final = (
    "cloud.google.com/fault-behavior",
    "cloud.google.com/report-and-replace-status",
)
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
    cordon: str = ""  # why, where `Test` did
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


def read(
    things: Iterable[Object], events: Iterable[Object] = (), clock: Clock = _CLOCK
) -> tuple[Nodes, ...]:
    """The nodes of each pool, of whose name all have the label."""
    seen: dict[str, list[Object]] = collections.defaultdict(list)
    for event in events:
        about = event["involvedObject"]
        if event.get("reason") == _XID_EVENT and about.get("kind") == "Node":
            seen[str(about.get("name"))].append(event)
    pools: dict[str, list[Node]] = {}
    for thing in things:
        metadata = thing["metadata"]
        created = str(metadata.get("creationTimestamp") or "")
        # One that was made again has its name from the one that failed, whose events stay.
        its = (
            it
            for it in seen[metadata["name"]]
            if str(it.get("lastTimestamp") or it.get("eventTime") or created) >= created
        )
        xids = {xid for it in its for xid in _XID_WORDS.findall(str(it.get("message")))}
        node = _node(thing, xids, clock)
        pools.setdefault(metadata["labels"][kueue.POOL_LABEL], []).append(node)
    return tuple(Nodes(pool=pool, each=tuple(nodes)) for pool, nodes in sorted(pools.items()))


def cordon(cluster: Cluster, node: str, why: str) -> bool:
    """Take a node out of use as `kubectl cordon` does, and write why on it; whether it is there."""
    text = f"Test found: {why}; undo with: kubectl uncordon {node}"
    change = {"metadata": {"annotations": {CORDONED: text}}, "spec": {"unschedulable": True}}
    return cluster.merge("v1", "Node", node, change)


def _node(thing: Object, seen: Collection[str], clock: Clock) -> Node:
    """A node; `seen`: the XIDs of the device plugin's events about it."""
    metadata, spec, status = (thing.get(part) or {} for part in ("metadata", "spec", "status"))
    labels, annotations = (metadata.get(part) or {} for part in ("labels", "annotations"))
    created = str(metadata.get("creationTimestamp") or "")
    # As GKE says it, or else from the longest run of its pool.
    ends, run = str(annotations.get(kueue.NODE_ENDS, "")), str(labels.get(_RUN, ""))
    if not ends and created and run.isdecimal():
        ends = later(created, clock.wall(int(run)))
    # The node's condition has them in its reason, as the keys of a JSON object.
    said = str(conditions(thing).get(_XID, {}).get("reason", ""))
    xids = (tuple(_object(said)) or (said or "not told",)) if holds(thing, _XID) else ()
    recent = set(seen) - _OF_PROGRAMS - set(xids)
    gpus, usable = (
        int((status.get(part) or {}).get(kueue.GPU) or 0) for part in ("capacity", "allocatable")
    )
    return Node(
        name=metadata["name"],
        zone=str(labels.get("topology.kubernetes.io/zone", "")),
        created=created,
        ends=ends,
        unready="" if holds(thing, "Ready") else _unready(thing),
        cordoned=bool(spec.get("unschedulable")),
        cordon=str((metadata.get("annotations") or {}).get(CORDONED, "")),
        gpus=gpus,
        usable=usable,
        xids=xids,
        recent=tuple(sorted(recent, key=int)),
        maintenance=_maintenance(labels, _object(annotations.get(_UPCOMING, ""))),
        reported=": ".join(filter(None, (labels.get(it, "") for it in _REPORTED))),
        is_leaving=any(taint["key"] in _LEAVING for taint in spec.get("taints") or []),
    )


def _object(text: str) -> dict[str, Any]:
    """A JSON object; {} for a text that is none."""
    with contextlib.suppress(ValueError):
        found = json.loads(text)
        if isinstance(found, dict):
            return found
    return {}


def _unready(thing: Object) -> str:
    ready = conditions(thing).get("Ready", {})
    reason = f" ({ready['reason']})" if ready.get("reason") else ""
    message = str(ready.get("message", ""))
    return f"{thing['metadata']['name']} is not ready{reason}: {message}".rstrip(": ")


def _maintenance(labels: Mapping[str, str], told: Mapping[str, Any]) -> Maintenance | None:
    """The maintenance by a node's labels, and by what GKE tells of it in an annotation."""
    scheduled = str(labels.get(_SCHEDULED, ""))
    ongoing = labels.get(_ACTIVE) == "ONGOING"
    if not (told or scheduled or ongoing):
        return None
    begins = ""
    with contextlib.suppress(ValueError):
        begins = later(str(told.get("window_start_time", "")), 0)
    if scheduled.isdecimal():
        begins = later("1970-01-01T00:00:00Z", int(scheduled))
    why = told.get("maintenance_reason") or ()
    return Maintenance(
        begins=begins,
        reasons=(why,) if isinstance(why, str) else tuple(str(one) for one in why),
        is_ongoing=ongoing,
        can_begin_now=str(told.get("can_reschedule", "")).lower() == "true",
    )
