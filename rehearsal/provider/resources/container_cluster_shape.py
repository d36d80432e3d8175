"""The body of a cluster: where the API has what the schema names, and how it is put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import (
    container_endpoints,
    container_maintenance,
    container_pool_updates,
    links,
)
from rehearsal.provider.resources.container_node_config import TRUTH, VARIANT, NodeConfig
from rehearsal.provider.resources.container_pool import PoolShape
from rehearsal.provider.resources.container_shapes import FORCE, INT64, ONE, SKIP, Rule, Shape

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from rehearsal.provider.resource import State
    from rehearsal.provider.resources.container_pool_updates import Request
    from rehearsal.provider.schema import Field

_VIRTUAL: Final = (
    "allow_net_admin",
    "autopilot_cluster_policy_config",
    "autopilot_privileged_admission",
    "control_plane_endpoints_config",
    "dataplane_optimization_mode",
    "deletion_policy",
    "deletion_protection",
    "desired_emulated_version",
    "effective_labels",
    "emulated_version",
    "id",
    "ignore_node_count_changes",
    "initial_node_count",
    "location",
    "maintenance_policy",
    "master_authorized_networks_config",
    "network",
    "networking_mode",
    "node_config",
    "node_pool",
    "operation",
    "private_cluster_config",
    "project",
    "remove_default_node_pool",
    "resource_labels",
    "self_link",
    "skip_node_pool_refresh",
    "subnetwork",
    "terraform_labels",
    "timeouts",
)
"""What Google does not know by that name, or what is put together here or elsewhere."""

_READ_ONLY: Final = (
    "endpoint",
    "label_fingerprint",
    "services_ipv4_cidr",
    "tpu_ipv4_cidr_block",
)
_NETWORK: Final = {
    "datapath_provider": "datapathProvider",
    "default_snat_status": "defaultSnatStatus",
    "disable_l4_lb_firewall_reconciliation": "disableL4LbFirewallReconciliation",
    "dns_config": "dnsConfig",
    "enable_cilium_clusterwide_network_policy": "enableCiliumClusterwideNetworkPolicy",
    "enable_fqdn_network_policy": "enableFqdnNetworkPolicy",
    "enable_intranode_visibility": "enableIntraNodeVisibility",
    "enable_l4_ilb_subsetting": "enableL4ilbSubsetting",
    "enable_multi_networking": "enableMultiNetworking",
    "gateway_api_config": "gatewayApiConfig",
    "in_transit_encryption_config": "inTransitEncryptionConfig",
    "network_performance_config": "networkPerformanceConfig",
    "private_ipv6_google_access": "privateIpv6GoogleAccess",
    "service_external_ips_config": "serviceExternalIpsConfig",
}
"""What is of a cluster in the schema, and of its networkConfig in the API."""

_DEFAULTS: Final = "node_pool_defaults.node_config_defaults"

# The object is sent, even when nothing is in the list.
_COMPONENTS: Final = Rule(
    wire="componentConfig",
    expand=lambda names: {"enableComponents": names} if names else {},
    flatten=lambda config: (config or {}).get("enableComponents", []),
    force=True,
)

_RULES: Final[Mapping[str, Rule]] = {
    **dict.fromkeys(_VIRTUAL, SKIP),
    **{name: Rule(expand=lambda _: None) for name in _READ_ONLY},
    **{name: Rule(wire=f"networkConfig.{wire}") for name, wire in _NETWORK.items()},
    "addons_config.cloudrun_config": Rule(wire="cloudRunConfig"),
    "addons_config.ray_operator_config": ONE,
    "binary_authorization": Rule(wire="binaryAuthorization"),
    "cluster_autoscaling": Rule(wire="autoscaling"),
    "cluster_autoscaling.auto_provisioning_defaults": Rule(wire="autoprovisioningNodePoolDefaults"),
    "cluster_autoscaling.auto_provisioning_defaults.disk_size": Rule(wire="diskSizeGb"),
    "cluster_autoscaling.auto_provisioning_defaults.management.upgrade_options": Rule(
        expand=lambda _: None, flatten=lambda _: []
    ),
    "cluster_autoscaling.auto_provisioning_locations": Rule(wire="autoprovisioningLocations"),
    "cluster_autoscaling.default_compute_class_enabled": Rule(
        wire="defaultComputeClassConfig.enabled"
    ),
    "cluster_autoscaling.enabled": Rule(wire="enableNodeAutoprovisioning"),
    "cluster_autoscaling.resource_limits.maximum": INT64,
    "cluster_autoscaling.resource_limits.minimum": INT64,
    "cluster_ipv4_cidr": Rule(wire="clusterIpv4Cidr"),
    "cost_management_config.enabled": FORCE,
    "default_max_pods_per_node": Rule(
        wire="defaultMaxPodsConstraint.maxPodsPerNode",
        expand=lambda value: str(value) if value else None,
    ),
    "default_snat_status.disabled": FORCE,
    "enable_autopilot": Rule(wire="autopilot.enabled", force=True),
    "enable_legacy_abac": Rule(wire="legacyAbac.enabled", force=True),
    "enable_shielded_nodes": Rule(wire="shieldedNodes.enabled", force=True),
    "enterprise_config.cluster_tier": Rule(expand=lambda _: None),
    "fleet.membership_id": Rule(expand=lambda _: None),
    "fleet.membership_location": Rule(expand=lambda _: None),
    "ip_allocation_policy.additional_ip_ranges_config": Rule(wire="additionalIpRangesConfigs"),
    "ip_allocation_policy.pod_cidr_overprovision_config.disabled": Rule(wire="disable"),
    "logging_config.enable_components": _COMPONENTS,
    "master_version": Rule(wire="currentMasterVersion", expand=lambda _: None),
    "mesh_certificates.enable_certificates": FORCE,
    "min_master_version": Rule(wire="initialClusterVersion"),
    "monitoring_config.advanced_datapath_observability_config.enable_relay": FORCE,
    "monitoring_config.enable_components": _COMPONENTS,
    "monitoring_config.managed_prometheus": Rule(wire="managedPrometheusConfig"),
    "monitoring_config.managed_prometheus.enabled": FORCE,
    "node_locations": Rule(wire="locations"),
    "node_pool_auto_config.node_kubelet_config.insecure_kubelet_readonly_port_enabled": TRUTH,
    "node_pool_auto_config.resource_manager_tags": Rule(wire="resourceManagerTags.tags"),
    f"{_DEFAULTS}.insecure_kubelet_readonly_port_enabled": Rule(
        wire="nodeKubeletConfig.insecureKubeletReadonlyPortEnabled",
        expand=TRUTH.expand,
        flatten=TRUTH.flatten,
    ),
    f"{_DEFAULTS}.logging_variant": VARIANT,
    "node_version": Rule(wire="currentNodeVersion"),
    "rbac_binding_config.enable_insecure_binding_system_authenticated": FORCE,
    "rbac_binding_config.enable_insecure_binding_system_unauthenticated": FORCE,
    "resource_usage_export_config.enable_network_egress_metering": FORCE,
    "resource_usage_export_config.enable_resource_consumption_metering": Rule(
        wire="consumptionMeteringConfig.enabled", force=True
    ),
    "secret_manager_config.enabled": FORCE,
    "service_external_ips_config.enabled": FORCE,
}
_SWITCHES: Final = ("enabled", "disabled")


class ClusterShape:
    """The conversions of a cluster."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        addons = {
            f"addons_config.{name}.{switch}": FORCE
            for name, field in fields["addons_config"].block.items()
            for switch in _SWITCHES
            if switch in field.block
        }
        self._shape = Shape(fields, {**addons, **_RULES})
        self.config = NodeConfig(fields["node_config"].block)
        self._pools = PoolShape(fields["node_pool"].block)

    def value(self, path: str, value: Any) -> Any:
        """The JSON value of one attribute ("dns_config", "enterprise_config.desired_tier")."""
        outer, _, name = path.rpartition(".")
        wire = self._shape.inside(outer).value(name, value)
        return _COMPLETED[name](wire) if name in _COMPLETED else wire

    def pool_updates(self, cluster: str, prior: Any, wanted: Any) -> Iterator[Request]:
        """The requests that change the pools that are part of the cluster's configuration."""
        for before, after in zip(prior or [], wanted or [], strict=False):
            yield from container_pool_updates.requests(self._pools, cluster, before, after)

    def expand(self, plan: State, network: str, subnetwork: str) -> dict[str, Any]:
        """The JSON object of a new cluster."""
        body = self._shape.expand(plan)
        body.setdefault("networkPolicy", {})
        for name, wire in _COMPLETED_AT_FIRST.items():
            if (value := self.value(name, plan.get(name))) is not None:
                body[wire] = value
        body |= container_endpoints.expand(plan, body.setdefault("networkConfig", {}))
        body |= {"name": plan["name"], "network": network}
        body |= {"subnetwork": subnetwork} if subnetwork else {}
        policy = container_maintenance.expand(plan.get("maintenance_policy"))
        body["maintenancePolicy"] = policy or {"window": {}}
        labels = plan.get("terraform_labels")
        if labels not in (None, UNKNOWN, {}):
            body["resourceLabels"] = labels
        if (allocation := _allocation(plan, body.pop("ipAllocationPolicy", None))) is not None:
            body["ipAllocationPolicy"] = allocation
        return body | self._nodes(plan)

    def _nodes(self, plan: State) -> dict[str, Any]:
        """What nodes a new cluster has: pools of its own, or one that is made of few words."""
        pools = plan.get("node_pool")
        if pools not in (None, UNKNOWN, []):
            return {
                "nodePools": [{**self._pools.expand(it), "name": it["name"]} for it in pools or []]
            }
        count = plan.get("initial_node_count")
        config = self.config.expand(plan.get("node_config"))
        return {"nodeConfig": config} | ({"initialNodeCount": count} if count else {})

    def flatten(self, cluster: Mapping[str, Any], before: State, sizes: Mapping[str, int]) -> State:
        """The attributes of a cluster."""
        network = cluster.get("networkConfig") or {}
        routed = not (cluster.get("ipAllocationPolicy") or {}).get("useIpAliases")
        authorization = cluster.get("binaryAuthorization") or {}
        state = self._shape.flatten(cluster)
        mode = (authorization.get("evaluationMode") or "").removesuffix("_UNSPECIFIED")
        return {
            **state,
            **container_endpoints.flatten(cluster),
            "binary_authorization": [
                {"enabled": authorization.get("enabled", False), "evaluation_mode": mode}
            ],
            "initial_node_count": cluster.get("initialNodeCount", 0),
            "min_master_version": before.get("min_master_version"),
            "maintenance_policy": container_maintenance.flatten(cluster.get("maintenancePolicy")),
            "network": network.get("network", ""),
            "subnetwork": network.get("subnetwork", ""),
            "networking_mode": "ROUTES" if routed else "VPC_NATIVE",
            "node_config": self.config.flatten(
                cluster.get("nodeConfig"), before.get("node_config")
            ),
            "node_locations": [
                it for it in cluster.get("locations") or [] if it != cluster.get("location")
            ],
            "node_pool": self._flat_pools(cluster, before, sizes),
            "self_link": links.v1(cluster.get("selfLink", "")),
        }

    def _flat_pools(
        self, cluster: Mapping[str, Any], before: State, sizes: Mapping[str, int]
    ) -> list[State]:
        known = before.get("node_pool")
        states = {it["name"]: it for it in known or []} if known is not UNKNOWN else {}
        result = []
        for pool in cluster.get("nodePools") or []:
            counts = [sizes[url] for url in pool.get("instanceGroupUrls") or [] if url in sizes]
            result.append(self._pools.flatten(pool, states.get(pool["name"], {}), counts))
        return result


