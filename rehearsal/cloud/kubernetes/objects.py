"""Objects of one cluster: keeping, finding, choosing, deleting with what they own.

Fields that begin with "_" are kept and never shown.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from rehearsal.cloud.kubernetes import kinds
from rehearsal.cloud.kubernetes.kinds import Cluster, Kind
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Request, rfc3339

Object = dict[str, Any]

DUE: Final = "moments"
"""A cluster's collection of the moments at which its controllers have something to do."""


@dataclass(frozen=True)
class World:
    """One cluster at the moment of a request."""

    request: Request  # the request; its moment, pace and scenarios count
    store: Store
    cluster: Cluster
    _kinds: dict[tuple[str, str], Kind] = field(default_factory=dict)

    @property
    def now(self) -> float:
        """The moment (Unix epoch)."""
        return self.request.now

    @property
    def stamp(self) -> str:
        """The moment as Kubernetes writes it."""
        return rfc3339(self.now)[:19] + "Z"

    def at(self, moment: float) -> World:
        """The cluster at an earlier moment (Unix epoch)."""
        return replace(self, request=replace(self.request, now=moment))

    def wake(self, moment: float) -> None:
        """Let controllers look at a moment (Unix epoch), request or not, where time passes."""
        if self.request.rate and moment > self.now:
            name = f"{moment:020.6f}"
            if float(name) < moment:
                # Never before it: who finds that it is not time yet asks for the same one again.
                name = f"{moment + 1e-6:020.6f}"
            self.store.put(self.cluster.collection(DUE), name, {})

    def kind(self, version: str, plural: str) -> Kind | None:
        """The kind that a version and a plural name."""
        known = self._kinds.get((version, plural))
        if known is None:
            known = kinds.find(self.store, self.cluster, version, plural)
            if known is not None:
                self._kinds[version, plural] = known
        return known

    def own(self, version: str, plural: str) -> Kind:
        """A kind that every cluster has."""
        found = self.kind(version, plural)
        if found is None:
            raise LookupError(f"{plural} of {version} is a kind of no cluster")
        return found

    def get(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """An object, with what is not shown."""
        return self.store.get(self.cluster.collection(kind.stored), f"{namespace}/{name}")

    def each(self, kind: Kind, namespace: str = "") -> list[Object]:
        """The objects of a kind in a namespace, or in all for ""."""
        prefix = f"{namespace}/" if namespace else ""
        return [it for _, it in self.store.list(self.cluster.collection(kind.stored), prefix)]

    def put(self, kind: Kind, thing: Object) -> Object:
        """Keep an object, as a new version if it differs from the one that was kept."""
        metadata = thing["metadata"]
        name = f"{metadata.get('namespace', '') if kind.namespaced else ''}/{metadata['name']}"
        collection = self.cluster.collection(kind.stored)
        before = self.store.get(collection, name)
        if before is None:
            self._begin(thing, f"{collection}/{name}")
        elif before == thing:
            return thing
        if before is None or _visible(before) != _visible(thing):
            metadata["resourceVersion"] = str(self._next())
            if before is not None and before.get("spec") != thing.get("spec"):
                metadata["generation"] = metadata.get("generation", 1) + 1
        self.store.put(collection, name, thing)
        if kind.name == kinds.DEFINITION:
            kinds.define(self.store, self.cluster, thing)
        return thing

    def _begin(self, thing: Object, name: str) -> None:
        digest = hashlib.sha256(f"{name} {self.now}".encode()).hexdigest()
        uid = "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
        thing["metadata"] |= {"uid": uid, "creationTimestamp": self.stamp, "generation": 1}

    def _next(self) -> int:
        collection = self.cluster.collection("version")
        number = (self.store.get(collection, "last") or {"number": 1000})["number"] + 1
        self.store.put(collection, "last", {"number": number})
        return int(number)

    def version(self) -> str:
        """The version of the newest object."""
        last = self.store.get(self.cluster.collection("version"), "last") or {"number": 1000}
        return str(last["number"])

    def delete(self, kind: Kind, thing: Object) -> None:
        """Delete an object as somebody asks; with finalizers it stays until they are taken off."""
        if not thing["metadata"].get("finalizers"):
            self.remove(kind, thing)
        elif "deletionTimestamp" not in thing["metadata"]:
            metadata = {**thing["metadata"], "deletionTimestamp": self.stamp}
            self.put(kind, {**thing, "metadata": metadata})

    def settle(self, kind: Kind, thing: Object) -> None:
        """Keep an object, or let it go that is deleted and has no finalizers any more."""
        metadata = thing["metadata"]
        if "deletionTimestamp" in metadata and not metadata.get("finalizers"):
            self.remove(kind, thing)
        else:
            self.put(kind, thing)

    def remove(self, kind: Kind, thing: Object) -> None:
        """Delete an object, what it owns, and what is in it."""
        metadata = thing["metadata"]
        namespace = metadata.get("namespace", "") if kind.namespaced else ""
        self.store.delete(self.cluster.collection(kind.stored), f"{namespace}/{metadata['name']}")
        self._next()
        if kind.name == kinds.DEFINITION:
            kinds.forget(self.store, self.cluster, thing)
            spec = thing["spec"]
            self._clear(f"{spec['group']}/{spec['names']['plural']}", "")
        if kind.name == "Namespace":
            self._clear("", f"{metadata['name']}/")
        for plural, version in _OWNED:
            owned = self.kind(version, plural)
            for child in self.each(owned, namespace) if owned else ():
                owners = child["metadata"].get("ownerReferences") or []
                if owned and any(it["uid"] == metadata["uid"] for it in owners):
                    self.remove(owned, child)

    def _clear(self, stored: str, prefix: str) -> None:
        """Delete the objects of a kind, or of all for "", whose names begin so."""
        own = self.cluster.collection(stored)
        every = [own] if stored else [it for it in self.store.collections() if it.startswith(own)]
        for collection in every:
            for name, _ in list(self.store.list(collection, prefix)):
                self.store.delete(collection, name)


# What objects own that something else has made for them.
_OWNED: Final = (
    ("jobs", "batch/v1"),
    ("pods", "v1"),
    ("podtemplates", "v1"),
    ("workloads", "kueue.x-k8s.io/v1beta2"),
    ("provisioningrequests", "autoscaling.x-k8s.io/v1"),
    ("rayclusters", "ray.io/v1"),
    ("resourceclaims", "resource.k8s.io/v1"),
)


def _visible(thing: Mapping[str, Any]) -> Object:
    own = {key: it for key, it in thing["metadata"].items() if key != "resourceVersion"}
    return {**show(thing), "metadata": own}


def show(thing: Mapping[str, Any]) -> Object:
    """What is answered of an object; its parts are the object's own."""
    return {key: value for key, value in thing.items() if not key.startswith("_")}


def owner(thing: Object) -> Object:
    """The reference by which a child names this object as its controller."""
    return {
        "apiVersion": thing["apiVersion"],
        "kind": thing["kind"],
        "name": thing["metadata"]["name"],
        "uid": thing["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def is_chosen(thing: Object, labels: str, fields: str) -> bool:
    """Whether selectors of labels (KEY, KEY=VALUE) and fields choose an object; "" chooses all."""
    own = thing["metadata"].get("labels") or {}
    return all(_fits(own, term) for term in labels.split(",") if term) and all(
        _field(thing, term) for term in fields.split(",") if term
    )


def _fits(own: Mapping[str, str], term: str) -> bool:
    key, operator, value = term.partition("=")
    return key in own if not operator else own.get(key) == value


def _field(thing: Object, term: str) -> bool:
    key, _, value = term.replace("==", "=").partition("=")
    negated = key.endswith("!")
    found: Any = thing
    for part in key.rstrip("!").split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return (str(found or "") == value) != negated


def condition(thing: Object, name: str) -> Object:
    """A condition of an object; {} when it says nothing of it."""
    found = (thing.get("status") or {}).get("conditions") or []
    return next((it for it in found if it["type"] == name), {})


def holds(thing: Object, name: str) -> bool:
    """Whether a condition is true."""
    return bool(condition(thing, name).get("status") == "True")


def tell(world: World, thing: Object, name: str, holds: bool, reason: str, message: str) -> None:  # noqa: FBT001, PLR0913, PLR0917 - the parts of a condition
    """Set a condition; the moment of its last change stays unless it changes."""
    status = thing.setdefault("status", {})
    known = status.setdefault("conditions", [])
    entry = {
        "type": name,
        "status": str(holds),
        "reason": reason,
        "message": message,
        "lastTransitionTime": world.stamp,
    }
    for index, before in enumerate(known):
        if before["type"] == name:
            if before["status"] == entry["status"]:
                entry["lastTransitionTime"] = before["lastTransitionTime"]
            known[index] = entry
            return
    known.append(entry)


def warn(world: World, thing: Object, reason: str, message: str) -> None:
    """Note something that went wrong as an event of an object; the same again is not new."""
    note(world, thing, "Warning", reason, message)


def note(world: World, thing: Object, kind_of_event: str, reason: str, message: str) -> None:
    """Note an event of an object; the same again is not new."""
    kind = world.own("v1", "events")
    digest = hashlib.sha256(f"{reason} {message}".encode()).hexdigest()[:16]
    metadata = thing["metadata"]
    namespace = metadata.get("namespace", "default")
    name = f"{metadata['name']}.{digest}"
    about = {"kind": thing["kind"], "apiVersion": thing["apiVersion"], "uid": metadata["uid"]}
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": name, "namespace": namespace},
        "involvedObject": {**about, "name": metadata["name"], "namespace": namespace},
        "type": kind_of_event,
        "reason": reason,
        "message": message,
        "firstTimestamp": world.stamp,
        "lastTimestamp": world.stamp,
        "count": 1,
    }
    if world.get(kind, namespace, name) is None:
        world.put(kind, event)
