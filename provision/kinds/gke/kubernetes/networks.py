"""The networks of additional pod interfaces, as objects of GKE's multi-networking."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from provision.kinds.gke.kubernetes.objects import Object, build

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts, ExtraNetwork, GpuPool

_GROUP: Final = "networking.gke.io"
_API: Final = f"{_GROUP}/v1"
_PARAMETERS: Final = "GKENetworkParamSet"


def objects(facts: ClusterFacts) -> list[Object]:
    """A GKENetworkParamSet and a Network for each network; both are cluster-scoped."""
    return [thing for network in facts.networks for thing in _pair(network)]


def pod_annotations(pool: GpuPool) -> dict[str, str]:
    """The annotations that give a pod all interfaces of its node; {} if there is only one."""
    networks = pool.networks
    if not networks:
        return {}
    names = ["default", *networks]
    interfaces = [
        {"interfaceName": f"eth{number}", "network": name} for number, name in enumerate(names)
    ]
    lines = ",\n".join(f"  {json.dumps(each)}" for each in interfaces)
    return {
        f"{_GROUP}/default-interface": "eth0",
        f"{_GROUP}/interfaces": f"[\n{lines}\n]\n",
    }


def _pair(network: ExtraNetwork) -> list[Object]:
    name = network.kubernetes_name
    parameters = {
        "vpc": network.network,
        "vpcSubnet": network.subnetwork,
        "deviceMode": network.device_mode,
    }
    reference = {"group": _GROUP, "kind": _PARAMETERS, "name": name}
    return [
        build(_API, _PARAMETERS, name, spec=parameters),
        build(_API, "Network", name, spec={"type": "Device", "parametersRef": reference}),
    ]
