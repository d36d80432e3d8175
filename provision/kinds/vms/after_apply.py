"""After the apply: wait for the VMs, their start-up and their notebooks."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision import words
from provision.codes import Code
from provision.documents.connection import SlurmConnection, VmConnection, VmsConnection
from provision.documents.timeline import StageName
from provision.errors import CapacityError, ClusterError, StillWaiting
from provision.kinds import connection, happened, machines
from provision.kinds.vms import agent, flex_start, instances, out_of_date, startup, trouble
from provision.lifecycle import phases, plan_document
from provision.screens.layout import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

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
    agent.tell_size(cloud, spec, is_new=made.is_new)
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
    older: Sequence[OutOfDate] = () if made.is_newest else out_of_date.find(cloud, spec)
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
    spec = made.target.spec
    started = Started(context, cloud, spec)
    try:
        now = started.wait()
    except (ClusterError, CapacityError, StillWaiting):
        with phases.aside(context):
            now = started.so_far()
            connection.tell(context, cloud, made, _connection(spec, now), is_ready=False)
        raise
    context.note(list(startup.notes(now.told)))
    connection.tell(context, cloud, made, _connection(spec, now))


@dataclass(frozen=True)
class Now:
    """The VMs of a group as they were seen last."""

    seen: instances.Seen
    heard: agent.Heard
    urls: Mapping[str, str | None]  # those of their notebooks, as far as they have one
    told: Mapping[str, Startup]  # what each told of its start-up


class Started:
    """The VMs of a group that start up, as they are waited for."""

    def __init__(self, context: Context, cloud: Cloud, spec: VmSpec) -> None:
        self._context, self._cloud, self._spec = context, cloud, spec
        self._group = flex_start.group(spec)

    def _look(self) -> instances.Seen:
        return instances.see_vms(self._cloud.api, self._spec)

    def so_far(self) -> Now:
        """The VMs as they are, whether or not they have started up."""
        seen = self._look()
        urls = {vm.name: vm.notebook for vm in seen.vms(self._context.clock)}
        return Now(seen, agent.heard(self._cloud), urls, {})

    def wait(self) -> Now:
        """Wait until all run and have started up; the last look is behind all that took time."""
        context, spec = self._context, self._spec
        left = float(spec.capacity_timeout)
        while True:
            seen = self._look()
            found = {vm.name: vm for vm in seen.vms(context.clock)}
            context.note(instances.ending_soon(list(found.values())))
            started = {name: vm.started for name, vm in found.items()}
            beats = functools.partial(self._cloud.folder.changed, agent.MEMBER)
            reader = startup.Reader(self._cloud.api, spec, context.clock, started, beats)
            told = startup.wait(reader, found, progress=context.progress, stay=self._all_run)
            urls = self._urls(told)
            # A start-up takes many minutes, and so do the notebooks' URLs.
            if reader.has_waited or urls is not None:
                seen, heard = self._look(), agent.heard(self._cloud)
            else:
                heard = agent.heard(self._cloud, reader.beats)
            out_of_date.require_accounts(self._cloud, spec, seen.documents, heard.accounts)
            if self._silent(found, told, heard):
                heard = self._hear(found, told)
                seen = self._look()
            if not self._silent(found, told, heard):
                self._listen(found.values(), told, heard)
            if machines.run(seen.members, self._group):
                return Now(seen, heard, urls or {}, told)
            # Say which run no longer, and wait until their group has made them again.
            deadline, clock = context.progress.deadline(left, 0), context.clock
            operations = happened.operations(self._cloud.api, spec)
            known = instances.interruptions(instances.happened(operations, spec), clock)
            down = instances.down(seen.members, instances.restarting(seen.vms(clock), known, clock))
            if down and spec.group.mode.means.flex_start:  # which makes none again
                raise ClusterError.of(instances.gone(down, known, self._group))
            context.note(instances.gone(down, known))
            machines.wait(self._cloud.api, self._group, timeout=left, progress=context.progress)
            left = max(0.0, left - deadline.passed)

    def _all_run(self) -> bool:
        return machines.run(machines.look(self._cloud.api, self._group), self._group)

    def _silent(
        self,
        vms: Mapping[str, instances.Vm],
        told: Mapping[str, Startup],
        heard: agent.Heard,
    ) -> dict[str, str]:
        """The VMs that started up long ago and say nothing now -> how that is said."""
        clock = self._context.clock
        return {
            name: silence
            for name, it in told.items()
            if (silence := heard.silence(name, it.steps, vms[name].started, clock))
        }

    def _hear(self, vms: Mapping[str, instances.Vm], told: Mapping[str, Startup]) -> agent.Heard:
        """Wait a moment for a sign of life of VMs that say nothing; what is heard then."""
        progress = self._context.progress
        deadline = progress.deadline(_HEARING, _POLL)
        while True:
            heard = agent.heard(self._cloud)
            silent = self._silent(vms, told, heard)
            if not silent or not self._all_run():
                return heard
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

    def _listen(
        self, vms: Iterable[instances.Vm], told: Collection[str], heard: agent.Heard
    ) -> None:
        """Be not done with VMs that say that something is broken on them."""
        seats = {name: heard.seats[name] for name in told if name in heard.seats}
        bound = any(vm.bound for vm in vms)
        found = list(trouble.complaints(seats, self._group, bound=bound))
        if found:
            first, *others = found
            raise ClusterError(
                first.what + "".join(f"; {one.what}" for one in others),
                code=Code.NOT_IN_ORDER,
                why="\n".join(dict.fromkeys(line for one in found for line in one.why)),
                fix=f"{first.fix}\nthen run Create again; everything is kept",
            )

    def _urls(self, told: Mapping[str, Startup]) -> dict[str, str] | None:
        """Wait for the notebooks' URLs, and note the missing ones; None if none are wanted."""
        wanted = {name for name, it in told.items() if it.has_notebook}
        if not (self._spec.shows_urls and wanted and self._all_run()):
            return None
        urls = wait_for_urls(
            lambda: {vm.name: vm.notebook for vm in self._look().vms(self._context.clock)},
            wanted,
            progress=self._context.progress,
        )
        if without := wanted - urls.keys():
            self._context.note([connection.missing(without)])
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


def _connection(spec: VmSpec, now: Now) -> Callable[..., VmsConnection]:
    """The VMs, with the ssh command of each, and the URL of its notebook or the way to it."""
    seats, told = now.heard.seats, now.told
    vms = []
    for one in now.seen.documents:
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
                notebook=now.urls.get(name),
                notebook_tunnel=connection.tunnel(ssh) if has_notebook else None,
            )
        )
    machine = spec.group.machine
    return functools.partial(
        VmsConnection,
        vms=tuple(vms),
        ray=connection.ray(vms[0].ssh) if spec.ray_version is not None and vms else None,
        slurm=SlurmConnection(shell=vms[0].ssh, partition=spec.slurm_partition)
        if spec.slurm_partition is not None and vms
        else None,
        local_ssd_path=spec.local_ssd_path if machine and machine.local_ssds else None,
        local_ssd_gb=machine.local_ssd_gb if machine else 0,
    )
