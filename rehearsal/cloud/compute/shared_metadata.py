"""The metadata of VMs: what they have of their template is kept once for all of them.

A start-up script may have a hundred thousand characters, and a group a thousand VMs. What somebody
has set on a VM itself stands in its `_given`, in place of the template's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.compute import resources, startup_told

if TYPE_CHECKING:
    from rehearsal.cloud.compute.resources import Call, Resource

_COLLECTION = "compute/metadata"
_PROXY = "proxy-url"


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
        given = instance.get("_given")
        items = [*(shared.get("items") or []), *instance["_items"]] if given is None else [*given]
        url = startup_told.proxy_url(instance, self._call.now)
        if url is not None and all(item["key"] != _PROXY for item in items):
            items.append({"key": _PROXY, "value": url})
        # The shared part is long, and stands for itself by its own fingerprint.
        told = [name, instance["_items"], given, url]
        return {**shared, "items": items, "fingerprint": resources.fingerprint(told)}
