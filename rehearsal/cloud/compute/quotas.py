"""Quotas: their names, their limits, and what counts against them."""

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rehearsal.cloud.compute import links, properties, reservation_use, resources, stock
from rehearsal.cloud.compute.resources import Call, Kind, Resource
from rehearsal.cloud.facts import machines, offers, places, quotas
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

_SHARED = "GPUS_PER_GPU_FAMILY"
_USUAL_LIMIT = 1024.0
_PREEMPTIBLE = frozenset({"SPOT", "FLEX_START"})
_NO_ON_DEMAND = "no-on-demand-quota"


@dataclass(frozen=True)
class Quota:
    """A quota that VMs count against."""

    metric: str  # its name, such as "NVIDIA_A100_GPUS"
    dimensions: Mapping[str, str]  # what more tells it from others of that name

    def exceeded(self, limit: float) -> Resource:
        """The error of a VM that it keeps from being made."""
        hyphenated = self.metric.replace("_", "-")
        region = self.dimensions["region"]
        return {
            "code": "QUOTA_EXCEEDED",
            "message": f"Quota '{self.metric}' exceeded.  Limit: {limit} in region {region}.",
            "errorDetails": [
                {
                    "quotaInfo": {
                        "metricName": f"compute.googleapis.com/{self.metric.lower()}",
                        "limitName": f"{hyphenated}-per-project-region",
                        "limit": limit,
                        "dimensions": dict(self.dimensions),
                    }
                }
            ],
        }


def of_gpu(gpu: str, region: str, *, model: str) -> Quota:
    """The quota of a kind of GPU in a region, for VMs of a provisioning model."""
    row = machines.GPUS[gpu]
    word = row["quota"]
    if model in _PREEMPTIBLE:
        return Quota(f"PREEMPTIBLE_NVIDIA_{word}_GPUS", {"region": region})
    if row.get("has_its_own_quota"):
        return Quota(f"NVIDIA_{word}_GPUS", {"region": region})
    return Quota(_SHARED, {"gpu_family": f"NVIDIA_{word}", "region": region})


def is_reserved(call: Call, template: Resource) -> bool:
    """Whether VMs of a template use no quota, as the reservation that they name has used it.

    That holds for a reservation of their own project, and for one to which they are bound; of
    another project's they use their own quota as well (Google's page on shared reservations).
    """
    name = reservation_use.named(template)
    if name is None:
        return False
    own = reservation_use.owner(call, name) == call.project
    return own or template["properties"]["scheduling"]["provisioningModel"] == reservation_use.BOUND


def for_gpus(gpu: str, region: str, scheduling: Resource) -> Iterator[Quota]:
    """The quotas of a kind of GPU that a VM may count against, the usual one first.

    A VM on demand that ends automatically within seven days and is deleted then may use either.
    """
    model = scheduling["provisioningModel"]
    yield of_gpu(gpu, region, model=model)
    if model == "STANDARD" and _ends_soon(scheduling):
        yield of_gpu(gpu, region, model="SPOT")


def _ends_soon(scheduling: Resource) -> bool:
    seconds = int((scheduling.get("maxRunDuration") or {}).get("seconds", 0))
    ends = scheduling.get("instanceTerminationAction") == "DELETE"
    return ends and 0 < seconds <= quotas.LONGEST_PREEMPTIBLE_RUN


def gpu_limit(request: Request, store: Store, metric: str, region: str = "") -> float:
    """How many GPUs a project may have of the kind that a quota is of; "" for all regions."""
    scenarios = request.scenarios
    own = stock.gpu_quota(request, store, region) if region else None
    if own is not None:
        return own
    preemptible = metric.startswith("PREEMPTIBLE_")
    none = "quota" in scenarios or (_NO_ON_DEMAND in scenarios and not preemptible)
    return 0.0 if none else _USUAL_LIMIT


