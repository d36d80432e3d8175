"""What a saved Terraform plan would do, read from `terraform show -json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_POOL = resources.NODE_POOL.type
_SHRINKABLE = "group"
"""The root's output whose `size` is the number of VMs."""


@dataclass(frozen=True, kw_only=True)
class Creation:
    """One resource that a plan would make.

    Attributes:
        address: Where the root has it.
        type: Terraform's resource type.
        values: The planned values that are known.
    """

    address: str
    type: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A plan in numbers, and what somebody should agree to first.

    Attributes:
        add: Resources that would be made; a replacement counts here too.
        change: Resources that would be changed in place.
        destroy: Resources that would be removed; a replacement counts here too.
        outputs: Whether outputs of the root would change.
        imported: Resources that exist and would be brought into the state.
        creations: What would be made, a replacement under a new name included.
        tainted_pools: Node pools that would be replaced because they never came to be whole.
        losses: In words, what exists and would be replaced, removed or made smaller.
    """

    add: int = 0
    change: int = 0
    destroy: int = 0
    outputs: bool = False
    imported: int = 0
    creations: tuple[Creation, ...] = ()
    tainted_pools: tuple[Creation, ...] = ()
    losses: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[str, int]:
        """The numbers by Terraform's names."""
        return {"add": self.add, "change": self.change, "destroy": self.destroy}

    @property
    def is_empty(self) -> bool:
        """Whether nothing at all would change."""
        return not (self.add or self.change or self.destroy or self.imported or self.outputs)


def read(document: Mapping[str, Any]) -> Plan:
    """Make a `Plan` of Terraform's JSON form of a plan."""
    add = change = destroy = 0
    losses = []
    imported = 0
    creations = []
    tainted_pools = []
    for resource in document.get("resource_changes", []):
        actions = resource["change"]["actions"]
        add += "create" in actions
        change += "update" in actions
        destroy += "delete" in actions
        imported += "importing" in resource["change"]
        if actions[:1] == ["create"]:
            creations.append(_creation(resource))
        if _is_tainted_pool(resource):
            tainted_pools.append(_creation(resource))
        elif "delete" in actions:
            verb = "replaced" if "create" in actions else "removed"
            losses.append(f"{resource['address']} would be {verb}")
        elif resource["type"] == _POOL and "update" in actions:
            losses += _thinning(resource)
    outputs = document.get("output_changes", {})
    losses += _shrinking(outputs.get(_SHRINKABLE, {}))
    return Plan(
        add=add,
        change=change,
        destroy=destroy,
        outputs=any(output["actions"] != ["no-op"] for output in outputs.values()),
        imported=imported,
        creations=tuple(creations),
        tainted_pools=tuple(tainted_pools),
        losses=tuple(losses),
    )


def _is_tainted_pool(resource: Mapping[str, Any]) -> bool:
    reason = resource.get("action_reason")
    return bool(resource["type"] == _POOL and reason == "replace_because_tainted")


def _thinning(resource: Mapping[str, Any]) -> Iterator[str]:
    """How nodes would go in a change of a pool that Terraform makes in place."""
    address, change = resource["address"], resource["change"]
    before, after = change["before"], change["after"]
    left = set(before.get("node_locations") or ()) - set(after.get("node_locations") or ())
    if left:
        yield f"{address} would lose its nodes in {', '.join(sorted(left))}, and get new ones"
    old, new = before.get("node_count"), after.get("node_count")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        yield f"{address} would shrink from {old} to {new} nodes; Google chooses which go"


def _creation(resource: Mapping[str, Any]) -> Creation:
    return Creation(
        address=resource["address"],
        type=resource["type"],
        values={
            name: value
            for name, value in (resource["change"].get("after") or {}).items()
            if value is not None
        },
    )


def _shrinking(change: Mapping[str, Any]) -> list[str]:
    before, after = change.get("before"), change.get("after")
    if not isinstance(before, dict) or not isinstance(after, dict):
        return []
    old, new = before.get("size"), after.get("size")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        return [f"the group would shrink from {old} to {new} VMs; Google chooses which go"]
    return []
