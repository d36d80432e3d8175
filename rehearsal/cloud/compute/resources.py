"""What all resources of Compute Engine have in common: kinds, calls, keeping, reading, deleting.

A kept resource is the document that a GET answers, plus fields that begin with "_" and are never
shown: `_ready` and `_gone`, the moments (Unix epoch) at which its making and its deletion end.
"""

import base64
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rehearsal.cloud.compute import links, operations
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request, rfc3339

Resource = dict[str, Any]


@dataclass(frozen=True)
class Kind:
    """A kind of resource."""

    collection: str  # as in the paths ("instanceTemplates")
    place: str  # the path's parameter that places it: "region", "zone", or "" for a global one
    word: str  # what messages call it ("instance_template")
    singular: str  # as in `kind` and as the path's parameter ("instanceTemplate")

    @property
    def stored(self) -> str:
        """The store's collection."""
        return f"compute/{self.collection}"

    def prefix(self, project: str, place: str = "") -> str:
        """How the names of such resources of a place begin."""
        scope = f"{self.place}s/{place}" if self.place else "global"
        return f"projects/{project}/{scope}/{self.collection}/"


NETWORK = Kind("networks", "", "network", "network")
SUBNETWORK = Kind("subnetworks", "region", "subnetwork", "subnetwork")
FIREWALL = Kind("firewalls", "", "firewall", "firewall")
ROUTER = Kind("routers", "region", "router", "router")
POLICY = Kind("resourcePolicies", "region", "resource_policy", "resourcePolicy")
RESERVATION = Kind("reservations", "zone", "reservation", "reservation")
FUTURE_RESERVATION = Kind("futureReservations", "zone", "future_reservation", "futureReservation")
TEMPLATE = Kind("instanceTemplates", "", "instance_template", "instanceTemplate")
GROUP_MANAGER = Kind(
    "instanceGroupManagers", "zone", "instance_group_manager", "instanceGroupManager"
)
RESIZE_REQUEST = Kind(
    "resizeRequests", "zone", "resize_request", "instanceGroupManagerResizeRequest"
)
INSTANCE = Kind("instances", "zone", "instance", "instance")
DISK = Kind("disks", "zone", "disk", "disk")
IMAGE = Kind("images", "", "image", "image")
INSTANCE_GROUP = Kind("instanceGroups", "zone", "instance_group", "instanceGroup")
ENDPOINT_GROUP = Kind(
    "networkEndpointGroups", "zone", "network_endpoint_group", "networkEndpointGroup"
)
FORWARDING_RULE = Kind("forwardingRules", "region", "forwarding_rule", "forwardingRule")
GLOBAL_FORWARDING_RULE = Kind("forwardingRules", "", "forwarding_rule", "forwardingRule")
TARGET_HTTP_PROXY = Kind("targetHttpProxies", "", "target_http_proxy", "targetHttpProxy")
URL_MAP = Kind("urlMaps", "", "url_map", "urlMap")
BACKEND_SERVICE = Kind("backendServices", "", "backend_service", "backendService")
HEALTH_CHECK = Kind("healthChecks", "", "health_check", "healthCheck")
TARGET_POOL = Kind("targetPools", "region", "target_pool", "targetPool")
HTTP_HEALTH_CHECK = Kind("httpHealthChecks", "", "http_health_check", "httpHealthCheck")


@dataclass(frozen=True, kw_only=True)
class Call:
    """One call of one method."""

    request: Request
    store: Store  # the transaction that it is part of
    method: str  # the method's id ("networks.insert")
    project: str  # the id of the project in whose name it is made
    parameters: Mapping[str, str]  # path and query
    body: Resource

    @property
    def now(self) -> float:
        """The moment of the request (Unix epoch)."""
        return self.request.now

    def prefix(self, kind: Kind) -> str:
        """How the names of such resources begin in the place that the path names."""
        return kind.prefix(self.project, self.parameters.get(kind.place, ""))

    def name(self, kind: Kind) -> str:
        """The name of the resource that the path names."""
        return self.prefix(kind) + self.parameters[kind.singular]

    def resolve(self, reference: str, kind: Kind, field: str) -> str:
        """The name that a reference in the body means."""
        return links.resolve(
            reference, project=self.project, collection=kind.collection, field=field
        )

    def end(self) -> float:
        """When the operation of this method ends that begins now."""
        return self.request.after(operations.duration(self.method))

    def operate(self, target: str, target_id: str, end: float | None = None) -> Resource:
        """Begin this method's operation; it ends after its usual time, or at `end`."""
        work = operations.Work(
            method=self.method,
            target=target,
            target_id=target_id,
            end=self.end() if end is None else end,
        )
        return operations.start(self.request, self.store, work)


def not_found(name: str) -> GoogleError:
    """The refusal of a name that nothing has."""
    return GoogleError(404, f"The resource '{name}' was not found")


