"""The check of quotas: what the machines need of each, what the project may have, and has."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import machines
from provision.errors import Problem
from provision.google.api import Service
from provision.google.owner import MARKER
from provision.google.refusals import QUOTA_PAGE, QUOTA_ROLE
from provision.preflight import metrics, zones
from provision.preflight.case import Note
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.preflight.case import Case, Finding
    from provision.preflight.metrics import Metric
    from provision.spec.cluster import ClusterSpec

_PREEMPTIBLE: Final = frozenset({"SPOT", "FLEX_START"})
_UNLIMITED: Final = -1


@dataclass(frozen=True)
class Quota:
    """What a project may have of something, and has.

    Attributes:
        name: The metric's.
        limit: What it may have.
        usage: What it has; None where Google does not tell.
    """

    name: str
    limit: float
    usage: float | None


@dataclass
class Need:
    """What a deployment needs of one quota.

    Attributes:
        now: For what it has from the start.
        most: For the most that it may ever have.
        own: What it uses already.
    """

    now: int = 0
    most: int = 0
    own: int = 0


def quota(case: Case[ClusterSpec]) -> Iterator[Finding]:
    """The project's quotas are large enough for all machines together."""
    for metric, need in _needs(case).items():
        found = _find(case, metric)
        if found is None:
            if metric.must:
                yield Note(_untold(case, metric))
            continue
        room = found.limit - (found.usage or 0) + min(need.own, found.usage or 0)
        if need.now > room:
            yield _short(case, metric, found, need)
        elif need.most > room:
            yield Note(_short(case, metric, found, need))


def _needs(case: Case[ClusterSpec]) -> dict[Metric, Need]:
    needs: dict[Metric, Need] = {}
    for wanted in case.spec.pools:
        for metric, amount in metrics.of(wanted, _vcpus(case, wanted)):
            need = needs.setdefault(metric, Need())
            need.now += amount * wanted.size.first
            need.most += amount * wanted.size.most
    if any(wanted.mode.means.requested for wanted in case.spec.pools):
        # One request at a time for the whole group, or for a job.
        request = metrics.Metric(name=metrics.RESIZE_REQUESTS, must=True)
        needs[request] = Need(now=1, most=1)
    if case.spec.makes_network:
        # Cloud NAT's own address.
        address = needs.setdefault(metrics.Metric(name=metrics.ADDRESSES), Need())
        address.now, address.most = address.now + 1, address.most + 1
    for metric, amount in _own(case).items():
        if metric in needs:
            needs[metric].own = amount
    return needs


def _vcpus(case: Case[ClusterSpec], wanted: Pool) -> int:
    known = machines.lookup(wanted.machine_type)
    if known is not None:
        return known.vcpus
    return int((zones.look(case, wanted) or {}).get("guestCpus", 0))


def _own(case: Case[ClusterSpec]) -> Mapping[Metric, int]:
    """What the deployment's machines use already: they would not be made again."""
    used: Counter[Metric] = Counter()
    if case.record is None:
        return used
    found = case.answers.machines_with(case.project, MARKER, case.record.cluster_id)
    for vm in found:
        present = _present(case, vm)
        for metric, amount in metrics.of(present, _vcpus(case, present)):
            used[metric] += amount
    return used


def _present(case: Case[ClusterSpec], vm: Mapping[str, Any]) -> Pool:
    """A VM that exists, in the terms of those that are wanted."""
    gpus = (vm.get("guestAccelerators") or [{}])[0]
    boot = (vm.get("disks") or [{}])[0]
    preemptible = vm.get("scheduling", {}).get("provisioningModel") in _PREEMPTIBLE
    return Pool(
        name=vm.get("name", ""),
        zone=_last(vm["zone"]),
        machine_type=_last(vm["machineType"]),
        size=Size(count=1),
        mode=Mode.SPOT if preemptible else Mode.STANDARD,
        gpu_type=_last(gpus.get("acceleratorType", "")) or None,
        gpu_count=int(gpus.get("acceleratorCount", 0)),
        # A VM does not say its disk's type; it rarely changes.
        disk_type=case.spec.pools[0].disk_type,
        disk_size_gb=int(boot.get("diskSizeGb", 0)),
        external_ip=any(it.get("accessConfigs") for it in vm.get("networkInterfaces", [])),
    )


def _find(case: Case[ClusterSpec], metric: Metric) -> Quota | None:
    """The quota as Google tells it; None where it does not."""
    shown = _shown(case, everywhere=metric.everywhere)
    found = shown.get(metric.name)
    if metric.otherwise and (found is None or not found.limit):
        return shown.get(metric.otherwise)
    if found is not None or not metric.must:
        return found
    return _by_service_usage(case, metric)


def _shown(case: Case[ClusterSpec], *, everywhere: bool) -> dict[str, Quota]:
    """The quotas that Compute Engine shows of the region, or of all regions together."""
    path = f"projects/{case.project}"
    if not everywhere:
        path += f"/regions/{case.spec.region}"
    entries = case.answers.get(Service.COMPUTE, path).get("quotas", [])
    return {it["metric"]: Quota(it["metric"], it["limit"], it["usage"]) for it in entries}


def _by_service_usage(case: Case[ClusterSpec], metric: Metric) -> Quota | None:
    """The limit by Service Usage, which tells of all quotas, but not what is used of them."""
    encoded = f"compute.googleapis.com%2F{metric.name.lower()}"
    services = f"projects/{case.project}/services/compute.googleapis.com"
    path = f"{services}/consumerQuotaMetrics/{encoded}"
    document = case.answers.find(Service.QUOTAS, path)
    wanted = {**metric.dimensions, "region": case.spec.region}.items()
    fitting = [
        bucket
        for limit in (document or {}).get("consumerQuotaLimits", [])
        for bucket in limit.get("quotaBuckets", [])
        if bucket.get("dimensions", {}).items() <= wanted
    ]
    if not fitting:
        return None
    closest = max(fitting, key=lambda bucket: len(bucket.get("dimensions", {})))
    # A number that is 0 is left out.
    limit = int(closest.get("effectiveLimit", 0))
    return Quota(metric.name, float("inf") if limit == _UNLIMITED else limit, usage=None)


def _short(case: Case[ClusterSpec], metric: Metric, found: Quota, need: Need) -> Problem:
    place = "all regions" if metric.everywhere else case.spec.region
    name = metric.words if found.name == metric.name else found.name
    enough = need.now if need.now == need.most else f"{need.now} now and up to {need.most}"
    usage = "" if found.usage is None else f", of which {found.usage:g} are used"
    own = f", {need.own} of them by this deployment" if need.own else ""
    return Problem(
        setting="REGION" if metric.everywhere else case.spec.pools[0].setting,
        what=f"the quota {name} in {place} is too small: this needs {enough}",
        why=f"{case.project} may have {found.limit:g}{usage}{own}",
        fix=f"ask for more, in a browser: {QUOTA_PAGE}?project={case.project}\n"
        f"filter by {found.name} and {place}, tick it, Edit ({QUOTA_ROLE})\n"
        "or ask for less, or go where there is quota",
    )


def _untold(case: Case[ClusterSpec], metric: Metric) -> Problem:
    return Problem(
        what=f"whether the quota {metric.words} in {case.spec.region} is large enough could"
        " not be found out",
        why="Google shows no such quota of this project",
        fix=f"look in a browser: {QUOTA_PAGE}?project={case.project}",
    )


def _last(link: str) -> str:
    return link.rpartition("/")[2]
