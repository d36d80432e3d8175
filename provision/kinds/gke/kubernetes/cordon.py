"""Cordons of nodes: Kubernetes starts no new pod on such a node; those that run there stay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.client import Cluster

WHY: Final = "aiinfra-cluster/cordoned"
"""The annotation with the reason and how to undo it, for whoever looks at the node."""


def add(cluster: Cluster, node: str, why: str) -> bool:
    """Cordon a node, as `kubectl cordon` does, and write on it why."""
    text = f"Test found: {why}; undo with: kubectl uncordon {node}"
    change = {"metadata": {"annotations": {WHY: text}}, "spec": {"unschedulable": True}}
    return cluster.merge("v1", "Node", node, change)
