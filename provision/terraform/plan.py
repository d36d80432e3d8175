"""What a saved plan would do, read from the output of `terraform show -json`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from provision.documents.changes import Changes
from provision.google import resources
from provision.terraform import losses, moves

if TYPE_CHECKING:
    from collections.abc import Mapping

_POOL = resources.NODE_POOL.type


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
    def counts(self) -> Changes:
        """What it counts."""
        return Changes(add=self.add, change=self.change, destroy=self.destroy)

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no changes at all."""
        return not (self.add or self.change or self.destroy or self.imported or self.outputs)


def read(document: Mapping[str, Any]) -> Plan:
    """Make a `Plan` from Terraform's JSON format of a plan."""
    add = change = destroy = 0
    found: list[str] = []
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
        elif "delete" in actions and (moved := moves.sentence(resource)):
            machines.append(moved)
        else:
            found += losses.of(resource)
    outputs = document.get("output_changes", {})
    return Plan(
        add=add,
        change=change,
        destroy=destroy,
        outputs=any(output["actions"] != ["no-op"] for output in outputs.values()),
        imported=imported,
        creations=tuple(creations),
        tainted_pools=tuple(tainted_pools),
        losses=(*machines, *found),
        replaced_too=tuple(moves.replaced_too(document)),
        emptied=moves.emptied(document),
    )


def _is_tainted_pool(resource: Mapping[str, Any]) -> bool:
    reason = resource.get("action_reason")
    return bool(resource["type"] == _POOL and reason == "replace_because_tainted")


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