def refusal(call: Call, template: Resource, count: int) -> Resource | None:
    """Why so many more VMs of a template would be too many for the project, or None."""
    wanted = template["properties"]
    region = places.region_of(call.parameters["zone"])
    paid_for = is_reserved(call, template)
    for gpu, each in [] if paid_for else properties.accelerators(wanted):
        ways = list(for_gpus(gpu, region, wanted["scheduling"]))
        limits = [gpu_limit(call.request, call.store, way.metric, region) for way in ways]
        if all(each > most for most in limits):
            return ways[0].exceeded(limits[0])
    used = _used_in(call, region)
    for metric, amount in _of_template(wanted):
        if paid_for and metric not in _NEVER_RESERVED:
            continue
        most = quotas.limit(metric, call.request.scenarios)
        if amount and used.get(metric, 0) + amount * count > most:
            return Quota(metric, {"region": region}).exceeded(most)
    return None if paid_for else _of_family(call, wanted, region, count)


def _of_family(call: Call, wanted: Resource, region: str, count: int) -> Resource | None:
    """Why so many more VMs would have too many vCPUs of their family, or None."""
    family = _family(wanted["machineType"])
    if family not in quotas.OF_FAMILY or _is_preemptible(wanted):
        return None
    used = sum(
        offers.vcpus(links.last(it["machineType"])) or 0
        for it in _instances(call, region)
        if _family(links.last(it["machineType"])) == family and not _is_preemptible(it)
    )
    most = quotas.limit_of_family(family, call.request.scenarios)
    if used + (offers.vcpus(wanted["machineType"]) or 0) * count <= most:
        return None
    return Quota("CPUS_PER_VM_FAMILY", {"region": region, "vm_family": family}).exceeded(most)


def _family(machine: str) -> str:
    return machine.partition("-")[0].upper()


def _is_preemptible(vm: Resource) -> bool:
    return vm["scheduling"]["provisioningModel"] in _PREEMPTIBLE


_NEVER_RESERVED = frozenset({"INSTANCES", "IN_USE_ADDRESSES", *quotas.OF_DISKS.values()})
"""What VMs use of their own quotas, whatever reservation they come from."""


def check(call: Call, kind: Kind) -> None:
    """Refuse one more resource of a kind than the project may have."""
    name = call.prefix(kind) + call.body.get("name", "")
    if kind not in _METRICS or resources.find(call, kind, name) is not None:
        return  # it would be none more: the refusal of a name that is taken comes first
    metric, everywhere = _METRICS[kind]
    region = call.parameters.get("region", "")
    used = _count(call, kind, "" if everywhere else region)
    most = quotas.limit(metric, call.request.scenarios)
    if used + 1 > most:
        place = "globally" if everywhere else f"in region {region}"
        raise GoogleError(
            403, f"Quota '{metric}' exceeded.  Limit: {most} {place}.", reason="quotaExceeded"
        )


_METRICS: Mapping[Kind, tuple[str, bool]] = {
    resources.NETWORK: ("NETWORKS", True),
    resources.SUBNETWORK: ("SUBNETWORKS", True),
    resources.ROUTER: ("ROUTERS", True),
    resources.FIREWALL: ("FIREWALLS", True),
    resources.POLICY: ("RESOURCE_POLICIES", False),
}
"""Kind of resource -> its quota, and whether that is of all regions together."""


def _count(call: Call, kind: Kind, region: str) -> int:
    """How many of a kind there are; subnetworks of a network of auto mode do not count."""
    found = [
        it
        for name, it in resources.each(call, kind, f"projects/{call.project}/")
        if not region or f"/regions/{region}/" in name
    ]
    if kind is resources.SUBNETWORK:
        return sum(links.last(it["network"]) != it["name"] for it in found)
    return len(found)


def is_of_gpus(metric: str) -> bool:
    """Whether there is a quota of GPUs of that name."""
    every = [
        of_gpu(gpu, "", model=model) for gpu in machines.GPUS for model in ("STANDARD", "SPOT")
    ]
    return metric in {quota.metric for quota in every}


