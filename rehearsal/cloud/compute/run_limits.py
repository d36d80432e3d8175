"""How long VMs may run before Compute Engine deletes or stops them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import agenda, reservation_use

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rehearsal.cloud.compute.resources import Call, Resource

END = "the end of runs"
"""What the agenda calls it when VMs have run as long as they may."""


@dataclass(frozen=True)
class Runs:
    """VMs that begin to run together."""

    group: str  # the name of their group
    vms: Sequence[str]  # their names
    running: float  # when they run (Unix epoch)
    # how long they may, in cloud time, in place of what their template says
    seconds: int | None = None


def of(call: Call, template: Resource, runs: Runs) -> Resource:
    """What new VMs have of the end of their run, which is put on the agenda; {} without one."""
    scheduling = template["properties"]["scheduling"]
    seconds = runs.seconds or int((scheduling.get("maxRunDuration") or {}).get("seconds", 0))
    until = reservation_use.end_of(call, template)
    if until is not None:
        # Bound to a reservation, VMs end with it.
        agenda.note(call, until, END, group=runs.group, vms=list(runs.vms), ends=until)
        return {"_ends": until}
    if not seconds:
        return {}
    limited = {"scheduling": {**scheduling, "maxRunDuration": {"seconds": str(seconds)}}}
    if not call.request.rate:
        # Where nothing takes time no time passes, and so no run is ever over.
        return {**limited, "_ends": runs.running + seconds}
    ends = runs.running + seconds * call.request.rate
    agenda.note(call, ends, END, group=runs.group, vms=list(runs.vms), ends=ends)
    return {**limited, "_ends": ends}
