"""What happens to running VMs unbidden: Google takes their place, or their host is down.

A scenario strikes one VM of each group, once for each time that the cloud is started: `preempted`
a Spot VM, `maintenance` and `host-error` a VM with GPUs. What follows is up to the VM and to its
group: Compute Engine starts it again where it may (`automaticRestart`), and otherwise the group
makes it again, by the same name, where it repairs (`defaultActionOnFailure`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from rehearsal.cloud.compute import (
    agenda,
    fleet,
    links,
    operations,
    properties,
    refusals,
    resources,
)
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, TEMPLATE, Call, Resource
from rehearsal.cloud.facts import host_events as facts
from rehearsal.cloud.facts import machines
from rehearsal.cloud.scenarios import STRUCK
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request, rfc3339

_RUNNING, _STOPPING, _TERMINATED = "RUNNING", "STOPPING", "TERMINATED"
_SETTLED_SECONDS = 60.0
"""How long a VM runs before something happens to it: its start-up is under way then."""


@dataclass(frozen=True)
class _Blow:
    what: str  # which of the happenings it begins with
    strikes: Callable[[Resource], bool]  # whether it may happen to a VM


def _is_spot(vm: Resource) -> bool:
    return bool(vm["scheduling"]["provisioningModel"] == "SPOT")


def _has_gpus(vm: Resource) -> bool:
    machine = {"machineType": links.last(vm["machineType"])}
    return bool(vm["guestAccelerators"] or properties.accelerators(machine))


_BLOWS: Mapping[str, _Blow] = {
    "preempted": _Blow("preemption", _is_spot),
    "maintenance": _Blow("notice", _has_gpus),
    "host-error": _Blow("host error", _has_gpus),
}
"""By scenario."""

SCENARIOS = frozenset(_BLOWS)


def begin(request: Request, store: Store) -> None:
    """Put on the agenda what the scenarios do to groups that they have not struck yet."""
    for scenario in sorted(SCENARIOS & request.scenarios):
        for group, _ in list(store.list(GROUP_MANAGER.stored)):
            struck = f"{scenario} {group}"
            if store.get(STRUCK, struck) is None and _strike(request, store, scenario, group):
                store.put(STRUCK, struck, {})


def _strike(request: Request, store: Store, scenario: str, group: str) -> bool:
    """Choose the first VM of a group that it may happen to; whether there is one."""
    blow = _BLOWS[scenario]
    _, project, _, zone, *_ = group.split("/")
    call = Call(
        request=request,
        store=store,
        method=blow.what,
        project=project,
        parameters={"zone": zone},
        body={},
    )
    for name, vm in fleet.members(call, group):
        if "_gone" not in vm and blow.strikes(vm):
            settled = max(call.now, vm["_timeline"][-1][0]) + _SETTLED_SECONDS * request.rate
            agenda.note(call, settled, blow.what, vm=name)
            return True
    return False


# ------------------------------------------------------------------ what happens


def _preempt(call: Call, about: Resource) -> None:
    """Google takes the place of a Spot VM, and the zone has no other for a while."""
    name, vm = about["vm"], _running(call, about["vm"])
    if vm is None:
        return
    _record(call, "compute.instances.preempted", name, vm)
    group = _repairing(call, vm)
    if group is not None:
        _lose(call, name, vm, group)
    elif vm["scheduling"].get("instanceTerminationAction") == "DELETE":
        fleet.retire(call, [name])
    else:
        _stop(call, name, vm, [(_STOPPING, facts.STOP)])


def _simulate(call: Call) -> Resource:
    """`simulateMaintenanceEvent`: a Spot VM is preempted, another has maintenance ("Spot VMs")."""
    name = call.name(INSTANCE)
    vm = resources.require_ready(call, INSTANCE, name)
    (_preempt if _is_spot(vm) else _maintain)(call, {"vm": name})
    return call.operate(name, vm["id"])


def _lose(call: Call, name: str, vm: Resource, group: Resource) -> None:
    shortage = refusals.exhausted(call, call.parameters["zone"], _template(call, vm))
    room = call.request.after(facts.STOP + facts.SHORTAGE)
    fleet.lose(call, vm["_group"], group, name, room, shortage)
    agenda.note(call, room, "room", group=vm["_group"])


def _heal(call: Call, about: Resource) -> None:
    """There is room again for what a group has lost."""
    group = resources.find(call, GROUP_MANAGER, about["group"])
    if group is not None and "_gone" not in group:
        fleet.retry(call, about["group"], group)


def _give_notice(call: Call, about: Resource) -> None:
    """Google tells of the maintenance of a VM's host, with the notice that VMs with GPUs get."""
    name, vm = about["vm"], _running(call, about["vm"])
    if vm is None:
        return
    begins = call.request.after(facts.NOTICE)
    ends = call.request.after(facts.NOTICE + facts.MAINTENANCE)
    # With less notice than that of planned maintenance: an emergency.
    reasons = ["FAILURE_INFRA"]
    upcoming: Resource = {"begins": begins, "ends": ends, "reasons": reasons}
    if machines.tells_of_maintenance(links.last(vm["machineType"])):
        upcoming["told"] = {
            "type": "UNSCHEDULED",
            "canReschedule": False,
            "windowStartTime": rfc3339(begins),
            "windowEndTime": rfc3339(ends),
            "latestWindowStartTime": rfc3339(begins),
            "maintenanceReasons": reasons,
        }
    resources.keep(call, INSTANCE, name, {**vm, "_maintenance": upcoming})
    agenda.note(call, begins, "maintenance", vm=name)


