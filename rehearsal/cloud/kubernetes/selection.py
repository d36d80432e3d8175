"""Which nodes a pod is for, by its selector and the affinity that it requires."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.objects import Object


def wants(pod: Mapping[str, Any], node: Object) -> bool:
    """Whether a pod's selector, and the affinity that it requires, choose a node."""
    labels = node["metadata"]["labels"]
    selector = pod.get("nodeSelector") or {}
    if any(labels.get(key) != value for key, value in selector.items()):
        return False
    affinity = ((pod.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    terms = affinity.get("nodeSelectorTerms") or []
    return not terms or any(
        all(_fits(it, labels) for it in term.get("matchExpressions") or []) for term in terms
    )


_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def _fits(expression: Object, labels: Object) -> bool:
    value = labels.get(expression["key"])
    match expression["operator"]:
        case "In":
            return value in expression["values"]
        case "NotIn":
            return value not in expression["values"]
        case "Exists":
            return value is not None
        case _:
            return value is None
