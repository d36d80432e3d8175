"""The parts of load balancers that Kubernetes Engine makes for a cluster.

Services are simulated whole. What Ingresses and Gateways have can be made by whoever plays their
controllers. What nobody makes (addresses, certificates, ...) can be listed, and there is none.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Final

from rehearsal.cloud.compute import resources
from rehearsal.cloud.compute.resources import Call, Kind, Resource
from rehearsal.cloud.compute.rest import Rest

_IN_NETWORK: Final = {"network": resources.NETWORK, "subnetwork": resources.SUBNETWORK}
# Kind -> field of a new resource -> the kind that it refers to. Nothing goes that is referred to.
_REFERENCES: Final[Mapping[Kind, Mapping[str, Kind]]] = {
    resources.FORWARDING_RULE: {**_IN_NETWORK, "target": resources.TARGET_POOL},
    resources.GLOBAL_FORWARDING_RULE: {"target": resources.TARGET_HTTP_PROXY},
    resources.ENDPOINT_GROUP: _IN_NETWORK,
    resources.TARGET_POOL: {"healthChecks": resources.HTTP_HEALTH_CHECK},
    resources.TARGET_HTTP_PROXY: {"urlMap": resources.URL_MAP},
    resources.URL_MAP: {"defaultService": resources.BACKEND_SERVICE},
    resources.BACKEND_SERVICE: {"healthChecks": resources.HEALTH_CHECK},
    resources.HEALTH_CHECK: {},
    resources.HTTP_HEALTH_CHECK: {},
}
_UNMADE: Final = (
    Kind("addresses", "region", "address", "address"),
    Kind("sslCertificates", "", "ssl_certificate", "sslCertificate"),
    Kind("targetHttpsProxies", "", "target_https_proxy", "targetHttpsProxy"),
)
# Over all places.
_WITHOUT_A_LIST: Final = (resources.GLOBAL_FORWARDING_RULE, resources.HTTP_HEALTH_CHECK)


def _users(kind: Kind) -> Callable[[Call, str], Iterator[str]]:
    def users(call: Call, link: str) -> Iterator[str]:
        for user, fields in _REFERENCES.items():
            for field in (name for name, target in fields.items() if target is kind):
                for name, resource in resources.each(call, user, f"projects/{call.project}/"):
                    if link in resource.get(field, ""):
                        yield name

    return users


def _row(kind: Kind) -> Rest:
    collection = "globalForwardingRules" if kind is resources.GLOBAL_FORWARDING_RULE else ""
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
    **_row(resources.INSTANCE_GROUP).methods("insert", "delete"),
}
