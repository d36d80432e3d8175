"""What each cluster has from its beginning: namespaces, their accounts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rehearsal.cloud.kubernetes.objects import World

_NAMESPACES: Final = ("default", "gke-managed-system", "kube-public", "kube-system")


def look(world: World) -> None:
    """Make what is missing."""
    spaces, accounts = world.kind("v1", "namespaces"), world.kind("v1", "serviceaccounts")
    if spaces is None or accounts is None or world.get(spaces, "", "default") is not None:
        return
    for name in _NAMESPACES:
        labels = {"kubernetes.io/metadata.name": name}
        thing = {"apiVersion": "v1", "kind": "Namespace"}
        status = {"phase": "Active"}
        world.put(spaces, {**thing, "metadata": {"name": name, "labels": labels}, "status": status})
        metadata = {"name": "default", "namespace": name}
        world.put(accounts, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata})
