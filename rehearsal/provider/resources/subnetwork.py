"""google_compute_subnetwork."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import (
    Field,
    Scope,
    Send,
    Table,
    in_set_order,
    is_zero,
)
from rehearsal.provider.resources.network import TAGS
from rehearsal.provider.resources.rest import Patch, Rest

if TYPE_CHECKING:
    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_COLLECTION = "projects/{project}/regions/{region}/subnetworks"

# Subnetworks of load balancers take no logging configuration at all.
_PROXY_PURPOSES = frozenset(
    {"REGIONAL_MANAGED_PROXY", "GLOBAL_MANAGED_PROXY", "INTERNAL_HTTPS_LOAD_BALANCER"}
)


def network(link: str, scope: Scope) -> str:
    """A network's link as requests have it."""
    return links.at("networks", link, project=scope.project)


def region(_: Any, scope: Scope) -> str:
    """A region's link as the provider's generated code has it, however odd."""
    return f"projects/{scope.project}/global/regions/{scope.region}"


NETWORK = Field("network", expand=network, flatten=lambda link, _: links.v1(link or ""))
REGION = Field(
    "region",
    expand=region,
    flatten=lambda link, scope: links.name(link) if link else scope.region,
)


def _expand_logging(blocks: list[State], scope: Scope) -> dict[str, Any] | None:
    """The block's presence switches logging on; its absence is sent as "off"."""
    if not blocks:
        if scope.state.get("purpose") in _PROXY_PURPOSES:
            return None
        return {"enable": False}
    block = blocks[0]
    return {
        "enable": True,
        "aggregationInterval": block.get("aggregation_interval"),
        "flowSampling": block.get("flow_sampling"),
        "metadata": block.get("metadata"),
        "filterExpr": block.get("filter_expr"),
        "metadataFields": in_set_order(block.get("metadata_fields") or []),
    }


def _flatten_logging(answer: dict[str, Any] | None, _: Scope) -> list[State]:
    if not answer or answer.get("enable") is False:
        return []
    custom = answer.get("metadata") == "CUSTOM_METADATA"
    return [
        {
            "aggregation_interval": answer.get("aggregationInterval"),
            "flow_sampling": answer.get("flowSampling"),
            "metadata": answer.get("metadata"),
            "filter_expr": answer.get("filterExpr"),
            # Google goes on answering fields that only custom metadata has.
            "metadata_fields": answer.get("metadataFields") or [] if custom else [],
        }
    ]


RESOURCE = Rest(
    label="Subnetwork",
    collection=_COLLECTION,
    fields=Table(
        "google_compute_subnetwork",
        Field("description"),
        Field("ip_cidr_range"),
        Field("reserved_internal_range"),
        Field("name"),
        NETWORK,
        Field("purpose"),
        Field("role"),
        Field("secondary_ip_range", "secondaryIpRanges", send=Send.GIVEN),
        Field("private_ip_google_access"),
        Field("private_ipv6_google_access"),
        REGION,
        Field("log_config", send=Send.GIVEN, expand=_expand_logging, flatten=_flatten_logging),
        Field("stack_type"),
        Field("ipv6_access_type"),
        Field("external_ipv6_prefix"),
        Field("internal_ipv6_prefix"),
        Field("ip_collection"),
        Field("allow_subnet_cidr_routes_overlap", send=Send.GIVEN),
        Field("resolve_subnet_mask"),
        Field("creation_timestamp", send=Send.NEVER),
        Field("fingerprint", send=Send.NEVER),
        Field("gateway_address", send=Send.NEVER),
        Field("ipv6_cidr_range", send=Send.NEVER),
        Field("ipv6_gce_endpoint", send=Send.NEVER),
        Field("state", send=Send.NEVER),
        Field("subnetwork_id", "id", send=Send.NEVER),
        TAGS,
    ),
    patches=(
        Patch(("ip_cidr_range",), "POST", "/expandIpCidrRange"),
        Patch(("private_ip_google_access",), "POST", "/setPrivateIpGoogleAccess"),
        Patch(
            (
                "private_ipv6_google_access",
                "stack_type",
                "ipv6_access_type",
                "allow_subnet_cidr_routes_overlap",
            ),
            fingerprint=True,
        ),
        Patch(("log_config",), fingerprint=True),
        Patch(("role",), fingerprint=True),
        Patch(("secondary_ip_range",), fingerprint=True),
        Patch(("ip_collection",), fingerprint=True),
    ),
    virtual={"send_secondary_ip_range_if_empty": None},
    suppress={
        "network": links.same_object,
        "region": links.same_object,
        "reserved_internal_range": links.same_name,
        "secondary_ip_range.reserved_internal_range": links.same_name,
        "ip_collection": links.same_object,
        # Google decides the prefix of a subnetwork whose network brings its own range.
        "internal_ipv6_prefix": lambda prior, wanted, _: bool(prior) and not wanted,
    },
)


class Data:
    """The data source google_compute_subnetwork."""

    def read(self, api: Api, config: State) -> State:
        """The subnetwork by its name or self link."""
        link = config.get("self_link") or config.get("name") or ""
        project = config.get("project") or links.part(link, "projects") or api.project
        place = config.get("region") or links.part(link, "regions") or api.region
        name = links.name(link)
        path = f"projects/{project}/regions/{links.name(place)}/subnetworks/{name}"
        try:
            answer = api.plain("compute", "GET", path)
        except GoogleApiError as error:
            raise ProviderError(
                f"Error when reading or editing Subnetwork Not Found : {name}: {error}"
            ) from error
        ranges = answer.get("secondaryIpRanges") or []
        return {
            "id": path,
            "project": project,
            "region": links.name(place),
            "name": name,
            "description": answer.get("description", ""),
            "external_ipv6_prefix": answer.get("externalIpv6Prefix", ""),
            "gateway_address": answer.get("gatewayAddress", ""),
            "internal_ipv6_prefix": answer.get("internalIpv6Prefix", ""),
            "ip_cidr_range": answer.get("ipCidrRange", ""),
            "ipv6_access_type": answer.get("ipv6AccessType", ""),
            "network": answer.get("network", ""),
            "private_ip_google_access": answer.get("privateIpGoogleAccess", False),
            "secondary_ip_range": [
                {"range_name": each.get("rangeName"), "ip_cidr_range": each.get("ipCidrRange")}
                for each in ranges
                if not is_zero(each)
            ],
            "self_link": answer.get("selfLink", ""),
            "stack_type": answer.get("stackType", ""),
            "subnetwork_id": int(answer.get("id", 0)),
        }


DATA = Data()
