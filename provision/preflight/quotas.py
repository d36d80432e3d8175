"""The check of quotas: what is made, compared with the project's limits and usage."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol

from provision.catalogue import filestores, machines
from provision.catalogue import zones as places
from provision.catalogue.limits import LONGEST_RUN
from provision.catalogue.machines import GpuQuota
from provision.codes import Code
from provision.documents.plan import Quota
from provision.google import resources
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE
from provision.google.resources import last
from provision.preflight import made, zones
from provision.preflight.check import Effect, Finding, note, refuse
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.filestores import Tier
    from provision.catalogue.machines import Gpu
    from provision.preflight.check import Answers, CheckContext
    from provision.preflight.made import Made
    from provision.spec.cluster import ClusterSpec

_DISKS: Final[Mapping[str, str]] = {
    "hyperdisk-balanced": "HDB_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-extreme": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "pd-standard": "DISKS_TOTAL_GB",
}
_LOCAL_SSD: Final = "LOCAL_SSD_TOTAL_GB"
_LOCAL_SSD_PER_FAMILY: Final = "LOCAL_SSD_TOTAL_STORAGE_PER_VM_FAMILY"
_PREEMPTIBLE_LOCAL_SSD: Final = "PREEMPTIBLE_LOCAL_SSD_GB"
_PREEMPTIBLE_CPUS: Final = "PREEMPTIBLE_CPUS"
_ADDRESSES: Final = "IN_USE_ADDRESSES"
_PREEMPTIBLE: Final = frozenset({"SPOT", "FLEX_START"})
_UNLIMITED: Final = -1
_NETWORKS: Final = (
    "or delete networks that nobody needs, or ask for fewer: NETWORK_CONFIG=default_network makes"
    " none, and GPU machines with fewer interfaces have fewer (a move makes the new ones before"
    " the old ones go: Destroy and Create in its place need none beside them)"
)
_INSTEAD: Final = dict.fromkeys(("NETWORKS", "SUBNETWORKS", "ROUTERS", "FIREWALLS"), _NETWORKS)
"""The project's quotas of networks and the like -> what else helps than more quota."""
_FILES: Final = "file.googleapis.com"
_COMPUTE: Final = "compute.googleapis.com"
_CLOUD_QUOTAS: Final = "cloudquotas.googleapis.com"
_ENABLE: Final = f"gcloud services enable {_CLOUD_QUOTAS}"
_PER_VM_FAMILY: Final = "vm_family"
"""The dimension of quotas of a family of machines, which compute v1 does not list."""
_OLDER: Final = {"STANDARD": "BASIC_HDD", "PREMIUM": "BASIC_SSD"}
"""The older names of two tiers, which the API still answers."""


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One quota."""

    name: str  # its metric, such as "PREEMPTIBLE_NVIDIA_A100_GPUS"
    everywhere: bool = False  # whether it is a global quota, for all regions together
    must: bool = False  # whether every project has it, so that its absence is worth a note
    # the quota that applies instead if the project has none of this one
    otherwise: Metric | None = field(default=None, compare=False)
    # the dimensions that distinguish it from other quotas of that name
    dimensions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def words(self) -> str:
        """Its name, with its dimensions."""
        return " for ".join([self.name, *self.dimensions.values()])

    @property
    def filters(self) -> list[str]:
        """By what it is found on Google's page of quotas, beside its region."""
        return [self.name, *(f"{key} {value}" for key, value in self.dimensions.items())]


# The project's quotas, but for that of resource policies, which is a region's (discovery document
# of compute v1, Quota.metric).
_OF_RESOURCES: Final = {
    resources.NETWORK: Metric(name="NETWORKS", everywhere=True),
    resources.SUBNETWORK: Metric(name="SUBNETWORKS", everywhere=True),
    resources.ROUTER: Metric(name="ROUTERS", everywhere=True),
    resources.FIREWALL: Metric(name="FIREWALLS", everywhere=True),
    resources.RESOURCE_POLICY: Metric(name="RESOURCE_POLICIES"),
}


@dataclass(frozen=True)
class _Usage:
    metric: Metric
    limit: float
    usage: float | None  # None if Google does not report it

    def room(self, own: int) -> float:
        """How much a deployment may use of it that uses so much already."""
        used = self.usage or 0
        return self.limit - used + min(own, used)


