"""The provider's schema: what each type has, and the rules of each field.

The data in the folder `schema/` is made by `trim.py`: one file for the provider's own block and one
per type, so that a process reads only what it is asked for.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

FOLDER: Final = Path(__file__).parent / "schema"

_TUPLES: Final = frozenset(
    {"enum", "check", "conflicts_with", "exactly_one_of", "at_least_one_of", "required_with"}
)

CtyType = str | list[Any]
"""A type as Terraform's JSON has it: "string", ["list", "string"], ["object", {...}]."""

Nesting = Literal["", "single", "list", "set"]
Kind = Literal["resources", "data"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One attribute, or one type of nested block."""

    flags: str  # some of "r" required, "o" optional, "c" computed
    type: CtyType = ""  # the type of an attribute; "" for a block
    nesting: Nesting = ""  # how a block nests; "" for an attribute
    # the fields of a nested block; empty for an attribute
    block: Mapping[str, Field] = dataclasses.field(default_factory=dict)
    min: int = 0  # least number of blocks or elements
    max: int = 0  # greatest number of blocks or elements; 0 is any
    sensitive: bool = False  # whether Terraform hides the value
    deprecated: bool = False  # whether using it earns a warning
    force_new: bool = False  # whether another value means another object
    default: Any = None  # what the provider takes when nothing is configured; None for nothing
    enum: tuple[str, ...] = ()  # the only values allowed; empty for any
    check: tuple[Any, ...] = ()  # a check of `validation.py`, by name and arguments
    conflicts_with: tuple[str, ...] = ()  # paths ("a.0.b") that exclude this one
    exactly_one_of: tuple[str, ...] = ()  # paths of which one has to be configured
    at_least_one_of: tuple[str, ...] = ()  # paths of which some have to be configured
    required_with: tuple[str, ...] = ()  # paths that this one needs

    @property
    def computed(self) -> bool:
        """Whether Google may decide the value."""
        return "c" in self.flags

    @property
    def configurable(self) -> bool:
        """Whether a configuration may name it."""
        return self.flags != "c"

    @property
    def repeated(self) -> bool:
        """Whether it is a list or set of blocks, which is empty where an attribute is null."""
        return self.nesting in {"list", "set"}


Block = dict[str, Field]


@dataclass(frozen=True, slots=True)
class Schema:
    """A type's schema."""

    version: int  # the version that its states carry
    block: Block  # its fields by name
    type: CtyType
    # action -> how long it may take unless the configuration says otherwise ("20m0s")
    timeouts: Mapping[str, str]


def _field(raw: dict[str, Any]) -> Field:
    if "block" in raw:
        raw["block"] = _block(raw["block"])
    arguments: dict[str, Any] = {k: tuple(v) if k in _TUPLES else v for k, v in raw.items()}
    return Field(**arguments)


def _block(raw: dict[str, Any]) -> Block:
    return {name: _field(field) for name, field in raw.items()}


def type_of(block: Mapping[str, Field]) -> CtyType:
    """The type of a block's value: an object with all of its fields."""
    return ["object", {name: _type_of_field(field) for name, field in block.items()}]


def _type_of_field(field: Field) -> CtyType:
    if not field.nesting:
        return field.type
    inner = type_of(field.block)
    return inner if field.nesting == "single" else [field.nesting, inner]


def complete(block: Mapping[str, Field], value: Mapping[str, Any]) -> dict[str, Any]:
    """A copy with every field of the block and no other: what was missing is null, or empty."""
    return {name: _complete_field(field, value.get(name)) for name, field in block.items()}


def _complete_field(field: Field, value: Any) -> Any:
    if not field.nesting:
        return value
    if field.repeated:
        if isinstance(value, list):
            return [
                complete(field.block, each) if isinstance(each, dict) else each for each in value
            ]
        return [] if value is None else value
    return complete(field.block, value) if isinstance(value, dict) else value


@functools.cache
def load(kind: Kind, name: str) -> Schema:
    """The schema of a type."""
    return _read(FOLDER / kind / f"{name}.json")


@functools.cache
def load_provider() -> Schema:
    """The schema of the provider's own block."""
    return _read(FOLDER / "provider.json")


def _read(path: Path) -> Schema:
    raw = json.loads(path.read_bytes())
    block = _block(raw["block"])
    return Schema(raw["version"], block, type_of(block), raw.get("timeouts", {}))


def names(kind: Kind) -> Iterator[str]:
    """The names of the types offered."""
    return (path.stem for path in sorted((FOLDER / kind).glob("*.json")))
