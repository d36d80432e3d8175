"""Strict checks of objects against the OpenAPI schema of their definition."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_PRESERVE: Final = "x-kubernetes-preserve-unknown-fields"
_INT_OR_STRING: Final = "x-kubernetes-int-or-string"
_EMBEDDED: Final = "x-kubernetes-embedded-resource"
_COMMON: Final = frozenset({"apiVersion", "kind", "metadata"})
_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}


def unknown(schema: Mapping[str, Any], thing: Mapping[str, Any]) -> list[str]:
    """The paths of fields that the schema does not have (".spec.admissionChecks")."""
    return list(_unknown(schema, thing, "", top=True))


def _unknown(
    schema: Mapping[str, Any], value: Any, path: str, *, top: bool = False
) -> Iterator[str]:
    if isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _unknown(schema.get("items") or {}, entry, f"{path}[{index}]")
    if not isinstance(value, dict):
        return
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    free = schema.get(_PRESERVE) or (not properties and others is None)
    for name, inner in value.items():
        if name in _COMMON and (top or schema.get(_EMBEDDED)):
            continue
        known = properties.get(name) or (others if isinstance(others, dict) else None)
        if known is not None:
            yield from _unknown(known, inner, f"{path}.{name}")
        elif not free and others is not True:
            yield f"{path}.{name}"


def problems(schema: Mapping[str, Any], thing: Mapping[str, Any]) -> list[str]:
    """What is wrong with the values of known fields, in Kubernetes' words."""
    return list(_problems(schema, thing, ""))


def _problems(schema: Mapping[str, Any], value: Any, path: str) -> Iterator[str]:
    if value is None:
        return
    kind = schema.get("type")
    if schema.get(_INT_OR_STRING):
        kind = None
    if kind is not None and not _is_a(value, kind):
        yield f'{path[1:]}: Invalid value: "{type(value).__name__}": must be of type {kind}'
        return
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(f'"{it}"' for it in schema["enum"])
        yield f'{path[1:]}: Unsupported value: "{value}": supported values: {allowed}'
    if isinstance(value, dict):
        yield from _of_object(schema, value, path)
    elif isinstance(value, list):
        for index, entry in enumerate(value):
            yield from _problems(schema.get("items") or {}, entry, f"{path}[{index}]")


def _is_a(value: Any, kind: str) -> bool:
    if isinstance(value, bool):
        return kind == "boolean"
    return isinstance(value, _TYPES[kind])


def _of_object(schema: Mapping[str, Any], value: Mapping[str, Any], path: str) -> Iterator[str]:
    for name in schema.get("required") or []:
        if name not in value:
            yield f"{path[1:]}.{name}: Required value".lstrip(".")
    properties, others = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, inner in value.items():
        known = properties.get(name) or (others if isinstance(others, dict) else None)
        if known is not None and name not in _COMMON:
            yield from _problems(known, inner, f"{path}.{name}")
