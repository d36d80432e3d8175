"""How attributes become JSON and back: tables of fields, and the rules of what is sent.

A table says where the API differs from the provider's schema; the shapes of fields and what is in
blocks are the schema's (`Table`).

The rules are those of the real provider's generated code and of Google's Go clients: an empty value
is left out unless the field says otherwise, and what Google leaves out reads as the empty value.
"""

from __future__ import annotations

import enum
import functools
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from rehearsal.provider import schema
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.shapes import Scope as Scope  # noqa: PLC0414, TC001 - for the types that are no tables yet

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from rehearsal.provider.resource import State


class Kind(enum.Enum):
    """The shape of a field."""

    STRING = enum.auto()
    BOOL = enum.auto()
    NUMBER = enum.auto()
    INT64 = enum.auto()
    """A number that is a string in JSON."""
    STRINGS = enum.auto()
    SET = enum.auto()
    """Strings without an order; sent in the SDK's."""
    MAP = enum.auto()
    BLOCK = enum.auto()
    """A list of at most one block; an object in JSON."""
    BLOCKS = enum.auto()
    BLOCK_SET = enum.auto()


class Send(enum.Enum):
    """When a field is part of a request."""

    FILLED = enum.auto()
    """When it is not empty."""
    GIVEN = enum.auto()
    """Also when it is empty: in a create if it is configured, in an update always. What has no
    order, or is one block, counts as configured even when it is not there."""
    ALWAYS = enum.auto()
    NEVER = enum.auto()


_ZERO: Mapping[Kind, Callable[[], Any]] = {
    Kind.STRING: str,
    Kind.BOOL: bool,
    Kind.NUMBER: int,
    Kind.INT64: int,
    Kind.STRINGS: list,
    Kind.SET: list,
    Kind.MAP: dict,
    Kind.BLOCK: list,
    Kind.BLOCKS: list,
    Kind.BLOCK_SET: list,
}

_SETS = frozenset({Kind.SET, Kind.BLOCK_SET})
_UNORDERED = frozenset({Kind.SET, Kind.BLOCK_SET, Kind.BLOCK})


@dataclass(frozen=True)
class Field:
    """One attribute or block, and what it is in JSON."""

    name: str  # the attribute's name
    wire: str = ""  # the JSON name; by default the attribute's in camel case
    kind: Kind | None = None  # its shape; None for what the schema says
    send: Send = Send.FILLED  # when it is sent
    fields: tuple[Field, ...] = ()  # what a block holds, as far as the schema does not say it
    # makes JSON of a value that is not unknown, in place of the kind's own rule
    expand: Callable[[Any, Scope], Any] | None = None
    # makes an attribute of the JSON value (None when absent), likewise
    flatten: Callable[[Any, Scope], Any] | None = None
    order: Callable[[State], str] = str  # what a block of a BLOCK_SET is hashed by

    @property
    def key(self) -> str:
        """The JSON name."""
        return self.wire or camel(self.name)

    def zero(self) -> Any:
        """What an absent value reads as."""
        if self.kind is None:
            raise TypeError(f"{self.name} is used outside of a table")
        return _ZERO[self.kind]()

    def to_wire(self, value: Any, scope: Scope) -> Any:
        """The JSON value of an attribute's value."""
        if value is UNKNOWN or value is None:
            value = self.zero()
        if self.expand is not None:
            return self.expand(value, scope)
        if self.kind is Kind.INT64:
            return str(value) if value else None
        if self.kind in _SETS:
            value = in_set_order(value, self.order)
        if not self.fields:
            return value
        blocks = [expand(self.fields, each or {}, scope) for each in value]
        if self.kind is Kind.BLOCK:
            return blocks[0] if blocks else None
        return blocks

    def from_wire(self, value: Any, scope: Scope) -> Any:
        """The attribute's value of a JSON value."""
        if self.flatten is not None:
            return self.flatten(value, scope)
        if value is None:
            return self.zero()
        match self.kind:
            case Kind.NUMBER | Kind.INT64 if isinstance(value, str):
                return int(value)
            case Kind.BLOCK:
                return [flatten(self.fields, value, scope)] if value else []
            case Kind.BLOCKS | Kind.BLOCK_SET:
                return [flatten(self.fields, each, scope) for each in value if each]
            case _:
                return value

    def is_sent(self, value: Any, wire: Any, *, create: bool) -> bool:
        """Whether a request has this field."""
        match self.send:
            case Send.FILLED:
                return not is_zero(wire)
            case Send.GIVEN if create and self.kind not in _UNORDERED:
                explicit = value is not None and value is not UNKNOWN and value != []
                return explicit or not is_zero(wire)
            case _:
                return self.send is not Send.NEVER


