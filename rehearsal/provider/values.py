"""Terraform's values on the wire, and in Python.

Terraform sends values as MessagePack, shaped by their type. In Python an object or map is a dict, a
list or set a list, null is None, and what is not known yet is `UNKNOWN`. A number is an int, or a
float if a float has it exactly, else a Decimal; MessagePack carries what neither of its own number
types has as a string.
"""

import json
from decimal import Decimal
from typing import Any, Final

import msgpack

from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import CtyType

_WIRE_UNKNOWN: Final = msgpack.ExtType(0, b"\0")
_INTEGERS: Final = range(-(2**63), 2**64)
_PRIMITIVES: Final = {
    bool: "bool",
    str: "string",
    int: "number",
    float: "number",
    Decimal: "number",
}


def decode(data: bytes, kind: CtyType) -> Any:
    """The value of a type that MessagePack carries."""
    raw = msgpack.unpackb(data, ext_hook=_unknown)
    return _decoded(raw, kind)


def decode_json(data: bytes, kind: CtyType) -> Any:
    """The value of a type that JSON carries, as in a state file."""
    return _decoded(json.loads(data, parse_float=Decimal), kind)


def encode(value: Any, kind: CtyType) -> bytes:
    """MessagePack of a value; attributes that an object lacks are null."""
    packed: bytes = msgpack.packb(_encoded(value, kind))
    return packed


def is_known(value: Any) -> bool:
    """Whether nothing in the value is unknown."""
    if isinstance(value, dict):
        return all(is_known(each) for each in value.values())
    if isinstance(value, list):
        return all(is_known(each) for each in value)
    return value is not UNKNOWN


def _unknown(_code: int, _data: bytes) -> Any:
    # Every extension is an unknown value; code 12 adds refinements, which a provider may ignore.
    return UNKNOWN


def _decoded(raw: Any, kind: CtyType) -> Any:
    if raw is None or raw is UNKNOWN:
        return raw
    if isinstance(kind, str):
        return _decoded_primitive(raw, kind)
    outer, inner = kind
    if outer == "object":
        return {name: _decoded(raw.get(name), each) for name, each in inner.items()}
    if outer == "map":
        return {key: _decoded(each, inner) for key, each in raw.items()}
    if outer == "tuple":
        return [_decoded(each, of) for each, of in zip(raw, inner, strict=True)]
    return [_decoded(each, inner) for each in raw]


def _decoded_primitive(raw: Any, kind: str) -> Any:
    if kind == "dynamic":
        inner, value = raw
        return _decoded(value, json.loads(inner))
    return _number(raw) if kind == "number" else raw


def _number(raw: float | str | Decimal) -> int | float | Decimal:
    exact = Decimal(raw)
    if exact == exact.to_integral_value():
        return int(exact)
    return float(exact) if Decimal(float(exact)) == exact or isinstance(raw, float) else exact


def _encoded(value: Any, kind: CtyType) -> Any:
    if value is None or value is UNKNOWN:
        return None if value is None else _WIRE_UNKNOWN
    if isinstance(kind, str):
        return _encoded_primitive(value, kind)
    outer, inner = kind
    if outer == "object":
        return {name: _encoded(value.get(name), each) for name, each in inner.items()}
    if outer == "map":
        return {key: _encoded(each, inner) for key, each in value.items()}
    if outer == "tuple":
        return [_encoded(each, of) for each, of in zip(value, inner, strict=True)]
    return [_encoded(each, inner) for each in value]


def _encoded_primitive(value: Any, kind: str) -> Any:
    if kind == "dynamic":
        inner = _implied(value)
        return [json.dumps(inner).encode(), _encoded(value, inner)]
    if kind != "number":
        return value
    wide = isinstance(value, int) and value not in _INTEGERS
    return str(value) if wide or isinstance(value, Decimal) else value


def _implied(value: Any) -> CtyType:
    if isinstance(value, dict):
        return ["object", {key: _implied(each) for key, each in value.items()}]
    if isinstance(value, list):
        return ["tuple", [_implied(each) for each in value]]
    return _PRIMITIVES.get(type(value), "dynamic")
