"""The body of a pool, as a resource of its own and as part of a cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_node_config import NodeConfig
from rehearsal.provider.resources.container_shapes import FORCE, ONE, SKIP, Rule, Shape, block
from rehearsal.provider.resources.shapes import camel, kept

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rehearsal.provider.resource import State
    from rehearsal.provider.schema import Field

_LIMITS: Final = (
    "min_node_count",
    "max_node_count",
    "total_min_node_count",
    "total_max_node_count",
)
_ENABLED: Final = frozenset({"totalMinNodeCount", "minNodeCount"})

_RULES: Final[Mapping[str, Rule]] = {
    # What only the resource knows, or what is put together below.
    **dict.fromkeys(
        (
            "autoscaling",
            "cluster",
            "deletion_policy",
            "id",
            "ignore_node_count_changes",
            "initial_node_count",
            "location",
            "managed_instance_group_urls",
            "management",
            "name_prefix",
            "node_config",
            "node_count",
            "operation",
            "project",
            "timeouts",
        ),
        SKIP,
    ),
    "instance_group_urls": Rule(expand=lambda _: None),
    "maintenance_policy": ONE,
    "maintenance_policy.exclusion_until_end_of_support": ONE,
    "max_pods_per_node": Rule(
        wire="maxPodsConstraint.maxPodsPerNode",
        expand=lambda value: str(value) if value else None,
    ),
    "network_config.additional_pod_network_configs.max_pods_per_node": Rule(
        wire="maxPodsPerNode.maxPodsPerNode",
        expand=lambda value: str(value) if value else None,
    ),
    "network_config.enable_private_nodes": FORCE,
    "network_config.pod_cidr_overprovision_config.disabled": Rule(wire="disable"),
    "node_drain_config": ONE,
    "node_locations": Rule(wire="locations"),
    "queued_provisioning.enabled": FORCE,
    "upgrade_settings.blue_green_settings.standard_rollout_policy.batch_percentage": Rule(
        flatten=lambda value: value or 0
    ),
}


class PoolShape:
    """The conversions of a pool."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._fields = fields
        self.config = NodeConfig(fields["node_config"].block)
        self._shape = Shape(fields, {n: r for n, r in _RULES.items() if n.split(".")[0] in fields})
        self._management = Shape(fields["management"].block)

    def expand(self, plan: State) -> dict[str, Any]:
        """The JSON object of a new pool."""
        body = self._shape.expand(plan)
        body.setdefault("networkConfig", {})
        body["config"] = self.config.expand(plan.get("node_config"))
        if not body["config"]:
            del body["config"]
        count = plan.get("initial_node_count")
        size = plan.get("node_count")
        wanted = next((it for it in (count, size) if it not in (None, UNKNOWN)), 0)
        if wanted:
            body["initialNodeCount"] = wanted
        if block(plan.get("autoscaling")):
            body["autoscaling"] = self.autoscaling(plan["autoscaling"])
        if block(plan.get("management")):
            body["management"] = self.management(plan["management"])
        return body

    def autoscaling(self, value: Any, *, update: bool = False) -> dict[str, Any]:
        """Limits: in a new pool all of them are sent, later what is not zero, and the minima."""
        given = block(value)
        if not given:
            return {"enabled": False}
        result: dict[str, Any] = {"enabled": True}
        for name in _LIMITS:
            number = given.get(name)
            key = camel(name)
            number = 0 if number in (None, UNKNOWN) else number
            if number or not update or key in _ENABLED:
                result[key] = number
        policy = given.get("location_policy")
        if policy not in (None, UNKNOWN, ""):
            result["locationPolicy"] = policy
        return result

    def management(self, value: Any, *, update: bool = False) -> dict[str, Any]:
        """Whether nodes are repaired and upgraded; an update says what is not wanted, too."""
        given = block(value)
        off = {camel(name): False for name in given} if update else {}
        return {**off, **self._management.expand(given)}

    def value(self, name: str, value: Any) -> Any:
        """The JSON value of one attribute."""
        return self._shape.value(name, value)

    def flatten(self, pool: Mapping[str, Any], before: State, sizes: Sequence[int]) -> State:
        """The attributes of a pool."""
        urls = pool.get("instanceGroupUrls") or []
        state = self._shape.flatten(pool)
        initial = pool.get("initialNodeCount", 0)
        count = sum(sizes) // len(sizes) if sizes else 0
        if before.get("ignore_node_count_changes"):
            count = kept(before, "node_count", count)
        return {
            **state,
            "autoscaling": self._limits(pool.get("autoscaling")),
            "initial_node_count": initial,
            "instance_group_urls": urls,
            "managed_instance_group_urls": [
                url.replace("/instanceGroups/", "/instanceGroupManagers/") for url in urls
            ],
            "management": [self._management.flatten(pool.get("management") or {})],
            "node_config": self.config.flatten(pool.get("config"), before.get("node_config")),
            "node_count": count,
        }

    @staticmethod
    def _limits(given: Mapping[str, Any] | None) -> list[State]:
        if not given or not given.get("enabled"):
            return []
        limits: State = {name: given.get(camel(name), 0) for name in _LIMITS}
        return [{**limits, "location_policy": given.get("locationPolicy", "")}]
