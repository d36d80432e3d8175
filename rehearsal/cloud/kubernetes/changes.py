"""What a Kubernetes API answers besides objects: refusals, lists.

Server-side apply: whose is which field.

A field is the path of a leaf: names of maps, and keys of list entries that have a key. Lists of
entries without a key, and lists of which nobody says that they have one, are one leaf each.
"""

from __future__ import annotations

import copy
import itertools
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from rehearsal.cloud.kubernetes.objects import Object
from rehearsal.cloud.wire import Reply

_REASONS: Final[Mapping[int, str]] = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    409: "Conflict",
    422: "Invalid",
    500: "InternalError",
    501: "NotImplemented",
}


class Refusal(Exception):  # noqa: N818 - what an API says, not a fault
    """A refusal in the form of Kubernetes."""

    def __init__(self, code: int, message: str, reason: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.reason = reason or _REASONS[code]

    def reply(self) -> Reply:
        """The `Status` that says so."""
        body = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }
        return Reply(status=self.code, body=body)


def not_found(resource: str, name: str) -> Refusal:
    """There is no object of that name."""
    return Refusal(404, f'{resource} "{name}" not found')


def no_such_path() -> Refusal:
    """There is no such kind, or nothing at all at this path."""
    return Refusal(404, "the server could not find the requested resource")


def not_simulated(what: str) -> Refusal:
    """What clusters have and this cloud has not."""
    return Refusal(501, f"{what} is not part of the simulated cluster")


def success() -> dict[str, Any]:
    """What a deletion answers."""
    return {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}


APPLY: Final = "application/apply-patch+yaml"
_MERGE: Final = "application/merge-patch+json"


