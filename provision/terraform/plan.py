"""What a saved plan would do, read from the output of `terraform show -json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision.google import resources
from provision.terraform import moves

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_POOL = resources.NODE_POOL.type
_SHRINKABLE = "group"
"""The root's output whose `size` is the number of VMs."""


@dataclass(frozen=True, kw_only=True)
class Creation:
    """One resource that a plan would create.

    Attributes:
        address: Its address in the root.
        type: Terraform's resource type.
        values: The planned values, as far as they are known before the apply.
    """

    address: str
    type: str
    values: Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The counts of a plan, and what somebody has to approve first.

    Attributes:
        add: Resources that would be created, including replacements.
        change: Resources that would be changed in place.
        destroy: Resources that would be destroyed, including replacements.
        outputs: Whether outputs of the root would change.
        imported: Existing resources that would be imported into the state.
        creations: The resources that would be created, including replacements under a new name.
        tainted_pools: Tainted node pools, which would be replaced because their creation failed.
        losses: Sentences about existing resources that would be replaced, removed or shrunk,
            those about machines first.
        replaced_too: Addresses that the plan leaves in place although they would be in the way of
            what it does: a plan that replaces them as well is one that Google takes.
        emptied: VMs that end in a group of flex start and that nothing in the plan requests anew.
    """

    add: int = 0
    change: int = 0
    destroy: int = 0
    outputs: bool = False
    imported: int = 0
    creations: tuple[Creation, ...] = ()
    tainted_pools: tuple[Creation, ...] = ()
    losses: tuple[str, ...] = ()
    replaced_too: tuple[str, ...] = ()
    emptied: int = 0

    @property
    def counts(self) -> dict[str, int]:
        """The counts by Terraform's names."""
        return {"add": self.add, "change": self.change, "destroy": self.destroy}

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no changes at all."""
        return not (self.add or self.change or self.destroy or self.imported or self.outputs)


def read(document: Mapping[str, Any]) -> Plan:
    """Make a `Plan` from Terraform's JSON format of a plan."""
    add = change = destroy = 0
    losses = []
    machines = []
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
            if moved := moves.sentence(resource):
                machines.append(moved)
            else:
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
        losses=(*machines, *losses),
        replaced_too=tuple(moves.replaced_too(document)),
        emptied=moves.emptied(document),
    )


def _is_tainted_pool(resource: Mapping[str, Any]) -> bool:
    reason = resource.get("action_reason")
    return bool(resource["type"] == _POOL and reason == "replace_because_tainted")


def _thinning(resource: Mapping[str, Any]) -> Iterator[str]:
    """The nodes that an in-place change of a node pool would remove, in sentences."""
    address, change = resource["address"], resource["change"]
    before, after = change["before"], change["after"]
    left = set(before.get("node_locations") or ()) - set(after.get("node_locations") or ())
    if left:
        yield f"{address} would lose its nodes in {', '.join(sorted(left))} and get new ones"
    old, new = before.get("node_count"), after.get("node_count")
    if isinstance(old, int) and isinstance(new, int) and new < old:
        yield f"{address} would shrink from {old} to {new} nodes; Google chooses which to delete"


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
        return [f"the group would shrink from {old} to {new} VMs; Google chooses which to delete"]
    return []
