"""The parts of load balancers that Kubernetes Engine makes for a cluster.

Services are simulated whole. What Ingresses and Gateways have can be made by whoever plays their
controllers. What nobody makes (addresses, certificates, ...) can be listed, and there is none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rehearsal.cloud.compute import lists, resources
from rehearsal.cloud.compute.resources import (
    BACKEND_SERVICE,
    ENDPOINT_GROUP,
    FORWARDING_RULE,
    GLOBAL_FORWARDING_RULE,
    HEALTH_CHECK,
    HTTP_HEALTH_CHECK,
    INSTANCE_GROUP,
    NETWORK,
    SUBNETWORK,
    TARGET_HTTP_PROXY,
    TARGET_POOL,
    URL_MAP,
    Call,
    Kind,
    Resource,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_UNMADE: Final = (
    Kind("addresses", "region", "address", "address"),
    Kind("sslCertificates", "", "ssl_certificate", "sslCertificate"),
    Kind("targetHttpsProxies", "", "target_https_proxy", "targetHttpsProxy"),
)

# Kind -> field of a new resource -> the kind that it refers to. Nothing goes that is referred to.
_REFERENCES: Final[Mapping[Kind, Mapping[str, Kind]]] = {
    FORWARDING_RULE: {"network": NETWORK, "subnetwork": SUBNETWORK, "target": TARGET_POOL},
    GLOBAL_FORWARDING_RULE: {"target": TARGET_HTTP_PROXY},
    ENDPOINT_GROUP: {"network": NETWORK, "subnetwork": SUBNETWORK},
    TARGET_POOL: {"healthChecks": HTTP_HEALTH_CHECK},
    TARGET_HTTP_PROXY: {"urlMap": URL_MAP},
    URL_MAP: {"defaultService": BACKEND_SERVICE},
    BACKEND_SERVICE: {"healthChecks": HEALTH_CHECK},
}
_OF_NETWORKS: Final = (NETWORK, SUBNETWORK)
"""These see to their users themselves."""


def _insert(kind: Kind) -> Callable[[Call], Resource]:
    def handler(call: Call) -> Resource:
        body = resources.without_nulls(call.body)
        for field, target in _REFERENCES.get(kind, {}).items():
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
    for user, fields in _REFERENCES.items():
        for field, target in fields.items():
            if target is not kind or target in _OF_NETWORKS:
                continue
            for name, resource in resources.each(call, user, f"projects/{call.project}/"):
                if link in resource.get(field, ""):
                    yield name


def _methods(kind: Kind, collection: str = "") -> dict[str, Callable[[Call], Resource]]:
    own: dict[str, Callable[[Call], Resource]] = {
        "insert": _insert(kind),
        "get": resources.get(kind),
        "list": lists.of_place(kind),
        "delete": _delete(kind),
    }
    return {f"{collection or kind.collection}.{name}": handler for name, handler in own.items()}


_LISTED: Final = (
    FORWARDING_RULE,
    TARGET_POOL,
    TARGET_HTTP_PROXY,
    URL_MAP,
    BACKEND_SERVICE,
    HEALTH_CHECK,
    ENDPOINT_GROUP,
    *_UNMADE,
)
METHODS: Mapping[str, Callable[[Call], Resource]] = {
    **_methods(FORWARDING_RULE),
    **_methods(GLOBAL_FORWARDING_RULE, "globalForwardingRules"),
    **_methods(TARGET_POOL),
    **_methods(TARGET_HTTP_PROXY),
    **_methods(URL_MAP),
    **_methods(BACKEND_SERVICE),
    **_methods(HEALTH_CHECK),
    **_methods(ENDPOINT_GROUP),
    **_methods(HTTP_HEALTH_CHECK),
    "instanceGroups.insert": _insert(INSTANCE_GROUP),
    "instanceGroups.delete": _delete(INSTANCE_GROUP),
    **{f"{kind.collection}.aggregatedList": lists.of_project(kind) for kind in _LISTED},
}
