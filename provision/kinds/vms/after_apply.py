"""After the apply: wait for the VMs, their start-up and their notebooks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from provision import words
from provision.codes import Code
from provision.documents.connection import VmConnection, VmsConnection
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.kinds import connection, machines
from provision.kinds.vms import (
    flex_start,
    idle,
    instances,
    interruptions,
    lost_accounts,
    out_of_date,
    roster,
    startup,
    waiting,
)
from provision.lifecycle import older_machines, phases

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, Deployment, OutOfDate
    from provision.kinds.vms.startup import Startup
    from provision.spec.cluster import VmSpec
    from provision.spec.pools import Group
    from provision.state.location import Place

_HEARING: Final = 120.0
"""The longest wait for a sign of life, in seconds of cloud time: two heartbeats."""
_POLL: Final = 15.0


def capacity(context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
    """Wait until all VMs run, for at most CAPACITY_TIMEOUT.

    Raises:
        CapacityError: Google refused machines.
        StillWaiting: Not all VMs run in time; everything is kept.
        ClusterError: The group or its resize requests can't be read.
    """
    # First of all: VMs that come wait to hear how many they are.
    roster.tell_size(cloud, made.target.spec)
    group = flex_start.group(made.target.spec)
    timeout = made.target.spec.capacity_timeout
    requests = made.target.inputs.resize_requests
    if requests:
        waiting.for_requests(cloud.api, group, requests, timeout=timeout, progress=context.progress)
    if made.postponed:
        return
    if made.target.spec.idle_seconds is not None:
        idle.start(cloud.api, made.target.spec, context.console.progress)
    machines.wait(
        cloud.api,
        group,
        timeout=timeout,
        progress=context.progress,
        young=made.young,
        may_leave=bool(made.target.spec.places),
    )
    _renew(context, cloud, made.target.spec)


def _renew(context: Context, cloud: Cloud, spec: VmSpec) -> None:
    """Bring running VMs to the newest template, as far as that disturbs nobody or was asked for."""
    older: Sequence[OutOfDate] = out_of_date.find(cloud, spec)
    if spec.group.mode.means.flex_start:  # Google updates none of these (rule M6)
        older_machines.tell(context, older)
        return
    older = out_of_date.refresh(cloud, spec, older, context.progress)
    if older and context.replace_vms:
        older = out_of_date.replace(cloud, spec, older, context.progress)
    older_machines.tell(context, older)


def finish(context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
    """Wait for the VMs' start-up and notebooks; say how to connect even if a start-up failed.

    A VM that Google takes away meanwhile is waited for, with its start-up: done is done only with
    all VMs running.

    Raises:
        ClusterError: A start-up failed, a VM is gone that its group does not make again, or VMs
            act as an account that was deleted.
        CapacityError: Google refused the place of a VM that it took away.
        StillWaiting: Such a VM did not come again in time; everything is kept.
    """
    target = made.target
    try:
        told, urls = _started(context, cloud, target)
    except (ClusterError, CapacityError, StillWaiting):
        with phases.aside(context):
            so_far = {name: vm.notebook for name, vm in _vms(context, cloud, target).items()}
            told_of = _connection(cloud, made, so_far, {})
            connection.tell(context, cloud, made, told_of, is_ready=False)
        raise
    context.note(startup.notes(told))
    connection.tell(context, cloud, made, _connection(cloud, made, urls, told))


def _started(
    context: Context, cloud: Cloud, target: Deployment[VmSpec]
) -> tuple[dict[str, Startup], dict[str, str]]:
    """Wait until all VMs run and have started up; their start-ups, and the notebooks' URLs."""
    group = flex_start.group(target.spec)
    left = float(target.spec.capacity_timeout)
    while True:
        found = _vms(context, cloud, target)
        context.note(instances.ending_soon(list(found.values())))
        started = {name: vm.started for name, vm in found.items()}
        reader = startup.Reader(cloud.api, _zone(target), context.clock, started)
        told = startup.wait(
            reader,
            found,
            progress=context.progress,
            stay=lambda: machines.all_run(cloud.api, group),
        )
        urls = _urls(context, cloud, target, told) if machines.all_run(cloud.api, group) else {}
        lost_accounts.require(cloud, target.spec)
        _hear(context, cloud, group, found, told)
        # A start-up takes many minutes, and so do the notebooks' URLs.
        if machines.all_run(cloud.api, group):
            return told, urls
        deadline = context.progress.deadline(left, 0)
        _await_again(context, cloud, target, timeout=left)
        left = max(0.0, left - deadline.passed)


