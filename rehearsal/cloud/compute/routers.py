"""Cloud Routers, and the Cloud NAT gateways that live in them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, quotas, resources
from rehearsal.cloud.compute.resources import NETWORK, ROUTER, SUBNETWORK, Call, Resource

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NAT_DEFAULTS: Resource = {
    "type": "PUBLIC",
    "endpointTypes": ["ENDPOINT_TYPE_VM"],
    "autoNetworkTier": "PREMIUM",
}
_LISTED = "LIST_OF_SUBNETWORKS"


def _completed(call: Call, router: Resource) -> Resource:
    """The router with its NAT gateways checked and completed."""
    nats = router.get("nats")
    if nats is None:
        return router
    names = [nat.get("name") for nat in nats]
    for index, nat in enumerate(nats):
        field = f"nats[{index}]"
        if names.index(nat.get("name")) != index:
            raise links.invalid(f"{field}.name", nat.get("name"), "The name is used twice.")
        listed = nat.get("sourceSubnetworkIpRangesToNat") == _LISTED
        if listed != bool(nat.get("subnetworks")):
            raise links.invalid(
                f"{field}.subnetworks", "", f"Must be given with {_LISTED}, and only then."
            )
        for subnetwork in nat.get("subnetworks") or []:
            name = call.resolve(subnetwork["name"], SUBNETWORK, f"{field}.subnetworks[].name")
            resources.require_ready(call, SUBNETWORK, name)
            subnetwork["name"] = links.ROOT + name
    return {**router, "nats": [resources.defaults(nat, _NAT_DEFAULTS) for nat in nats]}


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    network = call.resolve(body["network"], NETWORK, "network")
    resources.require_ready(call, NETWORK, network)
    router = {
        **body,
        "network": links.ROOT + network,
        "encryptedInterconnectRouter": body.get("encryptedInterconnectRouter", False),
    }
    quotas.check(call, ROUTER)
    return resources.insert(call, ROUTER, _completed(call, router))


def _patch(call: Call) -> Resource:
    name = call.name(ROUTER)
    router = resources.require_ready(call, ROUTER, name)
    changes = {key: value for key, value in call.body.items() if key != "network"}
    changed = resources.merge(router, changes)
    return resources.change(call, ROUTER, name, _completed(call, changed))


def _delete(call: Call) -> Resource:
    return resources.remove(call, ROUTER, call.name(ROUTER))


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "routers.insert": _insert,
    "routers.get": resources.get(ROUTER),
    "routers.list": lists.of_place(ROUTER),
    "routers.aggregatedList": lists.of_project(ROUTER),
    "routers.patch": _patch,
    "routers.update": _patch,
    "routers.delete": _delete,
}
