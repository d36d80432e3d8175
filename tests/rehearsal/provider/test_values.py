import math
from decimal import Decimal
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rehearsal.provider import values
from rehearsal.provider.resource import UNKNOWN

NUMBERS = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False).map(lambda it: it.normalize())
)
PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(),
    "bool": st.booleans(),
    "number": NUMBERS,
}


def extend(kinds: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    names = st.text(min_size=1, max_size=4)
    collections = st.tuples(st.sampled_from(["list", "set", "map"]), kinds).map(list)
    objects = st.dictionaries(names, kinds, max_size=3).map(lambda it: ["object", it])
    tuples = st.lists(kinds, max_size=3).map(lambda it: ["tuple", it])
    return collections | objects | tuples


TYPES = st.recursive(st.sampled_from(sorted(PRIMITIVES)), extend, max_leaves=6)


def value_of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type, null and unknown among them."""
    if isinstance(kind, str):
        inner: st.SearchStrategy[Any] = PRIMITIVES[kind]
    elif kind[0] == "object":
        inner = st.fixed_dictionaries({name: value_of(each) for name, each in kind[1].items()})
    elif kind[0] == "tuple":
        inner = st.tuples(*map(value_of, kind[1])).map(list)
    elif kind[0] == "map":
        inner = st.dictionaries(st.text(), value_of(kind[1]), max_size=3)
    else:
        inner = st.lists(value_of(kind[1]), max_size=3)
    return inner | st.none() | st.just(UNKNOWN)


@given(st.data())
def test_what_is_encoded_is_decoded_the_same(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    value = data.draw(value_of(kind))
    assert values.decode(values.encode(value, kind), kind) == value


@given(st.data())
def test_a_dynamic_value_keeps_its_own_type(data: st.DataObject) -> None:
    value = data.draw(st.recursive(st.text() | st.booleans() | st.integers(), st.lists))
    assert values.decode(values.encode(value, "dynamic"), "dynamic") == value


def test_an_object_is_sent_with_every_attribute_of_its_type() -> None:
    sent = values.encode({"a": "x"}, ["object", {"a": "string", "b": ["list", "string"]}])
    assert msgpack.unpackb(sent) == {"a": "x", "b": None}


def test_every_extension_is_an_unknown_value() -> None:
    refined = msgpack.packb(msgpack.ExtType(12, b"\x81\x01\xc2"))
    assert values.decode(refined, "string") is UNKNOWN


@pytest.mark.parametrize(
    ("wire", "value"),
    [
        (3, 3),
        (3.0, 3),
        (0.5, 0.5),
        ("18446744073709551617", 2**64 + 1),
        ("0.1", Decimal("0.1")),
        ("1e30", 10**30),
    ],
)
def test_a_number_is_an_int_where_it_is_whole(wire: Any, value: Any) -> None:
    decoded = values.decode(msgpack.packb(wire), "number")
    assert decoded == value
    assert type(decoded) is type(value)


def test_an_integer_too_wide_for_messagepack_travels_as_text() -> None:
    assert msgpack.unpackb(values.encode(2**70, "number")) == str(2**70)


def test_a_state_file_is_read_with_its_numbers_exact() -> None:
    kind = ["object", {"n": "number", "gone": "string"}]
    decoded = values.decode_json(b'{"n": 0.5, "dropped": 1}', kind)
    assert decoded == {"n": 0.5, "gone": None}
    assert math.isclose(decoded["n"], 0.5)


def test_known_means_known_all_the_way_down() -> None:
    assert values.is_known({"a": [1, None]})
    assert not values.is_known({"a": [{"b": UNKNOWN}]})