def _maintain(call: Call, about: Resource) -> None:
    """The host is maintained: a VM with GPUs cannot move to another while it runs."""
    name, vm = about["vm"], _running(call, about["vm"])
    if vm is None:
        return
    _record(call, "compute.instances.terminateOnHostMaintenance", name, vm)
    _interrupt(call, name, vm, [(_STOPPING, facts.STOP), (_TERMINATED, facts.MAINTENANCE)])


def _fail(call: Call, about: Resource) -> None:
    """The host fails: Google repairs what was on it, or lets it be."""
    name, vm = about["vm"], _running(call, about["vm"])
    if vm is None:
        return
    _record(call, "compute.instances.hostError", name, vm)
    _interrupt(call, name, vm, [("REPAIRING", facts.DETECTION)])


def _tell_restart(call: Call, about: Resource) -> None:
    vm = resources.find(call, INSTANCE, about["vm"])
    if vm is not None and "_gone" not in vm:
        _record(call, "compute.instances.automaticRestart", about["vm"], vm)


def _interrupt(call: Call, name: str, vm: Resource, phases: Sequence[tuple[str, float]]) -> None:
    """Let a VM go down; it comes again if Compute Engine restarts it or its group repairs."""
    group = _repairing(call, vm)
    if vm["scheduling"]["automaticRestart"]:
        back = call.request.after(sum(seconds for _, seconds in phases))
        fleet.restart(call, name, _timeline(call, phases), back)
        agenda.note(call, back, "restart", vm=name)
    elif group is not None:
        fleet.repair(call, group, [name])
    else:
        _stop(call, name, vm, phases[:1])


def _stop(call: Call, name: str, vm: Resource, phases: Sequence[tuple[str, float]]) -> None:
    """Let a VM end that nobody starts again."""
    stopped = call.request.after(sum(seconds for _, seconds in phases))
    timeline = [*_timeline(call, phases), [stopped, _TERMINATED]]
    resources.keep(call, INSTANCE, name, {**vm, "_timeline": timeline, "_action": "none"})


def _timeline(call: Call, phases: Sequence[tuple[str, float]]) -> list[list[object]]:
    found: list[list[object]] = []
    passed = 0.0
    for state, seconds in phases:
        found.append([call.request.after(passed), state])
        passed += seconds
    return found


def _running(call: Call, name: str) -> Resource | None:
    """A VM, if it runs and stays."""
    vm = resources.find(call, INSTANCE, name)
    if vm is None or "_gone" in vm or fleet.status(vm, call.now) != _RUNNING:
        return None
    return vm


def _repairing(call: Call, vm: Resource) -> Resource | None:
    """A VM's group, if that makes VMs again that fail."""
    group = resources.find(call, GROUP_MANAGER, vm["_group"])
    if group is None or "_gone" in group:
        return None
    policy = group["instanceLifecyclePolicy"]
    return group if policy["defaultActionOnFailure"] == "REPAIR" else None


def _template(call: Call, vm: Resource) -> Resource:
    return resources.require(call, TEMPLATE, links.name_of(vm["_template"]))


def _record(call: Call, kind: str, name: str, vm: Resource) -> None:
    operations.tell(call.request, call.store, kind, name, vm["id"])


HAPPENINGS: Mapping[str, Callable[[Call, Resource], None]] = {
    "preemption": _preempt,
    "room": _heal,
    "notice": _give_notice,
    "maintenance": _maintain,
    "host error": _fail,
    "restart": _tell_restart,
}

METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instances.simulateMaintenanceEvent": _simulate
}
