"""Server-side apply: whose is which field.

A field is the path of a leaf: names of maps, and keys of list entries that have a key. Lists of
entries without a key, and lists of which nobody says that they have one, are one leaf each.
"""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