def _allocation(plan: State, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Where addresses of pods come from; None for what Google does when nobody says."""
    mode = plan.get("networking_mode")
    if mode in (None, UNKNOWN, ""):
        mode = "ROUTES" if _known(plan.get("cluster_ipv4_cidr")) and given is None else "VPC_NATIVE"
    routes = mode == "ROUTES"
    if given is None and not routes:
        return None
    base = {"stackType": "IPV4", **(given or {}), "useIpAliases": not routes}
    return {**base, "useRoutes": True} if routes else base


def _known(value: Any) -> bool:
    return value not in (None, UNKNOWN, "")


def _autoscaling(wire: dict[str, Any] | None) -> dict[str, Any]:
    if wire is None:
        return {"enableNodeAutoprovisioning": False}
    # Two blocks go along, even if nobody has configured them.
    blocks: dict[str, Any] = {
        "autoprovisioningNodePoolDefaults": {},
        "defaultComputeClassConfig": {},
    }
    return {**blocks, **wire}


def _groups(wire: dict[str, Any] | None) -> dict[str, Any] | None:
    return {**wire, "enabled": True} if wire else wire


_COMPLETED: Final[Mapping[str, Callable[[Any], Any]]] = {
    "authenticator_groups_config": _groups,
    "binary_authorization": lambda wire: {"enabled": False} if wire is None else wire,
    "cluster_autoscaling": _autoscaling,
    "notification_config": lambda wire: wire or {"pubsub": {}},
    "resource_usage_export_config": lambda wire: wire or {},
}
"""What is sent of some attributes beside, or in place of, what the schema tells."""

_COMPLETED_AT_FIRST: Final = {
    "authenticator_groups_config": "authenticatorGroupsConfig",
    "binary_authorization": "binaryAuthorization",
    "cluster_autoscaling": "autoscaling",
    "notification_config": "notificationConfig",
}
"""Those of them that a new cluster is sent, and their JSON names."""
