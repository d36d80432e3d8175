"""Node pools that Terraform gave up on, while Google goes on making their nodes.

The provider fails when a new pool has not all its nodes at the end of the operation (a stock-out, a
quota), and Terraform then wants to replace the pool. Google keeps it and goes on trying.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from provision.google import resources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

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


def _standing(pools: Sequence[Creation], api: GoogleApi) -> Iterator[str]:
    look = resources.NODE_POOL.look
    for pool in pools:
        path = look.path.format_map(pool.values)
        there = (api.find(look.service, path) or {}).get(look.part, [])
        if any(
            one["name"] == pool.values["name"] and one.get("status") in _STANDING for one in there
        ):
            yield pool.address