def of_region(call: Call, region: str) -> list[Resource]:
    """The quotas that a region shows, with what is used of them."""
    used = dict.fromkeys(
        (
            f"{prefix}NVIDIA_{row['quota']}_GPUS"
            for prefix in ("", "PREEMPTIBLE_")
            for row in machines.GPUS.values()
            if row.get("has_its_own_quota")
        ),
        0,
    )
    scenarios = call.request.scenarios
    limit = functools.partial(gpu_limit, call.request, call.store, region=region)
    for instance in _instances(call, region):
        for it in instance["guestAccelerators"]:
            gpu = links.last(it["acceleratorType"])
            ways = [way.metric for way in for_gpus(gpu, region, instance["scheduling"])]
            metric = next(filter(limit, ways), ways[0])
            if metric in used:
                used[metric] += it["acceleratorCount"]
    gpus = [_shown(name, limit(name), usage) for name, usage in sorted(used.items())]
    other = _used_in(call, region)
    return [
        *gpus,
        *(_shown(name, quotas.limit(name, scenarios), other[name]) for name in quotas.OF_REGION),
    ]


def of_project(call: Call) -> list[Resource]:
    """The quotas that hold for all regions together."""
    found = [it for _, it in resources.each(call, resources.INSTANCE, f"projects/{call.project}/")]
    gpus = sum(it["acceleratorCount"] for vm in found for it in vm["guestAccelerators"])
    plain = (machines.find(links.last(vm["machineType"])) for vm in found)
    cpus = sum(it.vcpus for it in plain if it and not it.gpu)
    scenarios = call.request.scenarios
    return [
        _shown("CPUS_ALL_REGIONS", quotas.limit("CPUS", scenarios), cpus),
        _shown("GPUS_ALL_REGIONS", gpu_limit(call.request, call.store, "PREEMPTIBLE_"), gpus),
        *(
            _shown(metric, quotas.limit(metric, scenarios), _count(call, kind, ""))
            for kind, (metric, everywhere) in _METRICS.items()
            if everywhere
        ),
    ]


def _instances(call: Call, region: str) -> Iterator[Resource]:
    for name, instance in resources.each(call, resources.INSTANCE, f"projects/{call.project}/"):
        if places.region_of(links.last(links.scope(name))) == region:
            yield instance


def _used_in(call: Call, region: str) -> dict[str, int]:
    """What is used of the quotas of a region that are not of GPUs."""
    used = dict.fromkeys(quotas.OF_REGION, 0)
    for instance in _instances(call, region):
        for metric, amount in _of_machine(instance, links.last(instance["machineType"])):
            used[metric] += amount
    for name, disk in resources.each(call, resources.DISK, f"projects/{call.project}/"):
        metric = quotas.OF_DISKS.get(links.last(disk["type"]), "")
        if metric and places.region_of(links.last(links.scope(name))) == region:
            used[metric] += int(disk["sizeGb"])
    used["RESOURCE_POLICIES"] = _count(call, resources.POLICY, region)
    return used


def _of_template(wanted: Resource) -> Iterator[tuple[str, int]]:
    """What each VM of a template uses of the quotas that are not of GPUs."""
    yield from _of_machine(wanted, wanted["machineType"])
    for disk in wanted["disks"]:
        parameters = disk.get("initializeParams") or {}
        metric = quotas.OF_DISKS.get(parameters.get("diskType", "pd-standard"))
        if metric and disk["type"] == "PERSISTENT":
            yield metric, int(parameters.get("diskSizeGb") or disk.get("diskSizeGb") or 10)


def _of_machine(vm: Resource, machine: str) -> Iterator[tuple[str, int]]:
    """What a VM, made or to be made, uses of the quotas that are not of GPUs or disks."""
    series = _family(machine)
    own = "CPUS" if series in {"E2", "F1", "G1", "N1"} else f"{series}_CPUS"
    preemptible = _is_preemptible(vm)
    metric = "PREEMPTIBLE_CPUS" if preemptible else own
    known = machines.find(machine)
    if metric in quotas.OF_REGION and not (known and known.gpu):
        yield metric, offers.vcpus(machine) or 0
    yield "INSTANCES", 1
    addresses = [it for it in vm["networkInterfaces"] if it.get("accessConfigs")]
    yield "IN_USE_ADDRESSES", len(addresses)
    ssds = quotas.PREEMPTIBLE_LOCAL_SSD if preemptible else quotas.LOCAL_SSD
    yield ssds, known.local_ssd_gib if known else 0


def _shown(metric: str, most: float, usage: float) -> Resource:
    return {"metric": metric, "limit": float(most), "usage": float(usage)}
