"""Buckets: made, read, changed, deleted; their rules and defaults.

What an account may do in a bucket, by the roles and conditions of its policy.

Callers of this cloud are people who may do all; this is for the programs on VMs, which are told of
and not run. Of conditions, those on the beginning of an object's name and of a list's prefix are
judged, alone or joined by "or"; no other one holds.
"""

import base64
import ipaddress
import re
from collections.abc import Iterator, Mapping
from typing import Any

from rehearsal.cloud import keys, org_policies, policies, projects
from rehearsal.cloud.facts import places
from rehearsal.cloud.metadata import HOST
from rehearsal.cloud.projects import Project
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request, rfc3339

Bucket = dict[str, Any]

COLLECTION = "storage/buckets"
NO_BUCKET = "The specified bucket does not exist."

_NAME = re.compile(r"[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9_-]*[a-z0-9])?)*")
_SHORTEST, _LONGEST, _LONGEST_DOTTED = 3, 63, 222
_MULTI_REGIONS = frozenset({"ASIA", "EU", "US"})
_DUAL_REGIONS = frozenset({"ASIA1", "EUR4", "EUR5", "EUR7", "EUR8", "NAM4"})
_LOCK_AFTER = 90 * 24 * 3600.0  # seconds in which uniform access can still be turned off
_OUTPUT_ONLY = frozenset(
    {
        "kind", "id", "selfLink", "projectNumber", "name", "location", "locationType", "etag",
        "generation", "metageneration", "timeCreated", "updated",
    }
)  # fmt: skip


def insert(request: Request, store: Store) -> Bucket:
    """Make the bucket that the request describes."""
    body = request.json()
    owner = _owner(request, store)
    name = body.get("name") or ""
    check_name(name)
    taken = store.get(COLLECTION, name)
    if taken is not None:
        raise _taken(mine=taken["projectNumber"] == owner.number)
    moment = rfc3339(request.now)
    location = (body.get("location") or "US").upper()
    org_policies.check_bucket_place(request.scenarios, location)
    key = (body.get("encryption") or {}).get("defaultKmsKeyName")
    keys.require(store, key, owner.id, keys.STORAGE, location)
    bucket = {
        "versioning": {"enabled": False},
        "rpo": "DEFAULT",
        "storageClass": "STANDARD",
        "hierarchicalNamespace": {"enabled": False},
        "softDeletePolicy": {"retentionDurationSeconds": "604800", "effectiveTime": moment},
        **{key: value for key, value in body.items() if value is not None},
        "kind": "storage#bucket",
        "id": name,
        "name": name,
        "selfLink": f"https://www.googleapis.com/storage/v1/b/{name}",
        "projectNumber": owner.number,
        "location": location,
        "locationType": _location_type(location),
        "generation": str(generation(request, store)),
        "timeCreated": moment,
    }
    return _keep(request, store, bucket, metageneration=1)


def find(store: Store, name: str, permission: str) -> Bucket:
    """A bucket, for a caller who needs a permission on it."""
    bucket = store.get(COLLECTION, name)
    if bucket is None:
        raise GoogleError(404, NO_BUCKET)
    owner = projects.find(bucket["projectNumber"], store)
    if owner is not None and owner.foreign:
        kind = "object" if ".objects." in permission else "bucket"
        raise GoogleError(
            403,
            f"{HOST.compute_account} does not have {permission} access to the Google Cloud Storage"
            f" {kind}. Permission '{permission}' denied on resource (or it may not exist).",
        )
    return bucket


def of_project(request: Request, store: Store) -> Iterator[tuple[str, Bucket]]:
    """The buckets of the request's project."""
    owner = _owner(request, store)
    for name, bucket in store.list(COLLECTION, ""):
        if bucket["projectNumber"] == owner.number:
            yield name, bucket


def change(request: Request, store: Store, name: str) -> Bucket:
    """Change a bucket's metadata: what is given is merged into what is there."""
    bucket = find(store, name, "storage.buckets.update")
    check(request.query, bucket)
    wanted = {key: value for key, value in request.json().items() if key not in _OUTPUT_ONLY}
    changed = _merged(bucket, wanted)
    return _keep(request, store, changed, metageneration=int(bucket["metageneration"]) + 1)


