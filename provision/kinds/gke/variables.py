"""A GKE cluster with GPU node pools: settings to Terraform's variables, outputs to words."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from provision.deployment.kind import Kind
from provision.kinds import variables as parts
from provision.spec import pools as node_pools
from provision.spec.pools import Capacity

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.deployment.kind import Findings
    from provision.deployment.location import Location
    from provision.google.api import GoogleApi
    from provision.settings import Settings
    from provision.spec.pools import Pool

kind = Kind.GKE


def variables(
    settings: Settings, cluster_id: str, location: Location, findings: Findings
) -> dict[str, Any]:
    """Make the variables of `terraform/gke`; `Cluster.variables` has the arguments."""
    pools = node_pools.of(settings)
    return {
        **parts.common(settings, cluster_id, location),
        "cluster": {
            "location": settings.region,
            "version": findings.version,
            "release_channel": str(settings.gke_release_channel),
            "authorized_cidrs": list(settings.authorized_cidr or ()),
            "ray_operator": settings.enable_ray_operator,
        },
        "system_pool": {
            "machine_type": settings.system_node_pool_vm_type,
            "zone": settings.system_node_pool_zone,
            "min": settings.system_node_pool_min,
            "max": settings.system_node_pool_max,
            "disk_size_gb": settings.system_node_pool_disk_size_gb,
            "spot": settings.system_node_pool_spot,
        },
        "node_pools": {pool.name: _pool(pool, settings) for pool in pools},
        "gpu_networks": _gpu_networks(pools),
    }


def masked(variables: Mapping[str, Any]) -> dict[str, Any]:
    """All variables: no setting of such a cluster is a secret."""
    return dict(variables)


def connection(settings: Settings, outputs: Mapping[str, Any], api: GoogleApi) -> dict[str, Any]:
    """The cluster and how to reach it; `Cluster.connection` has the arguments."""
    del api  # All that a person needs is in the outputs.
    cluster = outputs["cluster"]
    return {
        "cluster": cluster["name"],
        "endpoint": f"https://{cluster['dns_endpoint']}",
        "get_credentials": (
            f"gcloud container clusters get-credentials {cluster['name']}"
            f" --location {cluster['location']} --project {settings.project_id} --dns-endpoint"
        ),
        "node_pools": list(outputs["node_pools"].values()),
    }


def _pool(pool: Pool, settings: Settings) -> dict[str, Any]:
    return {
        "machine_type": pool.machine_type,
        "zone": pool.zone,
        "gpu": {
            "type": pool.gpu_type,
            "count": pool.gpu_count,
            "driver": str(settings.gpu_driver_version),
        },
        "capacity": {
            "model": str(pool.capacity),
            "reservation": pool.reservation,
            # With queueing alone the requests say it, each for its own nodes.
            "max_run_seconds": (None if pool.capacity is Capacity.QUEUED else pool.max_run_seconds),
        },
        "size": dataclasses.asdict(pool.size),
        "disk": {"size_gb": pool.disk_size_gb, "type": pool.disk_type},
        "local_ssds": pool.local_ssds,
        "compact": pool.compact,
        "gpu_networks": bool(pool.networks),
    }


def _gpu_networks(pools: tuple[Pool, ...]) -> list[dict[str, Any]]:
    """The networks of the pools that have some: the same for all, as the settings' rules say."""
    networked = next((pool.networks for pool in pools if pool.networks), ())
    return [dataclasses.asdict(network) for network in networked]
