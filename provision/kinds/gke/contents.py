"""What a GKE cluster has beside its machines and networks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.catalogue import names
from provision.documents.plan import Contents, Identity
from provision.kinds import variables
from provision.kinds.gke.kubernetes import kueue

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.spec.cluster import GkeSpec


def of(spec: GkeSpec) -> Contents:
    """What it has beside its machines and networks."""
    version = (spec.version or "").rstrip(".")
    pods = names.WORKLOAD_ACCOUNT.of(spec.name_prefix)
    return Contents(
        words=f"GKE {version or f'({spec.release_channel})'}",
        place=spec.region,
        image=None,
        software=tuple(_software(spec)),
        identities=(
            variables.identity(spec, "nodes"),
            Identity(account=pods, bearer="pods", made=True),
        ),
    )


def _software(spec: GkeSpec) -> Iterator[str]:
    yield "JobSet"
    if spec.gpu_networks:
        yield "NCCL plugin"
    if spec.ray_operator:
        yield "Ray operator"
    if spec.kueue:
        gpus = spec.gpu_quota or sum(pool.size.most * pool.gpus for pool in spec.gpu_pools)
        rest = gpus - sum(queue.gpus for queue in spec.queues)
        yield "Kueue"
        yield f"queue {kueue.LOCAL_QUEUE} ({rest:,} GPUs)"
        for queue in spec.queues:
            yield f"queue {queue.name} ({queue.gpus:,} GPUs)"
