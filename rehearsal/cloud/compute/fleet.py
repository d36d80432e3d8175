"""The VMs of managed instance groups: how they come, live and go.

A VM knows from its start what it will be when: `_timeline` is a list of [moment, status], `_gone`
the moment at which it is no more. `_action` is what its group is doing with it until the last
status of the timeline is reached; `_group` and `_template` are its origin. `_ends` is the moment at
which its run duration is over, and `_maintenance` tells of that of its host; `_request` is the
resize request that it came by. `_accounts` has the numbers of its accounts: one that is deleted
or disabled, and one that is made by its name, give a VM no token.

A VM that Google refuses does not exist: its name waits in the group's `_waiting`, and the group
goes on trying; not before `_hold`, for those that it has lost and makes again: `_lost`, each with
the template that it was made of.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from rehearsal.cloud import iam
from rehearsal.cloud.compute import (
    agenda,
    links,
    operations,
    refusals,
    reservation_use,
    resources,
    startup,
    startup_told,
    stock,
    vms,
)
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, TEMPLATE, Call, Resource
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, rfc3339

ACTIONS = (
    "abandoning",
    "creating",
    "creatingWithoutRetries",
    "deleting",
    "none",
    "recreating",
    "refreshing",
    "restarting",
    "resuming",
    "starting",
    "stopping",
    "suspending",
    "verifying",
)
"""What a group may be doing with a VM."""

# Seconds of cloud time in each status on the way up, and on the way down.
_RISE = (("PROVISIONING", 10.0), ("STAGING", 15.0))
_RUNNING = "RUNNING"
_STOPPING, _STOPPING_SECONDS = "STOPPING", 30.0

_LETTERS = "0123456789abcdefghijklmnopqrstuvwxyz"
_SUFFIX = 4


def members(call: Call, group: str) -> list[tuple[str, Resource]]:
    """Names and kept VMs of a group, those being deleted included."""
    prefix = INSTANCE.prefix(call.project, links.last(links.scope(group)))
    return [it for it in resources.each(call, INSTANCE, prefix) if it[1]["_group"] == group]


def status(instance: Resource, now: float) -> str:
    """A VM's status at a moment."""
    first, *later = instance["_timeline"]
    # Should the clock be set back, a VM is at its beginning.
    reached = [first[1], *(state for moment, state in later if moment <= now)]
    return str(reached[-1])


def agent_works(store: Store, instance: Resource, now: float) -> bool:
    """Whether a VM runs, and its agent does, with an account that there is."""
    known = instance.get("_accounts", {})
    return (
        status(instance, now) == _RUNNING
        and startup_told.has_done(instance, "agent", now)
        and all(iam.number_of(store, email) == number for email, number in known.items())
    )


def action(instance: Resource, now: float) -> str:
    """What the group is doing with a VM at a moment; one of `ACTIONS`."""
    if "_gone" in instance:
        return "recreating" if "_remade" in instance else "deleting"
    return "none" if instance["_timeline"][-1][0] <= now else str(instance["_action"])


def viewer(call: Call) -> Callable[[Resource], Resource]:
    """Makes of VMs what is answered of them at the call's moment."""
    metadata = vms.MetadataReader(call)

    def view(instance: Resource) -> Resource:
        shown = {
            **resources.show(instance),
            "metadata": metadata.of(instance),
            "status": status(instance, call.now),
        }
        if shown["status"] == _RUNNING:
            shown["lastStartTimestamp"] = rfc3339(instance["_timeline"][-1][0])
            told = _resource_status(call, instance)
            if told:
                shown["resourceStatus"] = told
        upcoming = _upcoming(instance, call.now)
        if upcoming:
            shown["resourceStatus"] = {**shown.get("resourceStatus", {}), **upcoming}
        return shown

    return view


def _resource_status(call: Call, instance: Resource) -> Resource:
    """What a running VM tells of its end, and of the reservation that it has its place from."""
    told: Resource = {}
    if "_ends" in instance:
        told["scheduling"] = {"terminationTimestamp": rfc3339(instance["_ends"])}
    if "_reservation" in instance:
        told["reservationConsumptionInfo"] = reservation_use.consumed(
            call, instance["_reservation"]
        )
    return told


def _upcoming(instance: Resource, now: float) -> Resource:
    """What a VM tells of the maintenance of its host, until that is over."""
    known = instance.get("_maintenance")
    if known is None or known["ends"] <= now or "told" not in known:
        return {}
    status = "ONGOING" if known["begins"] <= now else "PENDING"
    return {"upcomingMaintenance": {**known["told"], "maintenanceStatus": status}}


