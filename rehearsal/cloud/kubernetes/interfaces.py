"""The network interfaces that a pod asks for, and whether it gets them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import objects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rehearsal.cloud.kubernetes.objects import Object, World

_GROUP: Final = "networking.gke.io"
_DEFAULT: Final = f"{_GROUP}/default-interface"
_LIST: Final = f"{_GROUP}/interfaces"
_API: Final = f"{_GROUP}/v1"
_OF_PODS: Final = "default"
"""The network that all pods have."""


def of(pod: Object) -> dict[str, str]:
    """A pod's interfaces, each with its network."""
    text = (pod["metadata"].get("annotations") or {}).get(_LIST)
    if text is None:
        return {"eth0": _OF_PODS}
    return {it["interfaceName"]: it["network"] for it in json.loads(text)}


def problem(world: World, pod: Object, most: int) -> str:
    """Why a pod gets no sandbox; "" where it does."""
    return next(_problems(world, pod, most), "")


def _problems(world: World, pod: Object, most: int) -> Iterator[str]:
    annotations = pod["metadata"].get("annotations") or {}
    if _LIST not in annotations:
        return
    try:
        wanted = of(pod)
    except (ValueError, TypeError, KeyError):
        yield f"invalid annotation {_LIST}"
        return
    first = annotations.get(_DEFAULT)
    if first not in wanted:
        yield f'default interface "{first}" is not among the interfaces of the pod'
    if _OF_PODS not in wanted.values():
        yield f'no interface is in the network "{_OF_PODS}"'
    if len(set(wanted.values())) < len(wanted):
        yield "a network is named twice"
    if len(wanted) > most:
        yield f"the node has {most} interfaces, the pod asks for {len(wanted)}"
    for network in wanted.values():
        if network != _OF_PODS and parameters(world, network) is None:
            yield f'network "{network}" not found, or not ready'


def parameters(world: World, network: str) -> Mapping[str, Any] | None:
    """What a network of the cluster is on its nodes; None where it is not there or not ready."""
    kind, of_parameters = (world.kind(_API, it) for it in ("networks", "gkenetworkparamsets"))
    found = world.get(kind, "", network) if kind else None
    if found is None or of_parameters is None:
        return None
    reference = (found["spec"].get("parametersRef") or {}).get("name", "")
    named = world.get(of_parameters, "", reference)
    if named is None or objects.condition(found, "Ready").get("status") == "False":
        return None
    spec: Mapping[str, Any] = named["spec"]
    return spec


def devices(world: World, pod: Object, mode: str) -> int:
    """How many of a pod's interfaces are devices of a mode: "NetDevice" or "RDMA"."""
    found = (parameters(world, it) for it in of(pod).values() if it != _OF_PODS)
    return sum(it is not None and it.get("deviceMode") == mode for it in found)
