"""Filestore v1: NFS shares on networks, and its long-running operations.

An operation knows from its start when it will end, as those of Compute Engine do.
"""

import base64
import hashlib
import ipaddress
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.cloud import keys, org_policies, paging, projects, quota_limits
from rehearsal.cloud.facts import filestore_tiers, places
from rehearsal.cloud.facts.filestore_tiers import Tier
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request, rfc3339

Instance = dict[str, Any]


_INSTANCES = "file/instances"
_OPERATIONS = "file/operations"
_PAGE = 100
_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,61}[a-z0-9])?")
_SHARE = re.compile(r"[a-z](?:[a-z0-9_]{0,61}[a-z0-9_])?")
_SHORT_SHARE = 16  # the longest name of a basic tier's share

# Seconds of cloud time; Google takes between two and ten minutes to make one.
_SECONDS = {"POST": 150.0, "PATCH": 30.0, "DELETE": 60.0}

_CHANGEABLE = frozenset(
    {
        "deletionProtectionEnabled",
        "deletionProtectionReason",
        "description",
        "directoryServices",
        "fileShares",
        "labels",
        "performanceConfig",
    }
)
_PEERING, _SERVICE_ACCESS = "DIRECT_PEERING", "PRIVATE_SERVICE_ACCESS"
SERVICE_NETWORKING = "servicenetworking-googleapis-com"
"""The peering that Service Networking makes in a network."""
_RANGES = ipaddress.IPv4Network("10.99.0.0/16")
# Tiers of several servers take more addresses than the basic ones.
_PREFIX = {True: 29, False: 26}


def _invalid(words: str) -> GoogleError:
    return GoogleError(400, words, status=None)


def _tier(name: str) -> Tier:
    """The tier of a name, which may be one of the two that Google has replaced."""
    found = filestore_tiers.find(name)
    if found is None:
        raise _invalid(f'"{name}" is not a valid tier.')
    return found


def _check_place(location: str, tier: Tier) -> None:
    """Refuse a location that is none, or not of the tier's kind."""
    is_region = location in places.ZONES
    if not is_region and not places.is_zone(location):
        raise GoogleError(404, f"Location {location} was not found.", status=None)
    if tier.is_regional != is_region:
        wanted = "region" if tier.is_regional else "zone"
        raise _invalid(
            f"Tier {tier.name} is not supported in location {location}: a {wanted} is required."
        )


def _check_share(share: Mapping[str, Any], tier: Tier) -> None:
    name = share.get("name", "")
    limit = _SHORT_SHARE if tier.is_basic else 63
    if not _SHARE.fullmatch(name) or len(name) > limit:
        raise _invalid(f'Invalid file share name "{name}".')
    size = int(share.get("capacityGb", 0))
    if not tier.takes(size):
        raise _invalid(
            f"Invalid file share capacity {size} GiB for tier {tier.name}: must be"
            f" {tier.sizes_in_words}."
        )


def _one(instance: Instance, field: str) -> dict[str, Any]:
    found: dict[str, Any] = instance[field][0]
    return found


def _check(instance: Instance) -> None:
    tier = _tier(instance.get("tier", ""))
    _check_share(_one(instance, "fileShares"), tier)
    if instance.get("protocol") == "NFS_V4_1" and tier.is_basic:
        raise _invalid(f"Protocol NFS_V4_1 is not supported by tier {tier.name}.")


def _networked(request: Request, store: Store, project: str, instance: Instance) -> Instance:
    given = _one(instance, "networks")
    link = given.get("network", "")
    name = link if "/" in link else f"projects/{project}/global/networks/{link}"
    name = name[name.find("projects/") :]
    network = store.get("compute/networks", name)
    # A new project's network is there from its first use of Compute Engine.
    is_default = name == f"projects/{project}/global/networks/default"
    gone = network is None or network.get("_gone", request.now + 1) <= request.now
    if gone and not (is_default and network is None):
        raise _invalid(f"network '{link}' does not exist.")
    _connected(given, project, name, network or {})
    cidr = given.get("reservedIpRange") or _free_range(store, _tier(instance["tier"]))
    try:
        first = ipaddress.IPv4Network(cidr)[2]
    except ValueError:
        raise _invalid(f"Invalid reserved IP range '{cidr}'.") from None
    connected = {"connectMode": _PEERING, **given}
    connected |= {"reservedIpRange": cidr, "ipAddresses": [str(first)]}
    return {**instance, "networks": [connected]}


