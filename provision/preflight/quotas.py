"""The check of quotas: what the machines need, compared with the project's limits and usage."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines
from provision.codes import Code
from provision.documents.plan import Quota
from provision.errors import Problem
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE
from provision.preflight import counted, metrics, shares, zones
from provision.preflight.check import CheckNote, Passed
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.check import CheckContext, Finding
    from provision.preflight.counted import Wanted
    from provision.preflight.metrics import Metric
    from provision.spec.cluster import ClusterSpec

_PREEMPTIBLE: Final = frozenset({"SPOT", "FLEX_START"})
_UNLIMITED: Final = -1
_FEWER: Final = "or use fewer or smaller machines, or a region that has quota"
_NETWORKS: Final = (
    "or delete networks that nobody needs, or ask for fewer: NETWORK_CONFIG=default_network makes"
    " none, and GPU machines with fewer interfaces have fewer (a move makes the new ones before"
    " the old ones go: Destroy and Create in its place need none beside them)"
)
_INSTEAD: Final = dict.fromkeys(("NETWORKS", "SUBNETWORKS", "ROUTERS", "FIREWALLS"), _NETWORKS)
"""The project's quotas of networks and the like -> what else helps than more quota."""


@dataclass(frozen=True)
class QuotaUsage:
    """A quota's limit and usage in a project."""

    name: str
    limit: float  # the project's limit
    usage: float | None  # the project's usage; None if Google does not report it

    def room(self, own: int) -> float:
        """How much a deployment may use of it that uses so much already."""
        used = self.usage or 0
        return self.limit - used + min(own, used)


@dataclass
class Need:
    """How much a deployment needs of one quota."""

    now: int = 0
    most: int = 0  # for its largest size
    own: int = 0  # what it uses already
    # the preemptible quota that a part of it may use in its place; None for no part
    twin: Metric | None = None
    twin_now: int = 0  # the part of `now` that may
    twin_most: int = 0  # the part of `most` that may

    def add(self, first: int, most: int, twin: Metric | None) -> None:
        """Count more machines."""
        self.now += first
        self.most += most
        if twin is not None:
            self.twin = twin
            self.twin_now += first
            self.twin_most += most


