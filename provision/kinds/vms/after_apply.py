"""After the apply: wait for the VMs, their start-up and their notebooks."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.documents.connection import VmConnection, VmsConnection
from provision.documents.timeline import StageName
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.kinds import connection, machines
from provision.kinds.vms import agent, flex_start, instances, out_of_date, startup, trouble
from provision.lifecycle import phases, plan_document
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.deployment import Applied, OutOfDate
    from provision.google.api import GoogleApi
    from provision.kinds.vms.startup import Startup
    from provision.spec.cluster import VmSpec
    from provision.time.stages import Progress

_HEARING: Final = 120.0
"""The longest wait for a sign of life, in seconds of cloud time: two heartbeats."""
_URLS_AT_MOST: Final = 300.0
"""The longest wait for the URLs of all notebooks together, in seconds of cloud time."""
_POLL: Final = 15.0


def capacity(context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
    """Wait until all VMs run, for at most CAPACITY_TIMEOUT; errors are those of `Kind.capacity`."""
    spec, requests = made.target.spec, made.target.inputs.resize_requests
    # First of all: VMs that come wait to hear how many they are.
    agent.tell_size(cloud, spec)
    group, timeout = flex_start.group(spec), spec.capacity_timeout
    if requests:
        flex_start.wait(cloud.api, group, requests, timeout=timeout, progress=context.progress)
    if made.postponed:
        return
    if spec.idle_seconds is not None:
        _bring_back(context, cloud.api, spec)
    machines.wait(
        cloud.api,
        group,
        timeout=timeout,
        progress=context.progress,
        young=made.young,
        may_leave=bool(spec.places),
    )
    # Running VMs get the newest template, as far as that disturbs nobody or was asked for.
    older: Sequence[OutOfDate] = out_of_date.find(cloud, spec)
    if not spec.group.mode.means.flex_start:  # Google updates none of these (rule M6)
        older = out_of_date.refresh(cloud, spec, older, context.progress)
        if older and context.replace_vms:
            older = out_of_date.replace(cloud, spec, older, context.progress)
    plan_document.tell_of_older(context, older)


def _bring_back(context: Context, api: GoogleApi, spec: VmSpec) -> None:
    """Have what is off started, and what was preempted made: such a group repairs nothing."""
    seen, group = instances.see(api, spec), flex_start.group(spec)
    down = instances.down(seen.members)
    off = [one.name for one in down if one.is_off]
    if off:
        context.console.progress(f"Starting {words.listed(off)} again")
    for name in off:
        api.start_instance(spec.project_id, spec.zone, name)
    gone = [one.name for one in down if one.is_left and not one.status]
    if gone:
        context.console.progress(f"Making {words.listed(gone)} again")
        api.recreate_managed(group.project, group.zone, group.name, gone)
    is_stable = (seen.group or {}).get("status", {}).get("isStable") is True
    missing = group.size - len(seen.members)
    if is_stable and missing > 0:
        # What is not even listed any more comes by a size that grows.
        context.console.progress(f"Making {counted(missing, 'VM')} that Google has taken away")
        for size in (len(seen.members), group.size):
            api.resize_managed(group.project, group.zone, group.name, size)


def finish(context: Context, cloud: Cloud, made: Applied[VmSpec]) -> None:
    """Wait for the VMs' start-up and notebooks; say how to connect even if a start-up failed.

    A VM that Google takes away meanwhile is waited for, with its start-up: done is done only with
    all VMs running.
    """
    started = Started(context, cloud, made.target.spec)
    try:
        told, urls = started.wait()
    except (ClusterError, CapacityError, StillWaiting):
        with phases.aside(context):
            so_far = {name: vm.notebook for name, vm in started.vms().items()}
            found = _connection(cloud, made.target.spec, so_far, {})
            connection.tell(context, cloud, made, found, is_ready=False)
        raise
    context.note(startup.notes(told))
    connection.tell(context, cloud, made, _connection(cloud, made.target.spec, urls, told))


class Started:
    """The VMs of a group that start up, as they are waited for."""

    def __init__(self, context: Context, cloud: Cloud, spec: VmSpec) -> None:
        self._context, self._cloud, self._spec = context, cloud, spec
        self._group = flex_start.group(spec)

    def vms(self) -> dict[str, instances.Vm]:
        """Those that exist, by name."""
        found = instances.see(self._cloud.api, self._spec).vms(self._context.clock)
        return {vm.name: vm for vm in found}

    def wait(self) -> tuple[dict[str, Startup], dict[str, str]]:
        """Wait until all run and have started up; their start-ups, and the notebooks' URLs."""
        context, spec = self._context, self._spec
        left = float(spec.capacity_timeout)
        while True:
            found = self.vms()
            context.note(instances.ending_soon(list(found.values())))
            started = {name: vm.started for name, vm in found.items()}
            reader = startup.Reader(self._cloud.api, spec, context.clock, started)
            told = startup.wait(reader, found, progress=context.progress, stay=self._all_run)
            urls = self._urls(told) if self._all_run() else {}
            out_of_date.require_accounts(self._cloud, spec)
            self._hear(found, told)
            # A start-up takes many minutes, and so do the notebooks' URLs.
            if self._all_run():
                return told, urls
            # Say which run no longer, and wait until their group has made them again.
            deadline = context.progress.deadline(left, 0)
            seen, clock = instances.see(self._cloud.api, spec), context.clock
            known = instances.interruptions(instances.happened(self._cloud.api, spec), clock)
            down = instances.down(seen.members, instances.restarting(seen.vms(clock), known, clock))
            if down and spec.group.mode.means.flex_start:  # which makes none again
                raise ClusterError.of(instances.gone(down, known, self._group))
            context.note(instances.gone(down, known))
            machines.wait(self._cloud.api, self._group, timeout=left, progress=context.progress)
            left = max(0.0, left - deadline.passed)

    def _all_run(self) -> bool:
        return machines.all_run(self._cloud.api, self._group)

    def _hear(self, vms: Mapping[str, instances.Vm], told: Mapping[str, Startup]) -> None:
        """Wait a moment for a sign of life of VMs that started up long ago and say nothing now."""
        clock, progress = self._context.clock, self._context.progress
        deadline = progress.deadline(_HEARING, _POLL)
        while True:
            heard = agent.heard(self._cloud)
            silent = {
                name: silence
                for name, it in told.items()
                if (silence := heard.silence(name, it.steps, vms[name].started, clock))
            }
            if not silent:
                seats = {name: heard.seats[name] for name in told if name in heard.seats}
                self._listen(seats, bound=any(vm.bound for vm in vms.values()))
                return
            if not self._all_run():
                return
            if deadline.is_over:
                first, *others = sorted(silent)
                more = f"; nor have {words.listed(others)}" if others else ""
                raise ClusterError(
                    f"{first} {silent[first]}{more}",
                    code=Code.NOT_IN_TIME,
                    why=agent.WHY_SILENT,
                    fix=f"{agent.another_start(first, self._group)}\nthen run Create again",
                )
            with progress.waits(f"a sign of life of {words.listed(silent)}"):
                deadline.pause()

    def _listen(self, seats: Mapping[str, agent.Seat], *, bound: bool) -> None:
        """Be not done with VMs that say that something is broken on them."""
        found = list(trouble.complaints(seats, self._group, bound=bound))
        if found:
            first, *others = found
            raise ClusterError(
                first.what + "".join(f"; {one.what}" for one in others),
                code=Code.NOT_IN_ORDER,
                why="\n".join(dict.fromkeys(line for one in found for line in one.why)),
                fix=f"{first.fix}\nthen run Create again; everything is kept",
            )

    def _urls(self, told: Mapping[str, Startup]) -> dict[str, str]:
        """Wait for the notebooks' URLs if the settings ask for them; note the missing ones."""
        wanted = {name for name, it in told.items() if it.has_notebook}
        if not (self._spec.shows_urls and wanted):
            return {}
        urls = wait_for_urls(
            lambda: {name: vm.notebook for name, vm in self.vms().items()},
            wanted,
            progress=self._context.progress,
        )
        self._context.note(connection.missing(wanted - urls.keys()))
        return urls


