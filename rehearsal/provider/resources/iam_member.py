"""One member of one role: google_project_iam_member and its siblings."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links, policies
from rehearsal.provider.resources.rest import NOT_FOUND, present

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State
    from rehearsal.provider.resources.policies import Change, Condition, Guarded, Policy

# Members whose names keep their case.
_CASED = ("principal:", "principalSet:", "principalHierarchy:")


@dataclass(frozen=True, kw_only=True)
class IamMember:
    """The members of one kind of policy, which makes it a `provider.resource.Resource`."""

    parent: str  # the attribute that names what has the policy
    of: Callable[[str], Guarded]  # what has the policy, by that attribute's value
    canonical: Callable[[str], str] = str  # that value as the state has it
    # whether two such values mean the same
    same: Callable[[Any, Any, State], bool] = links.same_text
    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = field(init=False)

    def __post_init__(self) -> None:
        """The differences that are none."""
        rules = {self.parent: self.same, "member": _same_member}
        object.__setattr__(self, "suppress", rules)

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Nothing is known early."""
        del api, prior
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Add the member."""
        policies.change(api, self._guarded(plan), _change(plan))
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The member, None if the policy has it not, or nothing has that policy."""
        policy = self._policy(api, state)
        if policy is None:
            return None
        wanted = _change(state)
        found = policies.find(policy, wanted.role, wanted.condition)
        known = {_plain(member): (member, when) for member, when in found}
        if _plain(wanted.member) not in known:
            return None
        member, when = known[_plain(wanted.member)]
        parent = self.canonical(state[self.parent])
        condition = dict(when)
        # Source: google 7.45.0, tpgiamresource: the ID ends with all of the condition's key.
        key = [condition.get(name, "") for name in ("title", "description", "expression")]
        parts = [parent, wanted.role, member, *([] if not condition else ["/".join(key)])]
        return {
            "id": "/".join(filter(None, parts)),
            self.parent: parent,
            "role": wanted.role,
            "member": member,
            "condition": [condition] if condition else [],
            "etag": policy.get("etag"),
            "timeouts": state.get("timeouts"),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Everything else is another member."""
        del prior
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Take the member away, and look whether it is gone."""
        try:
            policies.change(api, self._guarded(state), _change(state, remove=True))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return
            raise ProviderError(self._problem(state, error)) from error
        self._policy(api, state)

    def import_state(self, api: Api, import_id: str) -> State:
        """From "PARENT ROLE MEMBER", with spaces; a condition's title may follow."""
        del api
        parts = import_id.split(maxsplit=3)
        if len(parts) < 3:  # noqa: PLR2004 - the three that are needed
            raise ValueError(
                f"Wrong number of parts to Member id {parts}; expected 'resource_name role member"
                " [condition_title]'."
            )
        condition = [{"title": parts[3]}] if parts[3:] else []
        names = dict(zip((self.parent, "role", "member"), parts, strict=False))
        return {**names, "condition": condition, "id": "/".join(parts)}

    def _guarded(self, state: State) -> Guarded:
        return self.of(self.canonical(state[self.parent]))

    def _policy(self, api: Api, state: State) -> Policy | None:
        try:
            return self._guarded(state).fetch(api)
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(self._problem(state, error)) from error

    def _problem(self, state: State, error: Exception) -> str:
        name = self._guarded(state).name
        return (
            f'Error when reading or editing Resource "{name}" with IAM Member: Role'
            f' "{state["role"]}" Member "{state["member"]}": {error}'
        )


def _change(state: State, *, remove: bool = False) -> Change:
    return policies.Change(state["role"], _plain(state["member"]), _condition(state), remove)


def _condition(state: State) -> Condition:
    for block in state.get("condition") or []:
        return tuple(sorted((name, str(value)) for name, value in block.items() if value))
    return ()


def _plain(member: str) -> str:
    """A member as Google keeps it: the kind as it is, an address in lower case."""
    if member.startswith(_CASED):
        return member
    kind, found, name = member.partition(":")
    return f"{kind}:{name.lower()}" if found else member


def _same_member(prior: Any, wanted: Any, _: State) -> bool:
    return bool(prior and wanted and _plain(prior) == _plain(wanted))