class Table:
    """Some fields of a type or of a block in it, completed from the schema when first used.

    `of`: the type, such as "google_compute_network", and a block in it, if any: "TYPE.disk".
    `given`: which fields, and where they differ from what the schema says.
    """

    def __init__(self, of: str, *given: Field, source: schema.Kind = "resources") -> None:
        self.of = of
        self._source = source
        self.given = given

    def __iter__(self) -> Iterator[Field]:
        """The fields, complete."""
        return iter(self._complete)

    @functools.cached_property
    def _complete(self) -> tuple[Field, ...]:
        name, *path = self.of.split(".")
        block: Mapping[str, schema.Field] = schema.load(self._source, name).block
        for inner in path:
            block = block[inner].block
        return tuple(_completed(field, block[field.name]) for field in self.given)


def _completed(field: Field, known: schema.Field) -> Field:
    """A field with its shape, and with everything that its block holds."""
    differing = {inner.name: inner for inner in field.fields}
    inside = tuple(
        _completed(differing.get(name, Field(name)), inner) for name, inner in known.block.items()
    )
    # What Google alone decides can be an attribute of objects, of which a table names each field.
    named = tuple(_completed(it, _TEXT) for it in field.fields)
    return replace(field, kind=field.kind or _kind(known), fields=inside or named)


_TEXT = schema.Field(flags="c", type="string")


_KINDS: Mapping[str, Kind] = {
    "bool": Kind.BOOL,
    "list": Kind.STRINGS,
    "map": Kind.MAP,
    "number": Kind.NUMBER,
    "set": Kind.SET,
    "string": Kind.STRING,
}


def _kind(known: schema.Field) -> Kind:
    if known.nesting == "set":
        return Kind.BLOCK_SET
    if known.nesting:
        return Kind.BLOCK if known.max == 1 else Kind.BLOCKS
    return _KINDS[known.type if isinstance(known.type, str) else known.type[0]]


def camel(name: str) -> str:
    """`ip_cidr_range` as `ipCidrRange`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def is_zero(value: Any) -> bool:
    """Whether Go would call a value empty."""
    return value is None or value is UNKNOWN or value in ("", 0, [], {})


def expand(
    fields: Iterable[Field], values: Mapping[str, Any], scope: Scope, *, create: bool = False
) -> dict[str, Any]:
    """The JSON object of some attributes."""
    body = {}
    for field in fields:
        value = values.get(field.name)
        wire = field.to_wire(value, scope)
        if field.is_sent(value, wire, create=create):
            body[field.key] = wire
    return body


def flatten(fields: Iterable[Field], document: Mapping[str, Any], scope: Scope) -> State:
    """The attributes of a JSON object."""
    return {field.name: field.from_wire(document.get(field.key), scope) for field in fields}


def in_set_order(values: Sequence[Any], key: Callable[[Any], str] = str) -> list[Any]:
    """Members in the order in which HashiCorp's SDK lists a set: by the hash, as a string."""
    return sorted(values, key=lambda each: str(zlib.crc32(key(each).encode())))
