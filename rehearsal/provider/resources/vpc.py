"""Networks and what belongs to them: where Compute Engine differs from the provider's schema."""

from collections.abc import Callable, Mapping
from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import State
from rehearsal.provider.resources import links
from rehearsal.provider.resources.rest import NOT_FOUND, Found, Patch, Rest, place, present
from rehearsal.provider.resources.shapes import (
    GIVEN,
    KEPT,
    VIRTUAL,
    Rule,
    Scope,
    Send,
    Shape,
    camel,
)

_GLOBAL, _REGION = "projects/{project}/global", "projects/{project}/regions/{region}"

LINK_OF_NETWORK = Rule(
    expand=lambda link, where: links.at("networks", link, project=where.project),
    flatten=lambda link, _: links.v1(link or ""),
)
_LINK_OF_REGION = Rule(
    # As the provider's generated code has it, however odd.
    expand=lambda _, where: f"projects/{where.project}/global/regions/{where.region}",
    flatten=lambda link, where: links.name(link) if link else where.region,
)
_PLACED = {"network": LINK_OF_NETWORK, "region": _LINK_OF_REGION, "params": KEPT}
_SAME_PLACE = dict.fromkeys(("network", "region"), links.same_object)
_NUMBER = Rule("id", send=Send.NEVER)
_ROUTING = (
    *("routing_mode", "bgp_best_path_selection_mode"),
    *("bgp_always_compare_med", "bgp_inter_region_cost"),
)
_OF_NETWORKS = {
    "gateway_ipv4": Rule("gatewayIPv4", send=Send.NEVER),
    "network_id": _NUMBER,
    "numeric_id": _NUMBER,
    "subnetworks_self_links": Rule("subnetworks"),
}

NETWORK = Rest(
    collection=f"{_GLOBAL}/networks",
    shape=Shape(
        "google_compute_network",
        {
            **_OF_NETWORKS,
            **{name: Rule(f"routingConfig.{camel(name)}") for name in _ROUTING},
            "auto_create_subnetworks": GIVEN,
            "delete_bgp_always_compare_med": VIRTUAL,
            "delete_default_routes_on_create": VIRTUAL,
            "params": KEPT,
        },
    ),
    apart=True,
    suppress={"network_profile": links.same_path},
)
DATA_NETWORK = Found(
    Shape("google_compute_network", _OF_NETWORKS, kind="data"), f"{_GLOBAL}/networks"
)


class _Logged(Rest):
    """What may write logs: a block switches that on, and its absence is sent as "off"."""

    def encode(self, body: dict[str, Any], where: Scope, *, create: bool) -> dict[str, Any]:
        del where, create
        if "logConfig" in body:
            given = body["logConfig"]
            body["logConfig"] = {"enable": given is not None, **(given or {})}
        return body

    def state(self, where: Scope, answer: Mapping[str, Any]) -> State:
        logs = answer.get("logConfig") or {}
        return super().state(where, {**answer, "logConfig": logs if logs.get("enable") else None})


SUBNETWORK = _Logged(
    collection=f"{_REGION}/subnetworks",
    shape=Shape(
        "google_compute_subnetwork",
        {
            **_PLACED,
            "log_config": GIVEN,
            "allow_subnet_cidr_routes_overlap": GIVEN,
            "secondary_ip_range": Rule("secondaryIpRanges", send=Send.GIVEN),
            "send_secondary_ip_range_if_empty": VIRTUAL,
            "subnetwork_id": _NUMBER,
        },
    ),
    patches=(
        Patch(("ip_cidr_range",), "POST", "/expandIpCidrRange"),
        Patch(("private_ip_google_access",), "POST", "/setPrivateIpGoogleAccess"),
    ),
    apart=True,
    suppress=_SAME_PLACE,
)
DATA_SUBNETWORK = Found(
    Shape(
        "google_compute_subnetwork",
        {"subnetwork_id": _NUMBER, "secondary_ip_range": Rule("secondaryIpRanges")},
        kind="data",
    ),
    f"{_REGION}/subnetworks",
)


class _Firewall(_Logged):
    """A create leaves empty lists out; an update says them, to take their members away."""

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """A rule for what comes in has to say from where."""
        sources = ("source_ranges", "source_tags", "source_service_accounts")
        if plan["direction"] != "EGRESS" and not any(plan[name] for name in sources):
            raise ValueError(
                "one of source_tags, source_ranges, or source_service_accounts must be defined"
            )
        return super().customize(api, prior, plan)

    def encode(self, body: dict[str, Any], where: Scope, *, create: bool) -> dict[str, Any]:
        body = super().encode(body, where, create=create)
        return {name: it for name, it in body.items() if it != []} if create else body


def _hashed(rule: State) -> str:
    """What the provider hashes a rule by."""
    return "".join(f"{each}-" for each in (rule["protocol"].lower(), *sorted(rule["ports"] or [])))


_GIVEN_OF_RULES = (
    *("description", "destination_ranges", "disabled", "log_config", "priority", "source_ranges"),
    *("source_service_accounts", "source_tags", "target_service_accounts", "target_tags"),
)
FIREWALL = _Firewall(
    collection=f"{_GLOBAL}/firewalls",
    shape=Shape(
        "google_compute_firewall",
        {
            **_PLACED,
            **dict.fromkeys(_GIVEN_OF_RULES, GIVEN),
            "allow": Rule("allowed", send=Send.GIVEN, order=_hashed),
            "allow.protocol": Rule("IPProtocol"),
            "deny": Rule("denied", send=Send.GIVEN, order=_hashed),
            "deny.protocol": Rule("IPProtocol"),
            "enable_logging": VIRTUAL,
        },
    ),
    suppress={
        "allow.protocol": links.same_text,
        "deny.protocol": links.same_text,
        "network": links.same_object,
    },
)


