"""The parts of load balancers that Kubernetes Engine makes for a cluster.

Services are simulated whole. What Ingresses and Gateways have can be made by whoever plays their
controllers. What nobody makes (addresses, certificates, ...) can be listed, and there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rehearsal.cloud.compute import resources
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
from rehearsal.cloud.compute.rest import Rest

_IN_NETWORK: Final = {"network": NETWORK, "subnetwork": SUBNETWORK}
# Kind -> field of a new resource -> the kind that it refers to. Nothing goes that is referred to.
_REFERENCES: Final[Mapping[Kind, Mapping[str, Kind]]] = {
    FORWARDING_RULE: {**_IN_NETWORK, "target": TARGET_POOL},
    GLOBAL_FORWARDING_RULE: {"target": TARGET_HTTP_PROXY},
    ENDPOINT_GROUP: _IN_NETWORK,
    TARGET_POOL: {"healthChecks": HTTP_HEALTH_CHECK},
    TARGET_HTTP_PROXY: {"urlMap": URL_MAP},
    URL_MAP: {"defaultService": BACKEND_SERVICE},
    BACKEND_SERVICE: {"healthChecks": HEALTH_CHECK},
    HEALTH_CHECK: {},
    HTTP_HEALTH_CHECK: {},
}
_UNMADE: Final = (
    Kind("addresses", "region", "address", "address"),
    Kind("sslCertificates", "", "ssl_certificate", "sslCertificate"),
    Kind("targetHttpsProxies", "", "target_https_proxy", "targetHttpsProxy"),
)
_WITHOUT_A_LIST: Final = (GLOBAL_FORWARDING_RULE, HTTP_HEALTH_CHECK)  # over all places


def _users(kind: Kind) -> Callable[[Call, str], Iterator[str]]:
    def users(call: Call, link: str) -> Iterator[str]:
        for user, fields in _REFERENCES.items():
            for field in (name for name, target in fields.items() if target is kind):
                for name, resource in resources.each(call, user, f"projects/{call.project}/"):
                    if link in resource.get(field, ""):
                        yield name

    return users


def _row(kind: Kind) -> Rest:
    collection = "globalForwardingRules" if kind is GLOBAL_FORWARDING_RULE else ""
    return Rest(
        kind=kind,
        collection=collection,
        references=_REFERENCES.get(kind, {}),
        users=_users(kind),
    )


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    **{
        name: method
        for kind in _REFERENCES
        for name, method in _row(kind).methods("insert", "get", "list", "delete").items()
    },
    **{
        name: method
        for kind in (*_REFERENCES, *_UNMADE)
        if kind not in _WITHOUT_A_LIST
        for name, method in _row(kind).methods("aggregatedList").items()
    },
    **_row(INSTANCE_GROUP).methods("insert", "delete"),
}