def grow(  # noqa: PLR0913 - the parts of a request
    call: Call,
    name: str,
    group: Resource,
    count: int,
    *,
    run_seconds: int | None = None,
    request: str = "",
) -> None:
    """Make so many more VMs for a group; what keeps one from being made is one of its errors."""
    if count <= 0:
        return
    prefix = f"{call.prefix(INSTANCE)}{group['baseInstanceName']}-"
    names = [prefix + suffix for suffix in _suffixes(call, group, count)]
    rest = _make_allowed(call, name, group, names, run_seconds, request)
    refusal = refusals.of(call, _template(call, group), len(rest)) if rest else None
    if refusal is None:
        return
    group = resources.require(call, GROUP_MANAGER, name)
    waiting = [*group.get("_waiting", []), *rest]
    _report(call, name, {**group, "_waiting": waiting}, refusal, rest)


def _make_allowed(  # noqa: PLR0913, PLR0917 - as above
    call: Call,
    name: str,
    group: Resource,
    names: Sequence[str],
    run_seconds: int | None = None,
    request: str = "",
    template: Resource | None = None,
) -> Sequence[str]:
    """Make the VMs that Google does not refuse; the names of the others."""
    template = template or _template(call, group)
    room = reservation_use.room(call, template, stock.room(call, template, len(names)))
    if refusals.of(call, template, max(room, 1)) is not None:
        return names
    vms.keep_metadata(call, template)
    pools = vms.Pools(call)
    life = _life(call, call.now, "creating")
    running = life["_timeline"][-1][0]
    limit = limits_of(call, template, Runs(name, names[:room], running, run_seconds))
    places = list(reservation_use.take(call, template, len(names[:room])))
    for member, place in zip(names[:room], places, strict=True):
        attached = vms.interfaces_of(call, template, pools)
        if attached is None:
            _report(call, name, group, _no_address(member), [member])
            break
        fields = {
            **vms.fields(call, member, name, template),
            **limit,
            **place,
            **startup.plan(call, member, name, template, running, attached),
            "networkInterfaces": attached,
        }
        if request:
            fields["_request"] = request
        resources.create(call, INSTANCE, member, {**fields, **life})
    return names[room:]


def retry(call: Call, name: str, group: Resource) -> Resource:
    """Make the VMs that wait, if Google refuses them no longer; the group as it is then."""
    waiting = group.get("_waiting", [])
    if group.get("_hold", 0.0) > call.now:
        return group
    if not waiting or refusals.of(call, _template(call, group), len(waiting)) is not None:
        return group
    lost = group.get("_lost", {})
    resources.keep(call, GROUP_MANAGER, name, {**group, "_waiting": [], "_lost": {}})
    # What was lost is made again of the template that it was of: see `repair`.
    own = {it: resources.find(call, TEMPLATE, lost[it]) for it in waiting if it in lost}
    fresh = [it for it in waiting if it not in lost]
    rest: list[str] = []
    for template, some in ((None, fresh), *((own[it], [it]) for it in own)):
        now = resources.require(call, GROUP_MANAGER, name)
        rest += _make_allowed(call, name, now, some, template=template) if some else ()
    lost = {member: template for member, template in lost.items() if member in rest}
    made = resources.require(call, GROUP_MANAGER, name)
    group = {**made, "_waiting": rest, "_lost": lost}
    resources.keep(call, GROUP_MANAGER, name, group)
    return group


def resize(call: Call, name: str, group: Resource, size: int) -> None:
    """Make or delete VMs until the group has so many; those go first that have not come yet."""
    waiting = group.get("_waiting", [])
    present = [member for member, it in members(call, name) if "_gone" not in it]
    if size >= len(present) + len(waiting):
        grow(call, name, group, size - len(present) - len(waiting))
        return
    kept = waiting[: max(0, size - len(present))]
    resources.keep(call, GROUP_MANAGER, name, {**group, "_waiting": kept})
    shrink(call, name, max(0, len(present) - size))


def _template(call: Call, group: Resource) -> Resource:
    return resources.require(call, TEMPLATE, links.name_of(group["instanceTemplate"]))


def shrink(call: Call, name: str, count: int) -> float:
    """Delete so many VMs, those first that do not run yet; when the last is gone (Unix epoch)."""
    present = [it for it in members(call, name) if "_gone" not in it[1]]
    present.sort(key=lambda it: (it[1]["_timeline"][-1][0], it[0]), reverse=True)
    return retire(call, [member for member, _ in present[:count]])


