"""Which cluster an endpoint's name leads to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from rehearsal.cloud.kubernetes import capacity

if TYPE_CHECKING:
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request

_ENDPOINTS: Final = "kubernetes/endpoints"
_CLUSTERS: Final = "container/clusters"


@dataclass(frozen=True)
class Cluster:
    """A cluster whose control plane answers.

    Attributes:
        name: "projects/p/locations/l/clusters/c".
        key: What the names of all that it keeps begin with; one of the same name that is made
            later has another.
        record: What Kubernetes Engine keeps of it.
    """

    name: str
    key: str
    record: dict[str, Any]

    def collection(self, what: str) -> str:
        """The store's collection of something that this cluster alone has."""
        return f"kubernetes/{self.key}/{what}"


def make(request: Request, store: Store, name: str, record: dict[str, Any]) -> None:
    """Let the endpoint of a new cluster lead to it."""
    del request
    endpoint = record["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
    store.put(_ENDPOINTS, endpoint, {"cluster": name, "key": record["id"][:16]})


def find(request: Request, store: Store, endpoint: str) -> Cluster | None:
    """The cluster of an endpoint; None where no control plane answers (yet, or any more)."""
    known = store.get(_ENDPOINTS, endpoint)
    record = None if known is None else store.get(_CLUSTERS, known["cluster"])
    if known is None or record is None or record.get("_gone", request.now + 1) <= request.now:
        return None
    making = record.get("_doing") is None and record["_ready"] > request.now
    return None if making else Cluster(known["cluster"], known["key"], record)


def forget(request: Request, store: Store, record: dict[str, Any]) -> None:
    """Forget what a cluster keeps, and cancel what it has asked for.

    Its endpoint stays until it is gone.
    """
    prefix = f"kubernetes/{record['id'][:16]}/"
    for _, asked in list(store.list(prefix + capacity.ASKED)):
        capacity.cancel(request, store, **asked)
    for collection in store.collections():
        if collection.startswith(prefix):
            for name, _ in list(store.list(collection)):
                store.delete(collection, name)
