"""From the provider's schema to the API's JSON and back.

Nearly all fields have the same name on both sides, so a type says only where the API differs from
the schema: a table of paths and rules. What is not in it follows the provider's general ways: an
empty value is left out, what Google alone decides is never sent, and what it leaves out reads as
empty.
"""

from __future__ import annotations

import enum
import functools
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rehearsal.provider import schema
from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN, State


class Send(enum.Enum):
    """When a field is part of a request."""

    FILLED = enum.auto()  # when it is not empty
    GIVEN = enum.auto()
    """Also when it is empty: in a create if it is configured, in an update always. What has no
    order, or is one block, counts as configured even when it is not there."""
    ALWAYS = enum.auto()
    NEVER = enum.auto()


class Form(enum.Enum):
    """How a value looks in JSON, where the schema does not tell."""

    PLAIN = enum.auto()
    INT64 = enum.auto()  # a number that is a string
    ONE = enum.auto()  # an object, though the schema lets the list of blocks be longer
    MANY = enum.auto()  # a list, though the schema has one block at most
    SKIP = enum.auto()  # not by these tables
    KEPT = enum.auto()  # sent, but not answered: it stays as the state has it


@dataclass(frozen=True)
class Scope:
    """Where an object is, for the conversion of its links."""

    api: Api  # the provider's settings
    state: State  # all attributes of the object: the plan in a create or update, else the state
    project: str  # the object's project
    region: str = ""  # its region, "" for a global or zonal one whose region nobody named
    zone: str = ""
    location: str = ""  # a region or a zone
    prior: State | None = None  # the state before an update

    def changes(self, *names: str) -> bool:
        """Whether an update changes one of these attributes."""
        before = self.prior or {}
        values = {name: self.state.get(name) for name in names}
        return any(it is not UNKNOWN and it != before.get(name) for name, it in values.items())


@dataclass(frozen=True)
class Rule:
    """Where the API differs from the schema."""

    # the JSON name, with dots into objects ("autopilot.enabled"); "" for the attribute's in camel
    # case
    wire: str = ""
    form: Form = Form.PLAIN
    send: Send | None = None  # None for FILLED, or NEVER for what Google alone decides
    # makes JSON of the value, of an empty one where it is unknown or not there
    expand: Callable[[Any, Scope], Any] | None = None
    flatten: Callable[[Any, Scope], Any] | None = None  # makes a value of the JSON, None for absent
    order: Callable[[State], str] | None = None  # what the blocks of a set are hashed by


SKIP = Rule(form=Form.SKIP)
KEPT = Rule(form=Form.KEPT)
VIRTUAL = Rule(form=Form.KEPT, send=Send.NEVER)  # what Google doesn't know
INT64 = Rule(form=Form.INT64)
ONE = Rule(form=Form.ONE)
MANY = Rule(form=Form.MANY)
GIVEN = Rule(send=Send.GIVEN)
ALWAYS = Rule(send=Send.ALWAYS)

_LABELS = {
    **dict.fromkeys(("labels", "terraform_labels"), SKIP),
    "effective_labels": Rule("labels", send=Send.FILLED),
}
# What every type has, and `rest` knows.
_OF_EACH = dict.fromkeys(("deletion_policy", "id", "project", "self_link", "timeouts"), SKIP)