def retire(call: Call, names: Sequence[str]) -> float:
    """Delete VMs and the disks that go with them; when the last is gone (Unix epoch), or now."""
    gone = call.request.after(_STOPPING_SECONDS)
    for name in names:
        instance = resources.require(call, INSTANCE, name)
        if "_gone" not in instance:
            ending = {"_timeline": [[call.now, _STOPPING]], "_gone": gone}
            resources.keep(call, INSTANCE, name, {**instance, **ending})
            vms.discard_disks(call, instance, gone)
    return gone if names else call.now


def stop(call: Call, names: Sequence[str]) -> None:
    """Shut running VMs down, which keep their disks."""
    off = call.request.after(_STOPPING_SECONDS)
    for name in names:
        vm = resources.require_ready(call, INSTANCE, name)
        if status(vm, call.now) != _RUNNING:
            raise GoogleError(400, f"Instance '{name}' is not running.", reason="resourceNotReady")
        life = {"_timeline": [[call.now, _STOPPING], [off, "TERMINATED"]], "_action": "stopping"}
        resources.keep(call, INSTANCE, name, {**vm, **life})


def lose(  # noqa: PLR0913, PLR0917 - whose, which, until when and why
    call: Call, name: str, group: Resource, member: str, until: float, shortage: Resource
) -> None:
    """Delete a VM whose place Google wants; its group makes it again after `until` (epoch)."""
    template = links.name_of(resources.require(call, INSTANCE, member)["_template"])
    _tell_repair(call, member)
    retire(call, [member])
    leaving = resources.find(call, INSTANCE, member)
    if leaving is not None:
        resources.keep(call, INSTANCE, member, {**leaving, "_remade": True})
    kept = {**group, "_hold": until, "_waiting": [*group.get("_waiting", []), member]}
    kept["_lost"] = {**group.get("_lost", {}), member: template}
    _report(call, name, kept, shortage, [member])


def restart(call: Call, name: str, down: list[list[object]], back: float) -> None:
    """Let a VM go down, and from `back` (Unix epoch) come as the same one and start up again."""
    vm = resources.require(call, INSTANCE, name)
    life = _life(call, back, "none")
    running = life["_timeline"][-1][0]
    life["_timeline"] = [*down, *life["_timeline"]]
    template = resources.find(call, TEMPLATE, links.name_of(vm["_template"]))
    again = startup.again(call, name, vm, template, running) if template else {}
    resources.keep(call, INSTANCE, name, {**vm, **again, **life})


def repair(call: Call, group: Resource, names: Sequence[str]) -> None:
    """Make VMs that have failed or are gone again, as they were: from their own template.

    A repair uses what was last applied to the VM unless the group's policy says otherwise ("About
    repairing VMs", `forceUpdateOnRepair`, read in 2026-11). Where that template was deleted, which
    no page speaks of, it is the group's.
    """
    for name in names:
        own = links.name_of(resources.require(call, INSTANCE, name)["_template"])
        _tell_repair(call, name)
        recreate(call, group, [name], resources.find(call, TEMPLATE, own))


def _tell_repair(call: Call, name: str) -> None:
    vm, kind = resources.require(call, INSTANCE, name), "compute.instances.repair.recreateInstance"
    operations.tell(call.request, call.store, kind, name, vm["id"])


def recreate(
    call: Call, group: Resource, names: Sequence[str], template: Resource | None = None
) -> None:
    """Replace VMs by new ones of the same names, from the group's present template or another."""
    template = template or _template(call, group)
    vms.keep_metadata(call, template)
    for name in names:
        old = resources.require(call, INSTANCE, name)
        old.pop("_reservation", None)
        old.pop("_given", None)
        resources.keep(call, INSTANCE, name, old)  # its place is free for the new one
        (place,) = reservation_use.take(call, template, 1)
        again = call.request.after(_STOPPING_SECONDS)
        life = _life(call, again, "recreating")
        life["_timeline"].insert(0, [call.now, _STOPPING])
        group_name, running = old["_group"], life["_timeline"][-1][0]
        fields = {
            **resources.new(call, name),
            **vms.fields(call, name, group_name, template),
            **limits_of(call, template, Runs(group_name, [name], running)),
            **place,
            **startup.plan(call, name, group_name, template, running, old["networkInterfaces"]),
        }
        resources.keep(call, INSTANCE, name, {**old, **fields, **life})


