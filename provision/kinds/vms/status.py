"""The status of a group of VMs: the VMs with their start-up, and the resize requests."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from provision.catalogue import names
from provision.documents import json_object, vm_status
from provision.documents.status import Older, PoolMode, PoolNow
from provision.documents.vm_status import StartupState
from provision.google import refusals
from provision.google.resources import GROUP
from provision.kinds import ends, machine_words
from provision.kinds import spending as prices
from provision.kinds.vms import (
    idle,
    instances,
    interruptions,
    lost_accounts,
    out_of_date,
    roster,
    spending,
    startup,
    trouble,
)
from provision.kinds.vms.resize_requests import ResizeRequest
from provision.lifecycle import pricing
from provision.spec.pools import Group

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import OutOfDate
    from provision.documents.status import End, Status
    from provision.documents.vm_status import Vm
    from provision.kinds.vms.interruptions import Interruption, Member
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record
    from provision.time.clock import Clock

_MANY: Final = 100
"""VMs from which on it is said that asking all of them takes a while."""
_LIMITED: Final = "MAX_RUN_DURATION=12h would end new ones after 12 hours"


class _Reported(NamedTuple):
    """What a VM reports of itself."""

    startup: vm_status.Startup
    gpu_check: vm_status.GpuCheck | None


def look(
    context: Context, cloud: Cloud, record: Record, before: Status | None
) -> vm_status.VmGroup:
    """Look at the VMs of a group and its resize requests.

    `before`: what an earlier look of this run returned; what is over is not asked again.
    """
    seen = instances.see(cloud.api, record)
    found = seen.vms(context.clock)
    told = _startups(context, cloud, record, found, before)
    known = interruptions.read(cloud.api, record, context.clock)
    restarting = interruptions.restarting(found, known, context.clock)
    down = interruptions.down(seen.members, restarting)
    requests = _requests(cloud, record) if seen.group is not None else []
    lost = lost_accounts.find(cloud, record, seen.documents)
    older = out_of_date.among(cloud.api, seen, lost)
    heard = roster.heard(cloud) if found else roster.Heard({}, {})
    vms = [_vm(vm, told[vm.name], known.get(vm.name), heard, context.clock) for vm in found]
    case = trouble.Case(
        group=_group(record, found),
        exists=seen.group is not None,
        wanted=json_object.whole(record.settings.get("INSTANCE_COUNT")),
        limit=json_object.whole(record.settings.get("MAX_RUN_DURATION")),
        there=len(seen.members),
        vms=tuple(vms),
        down=tuple(down),
        known=known,
        requests=tuple(requests),
        errors=refusals.of_instances(seen.members),
        clock=context.clock,
        api=cloud.api,
        bound=any(vm.bound for vm in found),
        unrepaired=_is_unrepaired(seen.group or {}, record),
        idles=_has_idle_timeout(record) and idle.since(cloud.folder) is not None,
        lost=lost,
    )
    image = {key: record.image.get(key) for key in ("project", "family", "name")}
    listed = pricing.known(context, cloud)
    cost, so_far = prices.of(spending.existing(case, record, seen), listed)
    return vm_status.VmGroup(
        words="Ray cluster" if record.settings.get("ORCHESTRATOR_TYPE") == "ray" else "VM group",
        trouble=tuple(trouble.found(case)),
        waiting=tuple(trouble.waiting(case)),
        machines=(_pool(case, record, vms),),
        ends=tuple(_ends(case)),
        out_of_date=tuple(_alike(older)),
        cost=cost,
        so_far=so_far,
        image=vm_status.BootImage(**image),
        wanted=case.wanted,
        running=sum(vm.status == "RUNNING" for vm in vms),
        counts=_counts(case, vms, older),
        vms=tuple(sorted(vms, key=trouble.rank)),
        down=tuple(_down(one, known.get(one.name)) for one in down),
        requests=tuple(_request(one, context.clock) for one in requests),
    )


def startups(
    context: Context,
    cloud: Cloud,
    record: Record,
    wanted: list[str],
    started: Mapping[str, str | None] | None = None,
) -> dict[str, Startup]:
    """What the VMs of a deployment report of their start-up, by name.

    `started`: when each was last started, in RFC 3339 format, as far as that is known.
    """
    zone = f"projects/{record.project_id}/zones/{record.zone}"
    return startup.Reader(cloud.api, zone, context.clock, started).read(wanted)


def _startups(
    context: Context,
    cloud: Cloud,
    record: Record,
    found: Sequence[instances.Vm],
    before: Status | None,
) -> dict[str, _Reported]:
    """What each VM reports; of a start-up that was done, what an earlier look has found."""
    vms = before.vms if isinstance(before, vm_status.VmGroup) else ()
    done = {(vm.name, vm.started): vm for vm in vms if vm.startup.state is StartupState.DONE}
    kept = {vm.name: done[vm.name, vm.started] for vm in found if (vm.name, vm.started) in done}
    asked = [vm.name for vm in found if vm.name not in kept]
    if len(asked) >= _MANY:
        context.console.progress(
            f"Asking {len(asked):,} VMs for their start-up, which takes some"
            f" {len(asked) / startup.PER_SECOND:.0f} s: Google answers for one at a time"
        )
    told = startups(context, cloud, record, asked, {vm.name: vm.started for vm in found})
    return {
        **{name: _Reported(vm.startup, vm.gpu_check) for name, vm in kept.items()},
        **{name: _Reported(_startup(it), _gpu_check(it.gpu_check)) for name, it in told.items()},
    }


def _vm(
    vm: instances.Vm,
    told: _Reported,
    known: Interruption | None,
    heard: roster.Heard,
    clock: Clock,
) -> Vm:
    seat = heard.seats.get(vm.name, roster.Seat(rank=None))
    is_running = vm.status == "RUNNING"
    silence = heard.silence(vm.name, told.startup.steps, vm.started, clock) if is_running else ""
    return vm_status.Vm(
        name=vm.name,
        rank=seat.rank,
        # One that is away may be another by now; one that is silent has still what it last had.
        faults=seat.faults if silence or seat.rank is not None else (),
        silence=silence,
        status=vm.status,
        machine_type=vm.machine_type,
        created=vm.created,
        started=vm.started,
        ends=None if vm.remaining is None else ends.moment(vm.remaining, clock),
        remaining_seconds=None if vm.remaining is None else int(vm.remaining),
        maintenance_seconds=None if vm.maintenance is None else int(vm.maintenance),
        interruption=_interruption(known),
        notebook=vm.notebook,
        startup=told.startup,
        gpu_check=told.gpu_check,
    )


def _startup(told: Startup) -> vm_status.Startup:
    return vm_status.Startup(
        state=StartupState(told.state) if told.state in set(StartupState) else None,
        step=told.step or None,
        words=told.words,
        detail=told.detail,
        steps=dict(told.steps),
    )


def _gpu_check(found: Mapping[str, object] | None) -> vm_status.GpuCheck | None:
    if not found:
        return None
    return vm_status.GpuCheck(
        gpus=json_object.whole(found.get("gpus")),
        names=tuple(json_object.texts(found.get("names"))),
        driver=json_object.text(found.get("driver")) or None,
        ecc_errors=json_object.whole(found.get("ecc_errors")),
        interfaces=json_object.whole(found.get("interfaces")),
        fabric=json_object.text(json_object.inner(found.get("fabric")).get("kind")) or None,
    )


def _down(one: Member, known: Interruption | None) -> vm_status.Down:
    return vm_status.Down(
        name=one.name,
        status=one.status or None,
        action=one.action,
        words=one.words,
        reasons=one.reasons,
        interruption=_interruption(known),
    )


def _interruption(known: Interruption | None) -> vm_status.Interruption | None:
    if known is None:
        return None
    event = known.event.name.lower().replace("_", "-")
    return vm_status.Interruption(event=event, seconds_ago=int(known.ago), words=known.words)


def _requests(cloud: Cloud, record: Record) -> list[ResizeRequest]:
    name = names.GROUP.of(record.name_prefix)
    path = GROUP.path(project=record.project_id, zone=record.zone, name=name)
    return [ResizeRequest.of(document) for document in cloud.api.resize_requests(path)]


def _request(request: ResizeRequest, clock: Clock) -> vm_status.ResizeRequest:
    return vm_status.ResizeRequest(
        name=request.name,
        count=request.count,
        run_seconds=request.run_seconds,
        state=request.state,
        words=request.words[0].upper() + request.words[1:],
        age_seconds=int(clock.since(request.created)),
        reasons=request.reasons,
    )


# ------------------------------------------------------------------ what was asked, and what is


def _group(record: Record, found: Sequence[instances.Vm]) -> Group:
    """The group with the machines that were asked for; those that run where the record is lost."""
    asked = record.settings
    gpu, gpus = asked.get("ACCELERATOR_TYPE"), json_object.whole(asked.get("GPU_COUNT"))
    first = found[0] if found else None
    machine_type = str(asked.get("VM_TYPE") or (first.machine_type if first else ""))
    attached = machine_words.is_attached(machine_type)
    return Group(
        project=record.project_id,
        zone=record.zone,
        name=names.GROUP.of(record.name_prefix),
        size=json_object.whole(asked.get("INSTANCE_COUNT")) or len(found),
        machine_type=machine_type,
        gpu=str(gpu) if gpu and attached else None,
        gpus=gpus if gpus and attached else 0,
    )


def _pool(case: trouble.Case, record: Record, vms: Sequence[Vm]) -> PoolNow:
    group = case.group
    return PoolNow(
        name=group.name,
        machine_type=group.machine_type,
        zone=group.zone,
        mode=spending.mode(record),
        gpus=machine_words.gpus(group.machine_type, group.gpu, group.gpus),
        asked=case.wanted,
        there=len(vms),
        ready=sum(vm.is_ready for vm in vms),
    )


def _ends(case: trouble.Case) -> list[End]:
    limited = [vm.remaining_seconds for vm in case.vms if vm.remaining_seconds is not None]
    found = ends.of(limited, "VM", case.clock)
    free = len(case.vms) - len(limited)
    if free:
        found.append(ends.never(free, "VM", _LIMITED))
    for request in case.requests:
        if request.is_open:
            found.append(ends.to_come(request.count, "VM", request.run_seconds))
    return found


def _is_unrepaired(group: Mapping[str, Any], record: Record) -> bool:
    policy = json_object.inner(group.get("instanceLifecyclePolicy"))
    is_left = policy.get("defaultActionOnFailure") == "DO_NOTHING"
    is_meant = spending.mode(record) in {None, PoolMode.FLEX_START} or _has_idle_timeout(record)
    return is_left and not is_meant


def _has_idle_timeout(record: Record) -> bool:
    return record.settings.get("IDLE_TIMEOUT") is not None


def _counts(case: trouble.Case, vms: Sequence[Vm], older: Sequence[OutOfDate]) -> vm_status.Counts:
    running = [vm for vm in vms if vm.status == "RUNNING"]
    silent = sum(bool(vm.silence) for vm in running)
    heard = [vm for vm in running if not vm.silence]
    failed = sum(vm.startup.state is StartupState.FAILED for vm in heard)
    ready = sum(vm.is_ready for vm in heard)
    return vm_status.Counts(
        wanted=case.wanted,
        exist=len(vms),
        running=len(running),
        ready=ready,
        starting=len(heard) - failed - ready,
        failed=failed,
        silent=silent,
        down=len(case.down),
        out_of_date=len(older),
        listed=len(vms),
    )


def _alike(found: Sequence[OutOfDate]) -> list[Older]:
    """The VMs of an older template, by what differs; the most frequent first."""
    alike: dict[tuple[str, ...], list[str]] = collections.defaultdict(list)
    for one in found:
        alike[one.differences].append(one.name)
    return [
        Older(differences=differences, count=len(them), names=tuple(them), fix=found[0].fix)
        for differences, them in sorted(alike.items(), key=lambda it: -len(it[1]))
    ]