class Shape:
    """A type, or a block in it, and the rules of its fields that differ.

    `of`: the type, such as "google_compute_network", and a block in it, if any: "TYPE.disk".
    `rules`: by path below it ("disk.boot", "*" for any name). `hollow`: whether a block that is
    configured is sent even when nothing in it is, as the provider's hand-written code does.
    """

    def __init__(
        self,
        of: str,
        rules: Mapping[str, Rule] | None = None,
        *,
        kind: schema.Kind = "resources",
        hollow: bool = False,
    ) -> None:
        self.of = of
        self._kind: schema.Kind = kind
        self._given = rules or {}
        self._hollow = hollow

    @functools.cached_property
    def block(self) -> Mapping[str, schema.Field]:
        """The fields by name; read when first needed, as that takes time."""
        name, *path = self.of.split(".")
        block: Mapping[str, schema.Field] = schema.load(self._kind, name).block
        for inner in path:
            block = block[inner].block
        return block

    @functools.cached_property
    def _rules(self) -> Mapping[str, Rule]:
        common = {}
        if "." not in self.of and self._kind == "resources":
            common = _OF_EACH | (_LABELS if "terraform_labels" in self.block else {})
        return {name: Rule() for name in self.block} | common | dict(self._given)

    @functools.cached_property
    def _inner(self) -> Mapping[str, Shape]:
        split = [(*path.partition(".")[::2], rule) for path, rule in self._given.items()]
        return {
            name: Shape(
                f"{self.of}.{name}",
                {rest: rule for head, rest, rule in split if rest and head in {name, "*"}},
                kind=self._kind,
                hollow=self._hollow,
            )
            for name, known in self.block.items()
            if known.nesting
        }

    def inside(self, path: str) -> Shape:
        """The conversions of a block within this one ("a.b"); "" for this one."""
        shape = self
        for name in filter(None, path.split(".")):
            shape = shape._inner[name]
        return shape

    def expand(
        self,
        values: Mapping[str, Any],
        scope: Scope,
        names: Iterable[str] = (),
        *,
        create: bool = False,
    ) -> dict[str, Any]:
        """The JSON object of the attributes, or of some."""
        body: dict[str, Any] = {}
        for name in names or self.block:
            if self._rules[name].form is Form.SKIP:
                continue
            value = values.get(name)
            wire = self.value(name, value, scope)
            if self._is_sent(name, value, wire, create=create):
                _put(body, self.key(name), wire)
        return body

    @functools.cached_property
    def mutable(self) -> tuple[str, ...]:
        """What an update may change."""
        return tuple(
            name
            for name, known in self.block.items()
            if known.configurable
            and not known.force_new
            and self._rules[name].form is not Form.SKIP
            and self._rules[name].send is not Send.NEVER
        )

    def key(self, name: str) -> str:
        """The JSON name."""
        return self._rules[name].wire or camel(name)

    def _is_sent(self, name: str, value: Any, wire: Any, *, create: bool) -> bool:
        known = self.block[name]
        usual = Send.FILLED if known.configurable else Send.NEVER
        match self._rules[name].send or usual:
            case Send.FILLED:
                return not is_zero(wire) or (self._hollow and bool(known.nesting) and wire == {})
            case Send.GIVEN if create and not self._is_unordered(name):
                explicit = value is not None and value is not UNKNOWN and value != []
                return explicit or not is_zero(wire)
            case sent:
                return sent is not Send.NEVER

    def _is_unordered(self, name: str) -> bool:
        known = self.block[name]
        return known.nesting == "set" or known.type[:1] == ["set"] or self._is_one(name)

    def _is_one(self, name: str) -> bool:
        known, form = self.block[name], self._rules[name].form
        one = known.nesting == "list" and known.max == 1
        return form is Form.ONE or (one and form is not Form.MANY)

    def value(self, name: str, value: Any, scope: Scope) -> Any:
        """The JSON value of one attribute; None for a block that is not there."""
        rule, known = self._rules[name], self.block[name]
        if value is UNKNOWN or value is None:
            value = _zero(known)
        if rule.expand is not None:
            return rule.expand(value, scope)
        if rule.form is Form.INT64:
            return str(value) if value else None
        if known.nesting:
            if rule.order is not None:
                value = in_set_order(value, rule.order)
            blocks = [self._inner[name].expand(each or {}, scope) for each in value]
            return (blocks[0] if blocks else None) if self._is_one(name) else blocks
        return in_set_order(value) if known.type[:1] == ["set"] else value

    def flatten(self, document: Mapping[str, Any], scope: Scope) -> State:
        """The attributes of a JSON object."""
        return {
            name: kept(scope.state, name, self.block[name].default)
            if rule.form is Form.KEPT
            else self._read(name, _get(document, self.key(name)), scope)
            for name, rule in self._rules.items()
            if rule.form is not Form.SKIP and name in self.block
        }

    def _read(self, name: str, value: Any, scope: Scope) -> Any:
        rule, known = self._rules[name], self.block[name]
        if rule.flatten is not None:
            return rule.flatten(value, scope)
        if value is None:
            return _zero(known)
        if known.nesting:
            inner = self._inner[name]
            values = [value] if self._is_one(name) else value
            return [inner.flatten(each, scope) for each in values if each or self._hollow]
        return _of_type(value, known.type)


def _of_type(value: Any, kind: schema.CtyType) -> Any:
    """A JSON value as an attribute of a type; some that Google alone decides hold objects."""
    if isinstance(kind, str):
        return int(value) if kind == "number" and isinstance(value, str) else value
    outer, inner = kind
    if isinstance(inner, str):
        return value
    if outer == "object":
        return {name: _inside(value.get(camel(name)), each) for name, each in inner.items()}
    values = value if isinstance(value, list) else [value]
    return [_of_type(each, inner) for each in values if each]


def _inside(value: Any, kind: schema.CtyType) -> Any:
    if value is None:
        return _zero(schema.Field(flags="c", type=kind))
    # Whole numbers in the schema, while Google may answer fractions.
    return int(value) if kind == "number" else _of_type(value, kind)


def _zero(known: schema.Field) -> Any:
    if known.nesting:
        return []
    if isinstance(known.type, list):
        return {} if known.type[0] == "map" else []
    return {"string": "", "bool": False, "number": 0}[known.type]


def _put(body: dict[str, Any], wire: str, value: Any) -> None:
    *outer, last = wire.split(".")
    for name in outer:
        body = body.setdefault(name, {})
    body[last] = value


def _get(document: Mapping[str, Any], wire: str) -> Any:
    value: Any = document
    for name in wire.split("."):
        value = value.get(name) if isinstance(value, dict) else None
    return value


def block(value: Any) -> State:
    """The attributes of a list of at most one block; {} when there is none, or nobody knows."""
    return dict(value[0] or {}) if isinstance(value, list) and value else {}


def kept(state: State, name: str, default: Any) -> Any:
    """An attribute that Google doesn't know: as it was, else its default."""
    value = state.get(name)
    return default if value is None or value is UNKNOWN else value


def camel(name: str) -> str:
    """`ip_cidr_range` as `ipCidrRange`."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def is_zero(value: Any) -> bool:
    """Whether Go would call a value empty."""
    return value is None or value is UNKNOWN or value in ("", 0, [], {})


def in_set_order(values: Sequence[Any], key: Callable[[Any], str] = str) -> list[Any]:
    """Members in the order in which HashiCorp's SDK lists a set: by the hash, as a string."""
    return sorted(values, key=lambda each: str(zlib.crc32(key(each).encode())))
