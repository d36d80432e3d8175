"""What an update of a cluster sends, in the order of provider 7.45.0.

Google takes one change at a time, so nearly every attribute has a request of its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.provider.failures import ProviderError
from rehearsal.provider.resources import (
    container_endpoints,
    container_maintenance,
    container_pool_updates,
    container_requests,
)
from rehearsal.provider.resources.container_cluster_changes import Change, Field, When, numbers
from rehearsal.provider.resources.shapes import in_set_order

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rehearsal.provider.resources.container_pool_updates import Request

_DEFAULT_POOL: Final = "default-pool"


def _endpoints(change: Change) -> Iterator[Request]:
    private = (f"private_cluster_config.{name}" for name in container_endpoints.PRIVATE)
    if any(map(change.of, (*container_endpoints.ATTRIBUTES, *private))):
        endpoints = container_endpoints.endpoints(change.plan)
        yield change.put("desiredControlPlaneEndpointsConfig", endpoints)


def _node_locations(change: Change) -> Iterator[Request]:
    """Zones are added first, then taken away: Google does not do both in one request."""
    if not change.of("node_locations"):
        return
    location = change.path.split("/")[3]
    own = [location] if location.count("-") > 1 else []
    wanted, before = set(change.wanted("node_locations")), set(change.prior["node_locations"] or [])
    if location in wanted:
        raise ProviderError(
            "for multi-zonal clusters, node_locations should not contain the primary 'zone'"
        )
    yield change.put("desiredLocations", in_set_order([*(wanted | before), *own]))
    if before - wanted:
        yield change.put("desiredLocations", in_set_order([*wanted, *own]))


def _services(change: Change) -> Iterator[Request]:
    if change.of("monitoring_service") or change.of("logging_service"):
        update = {
            "desiredMonitoringService": change.wanted("monitoring_service"),
            "desiredLoggingService": change.wanted("logging_service"),
        }
        yield "PUT", change.path, {"update": {key: it for key, it in update.items() if it}}


def _policies(change: Change) -> Iterator[Request]:
    if change.of("network_policy"):
        policy = change.value("network_policy") or {}
        yield "POST", f"{change.path}:setNetworkPolicy", {"networkPolicy": policy}


def _legacy_abac(change: Change) -> Iterator[Request]:
    if change.of("enable_legacy_abac"):
        enabled = bool(change.wanted("enable_legacy_abac"))
        yield "POST", f"{change.path}:setLegacyAbac", {"enabled": enabled}


def _pod_ranges(change: Change) -> Iterator[Request]:
    attribute = "ip_allocation_policy.additional_pod_ranges_config.pod_range_names"
    if not change.of(attribute):
        return
    wanted = set(change.wanted(attribute) or [])
    before = set(change.before(attribute) or [])
    ranges = {
        "additionalPodRangesConfig": wanted - before,
        "removedAdditionalPodRangesConfig": before - wanted,
    }
    update = {
        field: {"podRangeNames": in_set_order(list(names))}
        for field, names in ranges.items()
        if names
    }
    yield "PUT", change.path, {"update": update}


def _pools(change: Change) -> Iterator[Request]:
    if change.of("node_pool"):
        before, wanted = change.prior.get("node_pool"), change.wanted("node_pool")
        yield from change.shape.pool_updates(change.path, before, wanted)


def _control_plane_version(change: Change) -> Iterator[Request]:
    """A control plane that is older than what is asked for; it is never taken back."""
    wanted, there = change.wanted("min_master_version"), change.prior.get("master_version") or ""
    if change.of("min_master_version") and wanted and numbers(wanted) > numbers(there):
        yield change.put("desiredMasterVersion", wanted)


def _default_pool_version(change: Change) -> Iterator[Request]:
    if not change.of("node_version"):
        return
    if _DEFAULT_POOL not in {it["name"] for it in change.prior.get("node_pool") or []}:
        raise ProviderError(
            "node_version was updated but default-pool was not found. To update the version for a"
            " non-default pool, use the version attribute on that pool."
        )
    update = {
        "desiredNodeVersion": change.wanted("node_version"),
        "desiredNodePoolId": _DEFAULT_POOL,
    }
    yield "PUT", change.path, {"update": update}


def _maintenance(change: Change) -> Iterator[Request]:
    """The new policy goes with the version of the one that it replaces."""
    if not change.of("maintenance_policy"):
        return
    there = container_requests.get(change.api, change.path) or {}
    old = there.get("maintenancePolicy") or {}
    # Without a policy of its own, the cluster keeps the exclusions that it has.
    exclusions = (old.get("window") or {}).get("maintenanceExclusions")
    kept = {"window": {"maintenanceExclusions": exclusions} if exclusions else {}}
    policy = container_maintenance.expand(change.wanted("maintenance_policy")) or kept
    body = {"maintenancePolicy": {**policy, "resourceVersion": old.get("resourceVersion", "")}}
    yield "POST", f"{change.path}:setMaintenancePolicy", body


def _nodes(change: Change) -> Iterator[Request]:
    nodes = (change.prior.get("node_config"), change.wanted("node_config"))
    if change.of("node_config"):
        yield from container_pool_updates.of_nodes(
            change.shape.config, change.path, _DEFAULT_POOL, *nodes
        )


def _labels(change: Change) -> Iterator[Request]:
    if change.of("terraform_labels"):
        body = {
            "resourceLabels": change.wanted("terraform_labels") or {},
            "labelFingerprint": change.prior.get("label_fingerprint"),
        }
        yield "POST", f"{change.path}:setResourceLabels", body


def _default_pool(change: Change) -> Iterator[Request]:
    attribute = "remove_default_node_pool"
    path = f"{change.path}/nodePools/{_DEFAULT_POOL}"
    unwanted = change.of(attribute) and change.wanted(attribute)
    # Of a cluster whose default pool is gone already, this is no change.
    if unwanted and container_requests.get(change.api, path) is not None:
        yield "DELETE", path, None


_FILLED = When.FILLED
_NODE_DEFAULTS: Final = "node_pool_defaults.node_config_defaults"
_AUTO: Final = "node_pool_auto_config"

STEPS: Final[tuple[Callable[[Change], Iterator[Request]], ...]] = (
    _endpoints,
    Field("private_cluster_config.enable_private_nodes", "desiredDefaultEnablePrivateNodes"),
    Field("ip_allocation_policy.stack_type", when=_FILLED),
    Field("addons_config", when=_FILLED),
    Field("cluster_autoscaling"),
    Field("dns_config"),
    Field("allow_net_admin", "desiredAutopilotWorkloadPolicyConfig", ("allowNetAdmin",)),
    Field("autopilot_cluster_policy_config"),
    Field("binary_authorization"),
    Field("enable_shielded_nodes", "desiredShieldedNodes", ("enabled",)),
    Field("release_channel"),
    Field("gke_auto_upgrade_config", "gkeAutoUpgradeConfig"),
    Field("enable_intranode_visibility", "desiredIntraNodeVisibilityConfig", ("enabled",)),
    Field("private_ipv6_google_access"),
    Field("enable_l4_ilb_subsetting", "desiredL4ilbSubsettingConfig", ("enabled",)),
    Field("disable_l4_lb_firewall_reconciliation"),
    Field("in_transit_encryption_config"),
    Field("enable_multi_networking"),
    Field("enable_fqdn_network_policy"),
    Field("enable_cilium_clusterwide_network_policy"),
    Field("cost_management_config"),
    Field("authenticator_groups_config"),
    Field("default_snat_status"),
    _node_locations,
    _legacy_abac,
    _services,
    _policies,
    _pod_ranges,
    Field(
        "ip_allocation_policy.additional_ip_ranges_config",
        "desiredAdditionalIpRangesConfig",
        ("additionalIpRangesConfigs",),
    ),
    _pools,
    _control_plane_version,
    _default_pool_version,
    _maintenance,
    _nodes,
    Field("notification_config"),
    Field("vertical_pod_autoscaling", when=_FILLED),
    Field("service_external_ips_config"),
    Field("mesh_certificates"),
    Field("database_encryption"),
    Field("pod_autoscaling"),
    Field("secret_manager_config"),
    Field("secret_sync_config"),
    Field("workload_identity_config", without={"workloadPool": ""}),
    Field("identity_service_config", without={}),
    Field("logging_config"),
    Field("monitoring_config"),
    _labels,
    _default_pool,
    Field("resource_usage_export_config"),
    Field("network_performance_config", when=_FILLED),
    Field("gateway_api_config", when=_FILLED),
    Field("fleet", without={}),
    Field("enable_k8s_beta_apis", "desiredK8sBetaApis", when=_FILLED),
    Field(
        f"{_NODE_DEFAULTS}.insecure_kubelet_readonly_port_enabled",
        "desiredNodeKubeletConfig",
        ("insecureKubeletReadonlyPortEnabled",),
    ),
    Field(
        f"{_NODE_DEFAULTS}.logging_variant",
        "desiredNodePoolLoggingConfig",
        ("variantConfig", "variant"),
        when=_FILLED,
    ),
    Field(f"{_NODE_DEFAULTS}.gcfs_config", when=_FILLED),
    Field("security_posture_config"),
    Field(f"{_NODE_DEFAULTS}.containerd_config", when=_FILLED),
    Field(f"{_AUTO}.node_kubelet_config", "desiredNodePoolAutoConfigKubeletConfig"),
    Field(f"{_AUTO}.network_tags", "desiredNodePoolAutoConfigNetworkTags"),
    Field(
        f"{_AUTO}.resource_manager_tags", "desiredNodePoolAutoConfigResourceManagerTags", ("tags",)
    ),
    Field(f"{_AUTO}.linux_node_config", "desiredNodePoolAutoConfigLinuxNodeConfig"),
    Field("enterprise_config.desired_tier", "desiredEnterpriseConfig", ("desiredTier",)),
    Field("anonymous_authentication_config"),
    Field("rbac_binding_config"),
    Field("node_creation_config"),
    Field("rollback_safe_upgrade"),
    Field("autopilot_privileged_admission", "desiredPrivilegedAdmissionConfig", when=_FILLED),
    Field("desired_emulated_version", "desiredEmulatedVersion", when=_FILLED),
    Field("user_managed_keys_config"),
)
"""What an update looks at, in order."""


def requests(change: Change) -> Iterator[Request]:
    """The requests, made one by one: some say what the cluster is at their moment."""
    for step in STEPS:
        yield from step(change)
