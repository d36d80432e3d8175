"""Which cluster an endpoint's name leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_ENDPOINTS: Final = "kubernetes/endpoints"
_CLUSTERS: Final = "container/clusters"


@dataclass(frozen=True)
class Cluster:
    """A cluster whose control plane answers."""

    name: str  # "projects/p/locations/l/clusters/c"
    # what the names of all that it keeps begin with; one of the same name that is made later has
    # another
    key: str
    record: dict[str, Any]  # what Kubernetes Engine keeps of it

    def collection(self, what: str) -> str:
        """The store's collection of something that this cluster alone has."""
        return f"kubernetes/{self.key}/{what}"


def make(request: Request, store: Store, name: str, record: dict[str, Any]) -> None:
    """Let the endpoint of a new cluster lead to it."""
    del request
    endpoint = record["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    store.put(_ENDPOINTS, endpoint, {"cluster": name, "key": key_of(record)})


def key_of(record: dict[str, Any]) -> str:
    """What tells a cluster from a later one of the same name."""
    return str(record["id"][:16])


def find(request: Request, store: Store, endpoint: str) -> Cluster | None:
    """The cluster of an endpoint; None where no control plane answers (yet, or any more)."""
    known = store.get(_ENDPOINTS, endpoint)
    record = None if known is None else store.get(_CLUSTERS, known["cluster"])
    if known is None or record is None or record.get("_gone", request.now + 1) <= request.now:
        return None
    making = record.get("_doing") is None and record["_ready"] > request.now
    return None if making else Cluster(known["cluster"], known["key"], record)
