"""The metadata of VMs: what they have of their template is kept once for all of them.

A start-up script may have a hundred thousand characters, and a group a thousand VMs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.compute import startup

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Call, Resource

_COLLECTION = "compute/metadata"


def keep(call: Call, template: Resource) -> None:
    """Keep the metadata of a template for VMs that are made from it now."""
    call.store.put(_COLLECTION, key(template), template["properties"]["metadata"])


def key(template: Resource) -> str:
    """What names the kept metadata of a template: their fingerprint."""
    return str(template["properties"]["metadata"]["fingerprint"])


def of(call: Call, instance: Resource) -> Resource:
    """A VM's whole metadata at the call's moment."""
    return Reader(call).of(instance)


class Reader:
    """Reads the metadata of many VMs within one call."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._known: dict[str, Resource] = {}

    def of(self, instance: Resource) -> Resource:
        """A VM's whole metadata at the call's moment."""
        name = instance["_metadata"]
        if name not in self._known:
            self._known[name] = self._call.store.get(_COLLECTION, name) or {}
        shared = self._known[name]
        items = [*(shared.get("items") or []), *instance["_items"]]
        url = startup.proxy_url(instance, self._call.now)
        if url is not None:
            items.append({"key": "proxy-url", "value": url})
        return {**shared, "items": items}
