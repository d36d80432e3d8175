"""Which of Google's quotas machines use, and how much of each."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.catalogue import machines as catalogue
from provision.catalogue.limits import LONGEST_RUN
from provision.catalogue.machines import GpuQuota
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from provision.catalogue.machines import Gpu
    from provision.spec.pools import Pool

_DISKS: Final[Mapping[str, str]] = {
    "hyperdisk-balanced": "HDB_TOTAL_GB",
    "pd-balanced": "SSD_TOTAL_GB",
    "pd-extreme": "SSD_TOTAL_GB",
    "pd-ssd": "SSD_TOTAL_GB",
    "pd-standard": "DISKS_TOTAL_GB",
}
_LOCAL_SSD: Final = "LOCAL_SSD_TOTAL_GB"
_PREEMPTIBLE_LOCAL_SSD: Final = "PREEMPTIBLE_LOCAL_SSD_GB"
_PREEMPTIBLE_CPUS: Final = "PREEMPTIBLE_CPUS"
RESIZE_REQUESTS: Final = "ACTIVE_RESIZE_REQUESTS"
ADDRESSES: Final = "IN_USE_ADDRESSES"


@dataclass(frozen=True, kw_only=True)
class Metric:
    """One quota."""

    name: str  # its metric, such as "PREEMPTIBLE_NVIDIA_A100_GPUS"
    everywhere: bool = False  # whether it is a global quota, for all regions together
    must: bool = False  # whether every project has it, so that its absence is worth a note
    otherwise: str = ""  # the quota that applies instead if the project has none of this one
    # the dimensions that distinguish it from other quotas of that name
    dimensions: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}), hash=False)

    @property
    def words(self) -> str:
        """Its name, with its dimensions."""
        return " for ".join([self.name, *self.dimensions.values()])


def of(machines: Pool, vcpus: int, project: str) -> Iterator[tuple[Metric, int]]:
    """How much of each quota one machine uses.

    `machines`: the pool; of a reservation that has used the quota of GPUs and CPUs itself, they
    only use quotas of disks and addresses.
    """
    if not _is_paid_for(machines, project):
        yield from _gpus(machines)
        yield from _cpus(machines, vcpus)
        yield from _local_ssds(machines)
    yield Metric(name=_DISKS[machines.disk_type]), machines.disk_size_gb
    yield Metric(name="INSTANCES"), 1
    if machines.external_ip:
        yield Metric(name=ADDRESSES), 1


def _is_paid_for(machines: Pool, project: str) -> bool:
    """Whether a reservation has used the quota for these machines already.

    A reservation of another project has used that project's, and whoever uses it needs as much of
    their own (Google's page on shared reservations); but not for capacity to which machines are
    bound, for which Google raises the quota first, or uses none.
    """
    path = machines.reservation_path
    if not machines.mode.means.reserved or path is None:
        return False
    return machines.mode.means.bound or path.owner(project) == project


def preemptible_twin(machines: Pool, metric: Metric) -> Metric | None:
    """The preemptible quota that machines may use in place of a standard one; None if they may not.

    Machines on demand that run for at most seven days and are then deleted count against either
    (Compute Engine, "Allocation quotas", as quoted in September 2026).
    """
    limited = machines.max_run_seconds is not None and machines.max_run_seconds <= LONGEST_RUN
    if machines.mode is not Mode.STANDARD or not limited or metric.everywhere:
        return None
    gpu = catalogue.GPUS.get(machines.gpu_type or "")
    if gpu is not None and metric == _on_demand(gpu):
        return _preemptible(gpu)
    if metric.name == _LOCAL_SSD:
        return Metric(name=_PREEMPTIBLE_LOCAL_SSD)
    if metric.name == catalogue.cpu_quota(machines.machine_type):
        return Metric(name=_PREEMPTIBLE_CPUS)
    return None


def _local_ssds(machines: Pool) -> Iterator[tuple[Metric, int]]:
    size = machines.machine.local_ssd_gb if machines.machine else 0
    if size and machines.mode.means.preemptible:
        yield Metric(name=_PREEMPTIBLE_LOCAL_SSD, otherwise=_LOCAL_SSD), size
    elif size:
        yield Metric(name=_LOCAL_SSD), size


def _gpus(machines: Pool) -> Iterator[tuple[Metric, int]]:
    gpu = catalogue.GPUS.get(machines.gpu_type or "")
    if gpu is None or not machines.gpus:
        return
    if machines.mode.means.preemptible:
        yield _preemptible(gpu), machines.gpus
    else:
        yield _on_demand(gpu), machines.gpus
    if gpu.quota is GpuQuota.OWN:
        yield Metric(name="GPUS_ALL_REGIONS", everywhere=True), machines.gpus


def _preemptible(gpu: Gpu) -> Metric:
    return Metric(name=f"PREEMPTIBLE_NVIDIA_{gpu.quota_word}_GPUS", must=True)


def _on_demand(gpu: Gpu) -> Metric:
    match gpu.quota:
        case GpuQuota.OWN:
            return Metric(name=f"NVIDIA_{gpu.quota_word}_GPUS", must=True)
        case GpuQuota.SHARED:
            family = MappingProxyType({"gpu_family": f"NVIDIA_{gpu.quota_word}"})
            return Metric(name="GPUS_PER_GPU_FAMILY", must=True, dimensions=family)


def _cpus(machines: Pool, vcpus: int) -> Iterator[tuple[Metric, int]]:
    standard = catalogue.cpu_quota(machines.machine_type)
    if machines.mode.means.preemptible:
        # A project that never requested preemptible CPUs uses the standard quota.
        yield Metric(name=_PREEMPTIBLE_CPUS, otherwise=standard), vcpus
    else:
        yield Metric(name=standard), vcpus
    yield Metric(name="CPUS_ALL_REGIONS", everywhere=True), vcpus
