"""The permissions that requests took, by Google's names of methods."""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from rehearsal.cloud import discovery

_APIS: Final = {
    "/compute/v1/": "compute.v1",
    "/storage/v1/": "storage.v1",
    "/iam/v1/": "iam.v1",
    "/crm/v1/": "cloudresourcemanager.v1",
    "/crm/v3/": "cloudresourcemanager.v3",
    "/orgpolicy/v2/": "orgpolicy.v2",
    "/serviceusage/v1/": "serviceusage.v1",
    "/serviceusage/v1beta1/": "serviceusage.v1beta1",
    "/container/v1/": "container.v1",
    "/file/v1/": "file.v1",
    "/secretmanager/v1/": "secretmanager.v1",
    "/monitoring/v1/": "monitoring.v1",
}
_MEDIA: Final = {"/upload/storage/v1/": "storage.objects.create"}
_WITHOUT: Final = ("testIamPermissions", "listManagedInstances")
"""The ends of methods that take no permission of their own, or that of the group's `get`."""

_COLLECTIONS: Final = {
    "cloudresourcemanager.projects": "resourcemanager.projects",
    "container.nodePools": "container.clusters",
    "monitoring.dashboards": "monitoring.dashboards",
    "orgpolicy.policies": "orgpolicy.policy",
    "serviceusage.consumerQuotaMetrics": "serviceusage.quotas",
    "compute.instanceGroupManagerResizeRequests": "compute.instanceGroupManagers",
}
_VERBS: Final = {
    "insert": "create",
    "patch": "update",
    "aggregatedList": "list",
    "getEffectivePolicy": "get",
    "getXpnHost": "get",
    "rewrite": "create",
    "compose": "create",
}
_WRITES_OF: Final = ("compute.instanceGroupManagers", "container.clusters")
"""Collections whose parts and properties are changed with one permission, `update`."""


def of(requests: Iterable[dict[str, Any]]) -> set[str]:
    """The permissions that the requests took.

    Left out are those of billing and of Kubernetes, and of Cloud Quotas, whose description is not
    at hand.
    """
    return {name for request in requests for name in _of(request)}


def _of(request: dict[str, Any]) -> Iterator[str]:
    for prefix, permission in _MEDIA.items():
        if request["path"].startswith(prefix):
            yield permission
    for prefix, document in _APIS.items():
        if request["path"].startswith(prefix):
            path = request["path"].removeprefix(prefix)
            method = discovery.api(document).match(request["method"], path).method.id
            yield from _translated(document.partition(".")[0], method)


def _translated(api: str, method: str) -> Iterator[str]:
    *parents, verb = method.split(".")
    if verb in _WITHOUT:
        return
    plain = f"{api}.{parents[-1]}"
    collection = _COLLECTIONS.get(plain, plain)
    if verb == "getServerConfig":
        yield "container.clusters.list"
        return
    verb = _VERBS.get(verb, verb)
    if parents[-1] in {"nodePools", "instanceGroupManagerResizeRequests"} and verb != "get":
        verb = "update" if verb != "list" else "get"
    elif collection in _WRITES_OF and re.search(r"^(?!create$|delete$|get$|list$)", verb):
        verb = "update"
    yield f"{collection}.{verb}"
