"""The lists of Compute Engine: filtered, in pages, of one place or grouped by place.

The `filter` of Compute Engine's lists.

Comparisons with =, !=, :, <, >, eq and ne, joined by AND (also by standing side by side) or OR and
grouped by parentheses, as "name eq 'a.*'" or "(status = RUNNING) AND (labels.team = ml)".
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rehearsal.cloud import paging
from rehearsal.cloud.compute import links, resources
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rehearsal.cloud.compute.resources import Call, Kind, Resource


_PAGE = 500
"""The greatest size of a page, and the usual one."""


def listed(call: Call, kind: str, name: str, entries: Iterable[tuple[str, Resource]]) -> Resource:
    """One page of a list, filtered as the request asks.

    `entries`: names and resources as they are answered, in the names' order.
    """
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


if TYPE_CHECKING:
    from collections.abc import Callable

    Predicate = Callable[[dict[str, Any]], bool]

_TOKEN = re.compile(
    r"""\s*(?:(?P<mark>[()]|!=|<=|>=|[=:<>])|"(?P<double>[^"]*)"|'(?P<single>[^']*)'"""
    # A bare word may be a link, with the colons of its scheme and its port.
    r"""|(?P<word>(?:[^\s()=!<>:"']|:(?=//|\d+/))+))"""
)
_OPERATORS = {"=", "!=", ":", "<", ">", "<=", ">=", "eq", "ne"}


def parse(text: str) -> Predicate:
    """A test for resources; an empty filter lets all pass."""
    tokens = _tokens(text)
    if not tokens:
        return lambda _: True
    return _Parser(text, tokens).whole()


def _refusal(text: str) -> GoogleError:
    return GoogleError(
        400, f"Invalid value for field 'filter': '{text}'. Invalid list filter expression."
    )


def _tokens(text: str) -> list[str]:
    tokens, position = [], 0
    text = text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _refusal(text)
        tokens.append(next(group for group in match.groups() if group is not None))
        position = match.end()
    return tokens


class _Parser:
    """Recursive descent over the tokens."""

    def __init__(self, text: str, tokens: list[str]) -> None:
        self._text = text
        self._tokens = tokens

    def whole(self) -> Predicate:
        predicate = self._either()
        if self._tokens:
            raise _refusal(self._text)
        return predicate

    def _next(self) -> str:
        if not self._tokens:
            raise _refusal(self._text)
        return self._tokens.pop(0)

    def _either(self) -> Predicate:
        choices = [self._all()]
        while self._tokens and self._tokens[0] == "OR":
            self._next()
            choices.append(self._all())
        return lambda entry: any(choice(entry) for choice in choices)

    def _all(self) -> Predicate:
        terms = [self._term()]
        while self._tokens and self._tokens[0] not in {"OR", ")"}:
            if self._tokens[0] == "AND":
                self._next()
            terms.append(self._term())
        return lambda entry: all(term(entry) for term in terms)

    def _term(self) -> Predicate:
        first = self._next()
        if first != "(":
            return self._comparison(first)
        predicate = self._either()
        if self._next() != ")":
            raise _refusal(self._text)
        return predicate

    def _comparison(self, field: str) -> Predicate:
        operator = self._next()
        if operator not in _OPERATORS:
            raise _refusal(self._text)
        test = _test(operator, self._next())
        path = field.split(".")
        return lambda entry: test(_value(entry, path))


def _value(entry: Any, path: list[str]) -> str:
    for key in path:
        entry = entry.get(key) if isinstance(entry, dict) else None
    if isinstance(entry, bool):
        return str(entry).lower()
    return "" if entry is None else str(entry)


def _test(operator: str, wanted: str) -> Callable[[str], bool]:
    wanted = links.normal(wanted)
    if operator in {"eq", "ne"}:
        # These two take a regular expression of the whole value.
        expected = operator == "eq"
        return lambda value: (re.fullmatch(wanted, value) is not None) == expected
    if operator in {"=", "!="}:
        expected = operator == "="
        # A link is equal to any end of it that begins after a slash.
        return lambda value: (value == wanted or value.endswith(f"/{wanted}")) == expected
    if operator == ":":
        return lambda value: bool(value) and wanted.strip("*") in value
    return {
        "<": lambda value: value < wanted,
        "<=": lambda value: value <= wanted,
        ">": lambda value: value > wanted,
        ">=": lambda value: value >= wanted,
    }[operator]