def delete(request: Request, store: Store, name: str, *, empty: bool) -> None:
    """Delete a bucket that holds nothing, not even a noncurrent version."""
    bucket = find(store, name, "storage.buckets.delete")
    check(request.query, bucket)
    if not empty:
        raise GoogleError(409, "The bucket you tried to delete is not empty.", reason="conflict")
    store.delete(COLLECTION, name)
    policies.forget(store, policy_resource(name))


def policy_resource(name: str) -> str:
    """What the bucket's IAM policy is kept under."""
    return f"buckets/{name}"


def first_policy(store: Store, bucket: Bucket) -> policies.Policy:
    """The policy that a bucket is made with: its project's people keep their rights."""
    owner = projects.find(bucket["projectNumber"], store)
    project = owner.id if owner else bucket["projectNumber"]
    editors = [f"projectEditor:{project}", f"projectOwner:{project}"]
    viewers = [f"projectViewer:{project}"]
    return {
        "bindings": [
            {"role": "roles/storage.legacyBucketOwner", "members": editors},
            {"role": "roles/storage.legacyBucketReader", "members": viewers},
        ]
    }


def generation(request: Request, store: Store) -> int:
    """A new generation: microseconds of the Unix epoch, and greater than every one before."""
    last = store.get("storage/clock", "generation") or {"last": 0}
    new = max(int(request.now * 1_000_000), int(last["last"]) + 1)
    store.put("storage/clock", "generation", {"last": new})
    return new


def check_name(name: str) -> None:
    """Refuse a name that no bucket can have."""
    limit = _LONGEST_DOTTED if "." in name else _LONGEST
    parts = name.split(".")
    well_formed = (
        _SHORTEST <= len(name) <= limit
        and max(map(len, parts)) <= _LONGEST
        and _NAME.fullmatch(name)
        and not _is_address(name)
    )
    if not well_formed:
        raise GoogleError(400, f"Invalid bucket name: '{name}'")
    if name.startswith("goog") or "google" in name:
        raise GoogleError(400, f"The bucket name '{name}' is restricted.")


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _owner(request: Request, store: Store) -> Project:
    project = request.query.get("project", "")
    if not project:
        raise GoogleError(400, "Required parameter: project", reason="required")
    owner = projects.find(project, store)
    if owner is None:
        raise GoogleError(400, f"Unknown project id: {project}")
    return owner


def _taken(*, mine: bool) -> GoogleError:
    words = (
        "Your previous request to create the named bucket succeeded and you already own it."
        if mine
        else "The requested bucket name is not available. The bucket namespace is shared by all"
        " users of the system. Please select a different name and try again."
    )
    return GoogleError(409, words, reason="conflict")


def _location_type(location: str) -> str:
    if location in _MULTI_REGIONS:
        return "multi-region"
    if location in _DUAL_REGIONS:
        return "dual-region"
    if location.lower() in places.ZONES:
        return "region"
    raise GoogleError(400, "The specified location constraint is not valid.")


def _keep(request: Request, store: Store, bucket: Bucket, *, metageneration: int) -> Bucket:
    _complete_access(bucket, request.now)
    bucket["metageneration"] = str(metageneration)
    bucket["etag"] = base64.b64encode(b"\x08" + policies.varint(metageneration)).decode()
    bucket["updated"] = rfc3339(request.now)
    store.put(COLLECTION, bucket["name"], bucket)
    return bucket


def _complete_access(bucket: Bucket, now: float) -> None:
    """Fill in what Cloud Storage says of uniform access, under both its names."""
    access = bucket.setdefault("iamConfiguration", {})
    access.setdefault("publicAccessPrevention", "inherited")
    uniform = access.get("uniformBucketLevelAccess") or {}
    if not uniform.get("enabled"):
        uniform = {"enabled": False}
    elif "lockedTime" not in uniform:
        uniform = {"enabled": True, "lockedTime": rfc3339(now + _LOCK_AFTER)}
    access["uniformBucketLevelAccess"] = uniform
    access["bucketPolicyOnly"] = dict(uniform)


