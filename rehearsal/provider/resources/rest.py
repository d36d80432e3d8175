"""A resource of Compute Engine that one collection of its API makes, reads, patches and deletes."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.fields import Scope, Table, expand, flatten

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

NOT_FOUND = 404


@dataclass(frozen=True)
class Patch:
    """One request of an update, sent when one of its attributes changes."""

    attributes: tuple[str, ...]  # the attributes that it carries, by name
    method: str = "PATCH"
    action: str = ""  # what follows the object's path, with a slash at its beginning
    fingerprint: bool = False  # whether the object is read first, and its fingerprint sent along


@dataclass(frozen=True, kw_only=True)
class Rest:
    """The description of a type, which makes it a `provider.resource.Resource`."""

    label: str  # what the provider's errors call it ("Network")
    collection: str  # the path of its collection, with {project}, {region} and {zone}
    fields: Table  # its attributes and blocks, of the resource type that it is
    patches: tuple[Patch, ...] = ()  # what updates it, in the order of the requests
    # attributes that Google doesn't know, and what they are by default
    virtual: Mapping[str, Any] = field(default_factory=dict)
    # as `provider.resource.Resource.suppress`
    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = field(default_factory=dict)
    # last word on a request's body; gets the body, the scope, and whether it creates
    encode: Callable[[dict[str, Any], Scope, bool], dict[str, Any]] = lambda body, _, __: body
    # first word on an answer
    decode: Callable[[dict[str, Any], Scope], dict[str, Any]] = lambda answer, _: answer
    created: Callable[[Scope], None] = lambda _: None  # what else to do after the object came to be
    lock: Callable[[Scope], str] | None = None  # the mutex that is held while the object changes

    def scope(self, api: Api, state: State, prior: State | None = None) -> Scope:
        """Where the object is: what it says itself, else what the provider block says."""
        return scope(api, state, prior)

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's project and deletion policy are known before the apply."""
        del prior
        return with_defaults(api, plan)

    def create(self, api: Api, plan: State) -> State:
        """Insert the object."""
        where = self.scope(api, plan)
        with self._held(where):
            self._insert(where)
        self.created(where)
        return present(self.read(api, {**plan, "id": self.path(where)}))

    def _insert(self, where: Scope) -> None:
        api, plan = where.api, where.state
        body = self.encode(expand(self.fields, plan, where, create=True), where, True)
        try:
            answer = api.plain("compute", "POST", place(self.collection, where), body)
        except GoogleApiError as error:
            raise ProviderError(f"Error creating {self.label}: {error}") from error
        limit = operations.timeout(plan, "create", self.fields.of)
        try:
            operations.compute(api, answer, where.project, f"Creating {self.label}", limit)
        except (GoogleApiError, OperationError, ProviderError) as error:
            raise ProviderError(f"Error waiting to create {self.label}: {error}") from error

    def _held(self, where: Scope) -> contextlib.AbstractContextManager[None]:
        return where.api.locked(self.lock(where)) if self.lock else contextlib.nullcontext()

    def read(self, api: Api, state: State) -> State | None:
        """The object, None if Google knows none."""
        where = self.scope(api, state)
        try:
            answer = api.plain("compute", "GET", self.path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Compute{self.label} "{state.get("id")}": {error}'
            ) from error
        answer = self.decode(answer, where)
        return {
            **with_defaults(api, {name: kept(state, name, v) for name, v in self.virtual.items()}),
            **flatten(self.fields, answer, where),
            "id": self.path(where),
            "project": where.project,
            "self_link": links.v1(answer.get("selfLink", "")),
            "timeouts": state.get("timeouts"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request."""
        where = self.scope(api, plan, prior)
        with self._held(where):
            for patch in self.patches:
                if any(plan.get(name) != prior.get(name) for name in patch.attributes):
                    self._patch(where, patch)
        return present(self.read(api, plan))

    def _patch(self, where: Scope, patch: Patch) -> None:
        api, path, body = where.api, self.path(where), dict[str, Any]()
        name = where.state.get("id")
        limit = operations.timeout(where.state, "update", self.fields.of)
        try:
            if patch.fingerprint:
                body["fingerprint"] = api.plain("compute", "GET", path).get("fingerprint")
            sent = (each for each in self.fields if each.name in patch.attributes)
            body |= expand(sent, where.state, where)
            body = self.encode(body, where, False)
            answer = api.plain("compute", patch.method, path + patch.action, body)
        except GoogleApiError as error:
            raise ProviderError(f'Error updating {self.label} "{name}": {error}') from error
        operations.compute(api, answer, where.project, f"Updating {self.label}", limit)

    def delete(self, api: Api, state: State) -> None:
        """Delete the object.

        Raises:
            OperationError: The operation failed.
        """
        if not is_deletable(state, f"Compute{self.label}"):
            return
        where = self.scope(api, state)
        with self._held(where):
            self._remove(where)

    def _remove(self, where: Scope) -> None:
        api, state = where.api, where.state
        try:
            answer = api.plain("compute", "DELETE", self.path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return
            raise ProviderError(f"Error when reading or editing {self.label}: {error}") from error
        limit = operations.timeout(state, "delete", self.fields.of)
        operations.compute(api, answer, where.project, f"Deleting {self.label}", limit)

    def import_state(self, api: Api, import_id: str) -> State:
        """What an import id says of the object."""
        found = parse_import(api, f"{self.collection}/{{name}}", import_id)
        where = self.scope(api, found)
        return {**found, **self.virtual, "project": where.project, "id": self.path(where)}

    def path(self, where: Scope) -> str:
        """The object's path, which is its id."""
        return f"{place(self.collection, where)}/{where.state['name']}"


def scope(api: Api, state: State, prior: State | None = None) -> Scope:
    """Where an object is: what it says itself, else what the provider block says."""

    def of(name: str, default: str) -> str:
        value = state.get(name)
        return links.name(value) if value and value is not UNKNOWN else default

    return Scope(
        api,
        state,
        project=of("project", api.project),
        region=of("region", api.region),
        zone=of("zone", api.zone),
        prior=prior,
    )


def place(template: str, where: Scope) -> str:
    """A path with the object's place filled in, and with attributes of its own ("{router}")."""
    known = {"project": where.project, "region": where.region, "zone": where.zone}
    for name in re.findall(r"\{(project|region|zone)\}", template):
        if not known[name]:
            raise ProviderError(
                f"{name}: required field is not set"
                if name == "project"
                else f"Cannot determine {name}: set in this resource, or set provider-level {name}"
            )
    return template.format(**{**where.state, **known})


def with_defaults(api: Api, plan: State) -> State:
    """A plan with the project and the deletion policy of the provider, where it has none."""
    defaults = {"project": api.project, "deletion_policy": api.deletion_policy}
    return {
        **plan,
        **{name: v for name, v in defaults.items() if v and plan.get(name) in (None, UNKNOWN)},
    }


def kept(state: State, name: str, default: Any) -> Any:
    """An attribute that Google doesn't know: as it was, else its default."""
    value = state.get(name)
    return default if value is None or value is UNKNOWN else value


def present(state: State | None) -> State:
    """An object that was just made or changed, and so must be there."""
    if state is None:
        raise ProviderError(
            "Provider produced inconsistent result after apply: Root object was present, but now"
            " absent."
        )
    return state


def is_deletable(state: State, label: str) -> bool:
    """Whether to delete the object; an abandoned one only leaves the state."""
    if state.get("deletion_policy") == "PREVENT":
        raise ProviderError(
            f'cannot destroy {label} without setting deletion_policy="DELETE" and running'
            " `terraform apply`"
        )
    return state.get("deletion_policy") != "ABANDON"


def parse_import(api: Api, template: str, import_id: str, *, least: int = 1) -> State:
    """The attributes that an import id names.

    It may be the whole path, or the values of its placeholders with slashes between them, of which
    the first may be left out. `template`: the object's path
    ("projects/{project}/global/networks/{name}").

    Raises:
        ValueError: It is none of those.
    """
    names = re.findall(r"\{(\w+)\}", template)
    patterns = [re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", template), *_short(names, least)]
    for pattern in patterns:
        if found := re.fullmatch(pattern, import_id):
            here = {"project": api.project, "region": api.region, "zone": api.zone}
            return {**{name: here[name] for name in names if name in here}, **found.groupdict()}
    raise ValueError(
        f'Import id "{import_id}" doesn\'t match any of the accepted formats: {patterns}'
    )


def _short(names: Sequence[str], least: int) -> Iterator[str]:
    for first in range(len(names) - least + 1):
        yield "/".join(f"(?P<{name}>[^/]+)" for name in names[first:])
