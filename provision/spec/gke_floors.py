"""The least version of GKE that node pools need."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.catalogue import gke_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from provision.catalogue.gke_versions import Floor
    from provision.spec.pools import Pool

_H200: Final = "nvidia-h200-141gb"
_DEFAULT_DRIVER: Final = "DEFAULT"


def needed(pools: Iterable[Pool], *, driver: str, ray_operator: bool) -> list[Floor]:
    """The minimum versions of all that a cluster uses, the newest first."""
    floors = [floor for pool in pools for floor in _of_pool(pool, driver)]
    if ray_operator:
        floors.append(gke_versions.RAY_OPERATOR)
    return gke_versions.highest_first(floors)


def _of_pool(pool: Pool, driver: str) -> Iterator[Floor]:
    mode = pool.mode.means
    if mode.flex_start:
        yield gke_versions.FLEX_START
    if mode.queued:
        yield gke_versions.QUEUED
    if pool.gpu_part:
        yield gke_versions.GPU_PARTS
    if pool.gpu_type == _H200 and driver == _DEFAULT_DRIVER:
        yield gke_versions.DRIVER_OF_H200
    machine = gke_versions.of_machine(pool.machine_type)
    if machine is not None:
        yield machine