def _merged(current: Mapping[str, Any], change: Mapping[str, Any]) -> dict[str, Any]:
    """A JSON merge patch (RFC 7396): null removes, objects are merged, all else replaces."""
    merged = dict(current)
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict):
            before = merged.get(key)
            merged[key] = _merged(before if isinstance(before, dict) else {}, value)
        else:
            merged[key] = value
    return merged


_WRITERS = frozenset(
    {"roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"}
)
_READERS = frozenset({"roles/storage.objectViewer"})
_NAME_BEGINS = re.compile(r'resource\.name\.startsWith\("([^"]*)"\)')
# For a list, the resource is the bucket, and the attribute is the prefix that was asked for; it is
# the given default for everything else.
_PREFIX = re.compile(
    r'api\.getAttribute\("storage\.googleapis\.com/objectListPrefix", "([^"]*)"\)'
    r'\.startsWith\("([^"]*)"\)'
)


def may_write(store: Store, bucket: str, member: str, name: str) -> bool:
    """Whether a member ("serviceAccount:x@y") may make, read, change and delete an object."""
    return _may(store, bucket, member, f"projects/_/buckets/{bucket}/objects/{name}", None)


def may_read(store: Store, bucket: str, member: str, name: str) -> bool:
    """Whether a member may read an object; the arguments are those of `may_write`."""
    resource = f"projects/_/buckets/{bucket}/objects/{name}"
    return _may(store, bucket, member, resource, None, _WRITERS | _READERS)


def may_list(store: Store, bucket: str, member: str, prefix: str) -> bool:
    """Whether a member may list the objects whose names begin so."""
    return _may(store, bucket, member, f"projects/_/buckets/{bucket}", prefix)


def _may(  # noqa: PLR0913, PLR0917 - who, what, where
    store: Store,
    bucket: str,
    member: str,
    resource: str,
    prefix: str | None,
    roles: frozenset[str] = _WRITERS,
) -> bool:
    policy = policies.get(store, policy_resource(bucket), {})
    return any(
        binding["role"] in roles
        and member in binding["members"]
        and (
            "condition" not in binding
            or holds(binding["condition"]["expression"], resource, prefix)
        )
        for binding in policy.get("bindings", [])
    )


def holds(expression: str, resource: str, prefix: str | None) -> bool:
    """Whether a condition holds; `prefix` is that of a list."""
    return any(_term(term.strip(), resource, prefix) for term in expression.split("||"))


def _term(term: str, resource: str, prefix: str | None) -> bool:
    if name := _NAME_BEGINS.fullmatch(term):
        return resource.startswith(name[1])
    if listed := _PREFIX.fullmatch(term):
        return (listed[1] if prefix is None else prefix).startswith(listed[2])
    return False


# ------------------------------------------------------------------ conditions


class ConditionNotMet(GoogleError):  # noqa: N818 - Google's own name of it
    """412: the object is not as the caller thinks."""

    def __init__(self) -> None:
        super().__init__(412, "At least one of the pre-conditions you specified did not hold.")


class NotModified(Exception):  # noqa: N818 - an answer (304), not a failure
    """The object is the one that the caller has already."""


_PARAMETERS = ("Generation", "Metageneration")


def check(
    query: Mapping[str, str], current: Mapping[str, Any] | None, *, source: bool = False
) -> None:
    """Compare the conditions of a change with the bucket or live object; or ConditionNotMet."""
    prefix = "ifSource" if source else "if"
    for parameter in _PARAMETERS:
        actual = "0" if current is None else current[parameter.lower()]
        wanted = _number(query, f"{prefix}{parameter}Match")
        unwanted = _number(query, f"{prefix}{parameter}NotMatch")
        if (wanted is not None and wanted != int(actual)) or unwanted == int(actual):
            raise ConditionNotMet


def check_read(request: Request, current: Mapping[str, Any]) -> None:
    """Compare the conditions of a read with what is there; ConditionNotMet, or NotModified."""
    for parameter in _PARAMETERS:
        unwanted = _number(request.query, f"if{parameter}NotMatch")
        if unwanted == int(current[parameter.lower()]):
            raise NotModified
    check(request.query, current)


def _number(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not value.isdecimal():
        raise GoogleError(400, f"Invalid value for {name}: {value}")
    return int(value)
