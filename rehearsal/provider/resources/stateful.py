"""What a managed group's VMs keep when they are recreated: disks and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources.fields import Field, Kind, Scope, Send

if TYPE_CHECKING:
    from rehearsal.provider.resource import State

# The attribute, what Google calls it, and the attribute that tells its blocks apart.
_PARTS = (
    ("stateful_disk", "disks", "device_name"),
    ("stateful_internal_ip", "internalIPs", "interface_name"),
    ("stateful_external_ip", "externalIPs", "interface_name"),
)


def _field(name: str, key: str, label: str) -> Field:
    def read(answer: dict[str, Any] | None, where: Scope) -> list[State]:
        """Google answers a map; the state keeps the configuration's order."""
        configured = [block[label] for block in where.state.get(name) or []]
        found = {it: each.get("autoDelete", "") for it, each in (answer or {}).items()}
        order = sorted(found, key=lambda it: (it not in configured, _index(configured, it)))
        return [{label: it, "delete_rule": found[it]} for it in order]

    return Field(name, key, kind=Kind.BLOCKS, send=Send.NEVER, flatten=read)


def _index(names: list[str], name: str) -> int:
    return names.index(name) if name in names else len(names)


STATEFUL = tuple(_field(*part) for part in _PARTS)


def stateful_policy(where: Scope) -> dict[str, Any]:
    """The policy of a request: what changes, and null for what goes away."""
    preserved = {}
    for name, key, label in _PARTS:
        new = _rules(where.state, name, label)
        old = _rules(where.prior or {}, name, label)
        if new != old:
            preserved[key] = {**new, **dict.fromkeys(it for it in old if it not in new)}
    return {"preservedState": preserved}


def _rules(state: State, name: str, label: str) -> dict[str, Any]:
    return {it[label]: {"autoDelete": it.get("delete_rule")} for it in state.get(name) or []}
