"""The lists of Compute Engine: filtered, in pages, of one place or grouped by place.

A filter is comparisons with =, !=, : and eq, joined by AND, as "name eq 'a.*'" or
"(status = RUNNING) AND (labels.team = ml)"; the others that Google has are refused.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from rehearsal.cloud import paging
from rehearsal.cloud.compute import links, resources
from rehearsal.cloud.compute.resources import Call, Kind, Resource
from rehearsal.cloud.wire import GoogleError

_PAGE = 500  # the greatest size of a page, and the usual one


def listed(call: Call, kind: str, name: str, entries: Iterable[tuple[str, Resource]]) -> Resource:
    """One page of a list of names and resources, in that order, filtered as the request asks."""
    wanted = parse(call.parameters.get("filter", ""))
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
    """One page of keys and resources, in that order, by place as `aggregatedList` answers it."""
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


Predicate = Callable[[dict[str, Any]], bool]

_COMPARISON = re.compile(
    r"""\s*\(?\s*(?P<field>[\w.-]+)\s*(?P<operator>!=|=|:|\beq\b)\s*"""
    r"""(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|(?P<word>[^\s()"']+))\s*\)?\s*(?:AND\b|$)"""
)


def parse(text: str) -> Predicate:
    """A test for resources; an empty filter lets all pass."""
    tests, position = list[Predicate](), 0
    while position < len(text):
        match = _COMPARISON.match(text, position)
        if match is None:
            raise GoogleError(
                400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
            )
        tests.append(_compared(match))
        position = match.end()
    return lambda entry: all(test(entry) for test in tests)


def _compared(match: re.Match[str]) -> Predicate:
    path = match["field"].split(".")
    wanted = next(it for it in (match["double"], match["single"], match["word"]) if it is not None)
    test = _test(match["operator"], wanted)
    return lambda entry: test(_value(entry, path))


def _value(entry: Any, path: list[str]) -> str:
    for key in path:
        entry = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(entry, bool):
        return str(entry).lower()
    return "" if entry is None else str(entry)


def _test(operator: str, wanted: str) -> Callable[[str], bool]:
    wanted = links.normal(wanted)
    match operator:
        case "eq":  # a regular expression of the whole value
            return lambda value: re.fullmatch(wanted, value) is not None
        case ":":
            return lambda value: bool(value) and wanted.strip("*") in value
        case _:
            # A link is equal to any end of it that begins after a slash.
            expected = operator == "="
            return lambda value: (value == wanted or value.endswith(f"/{wanted}")) == expected
