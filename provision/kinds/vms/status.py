"""The status of a group of VMs: the VMs with their start-up, the resize requests, the cost."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, Final

from provision import words
from provision.catalogue import names
from provision.documents import json_object, vm_status
from provision.documents.status import End, EndedBy, Older, PoolMode, PoolNow, Status
from provision.documents.vm_status import StartupState, Vm
from provision.google import refusals
from provision.kinds import happened
from provision.kinds import status as common
from provision.kinds.vms import agent, flex_start, instances, out_of_date, startup, trouble
from provision.kinds.vms.jobs import VmJobs
from provision.lifecycle import pricing
from provision.screens.layout import counted
from provision.settings.choices import KIND, NetworkConfig, called
from provision.spec import capacity
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import OutOfDate
    from provision.kinds.vms.startup import Startup
    from provision.state.record import Record
    from provision.time.clock import Clock

_MANY: Final = 100
"""VMs from which on it is said that asking them one by one takes a while."""
_LIMITED: Final = "MAX_RUN_DURATION=12h would end new ones after 12 hours"
_Reported = tuple[vm_status.Startup, vm_status.GpuCheck | None]
"""What a VM reports of itself."""


def look(
    context: Context, cloud: Cloud, record: Record, before: Status | None
) -> vm_status.VmGroup:
    """Look at a group and its requests; of what an earlier look found done, nothing is asked."""
    clock = context.clock
    seen = instances.see(cloud.api, record, cloud.lists)
    found = seen.vms(clock)
    heard = agent.heard(cloud) if found else agent.Heard({}, {}, {})
    started = {vm.name: vm.started for vm in found}
    operations = happened.operations(cloud.api, record, cloud.lists)
    reader = startup.Reader(
        cloud.api, record, clock, started, lambda: heard.beats, operations=operations
    )
    told = _reports(context, reader, found, before)
    happenings = instances.happened(operations, record)
    known = instances.interruptions(happenings, clock)
    down = instances.down(seen.members, instances.restarting(found, known, clock))
    group = instances.group_of(record, found)
    how = mode(record)
    may_ask = seen.group is not None and (record.last_request or how in {None, PoolMode.FLEX_START})
    requests = flex_start.requests(cloud.api, group.path) if may_ask else []
    lost = out_of_date.without_account(cloud, record, seen.documents, heard.accounts)
    older = out_of_date.among(cloud.api, record, seen, lost)
    is_slurm = bool(found) and record.settings.get(KIND) == "slurm"
    queue = cloud.folder.read(agent.QUEUE) if is_slurm else None
    nodes = queue.nodes if queue else {}
    vms = [
        _vm(vm, told[vm.name], known.get(vm.name), heard, clock, nodes.get(vm.name)) for vm in found
    ]
    silent = {vm.name for vm in vms if vm.silence} - {name for one in lost for name in one.vms}
    roleless = out_of_date.without_role(cloud, seen.documents, silent) if silent else ()
    asked = record.settings
    has_idle_timeout = asked.get("IDLE_TIMEOUT") is not None
    policy = json_object.inner((seen.group or {}).get("instanceLifecyclePolicy"))
    makes_none_again = how in {None, PoolMode.FLEX_START} or has_idle_timeout
    case = trouble.Case(
        group=group,
        exists=seen.group is not None,
        wanted=json_object.whole(asked.get("INSTANCE_COUNT")),
        limit=json_object.whole(asked.get("MAX_RUN_DURATION")),
        there=len(seen.members),
        vms=tuple(vms),
        down=tuple(down),
        known=known,
        requests=tuple(requests),
        errors=refusals.of_instances(seen.members),
        clock=clock,
        api=cloud.api,
        bound=any(vm.bound for vm in found),
        unrepaired=policy.get("defaultActionOnFailure") == "DO_NOTHING" and not makes_none_again,
        idles=has_idle_timeout and cloud.folder.read(agent.IDLE) is not None,
        lost=(*lost, *roleless),
        slurm=queue.now(clock, VmJobs(cloud.folder, clock).others()) if queue else None,
    )
    image = {key: record.image.get(key) for key in ("project", "family", "name")}
    cost, so_far = common.cost_of(existing(case, record, seen), pricing.known(context, cloud))
    pool = PoolNow(
        name=group.name,
        machine_type=group.machine_type,
        zone=group.zone,
        mode=how,
        gpus=common.gpus_of(group.machine_type, group.gpu, group.gpus),
        asked=case.wanted,
        there=len(vms),
        ready=sum(vm.is_ready for vm in vms),
    )
    return vm_status.VmGroup(
        words=called(asked.get(KIND)),
        trouble=(*trouble.found(case), *happened.storms(happenings, clock)),
        happened=happened.within_a_day(happenings, clock, "VM"),
        waiting=tuple(trouble.waiting(case)),
        machines=(pool,),
        ends=tuple(_ends(case)),
        out_of_date=tuple(_alike(older)),
        cost=cost,
        so_far=so_far,
        image=vm_status.BootImage(**image),
        wanted=case.wanted,
        running=len(case.running),
        counts=_counts(case, older),
        vms=tuple(sorted(vms, key=trouble.rank)),
        slurm=case.slurm,
        down=tuple(
            vm_status.Down(
                name=one.name,
                status=one.status or None,
                action=one.action,
                words=one.words,
                reasons=one.reasons,
                interruption=_interruption(known.get(one.name)),
            )
            for one in down
        ),
        requests=tuple(
            vm_status.ResizeRequest(
                name=one.name,
                count=one.count,
                run_seconds=one.run_seconds,
                state=one.state,
                words=one.words[0].upper() + one.words[1:],
                age_seconds=int(clock.since(one.created)),
                reasons=one.reasons,
            )
            for one in requests
        ),
    )


# ------------------------------------------------------------------ each VM


def _reports(
    context: Context,
    reader: startup.Reader,
    found: Sequence[instances.Vm],
    before: Status | None,
) -> dict[str, _Reported]:
    """What each VM reports; of a start-up that was done, what an earlier look has found."""
    vms = before.vms if isinstance(before, vm_status.VmGroup) else ()
    done = {(vm.name, vm.started): vm for vm in vms if vm.startup.state is StartupState.DONE}
    kept = {vm.name: done[vm.name, vm.started] for vm in found if (vm.name, vm.started) in done}
    asked = [vm.name for vm in found if vm.name not in kept]
    many = len(reader.slow(asked))
    if many >= _MANY:
        context.console.progress(
            f"Asking {many:,} VMs for their start-up, which takes some"
            f" {many / startup.PER_SECOND:.0f} s: Google answers for one at a time"
        )
    told = reader.read(asked)
    return {
        **{name: (vm.startup, vm.gpu_check) for name, vm in kept.items()},
        **{name: (_startup(it), it.gpu_check) for name, it in told.items()},
    }


def _vm(  # noqa: PLR0913, PLR0917 - each is a source of its own
    vm: instances.Vm,
    told: _Reported,
    known: instances.Interruption | None,
    heard: agent.Heard,
    clock: Clock,
    node: vm_status.SlurmNode | None,
) -> Vm:
    seat = heard.seats.get(vm.name, agent.Seat(rank=None))
    startup, gpu_check = told
    is_running = vm.status == "RUNNING"
    silence = heard.silence(vm.name, startup.steps, vm.started, clock) if is_running else ""
    return vm_status.Vm(
        name=vm.name,
        rank=seat.rank,
        # One that is away may be another by now; one that is silent has still what it last had.
        faults=seat.faults if silence or seat.rank is not None else (),
        disks=(*(seat.disks if silence or seat.rank is not None else ()), *heard.clock(vm.name)),
        slurm=node,
        silence=silence,
        status=vm.status,
        machine_type=vm.machine_type,
        created=vm.created,
        started=vm.started,
        ends=None if vm.remaining is None else common.moment(vm.remaining, clock),
        remaining_seconds=None if vm.remaining is None else int(vm.remaining),
        maintenance_seconds=None if vm.maintenance is None else int(vm.maintenance),
        interruption=_interruption(known),
        notebook=vm.notebook,
        startup=startup,
        gpu_check=gpu_check,
    )


def _startup(told: Startup) -> vm_status.Startup:
    return vm_status.Startup(
        state=StartupState(told.state) if told.state in set(StartupState) else None,
        step=told.step or None,
        words=told.words,
        detail=told.detail,
        steps=dict(told.steps),
    )


def _interruption(known: instances.Interruption | None) -> vm_status.Interruption | None:
    if known is None:
        return None
    event = known.event.name.lower().replace("_", "-")
    return vm_status.Interruption(event=event, seconds_ago=int(known.ago), words=known.words)


# ------------------------------------------------------------------ the group


def mode(record: Record) -> PoolMode | None:
    """How the VMs are got; None if the record does not say, as one that was made again."""
    if not record.settings:
        return None
    kept = record.reservations.get(names.GROUP.of(record.name_prefix))
    if kept and kept.bound:
        return PoolMode.RESERVATION_BOUND
    asked = {name: record.settings.get(name.upper()) for name in capacity.ASKING}
    return PoolMode(Mode.asked(asked).value)


def _ends(case: trouble.Case) -> Iterator[End]:
    limited = [vm.remaining_seconds for vm in case.vms if vm.remaining_seconds is not None]
    yield from common.run_ends(limited, "VM", case.clock)
    if free := len(case.vms) - len(limited):
        yield common.never_ends(free, "VM", _LIMITED)
    for one in case.requests:
        if one.is_open:
            what = f"{counted(one.count, 'VM')} to come"
            after = f"each {words.duration(one.run_seconds)} after it came"
            yield End(what=what, how=EndedBy.RUN, words=after)


def _counts(case: trouble.Case, older: Sequence[OutOfDate]) -> vm_status.Counts:
    heard = [vm for vm in case.running if not vm.silence]
    failed = sum(vm.startup.state is StartupState.FAILED for vm in heard)
    ready = sum(vm.is_ready for vm in heard)
    return vm_status.Counts(
        wanted=case.wanted,
        exist=len(case.vms),
        running=len(case.running),
        ready=ready,
        starting=len(heard) - failed - ready,
        failed=failed,
        silent=len(case.running) - len(heard),
        down=len(case.down),
        out_of_date=len(older),
        listed=len(case.vms),
    )


def _alike(found: Sequence[OutOfDate]) -> list[Older]:
    """The VMs of an older template, by what differs; the most frequent first."""
    alike = common.alike(found, lambda one: one.differences)
    return [
        Older(
            differences=differences,
            count=len(them),
            names=tuple(one.name for one in them),
            fix=found[0].fix,
        )
        for differences, them in sorted(alike.items(), key=lambda it: -len(it[1]))
    ]


# ------------------------------------------------------------------ the cost


def existing(case: trouble.Case, record: Record, seen: instances.Seen) -> common.Existing | None:
    """The group as far as its cost goes; None if its record is lost."""
    asked, how, usual = record.settings, mode(record), case.group.machine_type
    disk, disk_type = json_object.whole(asked.get("DISK_SIZE_GB")), asked.get("DISK_TYPE")
    if how is None or disk is None or not disk_type:
        return None
    # Older VMs may be of another type than new ones get, or be got in another way.
    own = Mode(how.value)
    modes = {it["name"]: instances.mode_of(it, own) for it in seen.documents}
    by_kind: dict[tuple[str, Mode], list[float]] = collections.defaultdict(list, {(usual, own): []})
    for vm in case.vms:
        age = common.hours(vm.created, case.clock)
        if vm.status not in instances.UNBILLED and age is not None:
            by_kind[vm.machine_type, modes.get(vm.name, own)].append(age)
    counts = {it: len(ages) for it, ages in by_kind.items()}
    counts[usual, own] = max(0, case.group.size - sum(counts.values()) + counts[usual, own])
    named = {
        it: f"{case.group.name} {it[0]}" + ("" if it[1] is own else f", {it[1].means.words}")
        for it in by_kind
    }
    pools = tuple(
        Pool(
            name=named[machine_type, mode_],
            machine_type=machine_type,
            zone=record.zone,
            gpu_type=asked.get("ACCELERATOR_TYPE"),
            gpu_count=json_object.whole(asked.get("GPU_COUNT")),
            mode=mode_,
            size=Size(count=count),
            disk_size_gb=disk,
            disk_type=str(disk_type),
            external_ip=bool(asked.get("ENABLE_EXTERNAL_IP")),
        )
        for (machine_type, mode_), count in counts.items()
    )
    return common.Existing.of(
        record,
        machines=pools,
        makes_network=asked.get("NETWORK_CONFIG")
        not in {NetworkConfig.DEFAULT, NetworkConfig.EXISTING},
        ages={named[it]: ages for it, ages in by_kind.items()},
        age=common.hours((seen.group or {}).get("creationTimestamp"), case.clock),
    )
