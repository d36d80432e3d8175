"""Node pools that Terraform has marked as tainted, while Google goes on making their nodes.

The provider fails if a new pool lacks nodes when its operation ends (a stock-out, a quota).
Terraform marks the pool as tainted and would replace it, although Google keeps the pool and goes
on trying to get the nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.google import resources
from provision.kinds.gke import states
from provision.kinds.gke.states import State

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from provision.google.api import GoogleApi
    from provision.terraform.plan import Creation


def kept(pools: Sequence[Creation], api: GoogleApi) -> list[str]:
    """The addresses of the pools that exist and only lack nodes.

    Raises:
        GoogleApiError: Google does not say how the pools are.
    """
    return list(_kept(pools, api))


def _kept(pools: Sequence[Creation], api: GoogleApi) -> Iterator[str]:
    look = resources.NODE_POOL.look
    for pool in pools:
        path = look.at(pool.values)
        there = (api.find(look.service, path) or {}).get(look.part, [])
        if any(
            one["name"] == pool.values["name"] and State.of(one) in states.KEPT for one in there
        ):
            yield pool.address
