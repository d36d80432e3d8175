"""The usual methods of a kind of resource, from what is particular to it."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rehearsal.cloud.compute import links, lists, quotas, resources
from rehearsal.cloud.compute.resources import NETWORK, Call, Kind, Resource

Handler = Callable[[Call], Resource]


@dataclass(frozen=True, kw_only=True)
class Rest:
    """A kind of resource that is made, read, changed and deleted as most are."""

    kind: Kind
    collection: str = ""  # as in the names of its methods, where that is not the kind's own
    # field -> the kind that it refers to: what it names must be there, and can't be changed
    references: Mapping[str, Kind] = field(default_factory=dict)
    # what a new one has where its maker says nothing, before anything else is looked at
    usual: Mapping[str, str] = field(default_factory=dict)
    # a new or changed one as Google completes it, or refuses it
    completed: Callable[[Call, Resource], Resource] = lambda _, resource: resource
    # by its link, the names of what keeps one from being deleted
    users: Callable[[Call, str], Iterable[str]] = lambda _call, _link: ()

    def methods(self, *names: str) -> dict[str, Handler]:
        """Those of its methods that are simulated."""
        own: dict[str, Handler] = {
            "insert": self._insert,
            "get": resources.get(self.kind),
            "list": lists.of_place(self.kind),
            "aggregatedList": lists.of_project(self.kind),
            "patch": self._patch,
            "update": self._patch,
            "delete": self.delete,
        }
        return {f"{self.collection or self.kind.collection}.{name}": own[name] for name in names}

    def _insert(self, call: Call) -> Resource:
        body = self._referring(call, {**self.usual, **resources.without_nulls(call.body)})
        completed = self.completed(call, body)
        quotas.check(call, self.kind)
        return resources.insert(call, self.kind, completed)

    def _patch(self, call: Call) -> Resource:
        name = call.name(self.kind)
        found = resources.require_ready(call, self.kind, name)
        changes = self._referring(call, call.body)
        for reference in self.references.keys() & changes.keys():
            if changes[reference] != found.get(reference):
                raise links.invalid(reference, changes[reference], "It can't be changed.")
        changed = self.completed(call, resources.merge(found, changes))
        return resources.change(call, self.kind, name, changed)

    def delete(self, call: Call) -> Resource:
        """Delete one that nothing uses."""
        name = call.name(self.kind)
        found = resources.require_ready(call, self.kind, name)
        for user in self.users(call, found["selfLink"]):
            raise resources.in_use(self.kind, name, user)
        return resources.remove(call, self.kind, name)

    def _referring(self, call: Call, body: Resource) -> Resource:
        found: Resource = {}
        for name, kind in self.references.items():
            given = body.get(name)
            if isinstance(given, list):
                found[name] = [_link(call, kind, name, one) for one in given]
            elif given is not None:
                found[name] = _link(call, kind, name, given)
        return {**body, **found}


def _link(call: Call, kind: Kind, name: str, reference: str) -> str:
    # What GKE makes for a Service refers to each other before all of it is ready.
    require = resources.require_ready if kind is NETWORK else resources.require
    return str(require(call, kind, call.resolve(reference, kind, name))["selfLink"])
