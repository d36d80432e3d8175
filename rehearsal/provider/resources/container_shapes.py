"""From the provider's schema of a Kubernetes Engine type to the API's JSON and back.

These types have hundreds of fields, and nearly all of them have the same name on both sides. So the
tables here are made of the schema; a type says only where the API differs. The rules are those of
the real provider's hand-written code: a zero is left out unless the type has it forced, a block
that is configured is sent even when it is empty, and what Google leaves out reads as zero.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.shapes import camel, in_set_order, is_zero

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.resource import State
    from rehearsal.provider.schema import Field


class Form(enum.Enum):
    """How a value looks in JSON, where the schema does not tell."""

    PLAIN = enum.auto()
    INT64 = enum.auto()
    """A number that is a string."""
    ONE = enum.auto()
    """A list of at most one block that is an object, though the schema lets it be longer."""
    SKIP = enum.auto()
    """Not by these tables."""


@dataclass(frozen=True)
class Rule:
    """Where the API differs from the schema."""

    # the JSON name, with dots into objects ("variantConfig.variant"); "" for the attribute's in
    # camel case
    wire: str = ""
    form: Form = Form.PLAIN  # how the value looks
    force: bool = False  # whether a zero is sent, once the block that has it is
    expand: Callable[[Any], Any] | None = None  # makes JSON of the value; gets what is not unknown
    flatten: Callable[[Any], Any] | None = None  # makes a value of the JSON, None for absent


SKIP = Rule(form=Form.SKIP)
INT64 = Rule(form=Form.INT64)
FORCE = Rule(force=True)
ONE = Rule(form=Form.ONE)


@dataclass(frozen=True)
class Shape:
    """Some fields of a block, and the rules of those that differ."""

    block: Mapping[str, Field]  # the fields by name, as in the schema
    # rules by path below this block ("a.b")
    rules: Mapping[str, Rule] = field(default_factory=dict)

    def _rule(self, name: str) -> Rule:
        return self.rules.get(name) or Rule()

    def _inner(self, name: str) -> Shape:
        prefix = f"{name}."
        inner = {
            path.removeprefix(prefix): rule
            for path, rule in self.rules.items()
            if path.startswith(prefix)
        }
        return Shape(self.block[name].block, inner)

    def expand(self, values: Mapping[str, Any], names: tuple[str, ...] = ()) -> dict[str, Any]:
        """The JSON object of a block."""
        body: dict[str, Any] = {}
        for name in names or self.block:
            rule = self._rule(name)
            if rule.form is Form.SKIP:
                continue
            wire = self.value(name, values.get(name))
            if wire is not None and (rule.force or self._is_sent(name, wire)):
                _put(body, rule.wire or camel(name), wire)
        return body

    def inside(self, path: str) -> Shape:
        """The conversions of a block within this one ("a.b"); "" for this one."""
        shape = self
        for name in filter(None, path.split(".")):
            shape = shape._inner(name)
        return shape

    def _is_sent(self, name: str, wire: Any) -> bool:
        # An empty object stands for a block without a filled field, which Go's clients send.
        return (
            wire == {}
            if self.block[name].nesting and isinstance(wire, dict) and not wire
            else (not is_zero(wire))
        )

    def value(self, name: str, value: Any) -> Any:
        """The JSON value of one attribute; None for a block that is not there."""
        rule, known = self._rule(name), self.block[name]
        if value is UNKNOWN or value is None:
            value = _zero(known)
        if rule.expand is not None:
            return rule.expand(value)
        if rule.form is Form.INT64:
            return str(value) if value or rule.force else None
        if known.nesting:
            return self._blocks(name, value)
        if isinstance(known.type, list) and known.type[0] == "set":
            return in_set_order(value)
        return value

    def _blocks(self, name: str, values: list[Any]) -> Any:
        inner = self._inner(name)
        blocks = [inner.expand(each or {}) for each in values]
        if self._is_one(name):
            return blocks[0] if blocks else None
        return blocks

    def _is_one(self, name: str) -> bool:
        known = self.block[name]
        return self._rule(name).form is Form.ONE or (known.max == 1 and known.nesting == "list")

    def flatten(self, document: Mapping[str, Any]) -> State:
        """The attributes of a JSON object."""
        return {
            name: self._read(name, _get(document, self._rule(name).wire or camel(name)))
            for name in self.block
            if self._rule(name).form is not Form.SKIP
        }

    def _read(self, name: str, value: Any) -> Any:
        rule, known = self._rule(name), self.block[name]
        if rule.flatten is not None:
            return rule.flatten(value)
        if value is None:
            return _zero(known)
        if known.nesting:
            inner = self._inner(name)
            values = [value] if self._is_one(name) else value
            return [inner.flatten(each) for each in values]
        return int(value) if known.type == "number" else value


def _zero(known: Field) -> Any:
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
        if not isinstance(value, dict):
            return None
        value = value.get(name)
    return value


def block(value: Any) -> State:
    """The attributes of a list of at most one block; {} when there is none, or nobody knows."""
    return dict(value[0] or {}) if isinstance(value, list) and value else {}