def apply(
    before: Object | None, wanted: Object, *, manager: str, force: bool, stamp: str
) -> Object:
    """An object after a server-side apply."""
    after = copy.deepcopy(before) if before is not None else {"metadata": {}}
    new = leaves(wanted)
    owners = _owners(before)
    mine = owners.pop((manager, "Apply"), set())
    there = leaves(after)
    for (other, _), owned in owners.items():
        taken = {path for path in owned & new.keys() if there.get(path) != new[path]}
        if taken and not force:
            names = ", ".join(".".join(part[2:] for part in path) for path in sorted(taken))
            raise Refusal(
                409, f'Apply failed with {len(taken)} conflict: conflict with "{other}": .{names}'
            )
        owned.difference_update(taken)
    others = set().union(*owners.values()) if owners else set[Path]()
    for path in mine - new.keys() - others:
        drop(after, path)
    for path, value in new.items():
        put(after, path, value)
    after |= {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
    for name in ("name", "namespace"):
        if name in wanted["metadata"]:
            after["metadata"][name] = wanted["metadata"][name]
    owners[manager, "Apply"] = set(new)
    _record(after, before, owners, str(wanted["apiVersion"]), stamp)
    return after


def changed(before: Object, after: Object, manager: str, stamp: str) -> Object:
    """An object after a change by other means than apply: what differs is the manager's."""
    old, new = leaves(before), leaves(after)
    differing = {path for path, value in new.items() if old.get(path) != value}
    if not differing and old.keys() == new.keys():
        return after
    owners = _owners(before)
    for owned in owners.values():
        owned.difference_update(differing, old.keys() - new.keys())
    owners.setdefault((manager, "Update"), set()).update(differing)
    _record(after, before, owners, str(after["apiVersion"]), stamp)
    return after


def _owners(thing: Object | None) -> dict[tuple[str, str], set[Path]]:
    entries = ((thing or {}).get("metadata") or {}).get("managedFields") or []
    return {(it["manager"], it["operation"]): set(of_tree(it["fieldsV1"])) for it in entries}


def _record(
    after: Object,
    before: Object | None,
    owners: Mapping[tuple[str, str], set[Path]],
    version: str,
    stamp: str,
) -> None:
    """Write down who owns what; a manager whose fields are as they were keeps its moment."""
    known = {
        (it["manager"], it["operation"]): it
        for it in ((before or {}).get("metadata") or {}).get("managedFields") or []
    }
    entries = []
    for (manager, operation), owned in owners.items():
        now_owned = tree(sorted(owned))
        old = known.get((manager, operation))
        entry = {
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "time": stamp,
            "fieldsType": "FieldsV1",
            "fieldsV1": now_owned,
        }
        same = old is not None and old["fieldsV1"] == now_owned and _same(before, after)
        if owned:
            entries.append(old if same and old is not None else entry)
    after["metadata"]["managedFields"] = entries


def _same(before: Object | None, after: Object) -> bool:
    return before is not None and leaves(before) == leaves(after)


def patch(before: Object, content_type: str, body: Any) -> Object:
    """An object after a patch."""
    if content_type == _MERGE:
        merged = _merge(before, body)
        return dict(merged)
    raise not_simulated(content_type)


def _merge(before: Any, changes: Any) -> Any:
    """A merge patch (RFC 7396)."""
    if not isinstance(changes, dict):
        return changes
    result = dict(before) if isinstance(before, dict) else {}
    for key, value in changes.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = _merge(result.get(key), value)
    return result


Path = tuple[str, ...]

# The key of the entries of well-known lists, by the list's name.
_KEYS: Final[Mapping[str, str]] = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "initContainers": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
# What names an object, and what only the API writes, has no owner.
_NOBODYS: Final = frozenset(
    {
        ("f:apiVersion",),
        ("f:kind",),
        *(
            ("f:metadata", f"f:{name}")
            for name in (
                "creationTimestamp",
                "generation",
                "name",
                "namespace",
                "resourceVersion",
                "uid",
            )
        ),
    }
)


def leaves(document: Mapping[str, Any]) -> dict[Path, Any]:
    """The owned leaves of a document, with their values."""
    return {
        path: value
        for path, value in _leaves(document, ())
        if path not in _NOBODYS and path[:2] != ("f:metadata", "f:managedFields")
    }


def _leaves(value: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from _leaves(inner, (*path, f"f:{name}"))
    elif (key := _key(value, path)) is not None:
        for entry in value:
            inside = (*path, f"k:{json.dumps({key: entry[key]})}")
            # The key goes with the entry: it has no owner of its own.
            rest = {name: inner for name, inner in entry.items() if name != key}
            yield from _leaves(rest, inside) if rest else ((inside, {}),)
    else:
        yield path, value


def _key(value: Any, path: Path) -> str | None:
    """The key by which a list's entries are told apart; None for one that is a leaf."""
    if not isinstance(value, list) or not value or not path:
        return None
    key = _KEYS.get(path[-1].removeprefix("f:"))
    entries = all(isinstance(it, dict) and key in it for it in value)
    return key if key and entries else None


def put(document: dict[str, Any], path: Path, value: Any) -> None:
    """Set a leaf."""
    at: Any = document
    for part, following in itertools.pairwise(path):
        at = _step(at, part, [] if following.startswith("k:") else {})
    last = path[-1]
    if last.startswith("f:"):
        at[last[2:]] = value
    else:
        _step(at, last, {})


def _step(at: Any, part: str, missing: Any) -> Any:
    if part.startswith("f:"):
        found = at.get(part[2:])
        if not isinstance(found, type(missing)):
            found = at[part[2:]] = missing
        return found
    key = json.loads(part[2:])
    for entry in at:
        if key.items() <= entry.items():
            return entry
    at.append(dict(key))
    return at[-1]


def drop(document: dict[str, Any], path: Path) -> None:
    """Remove a leaf, and what has become empty around it."""
    if path[0].startswith("f:") and len(path) == 1:
        document.pop(path[0][2:], None)
        return
    inner = _find(document, path[0])
    if inner is None:
        return
    if len(path) > 1:
        drop(inner, path[1:])
    if isinstance(document, list):
        if not inner or inner == json.loads(path[0][2:]):
            document.remove(inner)
    elif not inner and path[0] != "f:metadata":
        document.pop(path[0][2:], None)


def _find(at: Any, part: str) -> Any:
    if part.startswith("f:"):
        return at.get(part[2:]) if isinstance(at, dict) else None
    key = json.loads(part[2:])
    return next((it for it in at if key.items() <= it.items()), None)


def tree(paths: list[Path]) -> dict[str, Any]:
    """Paths in the form of `fieldsV1`."""
    result: dict[str, Any] = {}
    for path in paths:
        at = result
        for part in path:
            at = at.setdefault(part, {})
    return result


def of_tree(fields: Mapping[str, Any], path: Path = ()) -> Iterator[Path]:
    """The paths of a `fieldsV1`."""
    for part, inner in fields.items():
        if inner:
            yield from of_tree(inner, (*path, part))
        else:
            yield (*path, part)