def quota(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that the project's quotas are large enough for all that is made together."""
    for metric, need in _needs(ctx).items():
        found = _find(ctx, metric)
        if found is None:
            if metric.must:
                yield CheckNote(_untold(ctx, metric))
            continue
        if need.most <= found.room(need.own):
            yield Passed(quota=_compared(found, need))
            continue
        twin = _find(ctx, need.twin) if need.twin else None
        if not _fits(need.now, need.twin_now, need.own, found, twin):
            yield _short(ctx, metric, found, need)
        elif not _fits(need.most, need.twin_most, need.own, found, twin):
            yield CheckNote(_short(ctx, metric, found, need))
    yield from _resources(ctx)
    yield from shares.quota(ctx)


def _compared(found: QuotaUsage, need: Need) -> Quota:
    return Quota(
        metric=found.name,
        limit=int(found.limit) if math.isfinite(found.limit) else None,
        used=None if found.usage is None else int(found.usage),
        needed=need.most,
    )


def _fits(amount: int, movable: int, own: int, found: QuotaUsage, twin: QuotaUsage | None) -> bool:
    """Whether an amount fits into a quota, or what of it may be moved into the quota's twin."""
    if amount <= found.room(own):
        return True
    if twin is None:
        return False
    return movable <= twin.room(own) and amount - movable <= found.room(own)


def _resources(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check the quotas of networks and the like; Google is asked for names only where it is tight.

    What would be made is counted, not what there is: a move makes a network beside the old one.
    """
    wanted: dict[Metric, list[Wanted]] = {}
    for one in counted.wanted(ctx):
        wanted.setdefault(one.metric, []).append(one)
    for metric, ones in wanted.items():
        found = _find(ctx, metric)
        if found is None or len(ones) <= found.room(0):
            continue
        own = sum(counted.is_there(ctx, one) for one in ones)
        if len(ones) > found.room(own):
            yield _short(ctx, metric, found, Need(now=len(ones), most=len(ones), own=own))


def _needs(ctx: CheckContext[ClusterSpec]) -> dict[Metric, Need]:
    needs: dict[Metric, Need] = {}
    for wanted in ctx.spec.pools:
        for metric, amount in metrics.of(wanted, _vcpus(ctx, wanted), ctx.project):
            need = needs.setdefault(metric, Need())
            twin = metrics.preemptible_twin(wanted, metric)
            need.add(amount * wanted.size.first, amount * wanted.size.most, twin)
    if any(wanted.mode.means.requested for wanted in ctx.spec.pools):
        # One resize request at a time, for the whole group or for a job.
        request = metrics.Metric(name=metrics.RESIZE_REQUESTS, must=True)
        needs[request] = Need(now=1, most=1)
    if ctx.spec.makes_network:
        # The address of Cloud NAT.
        address = needs.setdefault(metrics.Metric(name=metrics.ADDRESSES), Need())
        address.now, address.most = address.now + 1, address.most + 1
    for metric, amount in _own(ctx).items():
        if metric in needs:
            needs[metric].own = amount
    return needs


def _vcpus(ctx: CheckContext[ClusterSpec], wanted: Pool) -> int:
    known = machines.lookup(wanted.machine_type)
    if known is not None:
        return known.vcpus
    return int((zones.look(ctx, wanted) or {}).get("guestCpus", 0))


def _own(ctx: CheckContext[ClusterSpec]) -> Mapping[Metric, int]:
    """What the deployment's existing machines use: they would not be created again."""
    used: Counter[Metric] = Counter()
    if ctx.record is None:
        return used
    found = ctx.answers.machines_with(ctx.project, MARKER, ctx.record.cluster_id)
    for vm in found:
        present = _present(ctx, vm)
        for metric, amount in metrics.of(present, _vcpus(ctx, present), ctx.project):
            # What a move leaves in another region gives that region's quota back.
            if metric.everywhere or present.region == ctx.spec.region:
                used[metric] += amount
    return used


def _present(ctx: CheckContext[ClusterSpec], vm: Mapping[str, Any]) -> Pool:
    """An existing VM as a pool of one machine."""
    gpus = (vm.get("guestAccelerators") or [{}])[0]
    boot = (vm.get("disks") or [{}])[0]
    reservation = next(iter((vm.get("reservationAffinity") or {}).get("values") or []), None)
    return Pool(
        name=vm.get("name", ""),
        zone=_last(vm["zone"]),
        machine_type=_last(vm["machineType"]),
        size=Size(count=1),
        mode=_mode(vm),
        reservation=reservation,
        gpu_type=_last(gpus.get("acceleratorType", "")) or None,
        gpu_count=int(gpus.get("acceleratorCount", 0)),
        # The API's VM does not have its disk's type; it rarely changes.
        disk_type=ctx.spec.pools[0].disk_type,
        disk_size_gb=int(boot.get("diskSizeGb", 0)),
        external_ip=any(it.get("accessConfigs") for it in vm.get("networkInterfaces", [])),
    )


def _mode(vm: Mapping[str, Any]) -> Mode:
    """The capacity mode of an existing VM, as far as quotas tell modes apart."""
    model = vm.get("scheduling", {}).get("provisioningModel")
    if model in _PREEMPTIBLE:
        return Mode.SPOT
    if model == "RESERVATION_BOUND":
        return Mode.RESERVATION_BOUND
    named = (vm.get("reservationAffinity") or {}).get("values")
    return Mode.RESERVATION if named else Mode.STANDARD


def _find(ctx: CheckContext[ClusterSpec], metric: Metric) -> QuotaUsage | None:
    """The quota's limit and usage; None if Google does not report it."""
    shown = _shown(ctx, everywhere=metric.everywhere)
    found = shown.get(metric.name)
    if metric.otherwise and (found is None or not found.limit):
        return shown.get(metric.otherwise)
    if found is not None or not metric.must:
        return found
    return _by_service_usage(ctx, metric)


def _shown(ctx: CheckContext[ClusterSpec], *, everywhere: bool) -> dict[str, QuotaUsage]:
    """The quotas of the region, or of all regions together, in Compute Engine's API."""
    path = f"projects/{ctx.project}"
    if not everywhere:
        path += f"/regions/{ctx.spec.region}"
    entries = ctx.answers.get(Service.COMPUTE, path).get("quotas", [])
    return {it["metric"]: QuotaUsage(it["metric"], it["limit"], it["usage"]) for it in entries}


def _by_service_usage(ctx: CheckContext[ClusterSpec], metric: Metric) -> QuotaUsage | None:
    """The limit from Service Usage, which has all quotas, but not their usage."""
    encoded = f"compute.googleapis.com%2F{metric.name.lower()}"
    services = f"projects/{ctx.project}/services/compute.googleapis.com"
    path = f"{services}/consumerQuotaMetrics/{encoded}"
    document = ctx.answers.find(Service.QUOTAS, path)
    wanted = {**metric.dimensions, "region": ctx.spec.region}.items()
    fitting = [
        bucket
        for limit in (document or {}).get("consumerQuotaLimits", [])
        for bucket in limit.get("quotaBuckets", [])
        if bucket.get("dimensions", {}).items() <= wanted
    ]
    if not fitting:
        return None
    closest = max(fitting, key=lambda bucket: len(bucket.get("dimensions", {})))
    # Google omits a number that is 0.
    limit = int(closest.get("effectiveLimit", 0))
    return QuotaUsage(metric.name, float("inf") if limit == _UNLIMITED else limit, usage=None)


def _short(
    ctx: CheckContext[ClusterSpec], metric: Metric, found: QuotaUsage, need: Need
) -> Problem:
    place = "all regions" if metric.everywhere else ctx.spec.region
    name = metric.words if found.name == metric.name else found.name
    enough = need.now if need.now == need.most else f"{need.now} now and up to {need.most}"
    usage = "" if found.usage is None else f", and {found.usage:g} of it is used"
    own = f", {need.own} by this deployment" if need.own else ""
    twin = f", or of {need.twin.words} in its place" if need.twin else ""
    return Problem(
        code=Code.QUOTA_EXCEEDED,
        setting=_setting(ctx, metric),
        what=f"the quota {name} in {place} is too small: this deployment needs {enough}{twin}",
        why=f"the limit of {ctx.project} is {found.limit:g}{usage}{own}",
        fix=f"request an increase at {QUOTA_PAGE}?project={ctx.project}\n"
        f"filter by {found.name} and {place}, select it, click Edit ({QUOTA_ROLE})\n"
        f"{_INSTEAD.get(metric.name, _FEWER)}",
    )


def _setting(ctx: CheckContext[ClusterSpec], metric: Metric) -> str:
    if metric.name in _INSTEAD:
        return "NETWORK_CONFIG"
    return "REGION" if metric.everywhere else ctx.spec.pools[0].setting


def _untold(ctx: CheckContext[ClusterSpec], metric: Metric) -> Problem:
    return Problem(
        code=Code.NOT_CHECKED,
        what=f"could not check whether the quota {metric.words} in {ctx.spec.region} is large"
        " enough",
        why="Google does not report such a quota for this project",
        fix=f"check it at {QUOTA_PAGE}?project={ctx.project}",
    )


def _last(link: str) -> str:
    return link.rpartition("/")[2]
