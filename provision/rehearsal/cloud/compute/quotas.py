"""Quotas of GPUs: their names, their limits, and what counts against them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from provision import places
from provision.rehearsal.cloud.compute import links, resources
from provision.rehearsal.cloud.compute.resources import INSTANCE, Call, Resource

if TYPE_CHECKING:
    from collections.abc import Mapping

# GPU -> what Google's names of its quotas have in their middle.
_WORDS: Mapping[str, str] = {
    "nvidia-a100-80gb": "A100_80GB",
    "nvidia-b200": "B200",
    "nvidia-gb200": "GB200",
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


def limit(call: Call) -> float:
    """How many GPUs of each kind a project may have in a region."""
    return 0.0 if "quota" in call.request.scenarios else _USUAL_LIMIT


def of_region(call: Call, region: str) -> list[Resource]:
    """The quotas that a region shows, with what is used of them."""
    used = dict.fromkeys(
        (f"{prefix}NVIDIA_{word}_GPUS" for prefix in ("", "PREEMPTIBLE_") for word in _OLDER), 0
    )
    for name, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if places.region_of(links.last(links.scope(name))) != region:
            continue
        model = instance["scheduling"]["provisioningModel"]
        for it in instance["guestAccelerators"]:
            metric = of_gpu(links.last(it["acceleratorType"]), region, model=model).metric
            if metric in used:
                used[metric] += it["acceleratorCount"]
    most = limit(call)
    return [
        {"metric": metric, "limit": most, "usage": float(usage)}
        for metric, usage in sorted(used.items())
    ]
