"""IAM policies: reading one, changing one role's members, writing it back unless it moved."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rehearsal.provider.api import Api

Policy = dict[str, Any]
Condition = tuple[tuple[str, str], ...]

_CONFLICT = 409
_VERSION = 3
_STABLE_READS = 3
_LONGEST_PAUSE = 30.0


@dataclass(frozen=True)
class Guarded:
    """Something with a policy."""

    name: str  # what it is called in ids and errors ("project X")
    lock: str  # the mutex of its policy
    fetch: Callable[[Api], Policy]
    store: Callable[[Api, Policy], Any]
    batched: bool = False  # whether changes are gathered


@dataclass(frozen=True)
class Change:
    """One member of one role to add or to remove."""

    role: str
    member: str
    condition: Condition = ()
    remove: bool = False


def change(api: Api, guarded: Guarded, wanted: Change) -> None:
    """Bring a change into a policy.

    Raises:
        Cancelled: Terraform was interrupted.
    """

    def send(changes: Sequence[Change]) -> None:
        with api.locked(guarded.lock):
            _write(api, guarded, changes)

    if guarded.batched:
        api.batches.run(f"{guarded.lock} modifyIamPolicy", wanted, send)
    else:
        send([wanted])


def find(policy: Policy, role: str, condition: Condition) -> list[tuple[str, Condition]]:
    """Who has a role under a condition; of an imported member only its title is known."""
    return [
        (member, when)
        for binding in policy.get("bindings") or []
        if binding.get("role") == role and _fits(when := _condition(binding), condition)
        for member in binding.get("members") or []
    ]


def _fits(found: Condition, wanted: Condition) -> bool:
    if [name for name, _ in wanted] == ["title"]:
        return dict(found).get("title") == dict(wanted)["title"]
    return found == wanted


def _write(api: Api, guarded: Guarded, changes: Sequence[Change]) -> None:
    """Read, change and write; again from the beginning when somebody else was faster."""
    pause = 1.0
    while True:
        policy = guarded.fetch(api)
        try:
            guarded.store(api, _changed(policy, changes))
            break
        except GoogleApiError as error:
            if error.code != _CONFLICT:
                raise ProviderError(
                    f"Error applying IAM policy for {guarded.name}: Error setting IAM policy for"
                    f" {guarded.name}: {error}"
                ) from error
            if pause > _LONGEST_PAUSE:
                raise ProviderError(
                    f"Error applying IAM policy to {guarded.name}: Too many conflicts."
                    f"  Latest error: {error}"
                ) from error
        api.pause(pause)
        pause *= 2
    _see_it_stay(api, guarded, changes)


def _see_it_stay(api: Api, guarded: Guarded, changes: Sequence[Change]) -> None:
    """Policies spread slowly: three reads must show the change before others rely on it."""
    pause, stable = 1.0, 0
    while stable < _STABLE_READS:
        if pause > _LONGEST_PAUSE:
            raise ProviderError(
                f"Error applying IAM policy to {guarded.name}: Waited too long for propagation."
            )
        api.pause(pause)
        if _has(guarded.fetch(api), changes):
            stable += 1
        else:
            pause *= 2


def _has(policy: Policy, changes: Iterable[Change]) -> bool:
    """Whether the policy is as the changes want it."""
    return all(
        any(it.member == member for member, _ in find(policy, it.role, it.condition))
        is not it.remove
        for it in changes
    )


def _changed(policy: Policy, changes: Sequence[Change]) -> Policy:
    """The policy with the changes; bindings and members in order, empty bindings left out."""
    bindings: dict[tuple[str, Condition], set[str]] = {}
    for binding in policy.get("bindings") or []:
        key = (binding["role"], _condition(binding))
        bindings.setdefault(key, set()).update(binding.get("members") or [])
    for it in changes:
        found = bindings.setdefault((it.role, it.condition), set())
        if it.remove:
            found.discard(it.member)
        else:
            found.add(it.member)
    body: Policy = {"etag": policy.get("etag"), "version": _VERSION}
    if policy.get("auditConfigs"):
        body["auditConfigs"] = policy["auditConfigs"]
    listed = [
        {"role": role, "members": sorted(who), **({"condition": dict(when)} if when else {})}
        for (role, when), who in sorted(bindings.items())
        if who
    ]
    return {**body, "bindings": listed} if listed else body


def _condition(binding: dict[str, Any]) -> Condition:
    return tuple(sorted((binding.get("condition") or {}).items()))