@dataclass
class _Need:
    now: int = 0
    most: int = 0  # for its largest size
    own: int = 0  # what it uses already
    # the preemptible quota that a part of it may use in its place; None for no part
    twin: Metric | None = None
    twin_now: int = 0  # the part of `now` that may
    twin_most: int = 0  # the part of `most` that may

    def add(self, first: int, most: int, twin: Metric | None = None) -> None:
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
                yield _not_known(ctx, metric)
            continue
        if need.most <= found.room(need.own):
            yield Finding(quota=_quota(found, need.most))
            continue
        twin = _find(ctx, need.twin) if need.twin else None
        if not _fits(need.now, need.twin_now, need.own, found, twin):
            yield _short(ctx, metric, found, need)
        elif not _fits(need.most, need.twin_most, need.own, found, twin):
            yield _short(ctx, metric, found, need, Effect.NOTE)
    yield from _of_resources(ctx)
    yield from _of_shares(ctx)


def _not_known(ctx: CheckContext[ClusterSpec], metric: Metric) -> Finding:
    off = _PER_VM_FAMILY in metric.dimensions and not _tells_quotas(ctx)
    by_hand = f"check it at {QUOTA_PAGE}?project={ctx.project}"
    return note(
        Code.NOT_CHECKED,
        what=f"could not check whether the quota {metric.words} in {ctx.spec.region} is"
        " large enough",
        why=f"{ctx.project} has not enabled {_CLOUD_QUOTAS}, and no other API tells it"
        if off
        else "Google does not report such a quota for this project",
        fix=f"{_ENABLE} --project {ctx.project}, or {by_hand}" if off else by_hand,
    )


def _fits(amount: int, movable: int, own: int, found: _Usage, twin: _Usage | None) -> bool:
    """Whether an amount fits into a quota, or what of it may be moved into the quota's twin."""
    if amount <= found.room(own):
        return True
    if twin is None:
        return False
    return movable <= twin.room(own) and amount - movable <= found.room(own)


def _short(
    ctx: CheckContext[ClusterSpec],
    metric: Metric,
    found: _Usage,
    need: _Need,
    effect: Effect = Effect.STOPS,
) -> Finding:
    place = "all regions" if metric.everywhere else ctx.spec.region
    enough = need.now if need.now == need.most else f"{need.now} now and up to {need.most}"
    usage = "" if found.usage is None else f", and {found.usage:.15g} of it is used"
    own = f", {need.own} by this deployment" if need.own else ""
    twin = f", or of {need.twin.words} in its place" if need.twin else ""
    where = [] if metric.everywhere else [place]
    ways = ["fewer or smaller machines"] if found.room(need.own) > 0 else []
    ways += [] if metric.everywhere else ["a region that has quota"]
    all_of_it = "the quota is that of all regions together" if metric.everywhere else ""
    fewer = ": ".join(filter(None, (f"or use {', or '.join(ways)}" if ways else "", all_of_it)))
    return note(
        Code.QUOTA_EXCEEDED,
        effect,
        setting="NETWORK_CONFIG" if metric.name in _INSTEAD else ctx.spec.pools[0].setting,
        what=f"the quota {found.metric.words} in {place} is too small: this deployment needs"
        f" {enough}{twin}",
        why=f"the limit of {ctx.project} is {found.limit:.15g}{usage}{own}",
        fix=f"request an increase at {QUOTA_PAGE}?project={ctx.project}\n"
        f"filter by {' and '.join([*found.metric.filters, *where])}, select it, click Edit"
        f" ({QUOTA_ROLE})\n"
        f"{_INSTEAD.get(metric.name, fewer)}",
    )


