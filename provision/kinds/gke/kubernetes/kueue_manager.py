"""Kueue's own settings and size: its upstream manifest, with what this tool changes of it.

Upstream leaves `waitForPodsReady` off, so that a job whose node is lost stays admitted for ever,
and its other nodes are billed; and it gives the manager 512 MiB, which some hundred nodes fill.
"""

from __future__ import annotations

import copy
import hashlib
from typing import TYPE_CHECKING, Any, Final

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterable

    from provision.kinds.gke.kubernetes.objects import Object

WAIT_FOR_PODS_READY: Final = {
    # As long as Kueue 0.19 waits by default: the images of a training are large.
    "timeout": "30m",
    # A lost pod comes back on another node of the job, or never.
    "recoveryTimeout": "10m",
    "blockAdmission": False,
    # A zone that has but some of a gang's nodes gives these each time, and they are billed.
    "requeuingStrategy": {
        "timestamp": "Eviction",
        "backoffLimitCount": 20,
        "backoffBaseSeconds": 60,
        "backoffMaxSeconds": 3600,
    },
}
"""How long admitted jobs may have pods that are not ready, before they give their nodes back."""

CONFIG_MAP: Final = "kueue-manager-config"
CONFIG_KEY: Final = "controller_manager_config.yaml"
_DEPLOYMENT: Final = "kueue-controller-manager"
_CHECKSUM: Final = "aiinfra/configuration"
"""The annotation of the manager's pods that makes other settings start another one."""

_LEAST_MIB: Final = 4096
_MIB_PER_NODE: Final = 32
_LEAST_CPU: Final = 2.0
_CPU_PER_NODE: Final = 0.004


def configured(manifest: Iterable[Object], nodes: int) -> list[Object]:
    """The objects of Kueue's manifest, with this tool's settings and a manager of the right size.

    `manifest`: the objects; those of other kinds and names are left as they are. `nodes`: the
    largest number of nodes that the cluster can have. xpk gives the manager 32 MiB and 0.004
    processors for each, and 4 GiB and 2 at least (its source, 2026-06-25).
    """
    things = [copy.deepcopy(thing) for thing in manifest]
    settings = next((thing for thing in things if _is(thing, "ConfigMap", CONFIG_MAP)), None)
    if settings is None:
        return things
    text = _with_settings(settings["data"][CONFIG_KEY])
    settings["data"][CONFIG_KEY] = text
    for thing in things:
        if _is(thing, "Deployment", _DEPLOYMENT):
            _resize(thing["spec"]["template"], nodes, hashlib.sha256(text.encode()).hexdigest())
    return things


def _is(thing: Object, kind: str, name: str) -> bool:
    return bool(thing["kind"] == kind and thing["metadata"]["name"] == name)


def _with_settings(text: str) -> str:
    document: dict[str, Any] = yaml.safe_load(text)
    changed = document | {"waitForPodsReady": WAIT_FOR_PODS_READY}
    return yaml.safe_dump(changed, sort_keys=False)


def _resize(template: Object, nodes: int, checksum: str) -> None:
    template.setdefault("metadata", {}).setdefault("annotations", {})[_CHECKSUM] = checksum
    memory = f"{max(_LEAST_MIB, _MIB_PER_NODE * nodes)}Mi"
    for container in template["spec"]["containers"]:
        if container["name"] == "manager":
            container["resources"] = {
                "requests": {"cpu": "500m", "memory": "512Mi"},
                "limits": {"cpu": _processors(nodes), "memory": memory},
            }


def _processors(nodes: int) -> str:
    return f"{round(max(_LEAST_CPU, _CPU_PER_NODE * nodes) * 1000)}m"
