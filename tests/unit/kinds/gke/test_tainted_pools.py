"""Node pools that lack nodes: which stand and are kept, and which have to be made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.kinds.gke import tainted_pools
from provision.state import terraform_state
from provision.terraform.plan import Creation

if TYPE_CHECKING:
    from provision.google.api import GoogleApi

POOL = Creation(
    address="module.pools.one",
    type="google_container_node_pool",
    values={"project": "p", "location": "us-central1", "cluster": "np-gke", "name": "np-one"},
)


class Google:
    """A cluster with one pool, or none at all."""

    def __init__(self, status: str | None) -> None:
        self._status = status

    def find(self, _service: object, path: str) -> dict[str, Any] | None:
        assert path == "projects/p/locations/us-central1/clusters/np-gke"
        if self._status is None:
            return None
        return {"nodePools": [{"name": "np-one", "status": self._status}]}


@pytest.mark.parametrize(
    ("status", "stands"),
    [
        ("RUNNING", True),
        ("RUNNING_WITH_ERROR", True),
        ("RECONCILING", True),
        ("ERROR", False),
        ("STOPPING", False),
        (None, False),
    ],
)
def test_a_pool_stands_while_google_goes_on_with_it(status: str | None, stands: bool) -> None:  # noqa: FBT001 - a case
    api = cast("GoogleApi", Google(status))
    assert tainted_pools.kept([POOL], api) == ([POOL.address] if stands else [])


@pytest.mark.parametrize(
    ("index", "address"),
    [
        ({}, "module.pools.google_container_node_pool.gpu"),
        ({"index_key": 0}, "module.pools.google_container_node_pool.gpu[0]"),
        ({"index_key": "np-one"}, 'module.pools.google_container_node_pool.gpu["np-one"]'),
    ],
)
def test_a_plan_is_made_as_if_nobody_had_given_a_pool_up(
    index: dict[str, Any], address: str
) -> None:
    kind = "google_container_node_pool"
    kept = {**index, "status": "tainted", "attributes": {"name": "np-one"}}
    other = {"status": "tainted", "attributes": {}}
    one = {"mode": "managed", "type": kind, "name": "gpu"}
    state = {
        "serial": 7,
        "resources": [
            {"module": "module.pools", **one, "instances": [kept]},
            {**one, "instances": [other]},
        ],
    }
    found = terraform_state.untainted(state, [address])
    assert [it["instances"][0].get("status") for it in found["resources"]] == [None, "tainted"]
    assert kept["status"] == "tainted"
