"""The lists of Compute Engine: filtered, in pages, of one place or grouped by place."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud import paging
from rehearsal.cloud.compute import filters, links, resources

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rehearsal.cloud.compute.resources import Call, Kind, Resource

_PAGE = 500
"""The greatest size of a page, and the usual one."""


def listed(call: Call, kind: str, name: str, entries: Iterable[tuple[str, Resource]]) -> Resource:
    """One page of a list, filtered as the request asks.

    `entries`: names and resources as they are answered, in the names' order.
    """
    wanted = filters.parse(call.parameters.get("filter", ""))
    chosen = [(key, entry) for key, entry in entries if wanted(entry)]
    items, token = paging.page(chosen, call.parameters, size="maxResults", limit=_PAGE)
    return {
        "kind": f"compute#{kind}List",
        "id": name,
        **({"items": items} if items else {}),
        **token,
        "selfLink": links.ROOT + name,
    }


def aggregated(
    call: Call, collection: str, kind: str, entries: Iterable[tuple[str, Resource]]
) -> Resource:
    """One page of a list over all places, grouped by place as `aggregatedList` answers it.

    `entries`: keys and resources as they are answered, in the keys' order.
    """
    name = f"projects/{call.project}/aggregated/{collection}"
    page = listed(call, kind, name, entries)
    places: dict[str, Resource] = {}
    for entry in page.pop("items", []):
        scope = links.scope(links.name_of(entry["selfLink"])).split("/", 2)[2]
        places.setdefault(scope, {collection: []})[collection].append(entry)
    return {**page, "kind": f"compute#{kind}AggregatedList", "items": places}


def of_project(kind: Kind) -> Callable[[Call], Resource]:
    """The usual `aggregatedList` of a kind."""

    def handler(call: Call) -> Resource:
        found = resources.each(call, kind, f"projects/{call.project}/")
        entries = ((name, resources.show(entry)) for name, entry in found)
        return aggregated(call, kind.collection, kind.singular, entries)

    return handler


def of_place(kind: Kind) -> Callable[[Call], Resource]:
    """The usual `list` of a kind."""

    def handler(call: Call) -> Resource:
        prefix = call.prefix(kind)
        entries = (
            (name, resources.show(entry)) for name, entry in resources.each(call, kind, prefix)
        )
        return listed(call, kind.singular, prefix.removesuffix("/"), entries)

    return handler
