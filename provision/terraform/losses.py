"""What a saved Terraform plan would take away, judged by what the cloud really has.

`before` of a change is what Google said when the plan was made: it knows a group that somebody
resized by hand, and a resource that is only now imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    Values = Mapping[str, Any]


def of(change: Mapping[str, Any]) -> Iterator[str]:
    """The losses of one entry of "resource_changes", in sentences; none for most.

    Args:
        change: The entry.
    """
    address, actions = change["address"], change["change"]["actions"]
    before, after = change["change"].get("before") or {}, change["change"].get("after") or {}
    if "delete" in actions:
        verb = "replaced" if "create" in actions else "removed"
        yield f"{address} would be {verb}{_content(change['type'], before)}"
    elif "update" in actions and change["type"] in _SMALLER:
        yield from _SMALLER[change["type"]](address, before, after)


def _content(type_: str, before: Values) -> str:
    """What goes with a resource, as the end of a sentence."""
    match type_:
        case resources.GROUP.type if before.get("target_size"):
            return f", with its {before['target_size']} VMs"
        case resources.NODE_POOL.type if before.get("node_count"):
            return f", with its {before['node_count']} nodes"
        case resources.FILESTORE.type:
            return f", with all files on its {_capacity(before)} GB"
        case _:
            return ""


def _smaller_group(address: str, before: Values, after: Values) -> Iterator[str]:
    yield from _fewer(address, before.get("target_size"), after.get("target_size"), "VMs")


def _smaller_pool(address: str, before: Values, after: Values) -> Iterator[str]:
    left = set(before.get("node_locations") or ()) - set(after.get("node_locations") or ())
    if left:
        yield f"{address} would lose its nodes in {', '.join(sorted(left))} and get new ones"
    yield from _fewer(address, before.get("node_count"), after.get("node_count"), "nodes")


def _fewer(address: str, old: object, new: object, members: str) -> Iterator[str]:
    if isinstance(old, int) and isinstance(new, int) and new < old:
        fewer = f"from {old} to {new} {members}"
        yield f"{address} would shrink {fewer}; Google chooses which to delete"


def _smaller_share(address: str, before: Values, after: Values) -> Iterator[str]:
    old, new = _capacity(before), _capacity(after)
    if isinstance(old, int) and isinstance(new, int) and new < old:
        yield f"{address} would shrink from {old} to {new} GB"


def _capacity(values: Values) -> object:
    shares = values.get("file_shares") or [{}]
    return shares[0].get("capacity_gb")


_SMALLER: Final[Mapping[str, Callable[[str, Values, Values], Iterator[str]]]] = {
    resources.GROUP.type: _smaller_group,
    resources.NODE_POOL.type: _smaller_pool,
    resources.FILESTORE.type: _smaller_share,
}
"""The types that an in-place change can make smaller -> what that takes away."""