def _hear(
    context: Context,
    cloud: Cloud,
    group: Group,
    vms: Mapping[str, instances.Vm],
    told: Mapping[str, Startup],
) -> None:
    """Wait a moment for a sign of life of VMs that started up long ago and say nothing any more.

    Raises:
        ClusterError: There is none of some that run.
    """
    deadline = context.progress.deadline(_HEARING, _POLL)
    while True:
        heard = roster.heard(cloud)
        silent = {
            name: silence
            for name, it in told.items()
            if (silence := heard.silence(name, it.steps, vms[name].started, context.clock))
        }
        if not silent or not machines.all_run(cloud.api, group):
            return
        if deadline.is_over:
            first, *others = sorted(silent)
            more = f"; nor have {words.listed(others)}" if others else ""
            raise ClusterError(
                f"{first} {silent[first]}{more}",
                code=Code.NOT_IN_TIME,
                why=roster.WHY_SILENT,
                fix=f"{roster.another_start(first, group)}\nthen run Create again",
            )
        with context.progress.waits(f"a sign of life of {words.listed(silent)}"):
            deadline.pause()


def _await_again(
    context: Context, cloud: Cloud, target: Deployment[VmSpec], *, timeout: float
) -> None:
    """Say which VMs run no longer, and wait until their group has made them again."""
    spec, group = target.spec, flex_start.group(target.spec)
    seen = instances.see(cloud.api, spec)
    known = interruptions.read(cloud.api, spec, context.clock)
    restarting = interruptions.restarting(seen.vms(context.clock), known, context.clock)
    down = interruptions.down(seen.members, restarting)
    if spec.group.mode.means.flex_start:
        interruptions.lasting(group, down, known)
    context.note(interruptions.notes(down, known))
    machines.wait(cloud.api, group, timeout=timeout, progress=context.progress)


def _zone(target: Deployment[VmSpec]) -> str:
    return f"projects/{target.spec.project_id}/zones/{target.spec.zone}"


def _vms(context: Context, cloud: Cloud, target: Deployment[VmSpec]) -> dict[str, instances.Vm]:
    spec = target.spec
    found = instances.find(cloud.api, spec, context.clock)
    return {vm.name: vm for vm in found}


def _urls(
    context: Context, cloud: Cloud, target: Deployment[VmSpec], told: Mapping[str, Startup]
) -> dict[str, str]:
    """Wait for the notebooks' URLs if the settings ask for them; note those that are missing."""
    if not target.spec.shows_urls:
        return {}
    wanted = {name for name, it in told.items() if it.has_notebook}
    if not wanted:
        return {}
    urls = waiting.for_urls(
        lambda: {name: vm.notebook for name, vm in _vms(context, cloud, target).items()},
        wanted,
        progress=context.progress,
    )
    context.note(connection.missing(wanted - urls.keys()))
    return urls


def _connection(
    cloud: Cloud,
    made: Applied[VmSpec],
    urls: Mapping[str, str | None],
    told: Mapping[str, Startup],
) -> Callable[..., VmsConnection]:
    """The VMs, with the ssh command of each, and the URL of its notebook or the way to it."""
    found = instances.documents(cloud.api, made.target.spec)
    seats = roster.seats(cloud)
    with_notebook = {name for name, it in told.items() if it.has_notebook}
    shown = with_notebook if made.target.spec.notebook else set[str]()
    vms = tuple(
        _vm(
            one,
            made.target.spec,
            rank=seats[one["name"]].rank if one["name"] in seats else None,
            url=urls.get(one["name"]),
            tunnel=one["name"] in shown,
        )
        for one in found
    )
    has_ray = made.target.spec.ray_version is not None and vms
    machine = made.target.spec.group.machine
    return functools.partial(
        VmsConnection,
        vms=vms,
        ray=connection.ray(vms[0].ssh) if has_ray else None,
        local_ssd_path=made.target.spec.local_ssd_path if machine and machine.local_ssds else None,
        local_ssd_gb=machine.local_ssd_gb if machine else 0,
    )


def _vm(
    instance: Mapping[str, Any],
    place: Place,
    *,
    rank: int | None,
    url: str | None,
    tunnel: bool,
) -> VmConnection:
    interface = instance["networkInterfaces"][0]
    external = next((c.get("natIP") for c in interface.get("accessConfigs", [])), None)
    ssh = connection.ssh(instance["name"], place, is_public=external is not None)
    return VmConnection(
        name=instance["name"],
        rank=rank,
        status=instance["status"],
        internal_ip=interface.get("networkIP"),
        external_ip=external,
        ssh=ssh,
        notebook=url,
        notebook_tunnel=connection.tunnel(ssh) if tunnel else None,
    )