def refresh(call: Call, template: Resource, names: Sequence[str]) -> None:
    """Give running VMs the labels and the metadata of a template.

    What somebody has added to the metadata of a VM is lost: Google does not say what becomes of it,
    so nobody may count on it.
    """
    built = vms.built(template)
    for name in names:
        if resources.require(call, INSTANCE, name)["_built"] != built:
            raise GoogleError(
                400,
                f"Update of '{links.last(name)}' requires the action REPLACE, which is more "
                "disruptive than the most disruptive allowed action REFRESH.",
            )
    vms.keep_metadata(call, template)
    for name in names:
        instance = resources.require(call, INSTANCE, name)
        made = vms.from_template(instance["_group"], template)
        kept = {key: value for key, value in instance.items() if key != "_given"}
        resources.keep(call, INSTANCE, name, {**kept, **made})


def delete(call: Call, name: str) -> Resource:
    """Delete a VM at somebody's request; a group that repairs recreates it."""
    instance = resources.require_ready(call, INSTANCE, name)
    group = resources.find(call, GROUP_MANAGER, instance["_group"])
    gone = call.request.after(_STOPPING_SECONDS)
    if group is None or group["instanceLifecyclePolicy"]["defaultActionOnFailure"] != "REPAIR":
        retire(call, [name])
    else:
        repair(call, group, [name])
    return call.operate(name, instance["id"], gone)


def end_run(call: Call, about: Resource) -> None:
    """Delete or stop the VMs whose run is over now, as their template wants it."""
    over = []
    for name in about["vms"]:
        instance = resources.find(call, INSTANCE, name)
        # A VM that was recreated in the meantime has an end of its own.
        if instance is None or "_gone" in instance or instance.get("_ends") != about["ends"]:
            continue
        if instance["scheduling"].get("instanceTerminationAction") == "STOP":
            stopped = call.request.after(_STOPPING_SECONDS)
            timeline = [[call.now, _STOPPING], [stopped, "TERMINATED"]]
            resources.keep(call, INSTANCE, name, {**instance, "_timeline": timeline})
        else:
            over.append(name)
    retire(call, over)
    group = resources.find(call, GROUP_MANAGER, about["group"])
    if group is not None:
        group["targetSize"] = max(0, group["targetSize"] - len(over))
        resources.keep(call, GROUP_MANAGER, about["group"], group)


def _life(call: Call, start: float, doing: str) -> Resource:
    timeline = []
    moment = start
    for state, seconds in _RISE:
        timeline.append([moment, state])
        moment += seconds * call.request.rate
    return {"_timeline": [*timeline, [moment, _RUNNING]], "_action": doing}


def _suffixes(call: Call, group: Resource, count: int) -> Iterator[str]:
    """What the names of new VMs end with: as if at random, but the same in every rehearsal."""
    prefix = f"{call.prefix(INSTANCE)}{group['baseInstanceName']}-"
    taken = {name for name, _ in resources.each(call, INSTANCE, prefix)}
    taken.update(group.get("_waiting", []))

    def drawn() -> Iterator[str]:
        while True:
            number = call.store.count(f"compute/vms/{group['selfLink']}")
            digest = hashlib.sha256(f"{group['selfLink']} {number}".encode()).digest()
            suffix = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:_SUFFIX])
            if prefix + suffix not in taken:
                taken.add(prefix + suffix)
                yield suffix

    return itertools.islice(drawn(), count)


def _no_address(member: str) -> Resource:
    return {
        "code": "IP_SPACE_EXHAUSTED",
        "message": f"IP space of the subnetwork of '{links.last(member)}' is exhausted.",
    }


def _report(
    call: Call, name: str, group: Resource, refusal: Resource, names: Sequence[str]
) -> None:
    """Note in the group why VMs could not be made, and keep it."""
    errors = [
        {
            "error": {key: refusal[key] for key in ("code", "message")},
            "instanceActionDetails": {
                "action": "CREATING",
                "instance": links.ROOT + member,
                "version": {"instanceTemplate": group["instanceTemplate"]},
            },
            "timestamp": rfc3339(call.now),
        }
        for member in names
    ]
    group = {**group, "_errors": [*group.get("_errors", []), *errors]}
    resources.keep(call, GROUP_MANAGER, name, group)


END = "the end of runs"  # what the agenda calls it when VMs have run as long as they may


@dataclass(frozen=True)
class Runs:
    """VMs that begin to run together."""

    group: str  # the name of their group
    vms: Sequence[str]  # their names
    running: float  # when they run (Unix epoch)
    # how long they may, in cloud time, in place of what their template says
    seconds: int | None = None


def limits_of(call: Call, template: Resource, runs: Runs) -> Resource:
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
