"""What exists in the simulated cloud that somebody made."""

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from rehearsal.cloud.store import Store

_ROOT = re.compile(r"https://[^/]+/(?:[a-z]+/)?v\d\w*/")
_NO_RESOURCES = re.compile(r".*/(?:operations|deleted|policies)")

# What every project has from the start.
_GIVEN = re.compile(
    r"projects/[^/]+/(?:"
    r"global/networks/default"
    r"|regions/[^/]+/subnetworks/default"
    r"|global/firewalls/default-allow-(?:internal|ssh|rdp|icmp)"
    r"|serviceAccounts/\d+-compute@developer\.gserviceaccount\.com)"
)
_OLD_VERSIONS = " noncurrent version(s)"
_GIVEN_BINDING = re.compile(r"roles/owner user:owner@example\.com|roles/storage\.legacyBucket.*")


def resources(store: Store, now: float) -> Iterator[str]:
    """One line for each resource, and for each role that was granted.

    Old versions of objects are only counted: a bucket keeps them by the dozen. `now`: the moment
    (Unix epoch); what is gone by then does not count.
    """
    for collection in store.collections():
        if _NO_RESOURCES.fullmatch(collection):
            continue
        noncurrent: Counter[str] = Counter()
        for _, document in store.list(collection):
            path = _path(document)
            if "timeDeleted" in document:
                noncurrent[document["bucket"]] += 1
            elif path and not _GIVEN.fullmatch(path) and document.get("_gone", now + 1) > now:
                yield f"{collection} {path}"
        for bucket, count in noncurrent.items():
            yield f"{collection} b/{bucket}: {count}{_OLD_VERSIONS}"
    for resource, policy in store.list("iam/policies"):
        for binding in _bindings(policy):
            if not _GIVEN_BINDING.match(binding):
                yield f"iam/bindings {resource} {binding}"


def stays(line: str) -> bool:
    """Whether a line is about what a Destroy leaves: buckets, old versions, logs beside a state."""
    is_log = line.startswith("storage/objects ") and "-deployment/logs/" in line
    return is_log or line.startswith("storage/buckets ") or line.endswith(_OLD_VERSIONS)


def _path(document: Mapping[str, Any]) -> str:
    """The path that names a resource; "" for a document that is none."""
    if "selfLink" in document:
        return unquote(_ROOT.sub("", document["selfLink"], count=1))
    name = str(document.get("name", ""))
    return name if name.startswith("projects/") else ""


def _bindings(policy: Mapping[str, Any]) -> Iterator[str]:
    for binding in policy.get("bindings", []):
        for member in binding["members"]:
            yield f"{binding['role']} {member}"
