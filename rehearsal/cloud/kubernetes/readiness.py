"""Whether the pods of an admitted job are ready, and how long Kueue waits for them.

As Kueue 0.18.3 does it (its source of 2026-07-10): of a Ray cluster it reads the state alone, which
KubeRay (1.6.2) never takes back, so that a lost worker is not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from rehearsal.cloud.kubernetes import kueue_settings, objects

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rehearsal.cloud.kubernetes.objects import Object, World

_START: Final = "WaitForStart"
_RECOVERY: Final = "WaitForRecovery"
_NOT_READY: Final = "Not all pods are ready or succeeded"
_LOST: Final = "At least one pod has failed, waiting for recovery"
_READY: Final = "All pods reached readiness and the workload is running"


@dataclass(frozen=True)
class Overdue:
    """A job whose pods were not ready for too long."""

    again: bool  # whether it is queued again; else it has been too often
    count: int  # how often it has been queued again then
    moment: float  # when its turn comes again (Unix epoch)


def look(world: World, workload: Object, job: Object) -> Overdue | None:
    """Tell whether the pods of a workload are ready; what is to be done if not for too long."""
    patience = kueue_settings.patience(world)
    if patience is None:
        return None
    _tell(world, workload, job)
    said = objects.condition(workload, "PodsReady")
    if said["status"] == "True" or not objects.holds(workload, "Admitted"):
        return None
    starts = said["reason"] == _START
    allowed = patience.start if starts else patience.recovery
    if allowed is None or not world.request.rate:
        return None
    since = workload["_admitted" if starts else "_unready"]
    deadline = since + allowed * world.request.rate
    world.wake(deadline)
    if deadline > world.now:
        return None
    count = int((workload["status"].get("requeueState") or {}).get("count", 0)) + 1
    again = patience.limit is None or count <= patience.limit
    return Overdue(again, count, world.request.after(patience.pause(count)))


def _tell(world: World, workload: Object, job: Object) -> None:
    before = objects.condition(workload, "PodsReady")
    if not objects.holds(workload, "Admitted"):
        objects.tell(world, workload, "PodsReady", False, _START, _NOT_READY)
    elif _is_ready(job):
        healed = before.get("reason") in {_RECOVERY, "Recovered"}
        reason = "Recovered" if healed else "Started"
        objects.tell(world, workload, "PodsReady", True, reason, _READY)
    elif before.get("status") == "True":
        workload["_unready"] = world.now
        objects.tell(world, workload, "PodsReady", False, _RECOVERY, _LOST)
    elif before.get("reason") != _RECOVERY:
        objects.tell(world, workload, "PodsReady", False, _START, _NOT_READY)


def _is_ready(job: Object) -> bool:
    spec, status = job["spec"], job.get("status") or {}
    match job["kind"]:
        case "Job":
            wanted = int(spec.get("parallelism", 1))
            wanted = min(wanted, int(spec.get("completions") or wanted))
            return bool(_sum([status], "ready", "succeeded") >= wanted)
        case "JobSet":
            wanted = sum(int(it.get("replicas", 1)) for it in spec.get("replicatedJobs") or [])
            known = status.get("replicatedJobsStatus") or []
            return bool(_sum(known, "ready", "succeeded") == wanted)
        case "RayJob":
            return bool((status.get("rayClusterStatus") or {}).get("state") == "ready")
        case _:
            return bool(status.get("state") == "ready")


def _sum(statuses: Iterable[Object], *names: str) -> int:
    return sum(int(it.get(name, 0)) for it in statuses for name in names)