def _of_resources(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check the quotas of networks and the like; Google is asked for names only where it is tight.

    What would be made is counted, not what there is: a move makes a network beside the old one.
    """
    wanted: dict[Metric, list[Made]] = {}
    for one in made.counted(ctx):
        wanted.setdefault(_OF_RESOURCES[one.row], []).append(one)
    for metric, ones in wanted.items():
        found = _find(ctx, metric)
        if found is None or len(ones) <= found.room(0):
            continue
        own = sum(one.is_there(ctx) for one in ones)
        if len(ones) > found.room(own):
            yield _short(ctx, metric, found, _Need(now=len(ones), most=len(ones), own=own))


# ------------------------------------------------------------------ what is needed


def _needs(ctx: CheckContext[ClusterSpec]) -> dict[Metric, _Need]:
    needs: dict[Metric, _Need] = {}
    for wanted in ctx.spec.pools:
        for metric, amount in of_machine(wanted, _vcpus(ctx, wanted), ctx.project):
            need = needs.setdefault(metric, _Need())
            twin = _preemptible_twin(wanted, metric)
            need.add(amount * wanted.size.first, amount * wanted.size.most, twin)
    if any(wanted.mode.means.requested for wanted in ctx.spec.pools):
        # One resize request at a time, for the whole group or for a job.
        needs[Metric(name="ACTIVE_RESIZE_REQUESTS", must=True)] = _Need(now=1, most=1)
    if ctx.spec.makes_network:
        # The address of Cloud NAT.
        needs.setdefault(Metric(name=_ADDRESSES), _Need()).add(1, 1)
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
    for vm in ctx.answers.machines_with(ctx.project, MARKER, ctx.record.cluster_id):
        present = _present(ctx, vm)
        for metric, amount in of_machine(present, _vcpus(ctx, present), ctx.project):
            # What a move leaves in another region gives that region's quota back.
            if metric.everywhere or present.region == ctx.spec.region:
                used[metric] += amount
    return used


def _present(ctx: CheckContext[ClusterSpec], vm: Mapping[str, Any]) -> Pool:
    """An existing VM as a pool of one machine, with its mode as far as quotas tell modes apart."""
    gpus = (vm.get("guestAccelerators") or [{}])[0]
    boot = (vm.get("disks") or [{}])[0]
    reservation = next(iter((vm.get("reservationAffinity") or {}).get("values") or []), None)
    mode = Mode.RESERVATION if reservation else Mode.STANDARD
    model = vm.get("scheduling", {}).get("provisioningModel")
    if model in _PREEMPTIBLE:
        mode = Mode.SPOT
    elif model == "RESERVATION_BOUND":
        mode = Mode.RESERVATION_BOUND
    return Pool(
        name=vm.get("name", ""),
        zone=last(vm["zone"]),
        machine_type=last(vm["machineType"]),
        size=Size(count=1),
        mode=mode,
        reservation=reservation,
        gpu_type=last(gpus.get("acceleratorType", "")) or None,
        gpu_count=int(gpus.get("acceleratorCount", 0)),
        # The API's VM does not have its disk's type; it rarely changes.
        disk_type=ctx.spec.pools[0].disk_type,
        disk_size_gb=int(boot.get("diskSizeGb", 0)),
        external_ip=any(it.get("accessConfigs") for it in vm.get("networkInterfaces", [])),
    )


def of_machine(pool: Pool, vcpus: int, project: str) -> Iterator[tuple[Metric, int]]:
    """How much of each quota one machine of a pool uses.

    One of a reservation that has used the quota of GPUs and CPUs itself only uses quotas of disks
    and addresses. A reservation of another project has used that project's, and whoever uses it
    needs as much of their own (Google's page on shared reservations); but not for capacity to which
    machines are bound, for which Google raises the quota first, or uses none.
    """
    path, means = pool.reservation_path, pool.mode.means
    own = path is not None and path.owner(project) == project
    if not (means.reserved and path is not None and (means.bound or own)):
        yield from _gpus(pool)
        # A project that never requested preemptible CPUs uses the standard quota.
        if (standard := _cpus(pool)) is not None:
            spot = Metric(name=_PREEMPTIBLE_CPUS, otherwise=standard)
            yield spot if means.preemptible else standard, vcpus
            yield Metric(name="CPUS_ALL_REGIONS", everywhere=True), vcpus
        if size := pool.machine.local_ssd_gb if pool.machine else 0:
            total = Metric(name=_LOCAL_SSD)
            disks = _of_family(_LOCAL_SSD_PER_FAMILY, pool, otherwise=total)
            spot = Metric(name=_PREEMPTIBLE_LOCAL_SSD, otherwise=disks)
            yield spot if means.preemptible else disks, size
    yield Metric(name=_DISKS[pool.disk_type]), pool.disk_size_gb
    yield Metric(name="INSTANCES"), 1
    if pool.external_ip:
        yield Metric(name=_ADDRESSES), 1


def _cpus(pool: Pool) -> Metric | None:
    """The quota of the vCPUs; None for machines that need their GPUs' quota alone."""
    name = machines.cpu_quota(pool.machine_type)
    if name == machines.CPUS_PER_VM_FAMILY:
        return _of_family(name, pool, must=True)
    return Metric(name=name) if name else None


def _of_family(name: str, pool: Pool, **more: Any) -> Metric:
    family = pool.machine_type.partition("-")[0].upper()
    return Metric(name=name, dimensions=MappingProxyType({_PER_VM_FAMILY: family}), **more)


def _gpus(pool: Pool) -> Iterator[tuple[Metric, int]]:
    gpu = machines.GPUS.get(pool.gpu_type or "")
    if gpu is None or not pool.gpus:
        return
    yield _preemptible(gpu) if pool.mode.means.preemptible else _on_demand(gpu), pool.gpus
    if gpu.quota is GpuQuota.OWN:
        yield Metric(name="GPUS_ALL_REGIONS", everywhere=True), pool.gpus


def _preemptible(gpu: Gpu) -> Metric:
    return Metric(name=f"PREEMPTIBLE_NVIDIA_{gpu.quota_word}_GPUS", must=True)


def _on_demand(gpu: Gpu) -> Metric:
    match gpu.quota:
        case GpuQuota.OWN:
            return Metric(name=f"NVIDIA_{gpu.quota_word}_GPUS", must=True)
        case GpuQuota.SHARED:
            family = MappingProxyType({"gpu_family": f"NVIDIA_{gpu.quota_word}"})
            return Metric(name="GPUS_PER_GPU_FAMILY", must=True, dimensions=family)


def _preemptible_twin(pool: Pool, metric: Metric) -> Metric | None:
    """The preemptible quota that machines may use in place of a standard one; None if they may not.

    Machines on demand that run for at most seven days and are then deleted count against either
    (Compute Engine, "Allocation quotas", as quoted in September 2026).
    """
    limited = pool.max_run_seconds is not None and pool.max_run_seconds <= LONGEST_RUN
    if pool.mode is not Mode.STANDARD or not limited or metric.everywhere:
        return None
    gpu = machines.GPUS.get(pool.gpu_type or "")
    if gpu is not None and metric == _on_demand(gpu):
        return _preemptible(gpu)
    twins = {_LOCAL_SSD_PER_FAMILY: _PREEMPTIBLE_LOCAL_SSD}
    twins[machines.cpu_quota(pool.machine_type)] = _PREEMPTIBLE_CPUS
    return Metric(name=twins[metric.name]) if metric.name in twins else None


# ------------------------------------------------------------------ what there is


class Place(Protocol):
    """Whose quotas are meant, and where: what every check gets, or `Region`."""

    @property
    def answers(self) -> Answers:
        """Google's answers."""

    @property
    def project(self) -> str:
        """The project's ID."""

    @property
    def region(self) -> str:
        """The region."""


@dataclass(frozen=True)
class Region:
    """One region of a project, for who asks without a cluster."""

    answers: Answers
    project: str
    region: str


def of_gpus(place: Place, gpu: Gpu, number: int, *, preemptible: bool) -> Quota | None:
    """The quota that so many GPUs use; None if Google does not report it."""
    found = _find(place, _preemptible(gpu) if preemptible else _on_demand(gpu))
    return None if found is None else _quota(found, number)


def _quota(found: _Usage, needed: int) -> Quota:
    limit = int(found.limit) if math.isfinite(found.limit) else None
    used = None if found.usage is None else int(found.usage)
    return Quota(metric=found.metric.name, limit=limit, used=used, needed=needed)


def _find(ctx: Place, metric: Metric) -> _Usage | None:
    """The quota's limit and usage; None if Google does not report it."""
    if _PER_VM_FAMILY in metric.dimensions:
        limit = _limit(ctx, _COMPUTE, f"{metric.name.replace('_', '-')}-per-project-region", metric)
        if limit is not None:
            return _Usage(metric, limit, usage=None)
        return _find(ctx, metric.otherwise) if metric.otherwise else None
    path = f"projects/{ctx.project}"
    if not metric.everywhere:
        path += f"/regions/{ctx.region}"
    entries = ctx.answers.get(Service.COMPUTE, path).get("quotas", [])
    shown = {it["metric"]: _Usage(metric, it["limit"], it["usage"]) for it in entries}
    found = shown.get(metric.name)
    if metric.otherwise and (found is None or not found.limit):
        return _find(ctx, metric.otherwise)
    if found is not None or not metric.must:
        return found
    return _by_service_usage(ctx, metric)


def _by_service_usage(ctx: Place, metric: Metric) -> _Usage | None:
    """The limit from Service Usage, which has all quotas, but not their usage."""
    encoded = f"compute.googleapis.com%2F{metric.name.lower()}"
    services = f"projects/{ctx.project}/services/compute.googleapis.com"
    document = ctx.answers.find(Service.QUOTAS, f"{services}/consumerQuotaMetrics/{encoded}")
    wanted = {**metric.dimensions, "region": ctx.region}.items()
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
    return _Usage(metric, math.inf if limit == _UNLIMITED else limit, usage=None)


def _tells_quotas(ctx: Place) -> bool:
    return _CLOUD_QUOTAS in ctx.answers.enabled_apis(ctx.project)


def _limit(ctx: Place, service: str, name: str, metric: Metric | None = None) -> float | None:
    """The limit of a quota in the region, by Cloud Quotas; None if Google tells none.

    Of a quota of machine families only a row that names the family counts: those without one are
    for all others, and stand there without a number, which for GPU machines means nothing.
    """
    if not _tells_quotas(ctx):
        return None
    path = f"projects/{ctx.project}/locations/global/services/{service}/quotaInfos/{name}"
    found = ctx.answers.find(Service.CLOUD_QUOTAS, path) or {}
    family = dict(metric.dimensions) if metric else {}
    fitting = []
    for info in found.get("dimensionsInfos", []):
        its = info.get("dimensions", {})
        here = its.get("region") == ctx.region
        inside = "region" not in its and ctx.region in info.get("applicableLocations", [])
        if {key: its.get(key) for key in family} == family and (here or inside):
            fitting.append((here, info.get("details", {})))
    if not fitting:
        return None
    value = int(max(fitting, key=lambda one: one[0])[1].get("value", 0))
    return math.inf if value == _UNLIMITED else value


# ------------------------------------------------------------------ shares


def _of_shares(ctx: CheckContext[ClusterSpec]) -> Iterator[Finding]:
    """Check that Filestore's quotas in the region are large enough for the shares, by tier."""
    wanted: Counter[Tier] = Counter()
    for share in ctx.spec.shares:
        if share.tier in filestores.QUOTAS and share.size_gb is not None:
            wanted[share.tier] += share.size_gb
    if wanted and not _tells_quotas(ctx):
        yield note(
            Code.NOT_CHECKED,
            setting="NFS_FILESHARE_LIST",
            what="could not check whether Filestore's quota is large enough for the shares",
            why=f"{ctx.project} has not enabled {_CLOUD_QUOTAS}, and no other API tells it",
            fix=f"{_ENABLE} --project {ctx.project}, or check it at"
            f" {QUOTA_PAGE}?project={ctx.project}",
        )
        return
    region = ctx.spec.region
    for tier, needed in wanted.items():
        name = filestores.QUOTAS[tier]
        limit = _limit(ctx, _FILES, name)
        if limit is None:
            continue
        used, own = _used_by_shares(ctx, tier)
        if needed > limit - used + own:
            mine = f", {own} by this deployment" if own else ""
            yield refuse(
                Code.QUOTA_EXCEEDED,
                setting="NFS_FILESHARE_LIST",
                what=f"Filestore's quota {name} in {region} is too small: this deployment needs"
                f" {needed} GiB of {tier}",
                why=f"the limit of {ctx.project} is {int(limit)} GiB, and {used} of it is used"
                f"{mine}",
                fix=f"request an increase at {QUOTA_PAGE}?project={ctx.project}\n"
                f"filter by {name} and {region}, select it, click Edit ({QUOTA_ROLE})\n"
                "or use smaller shares, another tier, or a region that has quota",
            )


def _used_by_shares(ctx: CheckContext[ClusterSpec], tier: Tier) -> tuple[int, int]:
    """The GiB of a tier that there are in the region, and those of them of this deployment."""
    used = own = 0
    for one in ctx.answers.shares(ctx.project):
        location = one["name"].split("/")[3]
        here = ctx.spec.region in {location, places.region_of(location)}
        if not here or _OLDER.get(one["tier"], one["tier"]) != tier:
            continue
        size = sum(int(it.get("capacityGb", 0)) for it in one.get("fileShares", []))
        used += size
        own += size if ctx.is_ours(resources.FILESTORE.look, one["name"], one) else 0
    return used, own
