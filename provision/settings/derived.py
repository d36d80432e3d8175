"""Defaults that depend on other settings, each with its description for the documentation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from provision.catalogue import images, limits, machines, names, zones
from provision.settings.choices import DiskType, NetworkConfig, Orchestrator

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from provision.settings.gke import NodePool

_TEST_NODES: Final = 2


@dataclass(frozen=True)
class Derived:
    """A default that is computed from fields that come before it in the model."""

    words: str  # the description of the default in the documentation
    of: tuple[str, ...]  # the fields that it depends on
    rule: Callable[..., Any]  # Computes the default from their values, in that order

    def __call__(self, validated: dict[str, Any]) -> Any:
        """Compute the default; pydantic calls this with the fields that it has validated so far."""
        return self.rule(*(validated[name] for name in self.of))


def _built_in_gpus(vm_type: str) -> int | None:
    machine = machines.lookup(vm_type)
    return machine.gpus if machine else None


def _image_project(vm_type: str, family: str | None) -> str:
    """The project of the machine type's images, unless another family or an image is named."""
    line = machines.image_line(vm_type)
    return (line if family == line.family else images.DEEP_LEARNING).project


def _image_family(
    orchestrator: Orchestrator, vm_type: str, accelerator: str | None, image_name: str | None
) -> str | None:
    """The family that is preferred without asking Google; None if an image must be named."""
    gpu = machines.GPUS.get(accelerator or "")
    is_named = image_name is not None or (gpu is not None and not gpu.open_module)
    if is_named or orchestrator is Orchestrator.GKE:
        return None
    return machines.image_line(vm_type).family


def _scales(orchestrator: Orchestrator, *on: bool) -> bool:
    return orchestrator is Orchestrator.GKE and any(on)


def _gpu_quota(  # noqa: PLR0913, PLR0917 - one argument per setting that it depends on
    orchestrator: Orchestrator,
    pools: tuple[NodePool, ...] | None,
    pool_count: int,
    gpus: int | None,
    largest: int | None,
    instances: int,
) -> int | None:
    """The number of GPUs of all pools at their largest size; None without pools."""
    if orchestrator is not Orchestrator.GKE:
        return None
    size = instances if largest is None else largest
    if pools is None:
        return pool_count * size * (gpus or 0) or None
    return sum(
        (pool.max or pool.count or size) * (pool.gpu_count or _built_in_gpus(pool.vm_type) or 0)
        for pool in pools
    )


REGION: Final = Derived("the zone without its last part", ("zone",), zones.region_of)
STATE_PATH: Final = Derived(
    "`gs://aiinfra-terraform-<PROJECT_ID>`, created if missing",
    ("project_id",),
    # A bucket name can't contain the colon of a domain-scoped project.
    lambda project: None if ":" in project else f"gs://{names.STATE_BUCKETS}{project}",
)
GPU_COUNT: Final = Derived("that of `VM_TYPE`", ("vm_type",), _built_in_gpus)
ACCELERATOR_TYPE: Final = Derived(
    "that of `VM_TYPE`", ("vm_type",), lambda it: getattr(machines.lookup(it), "accelerator", None)
)
IMAGE_FAMILY: Final = Derived(
    "by machine type",
    ("orchestrator_type", "vm_type", "accelerator_type", "image_name"),
    _image_family,
)
IMAGE_PROJECT: Final = Derived(
    "`deeplearning-platform-release`, or by machine type if no image is named",
    ("vm_type", "image_family_name"),
    _image_project,
)
DISK_SIZE: Final = Derived(
    "`2000` (gke: `100`)",
    ("orchestrator_type",),
    lambda orchestrator: 100 if orchestrator is Orchestrator.GKE else 2000,
)
DISK_TYPE: Final = Derived(
    "`pd-ssd`, or `hyperdisk-balanced` if the machine family does not support `pd-ssd`",
    ("vm_type",),
    lambda it: DiskType(found.boot_disks[0] if (found := machines.family(it)) else "pd-ssd"),
)
MAX_RUN: Final = Derived(
    "`7d` with flex start, else unset",
    ("enable_flex_start",),
    lambda flex_start: limits.LONGEST_RUN if flex_start else None,
)
EXTERNAL_IP: Final = Derived(
    "`yes` with `default_network`, else `no`",
    ("network_config", "orchestrator_type"),
    lambda network, orchestrator: (
        network is NetworkConfig.DEFAULT and orchestrator is not Orchestrator.GKE
    ),
)
_SCALING: Final = ("orchestrator_type", "enable_flex_start", "enable_queued_provisioning")
MIN_NODES: Final = Derived(
    "unset; `0` with flex start or queued provisioning",
    _SCALING,
    lambda *scaling: 0 if _scales(*scaling) else None,
)
MAX_NODES: Final = Derived(
    "unset; `INSTANCE_COUNT` with flex start or queued provisioning",
    ("instance_count", *_SCALING),
    lambda instances, *scaling: instances if _scales(*scaling) else None,
)
GPU_QUOTA: Final = Derived(
    "all GPUs of all pools at their largest size",
    (
        "orchestrator_type",
        "gke_node_pools",
        "gke_node_pool_count",
        "gpu_count",
        "gke_max_node_count",
        "instance_count",
    ),
    _gpu_quota,
)
TEST_NODES: Final = Derived(
    "`2`, or the pool's largest size if smaller",
    ("gke_max_node_count", "instance_count", "gke_node_pools"),
    # Pools of one's own have sizes of their own, which Test looks at.
    lambda largest, instances, pools: (
        _TEST_NODES if pools else min(_TEST_NODES, instances if largest is None else largest)
    ),
)


def words_of(default: Any) -> str:
    """The description of a default in the documentation."""
    if isinstance(default, Derived):
        return default.words
    if default is None:
        return "unset"
    if isinstance(default, bool):
        return "`yes`" if default else "`no`"
    return "`{}`" if isinstance(default, dict) else f"`{default}`"


def affected_by(field: str, derived: Mapping[str, Derived]) -> set[str]:
    """The fields whose defaults depend on this one, directly or through other fields."""
    found = {name for name, default in derived.items() if field in default.of}
    return found.union(*(affected_by(name, derived) for name in found)) if found else found
