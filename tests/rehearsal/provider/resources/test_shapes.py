from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources.shapes import (
    ALWAYS,
    GIVEN,
    INT64,
    KEPT,
    MANY,
    SKIP,
    VIRTUAL,
    Rule,
    Scope,
    Shape,
    camel,
    in_set_order,
)
from tests.table import cases

ROUTER, SUBNETWORK, TEMPLATE, POOL = (
    f"google_{it}"
    for it in (
        *("compute_router", "compute_subnetwork", "compute_instance_template"),
        "container_node_pool",
    )
)


def scope(**state: Any) -> Scope:
    return Scope(Api({}, {}), state, "p")


def sent(
    of: str, rules: dict[str, Rule], *, create: bool = True, hollow: bool = False, **values: Any
) -> Any:
    return Shape(of, rules, hollow=hollow).expand(values, scope(), tuple(values), create=create)


@cases(
    """
rules | values | body
{} | {role: null} | {}
{} | {role: @unknown} | {}
{} | {role: ""} | {}
{} | {role: ACTIVE} | {role: ACTIVE}
{} | {gateway_address: 10.0.0.1} | {}
{role: @always} | {role: null} | {role: ""}
{role: @skip} | {role: x} | {}
{role: @virtual} | {role: x} | {}
{role: @kept} | {role: x} | {role: x}
{role: @deeper} | {role: x, purpose: y} | {a: {b: x}, purpose: y}
{stack_type: @given} | {stack_type: ""} | {stackType: ""}
{stack_type: @given} | {stack_type: @unknown} | {}
{secondary_ip_range: @given} | {secondary_ip_range: []} | {}
{log_config: @given} | {log_config: []} | {logConfig: null}
{} | {log_config: [{metadata: M}]} | {logConfig: {metadata: M}}
{} | {log_config: [{}]} | {}
{log_config: @many} | {log_config: [{metadata: M}]} | {logConfig: [{metadata: M}]}
{role: @framed} | {role: @unknown} | {role: "<>"}
""",
    unknown=UNKNOWN,
    always=ALWAYS,
    skip=SKIP,
    virtual=VIRTUAL,
    kept=KEPT,
    given=GIVEN,
    many=MANY,
    deeper=Rule("a.b"),
    framed=Rule(expand=lambda value, _: f"<{value}>"),
)
def test_a_create_sends(rules: dict[str, Rule], values: dict[str, Any], body: Any) -> None:
    assert sent(SUBNETWORK, rules, **values) == body


@pytest.mark.parametrize("value", [None, UNKNOWN, ""])
def test_an_update_sends_a_given_field_even_when_it_is_empty(value: Any) -> None:
    assert sent(SUBNETWORK, {"role": GIVEN}, create=False, role=value) == {"role": ""}
    ranges = sent(SUBNETWORK, {"secondary_ip_range": GIVEN}, create=False, secondary_ip_range=[])
    assert ranges == {"secondaryIpRange": []}


def test_some_types_send_a_block_in_which_nothing_is() -> None:
    assert sent(POOL, {}, hollow=True, network_config=[{}]) == {"networkConfig": {}}


def test_a_64_bit_number_travels_as_a_string() -> None:
    rules = {"disk.disk_size_gb": INT64}
    assert sent(TEMPLATE, rules, disk=[{"disk_size_gb": 200}]) == {"disk": [{"diskSizeGb": "200"}]}
    found = Shape(TEMPLATE, rules).flatten({"disk": [{"diskSizeGb": "200"}]}, scope())
    assert found["disk"][0]["disk_size_gb"] == 200


def test_what_google_leaves_out_reads_as_empty() -> None:
    found = Shape(TEMPLATE).flatten({}, scope())
    names = ("machine_type", "can_ip_forward", "metadata", "tags", "disk", "scheduling")
    assert [found[name] for name in names] == ["", False, {}, [], [], []]


def test_a_block_is_an_object_in_json_and_a_list_of_one_in_the_state() -> None:
    shape = Shape(ROUTER, {"bgp.asn": Rule("number"), "description": KEPT})
    found = shape.flatten(
        {"bgp": {"number": 64514}, "description": "no"}, scope(description="as was")
    )
    assert found["bgp"][0] == {
        "asn": 64514,
        **dict.fromkeys(("advertise_mode", "identifier_range"), ""),
        "advertised_groups": [],
        "advertised_ip_ranges": [],
        "keepalive_interval": 0,
    }
    assert found["description"] == "as was"


def test_an_attribute_of_objects_is_read_by_its_type() -> None:
    error = {"code": "X", "errorDetails": [{"quotaInfo": {"limit": 0.5, "dimensions": {"r": "s"}}}]}
    status = {"error": {"errors": [error]}}
    found = Shape("google_compute_resize_request").flatten({"status": status}, scope())
    (read,) = found["status"][0]["error"][0]["errors"]
    assert (read["code"], read["message"]) == ("X", "")
    quota = read["error_details"][0]["quota_info"][0]
    assert (quota["limit"], quota["dimensions"], quota["metric_name"]) == (0, {"r": "s"}, "")


def test_a_set_is_sent_in_the_order_that_was_recorded() -> None:
    # As an update of a firewall rule had its source ranges.
    assert in_set_order(["10.1.0.0/16", "35.235.240.0/20"]) == ["35.235.240.0/20", "10.1.0.0/16"]


def test_a_name_becomes_camel_case() -> None:
    assert camel("private_ipv6_google_access") == "privateIpv6GoogleAccess"
