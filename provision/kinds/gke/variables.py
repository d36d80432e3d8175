"""The variables of `terraform/gke`, a GKE cluster with GPU node pools."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final

from provision.kinds import variables as parts
from provision.settings.gke import Weekday, Window
from provision.spec.capacity import Mode

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.deployment import RunInputs
    from provision.google.owner import Owner
    from provision.spec.cluster import GkeSpec
    from provision.spec.pools import Pool
    from provision.state.location import StateLocation

ROOT: Final = "gke"
_A_MONDAY: Final = dt.datetime(2026, 1, 5, tzinfo=dt.UTC)
"""From when a window recurs: a clock's day would be another one at each plan."""


def variables(
    spec: GkeSpec, owner: Owner, location: StateLocation, inputs: RunInputs
) -> dict[str, Any]:
    """Make the variables of `terraform/gke`; see `Kind.variables` for the arguments."""
    system, existing, most = spec.system_pool, spec.existing, spec.ranges.max_pods
    max_pods = {} if most is None else {"max_pods": most}
    return {
        **parts.common(spec, owner, location),
        "cluster": {
            "location": spec.region,
            "version": spec.version,
            "release_channel": str(spec.release_channel),
            "maintenance": _window(spec.maintenance),
            "authorized_cidrs": list(spec.authorized_cidrs),
            "ray_operator": spec.ray_operator,
            **parts.key(spec),
        },
        "system_pool": {
            "machine_type": system.machine_type,
            "zone": system.zone,
            "min": system.size.min,
            "max": system.size.max,
            "disk_size_gb": system.disk_size_gb,
            "spot": system.mode is Mode.SPOT,
            **max_pods,
        },
        "node_pools": {pool.name: _pool(pool, spec, inputs) | max_pods for pool in spec.gpu_pools},
        "ip_ranges": parts.ip_ranges(spec),
        "secondary_ranges": {
            "pods": str(spec.ranges.pods),
            "services": str(spec.ranges.services),
        },
        "range_names": {
            "pods": (existing and existing.pods) or "pods",
            "services": (existing and existing.services) or "services",
        },
        "gpu_networks": [dataclasses.asdict(it) for it in spec.gpu_networks if spec.makes_network],
        "more_gpu_networks": {
            kind: [dataclasses.asdict(it) for it in networks]
            for kind, networks in spec.more_gpu_networks.items()
            if spec.makes_network
        },
    }


def masked(variables: Mapping[str, Any]) -> dict[str, Any]:
    """All variables: no setting of a GKE cluster is a secret."""
    return dict(variables)


def _window(window: Window | None) -> dict[str, str] | None:
    """A recurring window as the API has it: a first one, and the rule of RFC 5545 for the rest."""
    if window is None:
        return None
    day = list(Weekday).index(window.days[0])
    start = _A_MONDAY + dt.timedelta(days=day, minutes=window.start)
    end = start + dt.timedelta(minutes=window.minutes)
    return {
        "recurrence": f"FREQ=WEEKLY;BYDAY={','.join(window.days)}",
        "start_time": f"{start:%Y-%m-%dT%H:%M:%SZ}",
        "end_time": f"{end:%Y-%m-%dT%H:%M:%SZ}",
    }


def _pool(pool: Pool, spec: GkeSpec, inputs: RunInputs) -> dict[str, Any]:
    # In a queue each request says how long its nodes run. A pool that says it all the same was
    # made so, and would be replaced if it did not any more.
    run = inputs.node_runs.get(pool.name) if pool.mode.means.queued else pool.max_run_seconds
    # GKE binds nodes to their reservation automatically: it has one kind of reserved nodes.
    mode = Mode.RESERVATION if pool.mode.means.reserved else pool.mode
    return {
        "machine_type": pool.machine_type,
        "zone": pool.zone,
        "gpu": {"type": pool.gpu_type, "count": pool.gpu_count, "driver": spec.driver},
        "capacity": {
            "model": str(mode),
            "reservation": pool.reservation,
            "max_run_seconds": run,
        },
        "size": dataclasses.asdict(pool.size),
        "local_ssds": pool.local_ssds,
        "compact": pool.compact,
        "policy": next(iter(pool.policies), None),
        "gpu_networks": None if spec.managed else pool.network_kind,
        **({"managed_rdma": True} if spec.managed and pool.network_kind else {}),
        "disk": parts.disk(spec, pool),
        "version": inputs.pool_versions.get(pool.name),
    }
