"""What the provider refuses of a configuration before anything is planned.

The rules and their order are those of HashiCorp's plugin SDK, on which the provider is built: per
field, combinations first, then whether it may and must be there, then its values. A value that is
not known yet passes. Terraform itself has checked names, types and the numbers of blocks before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rehearsal.provider import checks
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.values import is_known

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rehearsal.provider.schema import Field

Path = tuple[str | int, ...]
"""From the top: names of attributes and blocks, and indices of lists."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong, or only worth a warning."""

    summary: str  # what is wrong, in one line
    detail: str = ""  # more of it, or ""
    path: Path = ()  # where; empty for the whole block
    warning: bool = False  # whether it stops nothing


def validate(block: Mapping[str, Field], config: Mapping[str, Any]) -> list[Finding]:
    """All that is wrong with a configuration."""
    return list(_Validation(config).block(block, config, (), ()))


class _Validation:
    """One walk over one configuration, which the rules on combinations see whole."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        self._config = config

    def block(
        self, block: Mapping[str, Field], value: Mapping[str, Any], key: Path, path: Path
    ) -> Iterator[Finding]:
        """Findings of one block.

        `path`: where it is, as far as Terraform can point: elements of sets have no index.
        """
        for name, field in block.items():
            yield from self._field(field, value.get(name), (*key, name), (*path, name))

    def _field(self, field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
        if broken := self._combination(field, key):
            yield Finding("Invalid combination of arguments", broken, path)
        elif not _is_set(value):
            if "r" in field.flags and not field.repeated:
                text = f'The argument "{_dotted(key)}" is required, but no definition was found.'
                yield Finding("Missing required argument", text, path)
        elif not field.configurable:
            text = (
                f'Can\'t configure a value for "{_dotted(key)}": its value will be decided '
                "automatically based on the result of applying this configuration."
            )
            yield Finding("Value for unconfigurable attribute", text, path)
        else:
            yield from self._configured(field, value, key, path)

    def _configured(self, field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
        if field.deprecated:
            yield Finding("Argument is deprecated", _dotted(key), path, warning=True)
        if missing := self._missing_companions(field, key):
            yield Finding("Missing required argument", missing, path)
        elif conflict := self._conflict(field, key) if is_known(value) else "":
            yield Finding("Conflicting configuration arguments", conflict, path)
        elif isinstance(value, list):
            yield from self._elements(field, value, key, path)
        elif field.nesting and isinstance(value, Mapping):
            yield from self.block(field.block, value, key, path)
        elif value is not UNKNOWN:
            yield from _value(field, value, key, path)

    def _elements(
        self, field: Field, values: Sequence[Any], key: Path, path: Path
    ) -> Iterator[Finding]:
        # A dynamic block that is not known yet may still become another number of blocks.
        if is_known(values):
            yield from _count(field, len(values), key, path)
        for index, value in enumerate(values):
            if field.nesting and isinstance(value, Mapping):
                found = self.block(field.block, value, (*key, index), (*path, index))
                yield from found if field.nesting == "list" else _at(path, found)

    def _combination(self, field: Field, key: Path) -> str:
        if field.exactly_one_of:
            paths = sorted({*field.exactly_one_of, _dotted(key)})
            there = [each for each in paths if self._is_configured(each)]
            quoted = f"`{','.join(paths)}`"
            if not there and not any(self._get(each) is UNKNOWN for each in paths):
                return f'"{_dotted(key)}": one of {quoted} must be specified'
            if len(there) > 1:
                return (
                    f'"{_dotted(key)}": only one of {quoted} can be specified, but '
                    f"`{','.join(there)}` were specified."
                )
        if field.at_least_one_of:
            paths = sorted({*field.at_least_one_of, _dotted(key)})
            if not any(_is_set(self._get(each)) for each in paths):
                return f'"{_dotted(key)}": one of `{",".join(paths)}` must be specified'
        return ""

    def _missing_companions(self, field: Field, key: Path) -> str:
        paths = sorted({*field.required_with, _dotted(key)})
        if all(_is_set(self._get(each)) for each in paths):
            return ""
        return f'"{_dotted(key)}": all of `{",".join(paths)}` must be specified'

    def _conflict(self, field: Field, key: Path) -> str:
        others = (each for each in field.conflicts_with if self._is_configured(each))
        return next((f'"{_dotted(key)}": conflicts with {each}' for each in others), "")

    def _is_configured(self, path: str) -> bool:
        value = self._get(path)
        return _is_set(value) and value is not UNKNOWN

    def _get(self, path: str) -> Any:
        """The value at a path like "a.0.b": null where there is none, unknown below unknown."""
        value: Any = self._config
        for step in path.split("."):
            if isinstance(value, Mapping):
                value = value.get(step)
            elif isinstance(value, list):
                value = value[int(step)] if int(step) < len(value) else None
        return value


def _is_set(value: Any) -> bool:
    # To the SDK a list without elements, and hence a block that is not there, is no value.
    return value is not None and value != []


def _at(path: Path, findings: Iterator[Finding]) -> Iterator[Finding]:
    for found in findings:
        yield Finding(found.summary, found.detail, path, found.warning)


def _count(field: Field, count: int, key: Path, path: Path) -> Iterator[Finding]:
    text = f"Attribute {_dotted(key)} {{}} {{}} item {{}}, but config has {count} declared."
    if field.max and count > field.max:
        detail = text.format("supports", field.max, "maximum")
        yield Finding("Too many list items", detail, path)
    elif count < field.min:
        detail = text.format("requires", field.min, "minimum")
        yield Finding("Not enough list items", detail, path)


def _value(field: Field, value: Any, key: Path, path: Path) -> Iterator[Finding]:
    if field.enum and value not in field.enum:
        allowed = " ".join(f'"{each}"' for each in field.enum)
        yield Finding(f"expected {_dotted(key)} to be one of [{allowed}], got {value}", path=path)
    if field.check and (broken := checks.problem(field.check, _dotted(key), value)):
        yield Finding(broken, path=path)


def _dotted(key: Path) -> str:
    return ".".join(map(str, key))
