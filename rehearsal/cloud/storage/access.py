"""What an account may do in a bucket, by the roles and conditions of its policy.

Callers of this cloud are people who may do all; this is for the programs on VMs, which are told of
and not run. Of conditions, those on the beginning of an object's name and of a list's prefix are
judged, alone or joined by "or"; no other one holds.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rehearsal.cloud import policies
from rehearsal.cloud.storage import buckets

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store

_WRITERS = frozenset(
    {"roles/storage.objectUser", "roles/storage.objectAdmin", "roles/storage.admin"}
)
_READERS = frozenset({"roles/storage.objectViewer"})
_NAME = re.compile(r'resource\.name\.startsWith\("([^"]*)"\)')
# For a list, the resource is the bucket, and the attribute is the prefix that was asked for; it is
# the given default for everything else.
_PREFIX = re.compile(
    r'api\.getAttribute\("storage\.googleapis\.com/objectListPrefix", "([^"]*)"\)'
    r'\.startsWith\("([^"]*)"\)'
)


def may_write(store: Store, bucket: str, member: str, name: str) -> bool:
    """Whether a member may make, read, change and delete an object.

    `member`: such as "serviceAccount:x@y".
    """
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
    policy = policies.get(store, buckets.policy_resource(bucket), {})
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
    """Whether a condition holds.

    `prefix`: the list's prefix; None for what is no list.
    """
    return any(_term(term.strip(), resource, prefix) for term in expression.split("||"))


def _term(term: str, resource: str, prefix: str | None) -> bool:
    if name := _NAME.fullmatch(term):
        return resource.startswith(name[1])
    if listed := _PREFIX.fullmatch(term):
        return (listed[1] if prefix is None else prefix).startswith(listed[2])
    return False
