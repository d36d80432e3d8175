"""What a Destroy ends: machines that run, resources in the state, data, cost."""

from __future__ import annotations

import datetime as dt
from collections import Counter, defaultdict
from typing import TYPE_CHECKING, Any, Final

from provision import intake, words
from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.ending import Ending, Held
from provision.errors import ClusterError, SettingsError, StateError
from provision.google import resources
from provision.google.api import GoogleApiError, Service
from provision.google.owner import MARKER
from provision.lifecycle import changed_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.context import Cloud, Context
    from provision.deployment.kind import Kind
    from provision.documents.cost import Cost
    from provision.spec.pools import Pool
    from provision.state.record import Record
    from provision.time.clock import Clock

_FORBIDDEN: Final = 403
_POOL_LABEL: Final = "goog-k8s-node-pool-name"
"""The label that GKE puts on the VM of a node."""


def describe(context: Context, cloud: Cloud, record: Record, kind: Kind[Any]) -> Ending:
    """What ends, as far as Google tells it; also put into the report."""
    vms = _machines(cloud, record)
    machines = ("not known: these credentials may not list VMs",)
    found = Ending(
        name=record.name_prefix,
        words=kind.called,
        zone=record.zone,
        machines=machines if vms is None else tuple(_words(vms, kind.member, context.clock)),
        running=sum(_runs(vm) for vm in vms or ()),
        hourly=record.hourly,
        counts=_counts(cloud),
        data=tuple(Held(words=it) for it in (*_shares(cloud), *kind.data(context, cloud, record))),
        jobs=tuple(_jobs(context, cloud, record, kind)),
    )
    context.report.ending = found
    context.report.cost = _cost(context, record, kind, vms or ())
    return found


def _jobs(context: Context, cloud: Cloud, record: Record, kind: Kind[Any]) -> Sequence[str]:
    try:
        return kind.jobs(context, cloud, record).unfinished()
    except (SettingsError, StateError, ClusterError):
        return ()  # this kind has none, or nothing answers that would know them


def _machines(cloud: Cloud, record: Record) -> list[dict[str, Any]] | None:
    """The VMs with the deployment's marker; None where these credentials may not list them."""
    path = f"projects/{record.project_id}/aggregated/instances"
    query = {"filter": f"labels.{MARKER}={record.cluster_id}"}
    try:
        scopes = list(cloud.api.pages("GET", path, "items", query, service=Service.COMPUTE))
    except GoogleApiError as error:
        if error.code != _FORBIDDEN:
            raise
        return None
    return [vm for scope in scopes for vm in scope.get("instances", [])]


def _runs(vm: Mapping[str, Any]) -> bool:
    return bool(vm.get("status") == "RUNNING")


def _words(vms: Sequence[Mapping[str, Any]], member: str, clock: Clock) -> Iterator[str]:
    """What there is of each kind, as "2 VMs run: a2-highgpu-2g in us-east1-b, for up to 2 h"."""
    kinds: dict[tuple[str, str, str], list[Mapping[str, Any]]] = defaultdict(list)
    for vm in vms:
        kinds[_last(vm["machineType"]), _last(vm["zone"]), str(vm.get("status", ""))].append(vm)
    for (machine_type, zone, status), them in sorted(kinds.items()):
        count = len(them)
        members = member if count == 1 else f"{member}s"
        run = "runs" if count == 1 else "run"
        is_so = run if status == "RUNNING" else f"{'is' if count == 1 else 'are'} {status}"
        started = [vm.get("lastStartTimestamp") or vm.get("creationTimestamp") for vm in them]
        ages = [clock.since(dt.datetime.fromisoformat(it).timestamp()) for it in started if it]
        most = "" if count == 1 else "up to "
        age = f", for {most}{words.duration(max(ages))}" if ages and status == "RUNNING" else ""
        yield f"{count:,} {members} {is_so}: {machine_type} in {zone}{age}"


def _counts(cloud: Cloud) -> dict[str, int]:
    """The resources in the state, by what people call them, what matters most first."""
    found = Counter(resources.noun(type_) for type_ in cloud.folder.types())
    return dict(sorted(found.items(), key=lambda one: resources.place(one[0])))


def _shares(cloud: Cloud) -> Iterator[str]:
    """The shares that go with all their files; buckets are never deleted."""
    for share in cloud.folder.of_type(resources.FILESTORE.type).values():
        files = (share.get("file_shares") or [{}])[0]
        yield f"Filestore {share.get('name')}, {files.get('capacity_gb')} GB, with all its files"


def _cost(
    context: Context, record: Record, kind: Kind[Any], vms: Sequence[Mapping[str, Any]]
) -> Cost | None:
    """What it costs now; None where these settings are not those that it was made with."""
    given = {name.upper() for name in context.settings.model_fields_set}
    for way in context.settings.capacity or (None,):
        settings = context.settings.by(way)
        now = intake.effective(settings)
        if record.settings and not changed_settings.of(record.settings, now, given):
            break
    else:
        return None
    spec = kind.spec(settings)
    running = {pool.name: sum(_is_of(vm, pool) for vm in vms) for pool in spec.pools}
    return estimate.of(spec, prices.listed().by(context.today), running)


def _is_of(vm: Mapping[str, Any], pool: Pool) -> bool:
    label = (vm.get("labels") or {}).get(_POOL_LABEL, pool.name)
    return bool(label == pool.name and _last(vm["machineType"]) == pool.machine_type)


def _last(link: str) -> str:
    return link.rpartition("/")[2]
