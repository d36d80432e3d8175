from __future__ import annotations

import functools
from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.fields import (
    Field,
    Kind,
    Scope,
    Send,
    Table,
    camel,
    expand,
    flatten,
    in_set_order,
)

SCOPE = Scope(Api({}, {}), {}, "p")
TEXT = functools.partial(Field, kind=Kind.STRING)


def sent(field: Field, value: Any, *, create: bool) -> dict[str, Any]:
    return expand((field,), {field.name: value}, SCOPE, create=create)


def test_a_name_becomes_camel_case() -> None:
    assert camel("private_ipv6_google_access") == "privateIpv6GoogleAccess"


@pytest.mark.parametrize("value", [None, UNKNOWN, ""])
def test_an_empty_field_is_left_out(value: Any) -> None:
    assert sent(TEXT("role"), value, create=True) == {}


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
    bgp = Field("bgp", kind=Kind.BLOCK, send=Send.GIVEN, fields=(TEXT("asn"),))
    assert sent(ips, [], create=True) == {"natIps": []}
    assert sent(bgp, [], create=True) == {"bgp": None}


def test_a_given_list_is_left_out_by_a_create_when_it_is_empty() -> None:
    ranges = Field("ranges", kind=Kind.BLOCKS, send=Send.GIVEN, fields=(TEXT("name"),))
    assert sent(ranges, [], create=True) == {}
    assert sent(ranges, [], create=False) == {"ranges": []}


def test_a_64_bit_number_travels_as_a_string() -> None:
    field = Field("disk_size_gb", kind=Kind.INT64)
    assert sent(field, 200, create=True) == {"diskSizeGb": "200"}
    assert flatten((field,), {"diskSizeGb": "200"}, SCOPE) == {"disk_size_gb": 200}


def test_what_google_leaves_out_reads_as_empty() -> None:
    fields = (
        TEXT("text"),
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
    field = Field("log_config", kind=Kind.BLOCK, fields=(TEXT("filter"), TEXT("level")))
    assert sent(field, [{"filter": "ALL", "level": ""}], create=True) == {
        "logConfig": {"filter": "ALL"}
    }
    assert flatten((field,), {"logConfig": {"filter": "ALL"}}, SCOPE) == {
        "log_config": [{"filter": "ALL", "level": ""}]
    }


def test_a_set_is_sent_in_the_order_that_was_recorded() -> None:
    # As an update of a firewall rule had its source ranges.
    assert in_set_order(["10.1.0.0/16", "35.235.240.0/20"]) == ["35.235.240.0/20", "10.1.0.0/16"]


def test_a_table_takes_shapes_from_the_schema() -> None:
    fields = {
        it.name: it
        for it in Table(
            "google_storage_bucket",
            Field("location"),
            Field("labels"),
            Field("requester_pays"),
            Field("cors"),
            Field("website"),
        )
    }
    assert [it.kind for it in fields.values()] == [
        Kind.STRING,
        Kind.MAP,
        Kind.BOOL,
        Kind.BLOCKS,
        Kind.BLOCK,
    ]
    assert {(it.name, it.kind) for it in fields["cors"].fields} == {
        ("max_age_seconds", Kind.NUMBER),
        ("method", Kind.STRINGS),
        ("origin", Kind.STRINGS),
        ("response_header", Kind.STRINGS),
    }


def test_a_table_keeps_what_it_says_of_a_field_deep_in_a_block() -> None:
    table = Table(
        "google_compute_router",
        Field("bgp", fields=(Field("asn", "number", kind=Kind.INT64),)),
    )
    value = {"asn": 64512, "advertise_mode": "CUSTOM"}
    assert expand(table, {"bgp": [value]}, SCOPE) == {
        "bgp": {"number": "64512", "advertiseMode": "CUSTOM"}
    }


def test_a_table_is_of_one_block_where_its_name_goes_on() -> None:
    (size,) = Table("google_compute_instance_template.disk", Field("disk_size_gb"))
    assert size.kind is Kind.NUMBER


def test_a_field_that_the_schema_has_not_is_an_error() -> None:
    with pytest.raises(KeyError, match="colour"):
        list(Table("google_compute_router", Field("colour")))


def test_a_field_outside_of_a_table_has_no_shape() -> None:
    with pytest.raises(TypeError, match="role is used outside of a table"):
        sent(Field("role"), None, create=True)
