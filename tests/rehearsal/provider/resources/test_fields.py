from __future__ import annotations

from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    camel,
    expand,
    flatten,
    in_set_order,
)

SCOPE = Scope(Api({}, {}), {}, "p")


def sent(field: Field, value: Any, *, create: bool) -> dict[str, Any]:
    return expand((field,), {field.name: value}, SCOPE, create=create)


def test_a_name_becomes_camel_case() -> None:
    assert camel("private_ipv6_google_access") == "privateIpv6GoogleAccess"


@pytest.mark.parametrize("value", [None, UNKNOWN, ""])
def test_an_empty_field_is_left_out(value: Any) -> None:
    assert sent(Field("role"), value, create=True) == {}


@pytest.mark.parametrize(("value", "body"), [(False, {"on": False}), (None, {}), (UNKNOWN, {})])
def test_a_given_field_is_sent_by_a_create_if_it_is_configured(
    value: Any, body: dict[str, Any]
) -> None:
    assert sent(Field("on", kind=Kind.BOOL, send=Send.GIVEN), value, create=True) == body


@pytest.mark.parametrize("value", [None, UNKNOWN, False])
def test_a_given_field_is_always_sent_by_an_update(value: Any) -> None:
    field = Field("on", kind=Kind.BOOL, send=Send.GIVEN)
    assert sent(field, value, create=False) == {"on": False}


def test_a_given_set_or_block_is_sent_even_when_there_is_none() -> None:
    ips = Field("nat_ips", kind=Kind.SET, send=Send.GIVEN)
    bgp = Field("bgp", kind=Kind.BLOCK, send=Send.GIVEN, fields=(Field("asn"),))
    assert sent(ips, [], create=True) == {"natIps": []}
    assert sent(bgp, [], create=True) == {"bgp": None}


def test_a_given_list_is_left_out_by_a_create_when_it_is_empty() -> None:
    ranges = Field("ranges", kind=Kind.BLOCKS, send=Send.GIVEN, fields=(Field("name"),))
    assert sent(ranges, [], create=True) == {}
    assert sent(ranges, [], create=False) == {"ranges": []}


def test_a_64_bit_number_travels_as_a_string() -> None:
    field = Field("disk_size_gb", kind=Kind.INT64)
    assert sent(field, 200, create=True) == {"diskSizeGb": "200"}
    assert flatten((field,), {"diskSizeGb": "200"}, SCOPE) == {"disk_size_gb": 200}


def test_what_google_leaves_out_reads_as_empty() -> None:
    fields = (
        Field("text"),
        Field("on", kind=Kind.BOOL),
        Field("number", kind=Kind.NUMBER),
        Field("list", kind=Kind.STRINGS),
        Field("map", kind=Kind.MAP),
        Field("block", kind=Kind.BLOCK),
    )
    assert flatten(fields, {}, SCOPE) == {
        "text": "",
        "on": False,
        "number": 0,
        "list": [],
        "map": {},
        "block": [],
    }


def test_a_block_is_an_object_in_json_and_a_list_of_one_in_the_state() -> None:
    field = Field("log_config", kind=Kind.BLOCK, fields=(Field("filter"), Field("level")))
    assert sent(field, [{"filter": "ALL", "level": ""}], create=True) == {
        "logConfig": {"filter": "ALL"}
    }
    assert flatten((field,), {"logConfig": {"filter": "ALL"}}, SCOPE) == {
        "log_config": [{"filter": "ALL", "level": ""}]
    }


def test_a_set_is_sent_in_the_order_that_was_recorded() -> None:
    # As an update of a firewall rule had its source ranges.
    assert in_set_order(["10.1.0.0/16", "35.235.240.0/20"]) == ["35.235.240.0/20", "10.1.0.0/16"]
