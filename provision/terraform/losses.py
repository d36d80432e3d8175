"""What a saved Terraform plan would take away, judged by what the cloud really has.

`before` of a change is what Google said when the plan was made: it knows a group that somebody
resized by hand, and a resource that is only now imported.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from provision.documents.plan import Loss
from provision.google import resources
from provision.terraform import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Values = Mapping[str, Any]

_LOST: Final = " are lost"
_REPLACING: Final = ("disk_size_gb", "disk_type", "machine_type")
"""Fields of a pool that are changed in place, but each of its nodes is replaced for that.

Each "initiates an upgrade operation that migrates the nodes in the node pool" (container v1,
UpdateNodePoolRequest: read in 2026-11). So does another version of a pool that has nodes; the plan
asks for that of empty pools alone, which may get a node meanwhile.
"""


def of(change: Mapping[str, Any]) -> Iterator[Loss]:
    """The losses of one entry of "resource_changes"; none for most."""
    type_, actions = change["type"], change["change"]["actions"]
    before, after = change["change"].get("before") or {}, change["change"].get("after") or {}
    if "delete" in actions:
        words, machines = _gone(change, before, again="create" in actions)
        yield _loss(change, words, machines, data=type_ == resources.FILESTORE.type)
    elif "update" in actions and type_ in _SMALLER:
        for words, machines in _SMALLER[type_](before, after):
            yield _loss(change, words, machines, data=type_ == resources.FILESTORE.type)


def mounted(loss: Loss, staying: int) -> Loss:
    """A loss, and what that of a file share means for VMs that run on: their mounts are hard."""
    if not (staying and loss.data and loss.words.endswith(_LOST)):
        return loss
    theirs = "the VM that runs on has" if staying == 1 else f"{staying} VMs that run on have"
    words = f"{loss.words}; {theirs} it mounted, and what touches it there hangs"
    return dataclasses.replace(loss, words=words)


def called(change: Mapping[str, Any]) -> tuple[str, str]:
    """What people call the type of a change's resource, and its name; "" if it has none."""
    values = change["change"].get("before") or change["change"].get("after") or {}
    name = values.get("name") or values.get("account_id") or values.get("role") or ""
    return resources.noun(change["type"]), str(name).rpartition("/")[2]


def _loss(change: Mapping[str, Any], words: str, machines: int, *, data: bool) -> Loss:
    noun, name = called(change)
    return Loss(
        address=change["address"], noun=noun, name=name, words=words, machines=machines, data=data
    )


def _gone(change: Mapping[str, Any], before: Values, *, again: bool) -> tuple[str, int]:
    """What is deleted or replaced, in words, and how many machines end."""
    moved = moves.sentence(change)
    count = moves.machines(change)
    noun, name = called(change)
    what = f"{noun} {name}" if name else f"the {noun}"
    end = "ends" if count == 1 else "end"
    match change["type"]:
        case _ if moved is not None:
            words = moved
        case resources.GROUP.type if count:
            words = f"{moves.counted(count, 'VM')} {end}, with the {what}"
        case resources.NODE_POOL.type if count:
            words = f"{moves.counted(count, 'node')} {end}, with the {what}"
        case resources.CLUSTER.type:
            how = "is replaced: all that runs in it ends" if again else "ends, with all in it"
            words = f"{what} {how}"
        case resources.FILESTORE.type:
            how = "is replaced by an empty one" if again else "is deleted"
            words = f"{what} {how}: all files on its {_capacity(before)} GB{_LOST}"
        case resources.TEMPLATE.type if again:
            words = f"{what} is replaced, for VMs that come"
        case _:
            words = f"{what} is {'replaced' if again else 'deleted'}"
    return words, count


def _smaller_group(before: Values, after: Values) -> Iterator[tuple[str, int]]:
    yield from _fewer("", before.get("target_size"), after.get("target_size"), "VM")


def _smaller_pool(before: Values, after: Values) -> Iterator[tuple[str, int]]:
    pool = f"node pool {before.get('name', '')}: "
    left = set(before.get("node_locations") or ()) - set(after.get("node_locations") or ())
    if left:
        count = before.get("node_count")
        words = f"{pool}its nodes in {', '.join(sorted(left))} end, new ones begin elsewhere"
        yield words, count if isinstance(count, int) else 0
    old, new = _node(before), _node(after)
    changed = [key for key in _REPLACING if new.get(key) not in {None, old.get(key)}]
    version = after.get("version")
    if before.get("node_count") and version not in {None, before.get("version")}:
        changed.append("version")
    if changed:
        count = before.get("node_count")
        how = "is replaced" if count == 1 else "are replaced one after the other"
        words = f"{pool}{moves.counted(count, 'node')} {how}, with all that runs there"
        yield f"{words}: {', '.join(changed)}", count if isinstance(count, int) else 1
    yield from _fewer(pool, before.get("node_count"), after.get("node_count"), "node")


def _node(pool: Values) -> Values:
    return next(iter(pool.get("node_config") or []), {})


def _fewer(pool: str, old: object, new: object, member: str) -> Iterator[tuple[str, int]]:
    if isinstance(old, int) and isinstance(new, int) and new < old:
        end = "ends" if old - new == 1 else "end"
        yield f"{pool}{old - new} of {old} {member}s {end}; Google chooses which", old - new


def _smaller_share(before: Values, after: Values) -> Iterator[tuple[str, int]]:
    old, new = _capacity(before), _capacity(after)
    if isinstance(old, int) and isinstance(new, int) and new < old:
        yield f"Filestore {before.get('name', '')} shrinks from {old} to {new} GB", 0


def _capacity(values: Values) -> object:
    shares = values.get("file_shares") or [{}]
    return shares[0].get("capacity_gb")


_SMALLER: Final[Mapping[str, Callable[[Values, Values], Iterator[tuple[str, int]]]]] = {
    resources.GROUP.type: _smaller_group,
    resources.NODE_POOL.type: _smaller_pool,
    resources.FILESTORE.type: _smaller_share,
}
"""The types that an in-place change can make smaller -> what that takes away."""
