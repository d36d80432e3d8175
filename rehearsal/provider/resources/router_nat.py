"""google_compute_router_nat: no object of its own in the API, but a part of its router."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    Table,
    expand,
    flatten,
    in_set_order,
    is_zero,
)
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    is_deletable,
    kept,
    parse_import,
    place,
    present,
    scope,
    with_defaults,
)
from rehearsal.provider.resources.router import COLLECTION, lock

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_Nats = list[dict[str, Any]]


def _link(kind: str) -> Callable[[str, Scope], str]:
    def regional(link: str, where: Scope) -> str:
        return links.at(kind, link, project=where.project, region=where.region)

    return regional


def _addresses(values: list[str], where: Scope) -> list[str]:
    return [_link("addresses")(value, where) for value in in_set_order(values)]


def _v1(values: list[str] | None, _: Scope) -> list[str]:
    return [links.v1(value) for value in values or []]


def _address_set(name: str, wire: str, send: Send) -> Field:
    return Field(name, wire, send=send, expand=_addresses, flatten=_v1)


_SUBNETWORK_NAME = Field(
    "name", expand=_link("subnetworks"), flatten=lambda v, _: links.v1(v or "")
)

_MUTABLE = Table(
    "google_compute_router_nat",
    Field("nat_ip_allocate_option"),
    _address_set("nat_ips", "natIps", Send.GIVEN),
    _address_set("drain_nat_ips", "drainNatIps", Send.GIVEN),
    Field("source_subnetwork_ip_ranges_to_nat"),
    Field("subnetwork", "subnetworks", send=Send.GIVEN, fields=(_SUBNETWORK_NAME,)),
    Field("source_subnetwork_ip_ranges_to_nat64"),
    Field("nat64_subnetwork", "nat64Subnetworks", send=Send.GIVEN, fields=(_SUBNETWORK_NAME,)),
    Field("min_ports_per_vm"),
    Field("max_ports_per_vm"),
    Field("enable_dynamic_port_allocation", send=Send.GIVEN),
    Field("udp_idle_timeout_sec"),
    Field("icmp_idle_timeout_sec"),
    Field("tcp_established_idle_timeout_sec"),
    Field("tcp_transitory_idle_timeout_sec"),
    Field("tcp_time_wait_timeout_sec"),
    Field("log_config", send=Send.GIVEN),
    Field(
        "rules",
        send=Send.GIVEN,
        fields=(
            Field("rule_number", send=Send.ALWAYS),
            Field(
                "action",
                fields=(
                    _address_set("source_nat_active_ips", "sourceNatActiveIps", Send.FILLED),
                    _address_set("source_nat_drain_ips", "sourceNatDrainIps", Send.FILLED),
                    Field("source_nat_active_ranges", flatten=_v1),
                    Field("source_nat_drain_ranges", flatten=_v1),
                ),
            ),
        ),
    ),
    Field("enable_endpoint_independent_mapping", send=Send.GIVEN),
)
_TIER = Field("auto_network_tier", kind=Kind.STRING)
_FIELDS = Table(
    "google_compute_router_nat",
    Field("name"),
    *_MUTABLE.given,
    _address_set("initial_nat_ips", "initialNatIps", Send.GIVEN),
    Field("endpoint_types"),
    Field("type"),
    _TIER,
)


class RouterNat:
    """The NATs of a router are one list, which is read, changed and sent back whole."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "router": links.same_object,
        "region": links.same_object,
        "subnetwork.name": links.same_object,
        "nat64_subnetwork.name": links.same_object,
    }

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """The provider's project and deletion policy are known before the apply."""
        del prior
        return with_defaults(api, plan)

    def create(self, api: Api, plan: State) -> State:
        """Append to the router's list."""
        where = scope(api, plan)
        item = expand(_FIELDS, plan, where, create=True)

        def append(nats: _Nats) -> _Nats:
            if found := _find(nats, plan["name"]):
                raise ProviderError(
                    f"Unable to create RouterNat, existing object already found: {found}"
                )
            return [*nats, item]

        with api.locked(lock(where, _router(plan))):
            answer = _change(where, append, "Error creating RouterNat")
            try:
                _wait(where, answer, "create", "Creating RouterNat")
            except Exception as error:
                raise ProviderError(f"Error waiting to create RouterNat: {error}") from error
        return present(self.read(api, plan))

    def read(self, api: Api, state: State) -> State | None:
        """The NAT as the router's list has it; None without it or its router."""
        where = scope(api, state)
        name = _id(where)
        try:
            router = api.plain("compute", "GET", _path(where))
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing ComputeRouterNat "{name}": {error}'
            ) from error
        found = _find(router.get("nats") or [], state["name"])
        if found is None:
            return None
        return {
            **flatten(_FIELDS, found, where),
            "id": name,
            "project": where.project,
            "region": where.region,
            "router": state["router"],
            "timeouts": state.get("timeouts"),
            "deletion_policy": kept(state, "deletion_policy", api.deletion_policy),
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Lay the attributes over the NAT as it is."""
        where = scope(api, plan, prior)
        item = expand(_MUTABLE, plan, where)
        if plan.get(_TIER.name) != prior.get(_TIER.name):
            item |= expand((_TIER,), plan, where)

        def replace(nats: _Nats) -> _Nats:
            if _find(nats, plan["name"]) is None:
                raise ProviderError(
                    f'Unable to update RouterNat "{_id(where)}" - not found in list'
                )
            return [_laid_over(nat, item) if nat["name"] == plan["name"] else nat for nat in nats]

        with api.locked(lock(where, _router(plan))):
            answer = _change(where, replace, f'Error updating RouterNat "{_id(where)}"')
            _wait(where, answer, "update", "Updating RouterNat")
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Take the NAT out of the router's list."""
        if not is_deletable(state, "ComputeRouterNat"):
            return
        where = scope(api, state)

        def remove(nats: _Nats) -> _Nats | None:
            if _find(nats, state["name"]) is None:
                return None
            return [nat for nat in nats if nat["name"] != state["name"]]

        with api.locked(lock(where, _router(state))):
            answer = _change(where, remove, "Error when reading or editing RouterNat")
            if answer is not None:
                _wait(where, answer, "delete", "Deleting RouterNat")

    def import_state(self, api: Api, import_id: str) -> State:
        """From the path in the router, or the last two to four parts of the id."""
        found = parse_import(api, f"{COLLECTION}/{{router}}/{{name}}", import_id, least=2)
        return {**found, "id": _id(scope(api, found))}


def _router(state: State) -> str:
    return links.name(state["router"])


def _path(where: Scope) -> str:
    return f"{place(COLLECTION, where)}/{_router(where.state)}"


def _id(where: Scope) -> str:
    router, name = _router(where.state), where.state["name"]
    return f"{where.project}/{where.region}/{router}/{name}"


def _find(nats: _Nats, name: str) -> dict[str, Any] | None:
    return next((nat for nat in nats if nat.get("name") == name), None)


def _laid_over(nat: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    """The NAT with new values; its network tier is sent only when it changes (recorded traffic)."""
    return {**{key: value for key, value in nat.items() if key != _TIER.key}, **item}


def _change(
    where: Scope, change: Callable[[_Nats], _Nats | None], problem: str
) -> dict[str, Any] | None:
    """Read the router's list, and send it back changed.

    Returns the operation; None when there is nothing to change, or no router.
    """
    try:
        router = where.api.plain("compute", "GET", _path(where))
        nats = change(router.get("nats") or [])
        if nats is None:
            return None
        return where.api.plain("compute", "PATCH", _path(where), {"nats": nats})
    except GoogleApiError as error:
        if error.code == NOT_FOUND and "reading" in problem:
            return None
        raise ProviderError(f"{problem}: {error}") from error


def _wait(where: Scope, answer: dict[str, Any] | None, action: str, activity: str) -> None:
    if not is_zero(answer):
        limit = operations.timeout(where.state, action, "google_compute_router_nat")
        operations.compute(where.api, answer or {}, where.project, activity, limit)


RESOURCE = RouterNat()
