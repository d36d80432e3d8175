"""The JSON API of Cloud Storage, but for uploads.

Its requests are not checked against Google's description of it: Cloud Storage itself is lenient,
and takes what the description does not have ("versions=True" of Google's Python client, a slash at
the end of "anywhereCaches/" of provider 7.45.0).
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from rehearsal.cloud import paging, policies, projects
from rehearsal.cloud.routes import Routes
from rehearsal.cloud.storage import buckets, objects
from rehearsal.cloud.storage.buckets import ConditionNotMet, NotModified
from rehearsal.cloud.storage.upload import of_json_api
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Reply, Request

_PAGE = 1000
_NOT_LISTED_BY = ("endOffset", "filter", "includeTrailingDelimiter", "softDeleted")
"""Parameters of a list of objects that nothing here sends."""
_CONDITIONAL = 3  # the version of policies that may have conditions


def _list_buckets(request: Request, store: Store) -> Reply:
    entries = buckets.of_project(request, store)
    items, token = paging.page(entries, request.query, size="maxResults", limit=_PAGE)
    return Reply(body={"kind": "storage#buckets", **_unless_empty(items=items), **token})


def _get_bucket(request: Request, store: Store, bucket: str) -> Reply:
    found = buckets.find(store, bucket, "storage.buckets.get")
    try:
        buckets.check_read(request, found)
    except NotModified:
        return Reply(status=304)
    return Reply(body=found)


def _delete_bucket(request: Request, store: Store, bucket: str) -> Reply:
    buckets.delete(request, store, bucket, empty=objects.is_empty(store, bucket))
    return Reply(status=204)


def _get_policy(_request: Request, store: Store, bucket: str) -> Reply:
    found = buckets.find(store, bucket, "storage.buckets.getIamPolicy")
    first = buckets.first_policy(store, found)
    policy = policies.get(store, buckets.policy_resource(bucket), first)
    return Reply(body=_policy_document(bucket, policy))


def _set_policy(request: Request, store: Store, bucket: str) -> Reply:
    found = buckets.find(store, bucket, "storage.buckets.setIamPolicy")
    policy = request.json()
    _check_conditions(found, policy)
    owner = projects.find(found["projectNumber"], store)
    if owner is not None:
        policies.check_members(store, policy, owner.accounts_domain)
    kept = policies.replace(
        store,
        buckets.policy_resource(bucket),
        policy,
        buckets.first_policy(store, found),
        # Cloud Storage alone answers 412 where the other APIs answer 409.
        conflict=ConditionNotMet,
    )
    return Reply(body=_policy_document(bucket, kept))


def _check_conditions(bucket: buckets.Bucket, policy: policies.Policy) -> None:
    """Refuse conditions in a policy of an older version, or beside access lists of objects."""
    if not any("condition" in it for it in policy.get("bindings") or []):
        return
    if policy.get("version") != _CONDITIONAL:
        raise GoogleError(
            400, f"A policy with conditions must be of version {_CONDITIONAL}.", reason="invalid"
        )
    if not bucket["iamConfiguration"]["uniformBucketLevelAccess"]["enabled"]:
        # 412 and not 400: googleapis/python-storage#52, of 2020-02-12.
        raise GoogleError(
            412,
            "To set IAM conditions on a bucket, enable uniform bucket-level access on"
            f" '{bucket['name']}'.",
        )


def _policy_document(bucket: str, policy: policies.Policy) -> policies.Policy:
    return {
        "kind": "storage#policy",
        "resourceId": f"projects/_/buckets/{bucket}",
        **policy,
    }


def _test_permissions(request: Request, store: Store, bucket: str) -> Reply:
    buckets.find(store, bucket, "storage.buckets.getIamPolicy")
    granted = policies.granted(request, request.values("permissions"))
    return Reply(body={"kind": "storage#testIamPermissionsResponse", **granted})


def _list_objects(request: Request, store: Store, bucket: str) -> Reply:
    buckets.find(store, bucket, "storage.objects.list")
    entries, token = paging.page(
        _entries(request, store, bucket), request.query, size="maxResults", limit=_PAGE
    )
    items = [entry for entry in entries if isinstance(entry, dict)]
    prefixes = [entry for entry in entries if isinstance(entry, str)]
    listed = _unless_empty(items=items, prefixes=prefixes)
    return Reply(body={"kind": "storage#objects", **listed, **token})


def _entries(
    request: Request, store: Store, bucket: str
) -> Iterator[tuple[str, dict[str, Any] | str]]:
    """What a list shows: objects, and in place of those behind a delimiter their prefix, once."""
    query = request.query
    for name in _NOT_LISTED_BY:
        # Google's client for Go sends all of them, empty.
        if query.get(name, "") not in {"", "false"}:
            raise GoogleError(501, f"{name} is not part of the simulated cloud.", status=None)
    prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
    start = query.get("startOffset", "")
    versions = query.get("versions", "").lower() == "true"
    matches = _glob(query.get("matchGlob", "**"))
    shown = ""
    for found in objects.of_bucket(store, bucket, prefix, versions=versions):
        name = found["name"]
        if name < start or not matches(name):
            continue
        head, cut, _ = name[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
        folder = prefix + head + cut
        if not cut:
            yield f"{name}\n{found['generation'].zfill(20)}", objects.shown(request, found)
        elif folder != shown:
            shown = folder
            # Behind all that it stands for, so that the next page begins after these.
            yield f"{folder}\U0010ffff", folder


_GLOB = re.compile(r"\*\*|\*|\?|\{[^}]*\}|\[[^\]]+\]|[^*?{\[]+")
_ANY = {"**": ".*", "*": "[^/]*", "?": "[^/]"}


def _glob(pattern: str) -> Callable[[str], object]:
    """Whether a name matches a pattern of `matchGlob`.

    "*" stands for what has no slash, "**" for anything, "{a,b}" for one of several ("List objects
    and prefixes using glob", Cloud Storage, 2026-11).
    """
    return re.compile(_expression(pattern), re.DOTALL).fullmatch


def _expression(pattern: str) -> str:
    parts = []
    for part in _GLOB.findall(pattern):
        if part[0] == "{":
            parts.append(f"(?:{'|'.join(map(_expression, part[1:-1].split(',')))})")
        elif part[0] == "[":
            parts.append(part)
        else:
            parts.append(_ANY.get(part) or re.escape(part))
    return "".join(parts)


def _get_object(request: Request, store: Store, bucket: str, name: str) -> Reply:
    if request.query.get("alt") == "media":
        return of_json_api(request, store, bucket, name)
    buckets.find(store, bucket, "storage.objects.get")
    found = objects.require(store, bucket, name, request.query.get("generation"))
    try:
        buckets.check_read(request, found)
    except NotModified:
        return Reply(status=304)
    return Reply(body=objects.shown(request, found))


def _patch_object(request: Request, store: Store, bucket: str, name: str) -> Reply:
    buckets.find(store, bucket, "storage.objects.update")
    changed = objects.change(request, store, bucket, name)
    return Reply(body=objects.shown(request, changed))


def _delete_object(request: Request, store: Store, bucket: str, name: str) -> Reply:
    objects.delete(request, store, bucket, name)
    return Reply(status=204)


def _no_caches(_request: Request, store: Store, bucket: str) -> Reply:
    """Provider 7.45.0 looks for caches before it deletes a bucket."""
    buckets.find(store, bucket, "storage.anywhereCaches.list")
    return Reply(body={"kind": "storage#anywhereCaches", "items": []})


def _service_agent(_request: Request, store: Store, project: str) -> Reply:
    found = projects.permitted(project, store)
    email = f"service-{found.number}@gs-project-accounts.iam.gserviceaccount.com"
    return Reply(body={"kind": "storage#serviceAccount", "email_address": email})


def _unless_empty(**lists: list[Any]) -> dict[str, list[Any]]:
    """As Google answers: an empty list is left out."""
    return {name: items for name, items in lists.items() if items}


_BUCKET = "b/{bucket}"
_OBJECT = "b/{bucket}/o/{name}"

json_api = Routes(
    {
        "GET b": _list_buckets,
        "POST b": lambda request, store: Reply(body=buckets.insert(request, store)),
        f"GET {_BUCKET}": _get_bucket,
        f"PATCH {_BUCKET}": lambda request, store, bucket: Reply(
            body=buckets.change(request, store, bucket)
        ),
        f"DELETE {_BUCKET}": _delete_bucket,
        f"GET {_BUCKET}/iam": _get_policy,
        f"PUT {_BUCKET}/iam": _set_policy,
        f"GET {_BUCKET}/iam/testPermissions": _test_permissions,
        f"GET {_BUCKET}/anywhereCaches": _no_caches,
        f"GET {_BUCKET}/anywhereCaches/": _no_caches,
        f"GET {_BUCKET}/o": _list_objects,
        f"GET {_OBJECT}": _get_object,
        f"PATCH {_OBJECT}": _patch_object,
        f"DELETE {_OBJECT}": _delete_object,
        "GET projects/{project}/serviceAccount": _service_agent,
    }
)
