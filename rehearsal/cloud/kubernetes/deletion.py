"""What becomes of what a cluster keeps when it is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.kubernetes import capacity, clusters

if TYPE_CHECKING:
    from rehearsal.cloud.container.records import Record
    from rehearsal.cloud.store import Store
    from rehearsal.cloud.wire import Request


def forget(request: Request, store: Store, record: Record) -> None:
    """Forget what a cluster keeps, and cancel what it has asked for.

    Its endpoint stays until it is gone.
    """
    prefix = f"kubernetes/{clusters.key_of(record)}/"
    for _, asked in list(store.list(prefix + capacity.ASKED)):
        capacity.cancel(request, store, **asked)
    for collection in store.collections():
        if collection.startswith(prefix):
            for name, _ in list(store.list(collection)):
                store.delete(collection, name)
