"""google_compute_router."""

from __future__ import annotations

from rehearsal.provider.resources import links
from rehearsal.provider.resources.fields import Field, Scope, Send, Table
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
        send=Send.GIVEN,
        fields=(
            Field("advertised_groups", send=Send.ALWAYS),
            Field(
                "advertised_ip_ranges",
                send=Send.ALWAYS,
                fields=(Field("description", send=Send.ALWAYS),),
            ),
            Field("keepalive_interval", send=Send.ALWAYS),
        ),
    ),
    Field(
        "md5_authentication_keys",
        # Google answers the names alone.
        flatten=lambda _, scope: scope.state.get("md5_authentication_keys") or [],
    ),
)

RESOURCE = Rest(
    label="Router",
    collection=COLLECTION,
    fields=Table(
        "google_compute_router",
        Field("name"),
        NETWORK,
        *_MUTABLE,
        Field("encrypted_interconnect_router"),
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
