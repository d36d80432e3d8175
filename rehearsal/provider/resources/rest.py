"""A type that one collection of an API makes, reads, changes and deletes."""

import contextlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rehearsal.provider.api import Api, Query
from rehearsal.provider.failures import GoogleApiError, OperationError, ProviderError
from rehearsal.provider.resource import UNKNOWN, State
from rehearsal.provider.resources import labels, links, operations
from rehearsal.provider.resources.shapes import Scope, Shape, kept

NOT_FOUND = 404
_AT_ONCE = frozenset({"iam", "monitoring", "storage"})  # services without operations
_DOING = {"create": "Creating", "update": "Updating", "delete": "Deleting"}


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

    shape: Shape  # its attributes and blocks
    collection: str  # the path of its collection, with {project}, {region}, {zone} and attributes
    service: str = "compute"
    by_client: bool = False  # whether its requests are those of Google's Go clients
    # The requests of an update that carry not all that can change.
    patches: tuple[Patch, ...] = ()
    apart: bool = False  # whether each other change has a PATCH of its own, under the fingerprint
    least: int = 1  # how many parts of its path an import id names at least
    # as `provider.resource.Resource.suppress`
    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = field(default_factory=dict)

    @property
    def noun(self) -> str:
        """What the provider's errors call it ("ComputeNetwork")."""
        return "".join(word.capitalize() for word in self.shape.of.split("_")[1:])

    @property
    def label(self) -> str:
        """What its operations make ("Network")."""
        return "".join(word.capitalize() for word in self.shape.of.split("_")[2:])

    @property
    def template(self) -> str:
        """The object's path, with what an import id says left open."""
        return f"{self.collection}/{{name}}"

    def scope(self, api: Api, state: State, prior: State | None = None) -> Scope:
        """Where the object is."""
        return scope(api, state, prior)

    def path(self, where: Scope) -> str:
        """Where requests find the object."""
        return place(self.template, where)

    def id(self, where: Scope) -> str:
        """The object's id in the state."""
        return self.path(where)

    def title(self, where: Scope) -> str:
        """What the provider's errors call the object."""
        return f'{self.noun} "{self.id(where)}"'

    def encode(self, body: dict[str, Any], where: Scope, *, create: bool) -> dict[str, Any]:
        """Last word on a request's body."""
        del where, create
        return body

    def query(self, where: Scope) -> Mapping[str, str]:
        """What the query of a create says."""
        del where
        return {}

    def lock(self, where: Scope) -> str:
        """The mutex that is held while the object changes; "" for none."""
        del where
        return ""

    def _held(self, where: Scope) -> contextlib.AbstractContextManager[None]:
        name = self.lock(where)
        return where.api.locked(name) if name else contextlib.nullcontext()

    def ask(
        self, api: Api, method: str, path: str, body: Any = None, *, query: Query = None
    ) -> dict[str, Any]:
        """A request to the type's service."""
        send = api.client if self.by_client else api.plain
        return send(self.service, method, path, body, query=query)

    def wait(self, where: Scope, answer: dict[str, Any], action: str, activity: str = "") -> None:
        """Wait for the operation of a create, update or delete, if the service has any."""
        if self.service in _AT_ONCE:
            return
        limit = operations.timeout(where.state, action, self.shape.of)
        activity = activity or f"{_DOING[action]} {self.label}"
        if self.service == "compute":
            operations.compute(where.api, answer, where.project, activity, limit)
        else:
            operations.named(where.api, self.service, answer, activity, limit)

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's project and deletion policy are known before the apply, and labels."""
        plan = with_defaults(api, plan)
        return labels.plan(api, prior, plan) if self._has_labels else plan

    @property
    def _has_labels(self) -> bool:
        return "terraform_labels" in self.shape.block

    def create(self, api: Api, plan: State) -> State:
        """Insert the object."""
        where = self.scope(api, plan)
        with self._held(where):
            body = self.shape.expand(plan, where, create=True)
            answer = self.insert(where, self.encode(body, where, create=True))
            try:
                self.wait(where, answer, "create")
            except (GoogleApiError, OperationError, ProviderError) as error:
                raise ProviderError(f"Error waiting to create {self.label}: {error}") from error
        return present(self.read(api, {**plan, "id": self.id(where)}))

    def insert(self, where: Scope, body: Any) -> dict[str, Any]:
        """The request that makes the object."""
        path, query = place(self.collection, where), self.query(where)
        try:
            return self.ask(where.api, "POST", path, body, query=query)
        except GoogleApiError as error:
            raise ProviderError(f"Error creating {self.label}: {error}") from error

    def read(self, api: Api, state: State) -> State | None:
        """The object, None if Google knows none."""
        where = self.scope(api, state)
        answer = self.look(where)
        return None if answer is None else self.state(where, answer)

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        """What Google answers of the object; None if there is none."""
        try:
            return self.ask(where.api, "GET", path or self.path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            what = f"Error when reading or editing {self.title(where)}"
            raise ProviderError(f"{what}: {error}") from error

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        """The attributes of what Google answers."""
        state = where.state
        return {
            **self.shape.flatten(answer, where),
            **(labels.read(answer.get("labels"), state) if self._has_labels else {}),
            "id": self.id(where),
            "project": where.project,
            "self_link": links.v1(answer.get("selfLink", "")),
            "timeouts": state.get("timeouts"),
            "deletion_policy": kept(state, "deletion_policy", where.api.deletion_policy),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Send what changed, request by request."""
        where = self.scope(api, plan, prior)
        with self._held(where):
            for patch in self._due(where):
                self._patch(where, patch)
        return present(self.read(api, plan))

    def _due(self, where: Scope) -> Iterator[Patch]:
        yield from (it for it in self.patches if where.changes(*it.attributes))
        special = {name for it in self.patches for name in it.attributes}
        others = tuple(name for name in self.shape.mutable if name not in special)
        if self.apart:
            yield from (Patch((it,), fingerprint=True) for it in others if where.changes(it))
        elif where.changes(*others):
            yield Patch(others)

    def _patch(self, where: Scope, patch: Patch) -> None:
        path, body = self.path(where), dict[str, Any]()
        try:
            if patch.fingerprint:
                body["fingerprint"] = self.ask(where.api, "GET", path).get("fingerprint")
            body |= self.shape.expand(where.state, where, patch.attributes)
            body = self.encode(body, where, create=False)
            answer = self.ask(where.api, patch.method, path + patch.action, body)
        except GoogleApiError as error:
            raise ProviderError(f"{self.no_update(where)}: {error}") from error
        self.wait(where, answer, "update")

    def no_update(self, where: Scope) -> str:
        """How an error of an update begins."""
        return f'Error updating {self.label} "{self.id(where)}"'

    def delete(self, api: Api, state: State) -> None:
        """Delete the object."""
        if is_deletable(state, self.noun):
            where = self.scope(api, state)
            with self._held(where):
                self.remove(where)

    def remove(self, where: Scope) -> None:
        """Delete the object; one that is gone already is success."""
        try:
            answer = self.ask(where.api, "DELETE", self.path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return
            raise ProviderError(f"{self.no_delete(where)}: {error}") from error
        self.wait(where, answer, "delete")

    def no_delete(self, where: Scope) -> str:
        """How an error of a delete begins."""
        del where
        return f"Error when reading or editing {self.label}"

    def import_state(self, api: Api, import_id: str) -> State:
        """What an import id says of the object."""
        found = parse_import(api, self.template, import_id, least=self.least)
        where = self.scope(api, found)
        return {**found, "project": where.project, "id": self.id(where)}


@dataclass(frozen=True)
class Found:
    """A data source: an object of Compute Engine that is looked up by its name or its link."""

    shape: Shape
    collection: str

    def read(self, api: Api, config: State) -> State:
        """The object as Google has it."""
        link = config.get("self_link") or config.get("name") or ""
        named = {
            one: links.name(config.get(one) or links.part(link, f"{one}s") or getattr(api, one))
            for one in ("project", "region")
        }
        path = f"{self.collection.format_map(named)}/{links.name(link)}"
        label = self.shape.of.rpartition("_")[2].capitalize()
        try:
            answer = api.plain("compute", "GET", path)
        except GoogleApiError as error:
            raise ProviderError(
                f"Error when reading or editing {label} Not Found : {links.name(link)}: {error}"
            ) from error
        return {**self.shape.flatten(answer, scope(api, config)), **named, "id": path}


def scope(api: Api, state: State, prior: State | None = None) -> Scope:
    """Where an object is: what it says itself, else what the provider block says."""

    def of(name: str, default: str) -> str:
        value = state.get(name)
        return links.name(value) if value and value is not UNKNOWN else default

    region, zone = of("region", api.region), of("zone", api.zone)
    return Scope(
        api,
        state,
        project=of("project", api.project),
        region=region,
        zone=zone,
        location=of("location", zone or region),
        prior=prior,
    )


def place(template: str, where: Scope) -> str:
    """A path with the object's place filled in, and with attributes of its own ("{router}")."""
    known = {
        name: getattr(where, name)
        for name in re.findall(r"\{(project|region|zone|location)\}", template)
    }
    if unknown := next((name for name, value in known.items() if not value), ""):
        raise ProviderError(_UNPLACED[unknown].format(unknown))
    return template.format(**{**where.state, **known})


_ANYWHERE = "Cannot determine {0}: set in this resource, or set provider-level {0}"
_UNPLACED = {
    "project": "{}: required field is not set",
    "region": _ANYWHERE,
    "zone": _ANYWHERE,
    "location": ("Cannot determine {}: set in this resource, or set provider-level zone or region"),
}


def with_defaults(api: Api, plan: State) -> State:
    """A plan with the project and the deletion policy of the provider, where it has none."""
    defaults = {"project": api.project, "deletion_policy": api.deletion_policy}
    return {
        **plan,
        **{name: v for name, v in defaults.items() if v and plan.get(name) in (None, UNKNOWN)},
    }


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
