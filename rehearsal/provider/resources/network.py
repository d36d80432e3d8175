"""google_compute_network."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import links, operations
from rehearsal.provider.resources.fields import Field, Scope, Send, Table, is_zero
from rehearsal.provider.resources.rest import Patch, Rest, place

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

TAGS = Field(
    "params",
    # Google never answers them.
    flatten=lambda _, scope: scope.state.get("params") or [],
)
"""Tags that an object is made with."""

_COLLECTION = "projects/{project}/global/networks"
_ROUTING = (
    Field("routing_mode"),
    Field("bgp_best_path_selection_mode"),
    Field("bgp_always_compare_med"),
    Field("bgp_inter_region_cost"),
)
_MED = "bgp_always_compare_med"
_DELETE_MED = "delete_bgp_always_compare_med"


def _encode(body: dict[str, Any], scope: Scope, create: bool) -> dict[str, Any]:  # noqa: FBT001 - the table's interface
    """Gather the routing attributes in the one object where the API has them."""
    routing = {each.key: body.pop(each.key) for each in _ROUTING if each.key in body}
    if not routing and not scope.state.get(_DELETE_MED):
        return body
    dropped = bool(scope.state.get(_DELETE_MED))
    routing["deleteBgpAlwaysCompareMed"] = dropped
    med = scope.state.get(_MED)
    if dropped:
        if med is True:
            raise ProviderError(
                "Cannot set BgpAlwaysCompareMed to true while DeleteBgpAlwaysCompareMed is also"
                " true"
            )
        routing["bgpAlwaysCompareMed"] = None
    elif _med_is_sent(scope, create=create):
        routing["bgpAlwaysCompareMed"] = bool(med)
    return {**body, "routingConfig": routing}


def _med_is_sent(scope: Scope, *, create: bool) -> bool:
    med = scope.state.get(_MED)
    if create:
        return med is not None and med is not UNKNOWN
    return scope.prior is not None and scope.prior.get(_MED) != med


def _decode(answer: dict[str, Any], _: Scope) -> dict[str, Any]:
    return {**answer, **answer.get("routingConfig", {})}


def _drop_default_routes(scope: Scope) -> None:
    """Delete the routes to the internet that came with the network, if so configured."""
    if is_zero(scope.state.get("delete_default_routes_on_create")):
        return
    api, name = scope.api, scope.state["name"]
    network = api.plain("compute", "GET", f"{place(_COLLECTION, scope)}/{name}")
    routes = f"projects/{scope.project}/global/routes"
    wanted = f'(network="{network["selfLink"]}") AND (destRange="0.0.0.0/0")'
    limit = operations.timeout(scope.state, "create", "google_compute_network")
    found = api.plain("compute", "GET", routes, query={"filter": wanted}).get("items") or []
    for route in found:
        try:
            answer = api.plain("compute", "DELETE", f"{routes}/{route['name']}")
        except GoogleApiError as error:
            raise ProviderError(f"Error deleting route: {error}") from error
        operations.compute(api, answer, scope.project, "Deleting Route", limit)


RESOURCE = Rest(
    label="Network",
    collection=_COLLECTION,
    fields=Table(
        "google_compute_network",
        Field("auto_create_subnetworks", send=Send.GIVEN),
        Field("description"),
        Field("name"),
        *_ROUTING,
        Field("mtu"),
        Field("enable_ula_internal_ipv6"),
        Field("internal_ipv6_range"),
        Field("network_firewall_policy_enforcement_order"),
        Field("network_profile"),
        Field("gateway_ipv4", "gatewayIPv4", send=Send.NEVER),
        Field("network_id", "id", send=Send.NEVER),
        Field("numeric_id", "id", send=Send.NEVER),
        TAGS,
    ),
    patches=(
        Patch(
            (
                *(each.name for each in _ROUTING),
                _DELETE_MED,
                "network_firewall_policy_enforcement_order",
            )
        ),
        Patch(("enable_ula_internal_ipv6",)),
        Patch(("mtu",), fingerprint=True),
    ),
    virtual={"delete_default_routes_on_create": False, _DELETE_MED: False},
    suppress={"network_profile": links.same_path},
    encode=_encode,
    decode=_decode,
    created=_drop_default_routes,
)


class Data:
    """The data source google_compute_network."""

    def read(self, api: Api, config: State) -> State:
        """The network by its name or self link."""
        link = config.get("self_link") or config.get("name") or ""
        project = config.get("project") or links.part(link, "projects") or api.project
        path = f"projects/{project}/global/networks/{links.name(link)}"
        try:
            answer = api.plain("compute", "GET", path)
        except GoogleApiError as error:
            raise ProviderError(
                f"Error when reading or editing Network Not Found : {links.name(link)}: {error}"
            ) from error
        return {
            "id": path,
            "project": project,
            "name": answer["name"],
            "description": answer.get("description", ""),
            "gateway_ipv4": answer.get("gatewayIPv4", ""),
            "internal_ipv6_range": answer.get("internalIpv6Range", ""),
            "network_id": int(answer.get("id", 0)),
            "numeric_id": answer.get("id", ""),
            "network_profile": answer.get("networkProfile", ""),
            "self_link": answer.get("selfLink", ""),
            "subnetworks_self_links": answer.get("subnetworks") or [],
        }


DATA = Data()
