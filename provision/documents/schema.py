"""The JSON Schema of all documents, made from their types.

    python -m provision.documents.schema docs/reference/output.schema.json

It says of each type what `plain` makes of it, and of each field what the comment beside or above it
says.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import enum
import inspect
import json
import re
import sys
import types
import typing
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

from provision.documents import plain
from provision.documents.events import Event
from provision.documents.json_value import Json
from provision.documents.result_event import ResultEvent
from provision.documents.run import Run

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

LINE: Final = "ndjson.Line"
"""The name in the schema of what each line of `--output ndjson` is."""

_SIMPLE: Final[dict[Any, str]] = {
    bool: "boolean",
    int: "integer",
    float: "number",
    Decimal: "number",
    str: "string",
    type(None): "null",
}
_FIELD: Final = re.compile(r" {4}(?P<name>\w+): ")
_NONE: Final = re.compile(r"\bNone\b")


def schema() -> dict[str, Any]:
    """The schema. A document may have more keys than it tells: newer versions add some."""
    known: dict[str, Any] = {}
    return {
        "$schema": DIALECT,
        "title": "What is printed with --output json",
        **_of(Run, known),
        "$defs": {LINE: _of(Event | ResultEvent, known), **dict(sorted(known.items()))},
    }


def text() -> str:
    """The schema as a file."""
    return json.dumps(schema(), indent=2, ensure_ascii=False) + "\n"


def _of(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    """The schema of one type; types with a name of their own are added to `known`."""
    if kind in _SIMPLE:
        return {"type": _SIMPLE[kind]}
    if kind is Json:
        return {}
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return _named(kind, known, _enumeration)
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _named(kind, known, _object)
    return _compound(kind, known)


def _compound(kind: Any, known: dict[str, Any]) -> dict[str, Any]:
    origin, parts = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Literal:
        return {"const": plain(parts[0])}
    if origin in {types.UnionType, typing.Union}:
        return {"anyOf": [_of(part, known) for part in parts]}
    if origin in {list, collections.abc.Sequence} or (origin is tuple and parts[1:] == (...,)):
        return {"type": "array", "items": _of(parts[0], known)}
    if origin in {dict, collections.abc.Mapping} and parts[0] is str:
        return {"type": "object", "additionalProperties": _of(parts[1], known)}
    raise TypeError(f"{kind} is not a type that documents have")


def _named(
    kind: type, known: dict[str, Any], make: collections.abc.Callable[..., dict[str, Any]]
) -> dict[str, Any]:
    name = f"{kind.__module__.rpartition('.')[2]}.{kind.__name__}"
    if name not in known:
        known[name] = {}  # one that has itself inside ends here
        known[name].update(make(kind, known))
    return {"$ref": f"#/$defs/{name}"}


def _enumeration(kind: type[enum.Enum], known: dict[str, Any]) -> dict[str, Any]:
    del known
    return {
        "description": _summary(kind),
        "type": "string",
        "enum": [member.value for member in kind],
    }


def _object(kind: type, known: dict[str, Any]) -> dict[str, Any]:
    hints, says = typing.get_type_hints(kind), _told_of_fields(kind)
    properties, required = {}, []
    for field in dataclasses.fields(kind):
        hint, nothing = hints[field.name], "null"
        if field.default is None:
            # It is left out rather than null.
            hint, nothing = _without_none(hint), "absent"
        else:
            required.append(field.name)
        text = _NONE.sub(nothing, says[field.name])
        properties[field.name] = {"description": text} | _of(hint, known)
    return {
        "description": _summary(kind),
        "type": "object",
        "properties": properties,
        "required": required,
    }


def _without_none(hint: Any) -> Any:
    # With the operator `|` a union can only be written, not be made of a tuple.
    return typing.Union[tuple(it for it in typing.get_args(hint) if it is not type(None))]  # noqa: UP007


def _summary(kind: type) -> str:
    return inspect.cleandoc(kind.__doc__ or "").partition("\n")[0]


def _told_of_fields(kind: type) -> dict[str, str]:
    """What comments say of a type's fields, those that it has from others too."""
    told: dict[str, str] = {}
    for one in filter(dataclasses.is_dataclass, reversed(kind.__mro__)):
        above: list[str] = []
        for line in inspect.getsource(one).splitlines():
            code, mark, comment = line.partition("# ")
            field = _FIELD.match(code)
            if mark and not code.strip():
                above.append(comment)
            elif field and (comment or above):
                told[field["name"]] = _sentence(comment or " ".join(above))
            if code.strip():
                above = []
    return told


def _sentence(words: str) -> str:
    return words[:1].upper() + words[1:] + ("" if words.endswith(".") else ".")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        Path(given).write_text(text(), encoding="utf-8")