def _connected(given: Instance, project: str, name: str, network: Mapping[str, Any]) -> None:
    """Refuse a network that the way of connecting does not reach."""
    owner = name.split("/")[1]
    if given.get("connectMode", _PEERING) != _SERVICE_ACCESS:
        if owner != project:
            raise _invalid(
                f"network project is: {owner}, mismatch with instance project with project_id:"
                f" {project} and project_number: {projects.number(project)}."
            )
        return
    if SERVICE_NETWORKING not in {it["name"] for it in network.get("peerings", [])}:
        raise _invalid(f"network '{name}' has no private services access connection.")


def _free_range(store: Store, tier: Tier) -> str:
    """The next range of a project's peered addresses; each is given once."""
    offset = (store.count("file/ranges") - 1) % 1024 * 64
    return f"{_RANGES[offset]}/{_PREFIX[tier.is_basic]}"


def _require(request: Request, store: Store, name: str) -> Instance:
    found = store.get(_INSTANCES, name)
    if found is None or found.get("_gone", request.now + 1) <= request.now:
        raise GoogleError(404, f"Resource '{name}' was not found", status=None)
    return found


def _require_ready(request: Request, store: Store, name: str) -> Instance:
    found = _require(request, store, name)
    if found["_ready"] > request.now or "_gone" in found:
        raise GoogleError(
            409,
            f"Instance '{name}' is busy with another operation.",
            reason="aborted",
            status="ABORTED",
        )
    return found


def _keep(store: Store, instance: Instance) -> None:
    """Keep an instance, with its size as Google writes such numbers, under a new etag."""
    shares = [{**it, "capacityGb": str(it["capacityGb"])} for it in instance["fileShares"]]
    instance = {**instance, "fileShares": shares}
    shown = {key: value for key, value in instance.items() if not key.startswith(("_", "etag"))}
    digest = hashlib.sha256(json.dumps(shown, sort_keys=True).encode()).digest()
    etag = base64.b64encode(digest[:8]).decode()
    store.put(_INSTANCES, instance["name"], {**instance, "etag": etag})


def _operate(request: Request, store: Store, name: str) -> Reply:
    seconds = _SECONDS[request.method]
    made = None
    if request.method != "DELETE":
        ready = _view(_require(request, store, name), request.after(seconds))
        made = {"@type": "type.googleapis.com/google.cloud.filestore.v1.Instance", **ready}
    body = _start(request, store, _OPERATIONS, name, seconds, made=made)
    return Reply(body=body)


def _view(instance: Instance, now: float) -> Instance:
    state = "READY"
    if "_gone" in instance:
        state = "DELETING"
    elif instance["_ready"] > now:
        state = "CREATING"
    return {**{k: v for k, v in instance.items() if not k.startswith("_")}, "state": state}


def _create(request: Request, store: Store, project: str, location: str) -> Reply:
    owner = projects.permitted(project, store)
    body, short = request.json(), request.query["instanceId"]
    if not _NAME.fullmatch(short):
        raise _invalid(f'Invalid instance name "{short}".')
    _check(body)
    _check_place(location, _tier(body["tier"]))
    name = f"projects/{owner.id}/locations/{location}/instances/{short}"
    existing = store.get(_INSTANCES, name)
    if existing is not None and existing.get("_gone", request.now + 1) > request.now:
        raise GoogleError(409, f"Resource '{name}' already exists", status=None)
    org_policies.check_place(request.scenarios, location, name)
    keys.require(store, body.get("kmsKeyName"), owner.id, keys.FILESTORE, location)
    present = (it for _, it in _present(request, store, f"projects/{owner.id}/locations/"))
    quota_limits.check(request, present, location, body)
    sizes = _tier(body["tier"]).sizes
    instance = {
        "protocol": "NFS_V3",
        "deletionProtectionEnabled": False,
        **_networked(request, store, owner.id, body),
        "name": name,
        "createTime": rfc3339(request.now),
        "capacityStepSizeGb": str(sizes[0].step),
        "maxCapacityGb": str(sizes[-1][-1]),
        "_ready": request.after(_SECONDS[request.method]),
    }
    _keep(store, instance)
    return _operate(request, store, name)


def _get(request: Request, store: Store, project: str, location: str, name: str) -> Reply:
    return Reply(
        body=_view(_require(request, store, _full(store, project, location, name)), request.now)
    )


def _full(store: Store, project: str, location: str, name: str) -> str:
    owner = projects.permitted(project, store)
    return f"projects/{owner.id}/locations/{location}/instances/{name}"


