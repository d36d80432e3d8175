"""The parts of load balancers that Kubernetes Engine makes for a cluster's Services.

What no cluster of the simulated cloud makes (backend services, proxies, ...) can be listed, and
there is none of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.compute import lists, resources
from rehearsal.cloud.compute.resources import (
    FORWARDING_RULE,
    HTTP_HEALTH_CHECK,
    NETWORK,
    SUBNETWORK,
    TARGET_POOL,
    Call,
    Kind,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_UNMADE: Final = (
    Kind("addresses", "region", "address", "address"),
    Kind("backendServices", "", "backend_service", "backendService"),
    Kind("healthChecks", "", "health_check", "healthCheck"),
    Kind("networkEndpointGroups", "zone", "network_endpoint_group", "networkEndpointGroup"),
    Kind("sslCertificates", "", "ssl_certificate", "sslCertificate"),
    Kind("targetHttpProxies", "", "target_http_proxy", "targetHttpProxy"),
    Kind("targetHttpsProxies", "", "target_https_proxy", "targetHttpsProxy"),
    Kind("urlMaps", "", "url_map", "urlMap"),
)

# Kind -> the kind that uses it, and the field of that which names it.
_USERS: Final = {
    TARGET_POOL: (FORWARDING_RULE, "target"),
    HTTP_HEALTH_CHECK: (TARGET_POOL, "healthChecks"),
}
# Field of a new resource -> the kind that it refers to.
_REFERENCES: Final = {
    "healthChecks": HTTP_HEALTH_CHECK,
    "network": NETWORK,
    "subnetwork": SUBNETWORK,
    "target": TARGET_POOL,
}


def _insert(kind: Kind) -> Callable[[Call], Resource]:
    def handler(call: Call) -> Resource:
        body = resources.without_nulls(call.body)
        for field, target in _REFERENCES.items():
            if field in body:
                body[field] = _resolved(call, target, field, body[field])
        return resources.insert(call, kind, body)

    return handler


def _resolved(call: Call, kind: Kind, field: str, given: str | list[str]) -> str | list[str]:
    """The links that references mean; what they lead to must exist."""
    if isinstance(given, list):
        return [_link(call, kind, field, one) for one in given]
    return _link(call, kind, field, given)


def _link(call: Call, kind: Kind, field: str, reference: str) -> str:
    name = call.resolve(reference, kind, field)
    return str(resources.require(call, kind, name)["selfLink"])


def _delete(kind: Kind) -> Callable[[Call], Resource]:
    def handler(call: Call) -> Resource:
        name = call.name(kind)
        link = resources.require_ready(call, kind, name)["selfLink"]
        for user in _users(call, kind, link):
            raise resources.in_use(kind, name, user)
        return resources.remove(call, kind, name)

    return handler


def _users(call: Call, kind: Kind, link: str) -> Iterator[str]:
    if kind not in _USERS:
        return
    user, field = _USERS[kind]
    for name, resource in resources.each(call, user, f"projects/{call.project}/"):
        if link in resource.get(field, ""):
            yield name


def _methods(kind: Kind) -> dict[str, Callable[[Call], Resource]]:
    own: dict[str, Callable[[Call], Resource]] = {
        "insert": _insert(kind),
        "get": resources.get(kind),
        "list": lists.of_place(kind),
        "delete": _delete(kind),
    }
    if kind.place:
        own["aggregatedList"] = lists.of_project(kind)
    return {f"{kind.collection}.{name}": handler for name, handler in own.items()}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    **_methods(FORWARDING_RULE),
    **_methods(TARGET_POOL),
    **_methods(HTTP_HEALTH_CHECK),
    **{f"{kind.collection}.aggregatedList": lists.of_project(kind) for kind in _UNMADE},
}
