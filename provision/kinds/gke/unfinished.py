"""Node pools that Terraform gave up on, while Google goes on making their nodes.

The provider fails when a new pool has not all its nodes at the end of the operation (a stock-out, a
quota), and Terraform then wants to replace the pool. Google keeps it and goes on trying.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any, Final

from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from provision.google.api import GoogleApi
    from provision.terraform.plan import Creation

_STANDING: Final = ("RUNNING", "RUNNING_WITH_ERROR", "RECONCILING")
"""States of a pool that exists; one in the state ERROR has to be made anew."""


def standing(pools: Sequence[Creation], api: GoogleApi) -> list[str]:
    """The addresses of those that stand and only lack nodes.

    Args:
        pools: What Terraform would replace.
        api: Google.

    Raises:
        GoogleApiError: Google does not tell.
    """
    return list(_standing(pools, api))


def untainted(state: Mapping[str, Any], addresses: Sequence[str]) -> dict[str, Any]:
    """A copy of Terraform's state in which nobody gave these pools up.

    Args:
        state: The state in Terraform's own form.
        addresses: The pools.
    """
    found = copy.deepcopy(dict(state))
    for resource in found["resources"]:
        for instance in resource["instances"]:
            if _address(resource, instance) in addresses:
                instance.pop("status", None)
    return found


def _address(resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    place = [resource["module"]] if "module" in resource else []
    match instance.get("index_key"):
        case None:
            index = ""
        case str(key):
            index = f'["{key}"]'
        case number:
            index = f"[{number}]"
    return ".".join([*place, resource["type"], resource["name"]]) + index


def _standing(pools: Sequence[Creation], api: GoogleApi) -> Iterator[str]:
    look = resources.NODE_POOL.look
    for pool in pools:
        path = look.path.format_map(pool.values)
        there = (api.find(look.service, path) or {}).get(look.part, [])
        if any(
            one["name"] == pool.values["name"] and one.get("status") in _STANDING for one in there
        ):
            yield pool.address
