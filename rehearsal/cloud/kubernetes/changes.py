"""Applying, patching and replacing objects."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import fields
from rehearsal.cloud.kubernetes.answers import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rehearsal.cloud.kubernetes.fields import Path
    from rehearsal.cloud.kubernetes.objects import Object

APPLY: Final = "application/apply-patch+yaml"
_JSON_PATCH: Final = "application/json-patch+json"
_MERGES: Final = frozenset(
    {"application/merge-patch+json", "application/strategic-merge-patch+json"}
)


def apply(
    before: Object | None, wanted: Object, *, manager: str, force: bool, stamp: str
) -> Object:
    """An object after a server-side apply."""
    after = copy.deepcopy(before) if before is not None else {"metadata": {}}
    new = fields.leaves(wanted)
    owners = _owners(before)
    mine = owners.pop((manager, "Apply"), set())
    there = fields.leaves(after)
    for (other, _), owned in owners.items():
        taken = {path for path in owned & new.keys() if there.get(path) != new[path]}
        if taken and not force:
            names = ", ".join(".".join(part[2:] for part in path) for path in sorted(taken))
            raise Refusal(
                409, f'Apply failed with {len(taken)} conflict: conflict with "{other}": .{names}'
            )
        owned.difference_update(taken)
    others = set().union(*owners.values()) if owners else set[fields.Path]()
    for path in mine - new.keys() - others:
        fields.drop(after, path)
    for path, value in new.items():
        fields.put(after, path, value)
    after |= {"apiVersion": wanted["apiVersion"], "kind": wanted["kind"]}
    for name in ("name", "namespace"):
        if name in wanted["metadata"]:
            after["metadata"][name] = wanted["metadata"][name]
    owners[manager, "Apply"] = set(new)
    _record(after, before, owners, str(wanted["apiVersion"]), stamp)
    return after


def changed(before: Object, after: Object, manager: str, stamp: str) -> Object:
    """An object after a change by other means than apply: what differs is the manager's."""
    old, new = fields.leaves(before), fields.leaves(after)
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
    return {(it["manager"], it["operation"]): set(fields.of_tree(it["fieldsV1"])) for it in entries}


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
        tree = fields.tree(sorted(owned))
        old = known.get((manager, operation))
        entry = {
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "time": stamp,
            "fieldsType": "FieldsV1",
            "fieldsV1": tree,
        }
        same = old is not None and old["fieldsV1"] == tree and _same(before, after)
        if owned:
            entries.append(old if same and old is not None else entry)
    after["metadata"]["managedFields"] = entries


def _same(before: Object | None, after: Object) -> bool:
    return before is not None and fields.leaves(before) == fields.leaves(after)


def patch(before: Object, content_type: str, body: Any) -> Object:
    """An object after a patch."""
    if content_type in _MERGES:
        merged = _merge(before, body)
        return dict(merged)
    if content_type == _JSON_PATCH:
        after = copy.deepcopy(before)
        for step in body:
            _json_step(after, step)
        return after
    raise Refusal(415, f"the body of the request was in an unknown format: {content_type}")


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


def _json_step(document: Object, step: Mapping[str, Any]) -> None:
    """One step of a JSON patch (RFC 6902): add, replace or remove."""
    *outer, last = [
        part.replace("~1", "/").replace("~0", "~") for part in step["path"].split("/")[1:]
    ]
    at: Any = document
    try:
        for part in outer:
            at = at[int(part)] if isinstance(at, list) else at[part]
        if isinstance(at, list):
            _list_step(at, last, step)
        elif step["op"] == "remove":
            del at[last]
        else:
            at[last] = step["value"]
    except (KeyError, IndexError, ValueError, TypeError) as error:
        raise Refusal(
            422, f"the server rejected our request due to an error in our request: {step['path']}"
        ) from error


def _list_step(at: list[Any], last: str, step: Mapping[str, Any]) -> None:
    position = len(at) if last == "-" else int(last)
    if step["op"] == "add":
        at.insert(position, step["value"])
    elif step["op"] == "remove":
        del at[position]
    else:
        at[position] = step["value"]
