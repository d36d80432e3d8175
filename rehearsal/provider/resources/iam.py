"""Service accounts, and members of policies: of projects, of accounts, of buckets."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import State
from rehearsal.provider.resources import links
from rehearsal.provider.resources.rest import NOT_FOUND, Rest, place, present, scope
from rehearsal.provider.resources.shapes import VIRTUAL, Scope, Shape, is_zero

_TEXTS = ("description", "display_name")
# IAM is slow to know a new account, so the provider looks at it three times, and then rests.
_LOOKS, _GAP = 3, 0.5
_AFTER_CREATE, _AFTER_UPDATE = 10.0, 5.0


class _Account(Rest):
    @property
    def template(self) -> str:
        return f"{self.collection}/{{email}}"

    @property
    def label(self) -> str:
        return "service account"

    def id(self, where: Scope) -> str:
        return str(where.state.get("id") or place(self.template, where))

    def path(self, where: Scope) -> str:
        return self.id(where)

    def title(self, where: Scope) -> str:
        return f'Service Account "{self.id(where)}"'

    def no_delete(self, where: Scope) -> str:
        return f"Error when reading or editing {self.title(where)}"

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The address follows from the account's id, so it is known before the apply."""
        plan = super().customize(api, prior, plan)
        account, project = plan.get("account_id"), plan.get("project")
        if prior is not None or is_zero(account) or is_zero(project):
            return plan
        # A project of a domain ("d.org:p") comes turned round.
        domain, _, name = str(project).rpartition(":")
        email = f"{account}@{f'{name}.{domain}' if domain else name}.iam.gserviceaccount.com"
        path = f"projects/{project}/serviceAccounts/{email}"
        return {**plan, "email": email, "member": f"serviceAccount:{email}", "name": path}

    def create(self, api: Api, plan: State) -> State:
        where = scope(api, plan)
        texts = self.shape.expand(plan, where, _TEXTS)
        made = self.insert(where, {"accountId": plan["account_id"], "serviceAccount": texts})
        return self._settled(api, {**plan, "id": made["name"]}, _AFTER_CREATE)

    def _settled(self, api: Api, state: State, rest: float) -> State:
        for look in range(_LOOKS):
            if look:
                api.sleep(_GAP)
            found = present(self.read(api, state))
        api.sleep(rest)
        return found

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        email = answer["email"]
        return {
            **super().state(where, answer),
            "id": answer["name"],
            "project": answer.get("projectId"),
            "account_id": email.partition("@")[0],
            "member": f"serviceAccount:{email}",
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send the changed texts under the account's etag."""
        where = scope(api, plan, prior)
        changed = [it for it in _TEXTS if where.changes(it)]
        if not changed:
            return present(self.read(api, plan))
        path = self.path(where)
        try:
            etag = self.ask(api, "GET", path).get("etag")
            account = {**self.shape.expand(plan, where, _TEXTS), "etag": etag}
            body = {"serviceAccount": account, "updateMask": ",".join(changed)}
            self.ask(api, "PATCH", path, body)
        except GoogleApiError as error:
            raise ProviderError(f"{self.no_update(where)}: {error}") from error
        return self._settled(api, plan, _AFTER_UPDATE)


ACCOUNT = _Account(
    service="iam",
    by_client=True,
    collection="projects/{project}/serviceAccounts",
    shape=Shape(
        "google_service_account",
        {"create_ignore_already_exists": VIRTUAL},
    ),
)

# ------------------------------------------------------------------ policies

Policy = dict[str, Any]
Condition = tuple[tuple[str, str], ...]

_CONFLICT = 409
_VERSION = 3
_STABLE_READS = 3
_LONGEST_PAUSE = 30.0
# Members whose names keep their case.
_CASED = ("principal:", "principalSet:", "principalHierarchy:")


@dataclass(frozen=True)
class _Change:
    """One member of one role to add or to remove."""

    role: str
    member: str
    condition: Condition = ()
    remove: bool = False


def _wanted(state: State, *, remove: bool = False) -> _Change:
    condition = {
        name: str(value)
        for it in state.get("condition") or []
        for name, value in it.items()
        if value
    }
    return _Change(state["role"], _plain(state["member"]), tuple(sorted(condition.items())), remove)


@dataclass(frozen=True, kw_only=True)
class Member:
    """The members of one kind of policy, which makes it a `provider.resource.Resource`."""

    parent: str  # the attribute that names what has the policy
    called: str  # what errors call that, by its name ('project "{}"')
    lock: str  # the mutex of its policy, likewise
    fetch: Callable[[Api, str], Policy]
    store: Callable[[Api, str, Policy], Any]
    batched: bool = False  # whether changes are gathered
    canonical: Callable[[str], str] = str  # the name as the state has it
    # whether two names mean the same
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
        self._bring(api, plan, _wanted(plan))
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The member, None if the policy has it not, or nothing has that policy."""
        policy = self._policy(api, state)
        if policy is None:
            return None
        wanted = _wanted(state)
        found = _find(policy, wanted.role, wanted.condition)
        known = {_plain(member): (member, when) for member, when in found}
        if wanted.member not in known:
            return None
        member, when = known[wanted.member]
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
            self._bring(api, state, _wanted(state, remove=True))
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

    def _policy(self, api: Api, state: State) -> Policy | None:
        try:
            return self.fetch(api, self.canonical(state[self.parent]))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(self._problem(state, error)) from error

    def _problem(self, state: State, error: Exception) -> str:
        name = self.called.format(self.canonical(state[self.parent]))
        return (
            f'Error when reading or editing Resource "{name}" with IAM Member: Role'
            f' "{state["role"]}" Member "{state["member"]}": {error}'
        )

    def _bring(self, api: Api, state: State, wanted: _Change) -> None:
        """Bring a change into a policy, together with others if they are gathered."""
        name = self.canonical(state[self.parent])
        lock = self.lock.format(name)

        def send(changes: Sequence[_Change]) -> None:
            with api.locked(lock):
                self._write(api, name, changes)

        if self.batched:
            api.batches.run(f"{lock} modifyIamPolicy", wanted, send)
        else:
            send([wanted])

    def _write(self, api: Api, name: str, changes: Sequence[_Change]) -> None:
        """Read, change and write; again from the beginning when somebody else was faster."""
        pause, called = 1.0, self.called.format(name)
        while True:
            policy = self.fetch(api, name)
            try:
                self.store(api, name, _changed(policy, changes))
                break
            except GoogleApiError as error:
                if error.code != _CONFLICT:
                    raise ProviderError(
                        f"Error applying IAM policy for {called}: Error setting IAM policy for"
                        f" {called}: {error}"
                    ) from error
                if pause > _LONGEST_PAUSE:
                    raise ProviderError(
                        f"Error applying IAM policy to {called}: Too many conflicts."
                        f"  Latest error: {error}"
                    ) from error
            api.pause(pause)
            pause *= 2
        self._see_it_stay(api, name, changes)

    def _see_it_stay(self, api: Api, name: str, changes: Sequence[_Change]) -> None:
        """Policies spread slowly: three reads must show the change before others rely on it."""
        pause, stable = 1.0, 0
        while stable < _STABLE_READS:
            if pause > _LONGEST_PAUSE:
                called = self.called.format(name)
                raise ProviderError(
                    f"Error applying IAM policy to {called}: Waited too long for propagation."
                )
            api.pause(pause)
            if _has(self.fetch(api, name), changes):
                stable += 1
            else:
                pause *= 2


def _plain(member: str) -> str:
    """A member as Google keeps it: the kind as it is, an address in lower case."""
    if member.startswith(_CASED):
        return member
    kind, found, name = member.partition(":")
    return f"{kind}:{name.lower()}" if found else member


def _same_member(prior: Any, wanted: Any, _: State) -> bool:
    return bool(prior and wanted and _plain(prior) == _plain(wanted))


def _condition(binding: dict[str, Any]) -> Condition:
    return tuple(sorted((binding.get("condition") or {}).items()))


def _find(policy: Policy, role: str, condition: Condition) -> list[tuple[str, Condition]]:
    """Who has a role under a condition; of an imported member only its title is known."""

    def fits(found: Condition) -> bool:
        if [name for name, _ in condition] == ["title"]:
            return dict(found).get("title") == dict(condition)["title"]
        return found == condition

    return [
        (member, when)
        for binding in policy.get("bindings") or []
        if binding.get("role") == role and fits(when := _condition(binding))
        for member in binding.get("members") or []
    ]


def _has(policy: Policy, changes: Iterable[_Change]) -> bool:
    return all(
        any(it.member == member for member, _ in _find(policy, it.role, it.condition))
        is not it.remove
        for it in changes
    )


def _changed(policy: Policy, changes: Sequence[_Change]) -> Policy:
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
    listed = [
        {"role": role, "members": sorted(who), **({"condition": dict(when)} if when else {})}
        for (role, when), who in sorted(bindings.items())
        if who
    ]
    return {
        "etag": policy.get("etag"),
        "version": _VERSION,
        **({"auditConfigs": policy["auditConfigs"]} if policy.get("auditConfigs") else {}),
        **({"bindings": listed} if listed else {}),
    }


def _of_project(api: Api, project: str) -> Policy:
    options = {"options": {"requestedPolicyVersion": _VERSION}}
    path = f"projects/{project}:getIamPolicy"
    return api.client("cloudresourcemanager", "POST", path, options)


def _with_b(bucket: str) -> str:
    """The state has a bucket as "b/NAME"."""
    return f"b/{bucket.removeprefix('b/')}"


PROJECT_MEMBER = Member(
    parent="project",
    called='project "{}"',
    lock="iam-project-{}",
    fetch=_of_project,
    store=lambda api, project, policy: api.client(
        "cloudresourcemanager",
        "POST",
        f"projects/{project}:setIamPolicy",
        {"policy": policy, "updateMask": "bindings,etag,auditConfigs"},
    ),
    batched=True,
    canonical=links.name,
    same=links.same_name,
)
ACCOUNT_MEMBER = Member(
    parent="service_account_id",
    called="service account '{}'",
    lock="iam-service-account-{}",
    fetch=lambda api, account: api.client(
        "iam",
        "POST",
        f"{account}:getIamPolicy",
        query={"options.requestedPolicyVersion": str(_VERSION)},
    ),
    store=lambda api, account, policy: api.client(
        "iam", "POST", f"{account}:setIamPolicy", {"policy": policy}
    ),
    same=links.same_path,
)
BUCKET_MEMBER = Member(
    parent="bucket",
    called='storage bucket "{}"',
    lock="iam-storage-bucket-{}",
    fetch=lambda api, bucket: api.plain(
        "storage", "GET", f"{bucket}/iam", query={"optionsRequestedPolicyVersion": str(_VERSION)}
    ),
    store=lambda api, bucket, policy: api.plain("storage", "PUT", f"{bucket}/iam", policy),
    canonical=_with_b,
    same=lambda prior, wanted, _: bool(prior and wanted) and _with_b(prior) == _with_b(wanted),
)
