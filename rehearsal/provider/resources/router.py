"""google_compute_router."""

from __future__ import annotations

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Kind, Scope, Send
from rehearsal.provider.resources.network import TAGS
from rehearsal.provider.resources.rest import Patch, Rest
from rehearsal.provider.resources.subnetwork import NETWORK, REGION

COLLECTION = "projects/{project}/regions/{region}/routers"


def lock(scope: Scope, router: str) -> str:
    """The mutex of a router: its NATs are changed one by one."""
    return f"router/{scope.region}/{router}"


_MUTABLE = (
    Field("description", send=Send.GIVEN),
    Field(
        "bgp",
        kind=Kind.BLOCK,
        send=Send.GIVEN,
        fields=(
            Field("asn", kind=Kind.NUMBER),
            Field("advertise_mode"),
            Field("advertised_groups", kind=Kind.STRINGS, send=Send.ALWAYS),
            Field(
                "advertised_ip_ranges",
                kind=Kind.BLOCK_SET,
                send=Send.ALWAYS,
                fields=(Field("range"), Field("description", send=Send.ALWAYS)),
            ),
            Field("keepalive_interval", kind=Kind.NUMBER, send=Send.ALWAYS),
            Field("identifier_range"),
        ),
    ),
    Field(
        "md5_authentication_keys",
        kind=Kind.BLOCK,
        fields=(Field("name"), Field("key")),
        # Google answers the names alone.
        flatten=lambda _, scope: scope.state.get("md5_authentication_keys") or [],
    ),
)

RESOURCE = Rest(
    label="Router",
    collection=COLLECTION,
    fields=(
        Field("name"),
        NETWORK,
        *_MUTABLE,
        Field("encrypted_interconnect_router", kind=Kind.BOOL),
        Field("ncc_gateway"),
        REGION,
        Field("creation_timestamp", send=Send.NEVER),
        TAGS,
    ),
    patches=(Patch(tuple(each.name for each in _MUTABLE)),),
    suppress={
        "network": links.same_object,
        "region": links.same_object,
        "ncc_gateway": links.same_object,
    },
    lock=lambda scope: lock(scope, str(scope.state["name"])),
)
