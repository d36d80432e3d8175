"""Quotas: their names, their limits, and what counts against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rehearsal.cloud.compute import catalogue, links, reservation_use, resources
from rehearsal.cloud.compute.resources import INSTANCE, Call, Resource
from rehearsal.cloud.facts import places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

# GPU -> what Google's names of its quotas have in their middle.
_WORDS: Mapping[str, str] = {
    "nvidia-a100-80gb": "A100_80GB",
    "nvidia-b200": "B200",
    "nvidia-gb200": "GB200",
    "nvidia-gb300": "GB300",
    "nvidia-h100-80gb": "H100",
    "nvidia-h100-mega-80gb": "H100_MEGA",
    "nvidia-h200-141gb": "H200",
    "nvidia-l4": "L4",
    "nvidia-rtx-pro-6000": "RTX_PRO_6000",
    "nvidia-tesla-a100": "A100",
    "nvidia-tesla-p100": "P100",
    "nvidia-tesla-p4": "P4",
    "nvidia-tesla-t4": "T4",
    "nvidia-tesla-v100": "V100",
}
# GPUs with a quota of their own. Those that came later share one, which has the GPU as a dimension
# and which a region does not show.
_OLDER = frozenset({"A100", "A100_80GB", "L4", "P100", "P4", "T4", "V100"})
_SHARED = "GPUS_PER_GPU_FAMILY"
_USUAL_LIMIT = 1024.0
# Large enough for every cluster that a rehearsal makes. Disks are not counted: no rehearsal comes
# near their limits.
_OTHER_LIMITS: Mapping[str, int] = {
    "A2_CPUS": 100_000,
    "CPUS": 100_000,
    "DISKS_TOTAL_GB": 100_000_000,
    "HDB_TOTAL_GB": 100_000_000,
    "INSTANCES": 100_000,
    "IN_USE_ADDRESSES": 10_000,
    "N2_CPUS": 100_000,
    "PREEMPTIBLE_CPUS": 100_000,
    "SSD_TOTAL_GB": 100_000_000,
}
_PREEMPTIBLE = frozenset({"SPOT", "FLEX_START"})


@dataclass(frozen=True)
class Quota:
    """A quota that the GPUs of a VM count against.

    Attributes:
        metric: Its name, such as "NVIDIA_A100_GPUS".
        dimensions: What more tells it from others of that name.
    """

    metric: str
    dimensions: Mapping[str, str]

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
    word = _WORDS[gpu]
    if model in _PREEMPTIBLE:
        return Quota(f"PREEMPTIBLE_NVIDIA_{word}_GPUS", {"region": region})
    if word in _OLDER:
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


def limit(call: Call) -> float:
    """How many GPUs of each kind a project may have in a region."""
    return gpu_limit(call.request.scenarios)


def gpu_limit(scenarios: frozenset[str]) -> float:
    """The same, under these scenarios."""
    return 0.0 if "quota" in scenarios else _USUAL_LIMIT


def is_of_gpus(metric: str) -> bool:
    """Whether there is a quota of GPUs of that name."""
    every = [of_gpu(gpu, "", model=model) for gpu in _WORDS for model in ("STANDARD", "SPOT")]
    return metric in {quota.metric for quota in every}


def of_region(call: Call, region: str) -> list[Resource]:
    """The quotas that a region shows, with what is used of them."""
    used = dict.fromkeys(
        (f"{prefix}NVIDIA_{word}_GPUS" for prefix in ("", "PREEMPTIBLE_") for word in _OLDER), 0
    )
    other = dict.fromkeys(_OTHER_LIMITS, 0)
    for name, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if places.region_of(links.last(links.scope(name))) != region:
            continue
        model = instance["scheduling"]["provisioningModel"]
        for it in instance["guestAccelerators"]:
            metric = of_gpu(links.last(it["acceleratorType"]), region, model=model).metric
            if metric in used:
                used[metric] += it["acceleratorCount"]
        for metric, amount in _others(instance, model):
            other[metric] += amount
    most = limit(call)
    gpus = [_shown(metric, most, usage) for metric, usage in sorted(used.items())]
    return [*gpus, *(_shown(name, _OTHER_LIMITS[name], usage) for name, usage in other.items())]


def of_project(call: Call) -> list[Resource]:
    """The quotas that hold for all regions together."""
    found = [it for _, it in resources.each(call, INSTANCE, f"projects/{call.project}/")]
    gpus = sum(it["acceleratorCount"] for vm in found for it in vm["guestAccelerators"])
    cpus = sum(catalogue.vcpus(links.last(vm["machineType"])) or 0 for vm in found)
    return [
        _shown("CPUS_ALL_REGIONS", _OTHER_LIMITS["CPUS"], cpus),
        _shown("GPUS_ALL_REGIONS", limit(call), gpus),
    ]


def _others(instance: Resource, model: str) -> Iterator[tuple[str, int]]:
    """What a VM uses of the quotas that are not of GPUs."""
    machine = links.last(instance["machineType"])
    series = machine.partition("-")[0].upper()
    own = "CPUS" if series in {"E2", "F1", "G1", "N1"} else f"{series}_CPUS"
    metric = "PREEMPTIBLE_CPUS" if model in _PREEMPTIBLE else own
    if metric in _OTHER_LIMITS:
        yield metric, catalogue.vcpus(machine) or 0
    yield "INSTANCES", 1
    addresses = [it for it in instance["networkInterfaces"] if it.get("accessConfigs")]
    yield "IN_USE_ADDRESSES", len(addresses)


def _shown(metric: str, most: float, usage: float) -> Resource:
    return {"metric": metric, "limit": float(most), "usage": float(usage)}