def _list(request: Request, store: Store, project: str, location: str) -> Reply:
    owner = projects.permitted(project, store)
    prefix = f"projects/{owner.id}/locations/{'' if location == '-' else f'{location}/'}"
    entries = list(_present(request, store, prefix))
    items, token = paging.page(entries, request.query, size="pageSize", limit=_PAGE)
    return Reply(body={**({"instances": items} if items else {}), **token})


def _present(request: Request, store: Store, prefix: str) -> Iterator[tuple[str, Instance]]:
    for name, instance in store.list(_INSTANCES, prefix):
        if instance.get("_gone", request.now + 1) > request.now:
            yield name, _view(instance, request.now)


def _patch(request: Request, store: Store, project: str, location: str, name: str) -> Reply:
    full = _full(store, project, location, name)
    instance = _require_ready(request, store, full)
    body = request.json()
    changed = dict(instance)
    for field in request.query["updateMask"].split(","):
        key = re.sub(r"_([a-z])", lambda match: match[1].upper(), field)
        if key not in _CHANGEABLE:
            raise _invalid(f"Invalid update mask: {field} can not be updated.")
        changed[key] = body.get(key)
    changed = {key: value for key, value in changed.items() if value is not None}
    _check(changed)
    _check_growth(instance, changed)
    _keep(store, changed)
    return _operate(request, store, full)


def _check_growth(before: Instance, after: Instance) -> None:
    """Refuse to make a basic tier's share smaller: it can only grow."""
    old, new = (int(it["fileShares"][0]["capacityGb"]) for it in (before, after))
    if new < old and _tier(before["tier"]).is_basic:
        raise _invalid(
            f"The capacity of a {before['tier']} instance can not be decreased ({old} GiB to"
            f" {new} GiB)."
        )


def _delete(request: Request, store: Store, project: str, location: str, name: str) -> Reply:
    full = _full(store, project, location, name)
    instance = _require_ready(request, store, full)
    if instance.get("deletionProtectionEnabled"):
        raise GoogleError(
            400,
            f"Instance '{full}' is protected against deletion.",
            reason="failedPrecondition",
            status="FAILED_PRECONDITION",
        )
    _keep(store, {**instance, "_gone": request.after(_SECONDS[request.method])})
    return _operate(request, store, full)


def _get_operation(request: Request, store: Store, project: str, location: str, name: str) -> Reply:
    owner = projects.permitted(project, store)
    full = f"projects/{owner.id}/locations/{location}/operations/{name}"
    return Reply(body=_operation_of(request, store, _OPERATIONS, full))


_PLACE = "projects/{project}/locations/{location}"

service = Routes(
    {
        f"POST {_PLACE}/instances": _create,
        f"GET {_PLACE}/instances": _list,
        f"GET {_PLACE}/instances/{{name}}": _get,
        f"PATCH {_PLACE}/instances/{{name}}": _patch,
        f"DELETE {_PLACE}/instances/{{name}}": _delete,
        f"GET {_PLACE}/operations/{{name}}": _get_operation,
    },
    api="file.v1",
)


_VERBS = {"POST": "create", "PATCH": "update", "DELETE": "delete"}
_METADATA = "type.googleapis.com/google.cloud.common.OperationMetadata"


def _start(  # noqa: PLR0913 - the parts of an operation, by name
    request: Request,
    store: Store,
    collection: str,
    target: str,
    seconds: float,
    *,
    made: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Begin an operation that makes something ("@type" included), or None; what is answered."""
    place = "/".join(target.split("/")[:4])
    number = store.count(collection)
    name = f"{place}/operations/operation-{int(request.now * 1000)}-{number:013x}"
    metadata = {
        "@type": _METADATA,
        "createTime": rfc3339(request.now),
        "target": target,
        "verb": _VERBS[request.method],
        "apiVersion": "v1",
    }
    kept = {
        "name": name,
        "metadata": metadata,
        "_end": request.after(seconds),
        "_made": made or {"@type": "type.googleapis.com/google.protobuf.Empty"},
    }
    store.put(collection, name, kept)
    return _view_of_operation(kept, request.now)


def _operation_of(request: Request, store: Store, collection: str, name: str) -> dict[str, Any]:
    kept = store.get(collection, name)
    if kept is None:
        raise GoogleError(404, f"Resource '{name}' was not found", status=None)
    return _view_of_operation(kept, request.now)


def _view_of_operation(kept: dict[str, Any], now: float) -> dict[str, Any]:
    shown = {key: value for key, value in kept.items() if not key.startswith("_")}
    if kept["_end"] > now:
        return {**shown, "done": False}
    ended = {**kept["metadata"], "endTime": rfc3339(kept["_end"])}
    return {**shown, "metadata": ended, "done": True, "response": kept["_made"]}
