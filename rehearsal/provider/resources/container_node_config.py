"""What nodes are made of: `node_config` of clusters and pools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.container_shapes import INT64, ONE, Form, Rule, Shape, block

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.provider.resource import State
    from rehearsal.provider.schema import Field

_WORDS: Final = {"TRUE": True, "FALSE": False}
TRUTH: Final = Rule(
    expand=_WORDS.get, flatten=lambda value: "" if value is None else str(value).upper()
)
"""A boolean that the provider writes as a word, so that it can be unset."""

VARIANT: Final = Rule(
    wire="loggingConfig.variantConfig.variant", flatten=lambda value: value or "DEFAULT"
)
"""What the agent of logging is to do with; Google leaves the usual one out."""

RULES: Final[Mapping[str, Rule]] = {
    "advanced_machine_features.threads_per_core": INT64,
    "boot_disk.provisioned_iops": INT64,
    "boot_disk.provisioned_throughput": INT64,
    "boot_disk.size_gb": INT64,
    "effective_taints": Rule(wire="taints", form=Form.SKIP),
    "gpudirect_strategy": Rule(wire="gpuDirectConfig.gpuDirectStrategy"),
    "guest_accelerator": Rule(wire="accelerators"),
    "guest_accelerator.count": Rule(wire="acceleratorCount", form=Form.INT64),
    "guest_accelerator.gpu_sharing_config.max_shared_clients_per_gpu": INT64,
    "guest_accelerator.type": Rule(wire="acceleratorType"),
    "kubelet_config.insecure_kubelet_readonly_port_enabled": TRUTH,
    "kubelet_config.pod_pids_limit": INT64,
    "linux_node_config.custom_node_init.init_script.gcs_generation": INT64,
    "linux_node_config.hugepages_config": Rule(wire="hugepages"),
    "linux_node_config.swap_config.boot_disk_profile.swap_size_gib": INT64,
    "linux_node_config.swap_config.dedicated_local_ssd_profile.disk_count": INT64,
    "linux_node_config.swap_config.ephemeral_local_ssd_profile.swap_size_gib": INT64,
    "logging_variant": VARIANT,
    "node_image_config": ONE,
    "resource_manager_tags": Rule(wire="resourceManagerTags.tags"),
    "sole_tenant_config.node_affinity": Rule(wire="nodeAffinities"),
    "taint": Rule(wire="taints"),
    "windows_node_config.osversion": Rule(wire="osVersion"),
}

_ADDED: Final = "goog-gke"
"""How labels begin that Kubernetes Engine adds to machines."""


class NodeConfig:
    """The conversions of one `node_config` block."""

    def __init__(self, fields: Mapping[str, Field]) -> None:
        self._shape = Shape(fields, RULES)

    def expand(self, value: Any) -> dict[str, Any]:
        """The JSON object of the attribute; {} when it is not configured."""
        if value is UNKNOWN or not value:
            return {}
        body = self._shape.expand(value[0] or {})
        # The provider always names where the variant of logging would be.
        body.setdefault("loggingConfig", {}).setdefault("variantConfig", {})
        return body

    def flatten(self, document: Mapping[str, Any] | None, before: Any) -> list[State]:
        """The attribute; of the taints only those that the state knows, if it knows the block."""
        if document is None:
            return []
        state = self._shape.flatten(document)
        taints = state["taint"]
        state["effective_taints"] = taints
        if before not in (None, UNKNOWN, []):
            known = {taint["key"] for taint in before[0].get("taint") or []}
            state["taint"] = [taint for taint in taints if taint["key"] in known]
        return [state]

    def value(self, name: str, value: Any) -> Any:
        """The JSON value of one attribute; None for a block that is not there."""
        return self._shape.value(name, value)

    def part(self, values: State, names: tuple[str, ...]) -> dict[str, Any]:
        """The JSON object of some attributes."""
        return self._shape.expand(values, names)


def with_added_labels(prior: Any, planned: Any) -> Any:
    """The planned block with the labels of machines that Google has added: they are no change."""
    if not isinstance(planned, list) or not planned or not block(prior):
        return planned
    wanted = planned[0].get("resource_labels")
    if wanted is UNKNOWN:
        return planned
    there = block(prior).get("resource_labels") or {}
    added = {key: value for key, value in there.items() if key.startswith(_ADDED)}
    labels = {**added, **(wanted or {})}
    return [{**planned[0], "resource_labels": labels or wanted}, *planned[1:]]
