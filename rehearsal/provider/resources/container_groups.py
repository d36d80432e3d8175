"""The lists that reads of clusters and pools share: a cluster's pools, a zone's instance groups.

Provider 7.45.0 asks for each list once and takes what it says for half a minute, so that reading
fifty pools costs no more requests than reading one; a change of a pool makes it ask again.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakKeyDictionary

from rehearsal.provider.resources import links

if TYPE_CHECKING:
    from rehearsal.provider.api import Api

_FRESH: Final = 30.0
"""Seconds of ours, as in the real provider."""


class Lists:
    """The lists that one provider has read."""

    def __init__(self, api: Api) -> None:
        self._send = api.client
        self._lock = threading.Lock()
        self._pools: dict[str, tuple[float, dict[str, Any]]] = {}
        self._sizes: dict[str, tuple[float, int]] = {}

    def pool(self, path: str) -> dict[str, Any] | None:
        """A pool by its path; None when there is none.

        Raises:
            GoogleApiError: Google refused.
        """
        with self._lock:
            if not _is_fresh(self._pools.get(path)):
                self._read_pools(path.rpartition("/")[0])
            found = self._pools.get(path)
            return found[1] if _is_fresh(found) and found is not None else None

    def _read_pools(self, parent: str) -> None:
        now = time.monotonic()
        listed = self._send("container", "GET", parent).get("nodePools") or []
        self._pools |= {f"{parent}/{it['name']}": (now, it) for it in listed}

    def size(self, url: str) -> int | None:
        """How many nodes a group of the given link is to have; None when there is no such group.

        Raises:
            GoogleApiError: Google refused.
        """
        path = links.relative(url)
        with self._lock:
            if not _is_fresh(self._sizes.get(path)):
                self._read_groups(path.rpartition("/")[0])
            found = self._sizes.get(path)
            return found[1] if _is_fresh(found) and found is not None else None

    def _read_groups(self, parent: str) -> None:
        now, query = time.monotonic(), dict[str, str]()
        while True:
            answer = self._send("compute", "GET", parent, query=query)
            for it in answer.get("items") or []:
                self._sizes[f"{parent}/{it['name']}"] = (now, int(it["targetSize"]))
            if not (token := answer.get("nextPageToken")):
                return
            query = {"pageToken": token}

    def forget(self, path: str, urls: list[str]) -> None:
        """Ask again for a pool, and for its groups, the next time."""
        with self._lock:
            self._pools.pop(path, None)
            for url in urls:
                self._sizes.pop(links.relative(url), None)


def _is_fresh(kept: tuple[float, Any] | None) -> bool:
    return kept is not None and time.monotonic() - kept[0] < _FRESH


_LISTS: WeakKeyDictionary[Api, Lists] = WeakKeyDictionary()
_GUARD = threading.Lock()


def of(api: Api) -> Lists:
    """The lists of a provider."""
    with _GUARD:
        return _LISTS.setdefault(api, Lists(api))
