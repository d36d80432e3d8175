"""google_compute_firewall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Scope, Send, Table
from rehearsal.provider.resources.network import TAGS
from rehearsal.provider.resources.rest import Patch, Rest
from rehearsal.provider.resources.subnetwork import NETWORK

if TYPE_CHECKING:
    from rehearsal.provider.resource import State


def _order(rule: State) -> str:
    """What the provider hashes a rule by."""
    return "".join(f"{each}-" for each in (rule["protocol"].lower(), *sorted(rule["ports"] or [])))


def _rules(name: str, wire: str) -> Field:
    return Field(
        name, wire, send=Send.FILLED, fields=(Field("protocol", "IPProtocol"),), order=_order
    )


def _expand_logging(blocks: list[State], scope: Scope) -> dict[str, Any]:
    """Logging is on if it has a block, or by the older switch; "off" is sent."""
    if blocks:
        return {"enable": True, "metadata": blocks[0].get("metadata")}
    return {"enable": scope.state.get("enable_logging") is True}


def _flatten_logging(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    if not answer or answer.get("enable") is False:
        return []
    return [{"metadata": answer.get("metadata")}]


def _encode(body: dict[str, Any], _: Scope, create: bool) -> dict[str, Any]:  # noqa: FBT001 - the table's interface
    """A create leaves empty lists out; an update says them, to take their members away."""
    if not create:
        return {**{name: [] for name in ("allowed", "denied")}, **body}
    return {name: value for name, value in body.items() if value != []}


def _logging_is_as_switched(prior: list[State], wanted: list[State], state: State) -> bool:
    """The older switch alone doesn't ask for the block."""
    return bool(prior) and not wanted and state.get("enable_logging") is True


_FIELDS = (
    _rules("allow", "allowed"),
    _rules("deny", "denied"),
    Field("description", send=Send.GIVEN),
    Field("destination_ranges", send=Send.GIVEN),
    Field("disabled", send=Send.GIVEN),
    Field("log_config", send=Send.GIVEN, expand=_expand_logging, flatten=_flatten_logging),
    NETWORK,
    Field("priority", send=Send.GIVEN),
    Field("source_ranges", send=Send.GIVEN),
    Field("source_service_accounts", send=Send.GIVEN),
    Field("source_tags", send=Send.GIVEN),
    Field("target_service_accounts", send=Send.GIVEN),
    Field("target_tags", send=Send.GIVEN),
)

RESOURCE = Rest(
    label="Firewall",
    collection="projects/{project}/global/firewalls",
    fields=Table(
        "google_compute_firewall",
        *_FIELDS,
        Field("direction"),
        Field("name"),
        Field("creation_timestamp", send=Send.NEVER),
        Field(
            "enable_logging",
            "logConfig",
            send=Send.NEVER,
            flatten=lambda answer, _: bool((answer or {}).get("enable")),
        ),
        TAGS,
    ),
    patches=(Patch((*(each.name for each in _FIELDS), "enable_logging")),),
    suppress={
        "allow.protocol": links.same_text,
        "deny.protocol": links.same_text,
        "network": links.same_object,
        "log_config": _logging_is_as_switched,
    },
    encode=_encode,
)