def find(call: Call, kind: Kind, name: str) -> Resource | None:
    """The kept resource of that name, or None; one whose deletion is over is gone."""
    found = call.store.get(kind.stored, name)
    return None if found is None or _is_gone(found, call.now) else found


def require(call: Call, kind: Kind, name: str) -> Resource:
    """The kept resource of that name."""
    found = find(call, kind, name)
    if found is None:
        raise not_found(name)
    return found


def require_ready(call: Call, kind: Kind, name: str) -> Resource:
    """The kept resource of that name, to refer to it or to change it."""
    found = require(call, kind, name)
    if found.get("_ready", 0) > call.now or "_gone" in found:
        raise GoogleError(400, f"The resource '{name}' is not ready", reason="resourceNotReady")
    return found


def each(call: Call, kind: Kind, prefix: str) -> Iterator[tuple[str, Resource]]:
    """Names and kept resources whose names begin with the prefix, as far as they are not gone."""
    for name, found in call.store.list(kind.stored, prefix):
        if not _is_gone(found, call.now):
            yield name, found


def keep(call: Call, kind: Kind, name: str, resource: Resource) -> None:
    """Keep a resource, new or changed."""
    call.store.put(kind.stored, name, resource)


def create(call: Call, kind: Kind, name: str, fields: Resource) -> Resource:
    """Keep a new resource with what every resource has; nulls are left out."""
    if find(call, kind, name) is not None:
        raise GoogleError(409, f"The resource '{name}' already exists")
    resource = {
        **without_nulls(fields),
        "kind": f"compute#{kind.singular}",
        "name": links.last(name),
        "selfLink": links.ROOT + name,
        **new(call, name),
        **links.place_fields(name),
    }
    keep(call, kind, name, resource)
    return resource


def new(call: Call, name: str) -> Resource:
    """What a resource has that no other has had, of the same name neither."""
    number = str(links.FIRST_ID + call.store.count("compute/ids"))
    return {
        "id": number,
        "creationTimestamp": rfc3339(call.now),
        "selfLinkWithId": f"{links.ROOT}{name.rpartition('/')[0]}/{number}",
    }


def insert(call: Call, kind: Kind, fields: Resource) -> Resource:
    """Make the resource that the body names, with an operation; it is visible at once."""
    name = call.prefix(kind) + call.body["name"]
    resource = create(call, kind, name, {**fields, "_ready": call.end()})
    return call.operate(name, resource["id"])


def remove(call: Call, kind: Kind, name: str, end: float | None = None) -> Resource:
    """Delete a resource with an operation, at whose end it is gone; nobody may be using it."""
    resource = require_ready(call, kind, name)
    gone = call.end() if end is None else end
    keep(call, kind, name, {**resource, "_gone": gone})
    return call.operate(name, resource["id"], gone)


def change(call: Call, kind: Kind, name: str, resource: Resource) -> Resource:
    """Keep a changed resource with an operation."""
    keep(call, kind, name, resource)
    return call.operate(name, resource["id"])


def merge(resource: Resource, changes: Resource) -> Resource:
    """The resource after a patch: objects are merged, anything else is replaced, null clears."""
    result = dict(resource)
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merge(result[key], value)
        else:
            result[key] = value
    return result


def defaults(resource: Resource, values: Resource) -> Resource:
    """The resource with what is missing of the values, at all depths of objects."""
    result = dict(resource)
    for key, value in values.items():
        if key not in result:
            result[key] = value
        elif isinstance(value, dict) and isinstance(result[key], dict):
            result[key] = defaults(result[key], value)
    return result


def without_nulls(value: Any) -> Any:
    """JSON without what is null."""
    if isinstance(value, dict):
        return {key: without_nulls(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list):
        return [without_nulls(entry) for entry in value if entry is not None]
    return value


def show(resource: Resource) -> Resource:
    """A kept resource as it is answered."""
    return {key: value for key, value in resource.items() if not key.startswith("_")}


def fingerprint(value: Any) -> str:
    """A short text that changes when the value does."""
    digest = hashlib.sha256(json.dumps(value, sort_keys=True).encode()).digest()
    return base64.b64encode(digest[:8]).decode()


def in_use(kind: Kind, name: str, user: str) -> GoogleError:
    """The refusal to delete what another resource uses."""
    return GoogleError(
        400,
        f"The {kind.word} resource '{name}' is already being used by '{user}'",
        reason="resourceInUseByAnotherResource",
    )


def get(kind: Kind) -> Callable[[Call], Resource]:
    """The usual `get` of a kind."""
    return lambda call: show(require(call, kind, call.name(kind)))


def _is_gone(resource: Resource, now: float) -> bool:
    return bool("_gone" in resource and resource["_gone"] <= now)
