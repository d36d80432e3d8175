"""IAM policies: who may do what on a resource."""

import base64
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rehearsal.cloud import scenarios
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import GoogleError, Request

Policy = dict[str, Any]

ACCOUNTS = "iam/accounts"  # the collection of the service accounts that exist, by email
YOUNG = "iam/young"  # the collection of when accounts are known everywhere, under `young-account`

_COLLECTION = "iam/policies"
_CONTINUED = 0x80  # set in a byte of a varint that is not the last
_VERSION = "_version"  # of the kept document only; callers see the etag made of it


def _concurrent() -> GoogleError:
    return GoogleError(
        409,
        "There were concurrent policy changes. Please retry the whole read-modify-write with "
        "exponential backoff.",
        reason="aborted",
        status="ABORTED",
    )


def get(store: Store, resource: str, first: Policy) -> Policy:
    """The policy with its etag; `first` as long as none was set."""
    kept = store.get(_COLLECTION, resource) or {**first, _VERSION: 1}
    return {"version": 1} | _visible(kept)


def replace(
    store: Store,
    resource: str,
    policy: Policy,
    first: Policy,
    *,
    conflict: Callable[[], GoogleError] = _concurrent,
) -> Policy:
    """Set a policy, and return it with its new etag.

    `resource`: whose policy it is, such as "projects/proj-a1". `policy`: the new one. Without an
    etag it wins over whatever is there.
    """
    current = store.get(_COLLECTION, resource) or {**first, _VERSION: 1}
    if policy.get("etag") and policy["etag"] != _etag(current[_VERSION]):
        raise conflict()
    bindings = [binding for binding in policy.get("bindings") or [] if binding.get("members")]
    kept = {
        # Google answers 1 for a policy without conditions, whatever was asked for.
        "version": 3 if any("condition" in binding for binding in bindings) else 1,
        **{key: policy[key] for key in ("auditConfigs",) if policy.get(key)},
        **({"bindings": bindings} if bindings else {}),
        _VERSION: current[_VERSION] + 1,
    }
    store.put(_COLLECTION, resource, kept)
    return _visible(kept)


def forget(store: Store, resource: str) -> None:
    """The resource is gone, and its policy with it."""
    store.delete(_COLLECTION, resource)


def check_members(store: Store, policy: Policy, domain: str) -> None:
    """Refuse service accounts of a domain that should be in this cloud but are not."""
    for member in _members(policy):
        kind, _, email = member.partition(":")
        if (
            kind == "serviceAccount"
            and email.endswith(f"@{domain}")
            and store.get(ACCOUNTS, email) is None
        ):
            raise GoogleError(400, f"Service account {email} does not exist.", status=None)


def is_young(request: Request, store: Store, email: str) -> bool:
    """Whether a service account is so new that not all parts of Google know it.

    IAM itself knows it at once; others do after "60 seconds or more" (IAM, "Create service
    accounts"), which `young-account` is about.
    """
    known = store.get(YOUNG, email)
    return known is not None and known["at"] > request.now


def rename_member(store: Store, old: str, new: str) -> None:
    """Write a member differently in every policy, as Google does when an account is deleted."""
    for resource, policy in store.list(_COLLECTION):
        if old in _members(policy):
            for binding in policy["bindings"]:
                binding["members"] = [new if m == old else m for m in binding["members"]]
            policy[_VERSION] += 1
            store.put(_COLLECTION, resource, policy)


def granted(request: Request, permissions: Sequence[str]) -> dict[str, Any]:
    """The answer to testIamPermissions: the caller has all rights that no scenario takes away."""
    held = [name for name in permissions if not scenarios.is_withheld(name, request.scenarios)]
    return {"permissions": held} if held else {}


def _members(policy: Policy) -> Iterator[str]:
    for binding in policy.get("bindings") or []:
        yield from binding.get("members") or []


def _visible(kept: Policy) -> Policy:
    policy = {key: value for key, value in kept.items() if key != _VERSION}
    return policy | {"etag": _etag(kept[_VERSION])}


def _etag(version: int) -> str:
    return base64.b64encode(b"\x08" + varint(version)).decode()


def varint(value: int) -> bytes:
    """A number in the variable length of protocol buffers, of which Google's etags are made."""
    out = bytearray()
    while value >= _CONTINUED:
        out.append(value % _CONTINUED | _CONTINUED)
        value //= _CONTINUED
    out.append(value)
    return bytes(out)
