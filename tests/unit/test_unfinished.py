"""Node pools that lack nodes: which stand and are kept, and which have to be made anew."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from provision import unfinished
from provision.plans import Creation

if TYPE_CHECKING:
    from provision.google_api import GoogleApi

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
    assert unfinished.standing([POOL], api) == ([POOL.address] if stands else [])
