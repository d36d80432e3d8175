"""What a saved plan would do, and what it would take away: read from `terraform show -json`.

`before` of a change is what Google said when the plan was made: it knows a group that somebody
resized by hand, and a resource that is only now imported.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from provision.documents.plan import Changes, Count, Loss
from provision.google import resources
from provision.terraform import moves

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    Values = Mapping[str, Any]

UNKNOWN: Final = "KNOWN-AFTER-CREATE"
"""What stands in a planned value for what only the apply tells."""

_MACHINES: Final = frozenset({resources.GROUP.noun, resources.NODE_POOL.noun})
_LOST: Final = " are lost"
_REPLACING: Final = ("disk_size_gb", "disk_type", "machine_type")
"""Fields of a pool that are changed in place, but each of its nodes is replaced for that.

Each "initiates an upgrade operation that migrates the nodes in the node pool" (container v1,
UpdateNodePoolRequest: read in 2026-11). So does another version of a pool that has nodes; the plan
asks for that of empty pools alone, which may get a node meanwhile, and of `SHORT_LIVED` ones.
"""
SHORT_LIVED: Final = "SHORT_LIVED"
"""The strategy of upgrades that GKE gives to pools of flex start and of queues.

Their nodes run until their own end, and new ones are made as the pool is then (GKE, "Node upgrade
strategies", 2026-04-13).
"""


@dataclass(frozen=True, kw_only=True)
class Creation:
    """One resource that a plan would create."""

    address: str
    type: str  # Terraform's resource type
    values: Mapping[str, Any]  # the planned values, as far as they are known before the apply


@dataclass(frozen=True, kw_only=True)
class Existing:
    """One resource that exists, and that a plan would change or delete."""

    address: str
    type: str  # Terraform's resource type
    values: Mapping[str, Any]
    called: str  # what people call it, such as "placement policy np-placement"


@dataclass(frozen=True, kw_only=True)
class Grant:
    """A role of an account."""

    account: str  # its email address
    role: str  # the role, such as "roles/logging.logWriter"
    bucket: str | None  # the bucket that it is for; None for the project or an account


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The counts of a plan, and what somebody has to approve first."""

    add: int = 0  # resources that would be created, including replacements
    change: int = 0  # resources that would be changed in place
    destroy: int = 0  # resources that would be destroyed, including replacements
    outputs: bool = False  # whether outputs of the root would change
    # the root's outputs after the apply, without sensitive ones; `UNKNOWN` stands in them for what
    # only the apply tells
    foreseen: Mapping[str, Any] = field(default_factory=dict)
    imported: int = 0  # existing resources that would be imported into the state
    # the resources that would be created, including replacements under a new name
    creations: tuple[Creation, ...] = ()
    # whether machines were looked at, and what changes nothing leaves all of the newest template
    is_newest: bool = False
    touched: tuple[Existing, ...] = ()  # what exists and would be changed or deleted, in any way
    # the resources that would be deleted, including replacements
    removals: tuple[Existing, ...] = ()
    # what people call what stays for machines that hold it, out of Terraform's sight
    held: tuple[str, ...] = ()
    # whether what an earlier run made takes the place of what the state had, which is out of
    # Terraform's sight then
    displaces: bool = False
    # whether a group is replaced for nothing but the workload policy that it loses
    unbinds: bool = False
    # tainted node pools, which would be replaced because their creation failed
    tainted_pools: tuple[Creation, ...] = ()
    # existing resources that would be replaced, removed or shrunk, those that hold machines first
    losses: tuple[Loss, ...] = ()
    # addresses that the plan leaves in place although they would be in the way of what it does: a
    # plan that replaces them as well is one that Google takes
    replaced_too: tuple[str, ...] = ()
    # what happens, by what people call the resources, what matters most first
    nouns: tuple[Count, ...] = ()
    staying: int = 0  # VMs of groups that the plan leaves in their place
    coming: int = 0  # VMs by which those groups grow
    grants: tuple[Grant, ...] = ()  # the roles that accounts have after the plan
    # VMs that end in a group of flex start and that nothing in the plan requests again
    emptied: int = 0

    @property
    def counts(self) -> Changes:
        """What it counts."""
        return Changes(add=self.add, change=self.change, destroy=self.destroy)

    @property
    def is_empty(self) -> bool:
        """Whether the plan has no changes at all."""
        return not (self.matters or self.outputs)

    @property
    def matters(self) -> bool:
        """Whether more changes than outputs, which nobody sees until they are read."""
        return bool(self.counts or self.imported)


def read(document: Mapping[str, Any]) -> Plan:
    """Make a `Plan` from Terraform's JSON format of a plan."""
    add = change = destroy = imported = 0
    found: list[Loss] = []
    creations = []
    tainted_pools = []
    nouns: dict[str, Count] = {}
    for resource in document.get("resource_changes", []):
        actions = resource["change"]["actions"]
        add += "create" in actions
        change += "update" in actions
        destroy += "delete" in actions
        imported += "importing" in resource["change"]
        _count(nouns, resource["type"], actions)
        if actions[:1] == ["create"]:
            creations.append(_creation(resource))
        is_tainted = resource.get("action_reason") == "replace_because_tainted"
        if is_tainted and resource["type"] == resources.NODE_POOL.type:
            tainted_pools.append(_creation(resource))
        else:
            found += _losses(resource)
    outputs = document.get("output_changes", {})
    staying, coming = _staying(document)
    mounted = [_mounted(loss, staying) for loss in found]
    return Plan(
        add=add,
        change=change,
        destroy=destroy,
        outputs=any(output["actions"] != ["no-op"] for output in outputs.values()),
        foreseen={
            name: _filled(change.get("after"), change.get("after_unknown"))
            for name, change in outputs.items()
            if "delete" not in change["actions"] and not change.get("after_sensitive")
        },
        imported=imported,
        touched=tuple(_existing(document, {"delete", "update"})),
        # What is deposed has no address of its own, and no machine: it was replaced before.
        removals=tuple(_existing(document, {"delete"}, deposed=False)),
        creations=tuple(creations),
        tainted_pools=tuple(tainted_pools),
        losses=tuple(sorted(mounted, key=lambda loss: loss.noun not in _MACHINES)),
        replaced_too=tuple(moves.replaced_too(document)),
        nouns=tuple(sorted(nouns.values(), key=lambda one: resources.place(one.noun))),
        staying=staying,
        coming=coming,
        grants=tuple(_grants(document)),
        emptied=moves.emptied(document),
        unbinds=moves.unbinds(document),
    )


def _filled(known: Any, unknown: Any) -> Any:
    """A planned value; Terraform leaves out of it what is not known, and marks that beside it."""
    if unknown is True:
        return UNKNOWN
    if isinstance(unknown, list):
        values = [*(known or []), *(len(unknown) - len(known or [])) * [None]]
        marks = [*unknown, *(len(values) - len(unknown)) * [False]]
        return [_filled(*pair) for pair in zip(values, marks, strict=True)]
    if isinstance(unknown, dict):
        found = dict(known or {})
        return found | {name: _filled(found.get(name), mark) for name, mark in unknown.items()}
    return known


def _count(nouns: dict[str, Count], type_: str, actions: Sequence[str]) -> None:
    """Add what happens to one resource to the counts by noun."""
    if not {"create", "update", "delete"} & set(actions):
        return
    noun = resources.noun(type_)
    so_far = nouns.get(noun) or Count(noun=noun, add=0, change=0, destroy=0)
    nouns[noun] = Count(
        noun=noun,
        add=so_far.add + ("create" in actions),
        change=so_far.change + ("update" in actions),
        destroy=so_far.destroy + ("delete" in actions),
    )


def _staying(document: Mapping[str, Any]) -> tuple[int, int]:
    """The VMs of groups that are neither replaced nor deleted, and those by which they grow.

    Without those that a change ends.
    """
    count = more = 0
    for resource in document.get("resource_changes", []):
        if resource["type"] == resources.GROUP.type:
            change = resource["change"]
            if "delete" not in change["actions"]:
                before, after = change.get("before") or {}, change.get("after") or {}
                sizes = [before.get("target_size") or 0, after.get("target_size")]
                known = [size for size in sizes if isinstance(size, int)]
                count += min(known)
                more += (known[-1] - known[0]) * (known[-1] > known[0] and bool(before))
    return count, more


def _existing(
    document: Mapping[str, Any], actions: set[str], *, deposed: bool = True
) -> Iterator[Existing]:
    for resource in document.get("resource_changes", []):
        if actions & set(resource["change"]["actions"]) and (deposed or "deposed" not in resource):
            yield Existing(
                address=resource["address"],
                type=resource["type"],
                values=resource["change"]["before"],
                called=" ".join(filter(None, _called(resource))),
            )


def _grants(document: Mapping[str, Any]) -> Iterator[Grant]:
    for resource in document.get("resource_changes", []):
        after = resource["change"].get("after") or {}
        if after.get("role") and after.get("member"):
            yield Grant(
                account=after["member"].partition(":")[2],
                role=after["role"],
                bucket=after.get("bucket"),
            )


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


def _losses(change: Mapping[str, Any]) -> Iterator[Loss]:
    """The losses of one entry of "resource_changes"; none for most."""
    type_, actions = change["type"], change["change"]["actions"]
    before, after = change["change"].get("before") or {}, change["change"].get("after") or {}
    if "delete" in actions:
        words, machines = _gone(change, before, again="create" in actions)
        yield _loss(change, words, machines, data=type_ == resources.FILESTORE.type)
    elif "update" in actions and type_ in _SMALLER:
        for words, machines in _SMALLER[type_](before, after):
            yield _loss(change, words, machines, data=type_ == resources.FILESTORE.type)


def _mounted(loss: Loss, staying: int) -> Loss:
    """A loss, and what that of a file share means for VMs that run on: their mounts are hard."""
    if not (staying and loss.data and loss.words.endswith(_LOST)):
        return loss
    theirs = "the VM that runs on has" if staying == 1 else f"{staying} VMs that run on have"
    words = f"{loss.words}; {theirs} it mounted, and what touches it there hangs"
    return dataclasses.replace(loss, words=words)


def _called(change: Mapping[str, Any]) -> tuple[str, str]:
    """What people call the type of a change's resource, and its name; "" if it has none."""
    values = change["change"].get("before") or change["change"].get("after") or {}
    name = values.get("name") or values.get("account_id") or values.get("role") or ""
    return resources.noun(change["type"]), str(name).rpartition("/")[2]


def _loss(change: Mapping[str, Any], words: str, machines: int, *, data: bool) -> Loss:
    noun, name = _called(change)
    return Loss(
        address=change["address"], noun=noun, name=name, words=words, machines=machines, data=data
    )


def _gone(change: Mapping[str, Any], before: Values, *, again: bool) -> tuple[str, int]:
    """What is deleted or replaced, in words, and how many machines end."""
    moved = moves.sentence(change)
    count = moves.machines(change)
    noun, name = _called(change)
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
    upgrades: Values = next(iter(before.get("upgrade_settings") or []), {})
    if changed and upgrades.get("strategy") != SHORT_LIVED:
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