class _Router(Rest):
    """One router; its NATs are changed one by one."""

    def lock(self, where: Scope) -> str:
        return (
            f"router/{where.region}/{links.name(where.state.get('router') or where.state['name'])}"
        )


ROUTER = _Router(
    collection=f"{_REGION}/routers",
    shape=Shape(
        "google_compute_router",
        {
            **_PLACED,
            "bgp": GIVEN,
            "description": GIVEN,
            "md5_authentication_keys": KEPT,
        },
    ),
    suppress=_SAME_PLACE,
)

_Nats = list[dict[str, Any]]
_TIER = "auto_network_tier"


class _Nat(_Router):
    """No object of its own, but a row in its router's list, which is read and sent back whole."""

    @property
    def template(self) -> str:
        return f"{self.collection}/{{router}}/{{name}}"

    def path(self, where: Scope) -> str:
        return f"{place(self.collection, where)}/{links.name(where.state['router'])}"

    def id(self, where: Scope) -> str:
        router, name = links.name(where.state["router"]), where.state["name"]
        return f"{where.project}/{where.region}/{router}/{name}"

    def insert(self, where: Scope, body: Any) -> dict[str, Any]:
        def append(nats: _Nats) -> _Nats:
            if found := self._mine(nats, where):
                raise ProviderError(
                    f"Unable to create RouterNat, existing object already found: {found}"
                )
            return [*nats, body]

        return self._change(where, append, "Error creating RouterNat")

    def look(self, where: Scope, path: str = "") -> dict[str, Any] | None:
        return self._mine((super().look(where, path) or {}).get("nats") or [], where)

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Lay the attributes over the NAT as it is; its tier goes only if it changes (recorded)."""
        where = self.scope(api, plan, prior)
        names = [it for it in self.shape.mutable if it != _TIER or where.changes(_TIER)]
        item = self.shape.expand(plan, where, names)

        def replace(nats: _Nats) -> _Nats:
            if (found := self._mine(nats, where)) is None:
                what = f'Unable to update RouterNat "{self.id(where)}"'
                raise ProviderError(f"{what} - not found in list")
            known = {key: it for key, it in found.items() if key != self.shape.key(_TIER)}
            return [{**known, **item} if nat is found else nat for nat in nats]

        with self._held(where):
            if answer := self._change(where, replace, self.no_update(where)):
                self.wait(where, answer, "update")
        return present(self.read(api, plan))

    def remove(self, where: Scope) -> None:
        def without(nats: _Nats) -> _Nats:
            return [nat for nat in nats if nat is not self._mine(nats, where)]

        try:
            answer = self._change(where, without, self.no_delete(where))
        except ProviderError as error:
            if getattr(error.__cause__, "code", 0) != NOT_FOUND:
                raise
        else:
            if answer:
                self.wait(where, answer, "delete")

    def _change(
        self, where: Scope, change: Callable[[_Nats], _Nats], problem: str
    ) -> dict[str, Any]:
        """Read the router's list, and send it back changed; {} when that changes nothing."""
        try:
            nats = self.ask(where.api, "GET", self.path(where)).get("nats") or []
            if (changed := change(nats)) == nats:
                return {}
            return self.ask(where.api, "PATCH", self.path(where), {"nats": changed})
        except GoogleApiError as error:
            raise ProviderError(f"{problem}: {error}") from error

    @staticmethod
    def _mine(nats: _Nats, where: Scope) -> dict[str, Any] | None:
        return next((nat for nat in nats if nat.get("name") == where.state["name"]), None)


_GIVEN_OF_NATS = (
    *("nat_ips", "drain_nat_ips", "initial_nat_ips", "log_config", "rules"),
    *("enable_dynamic_port_allocation", "enable_endpoint_independent_mapping"),
)
NAT = _Nat(
    collection=f"{_REGION}/routers",
    shape=Shape(
        "google_compute_router_nat",
        {
            **dict.fromkeys(_GIVEN_OF_NATS, GIVEN),
            "nat64_subnetwork": Rule("nat64Subnetworks", send=Send.GIVEN),
            "region": Rule(send=Send.NEVER, flatten=lambda _, where: where.region),
            "router": VIRTUAL,
            "subnetwork": Rule("subnetworks", send=Send.GIVEN),
        },
    ),
    least=2,
    suppress={"router": links.same_object, "region": links.same_object},
)

POLICY = Rest(
    collection=f"{_REGION}/resourcePolicies",
    shape=Shape(
        "google_compute_resource_policy",
        {
            "region": _LINK_OF_REGION,
            # The block has but a switch: in JSON it is an empty object, or null if there is none.
            "disk_consistency_group_policy": Rule(
                send=Send.ALWAYS,
                expand=lambda blocks, _: {} if blocks else None,
                flatten=lambda answer, _: [] if answer is None else [{"enabled": True}],
            ),
        },
    ),
    suppress={"region": links.same_object},
)