def wait_for_urls(
    look: Callable[[], Mapping[str, str | None]], wanted: Collection[str], *, progress: Progress
) -> dict[str, str]:
    """Wait for the notebooks' URLs of all VMs at once; those that came in time."""
    with progress.stage(StageName.URLS) as stage:
        deadline = stage.deadline(_URLS_AT_MOST, _POLL)
        while True:
            urls = {name: url for name, url in look().items() if url and name in wanted}
            ends = len(urls) == len(wanted) or deadline.is_over
            news = f"{len(urls)} of {len(wanted)} notebooks have their URL"
            (stage.counts if ends else stage.news)(news)
            if ends:
                return urls
            deadline.pause()


def _connection(
    cloud: Cloud, spec: VmSpec, urls: Mapping[str, str | None], told: Mapping[str, Startup]
) -> Callable[..., VmsConnection]:
    """The VMs, with the ssh command of each, and the URL of its notebook or the way to it."""
    seats = agent.seats(cloud)
    vms = []
    for one in instances.see(cloud.api, spec).documents:
        name, interface = one["name"], one["networkInterfaces"][0]
        external = next((c.get("natIP") for c in interface.get("accessConfigs", [])), None)
        ssh = connection.ssh(name, spec, is_public=external is not None)
        has_notebook = spec.notebook and name in told and told[name].has_notebook
        vms.append(
            VmConnection(
                name=name,
                rank=seats[name].rank if name in seats else None,
                status=one["status"],
                internal_ip=interface.get("networkIP"),
                external_ip=external,
                ssh=ssh,
                notebook=urls.get(name),
                notebook_tunnel=connection.tunnel(ssh) if has_notebook else None,
            )
        )
    machine = spec.group.machine
    return functools.partial(
        VmsConnection,
        vms=tuple(vms),
        ray=connection.ray(vms[0].ssh) if spec.ray_version is not None and vms else None,
        local_ssd_path=spec.local_ssd_path if machine and machine.local_ssds else None,
        local_ssd_gb=machine.local_ssd_gb if machine else 0,
    )
