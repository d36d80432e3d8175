from typing import Any

import pytest

from rehearsal.provider import schema, validation
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import Field
from tests.table import cases


def validated(block: schema.Block, config: dict[str, Any]) -> list[validation.Finding]:
    return validation.validate(block, schema.complete(block, config))


def resource(kind: str, /, **config: Any) -> list[validation.Finding]:
    return validated(schema.load("resources", kind).block, config)


NETWORK: dict[str, Any] = {"name": "n"}
TAKES = {"network": "n", "allow": [{"protocol": "tcp"}]}
FIREWALL: dict[str, Any] = {"name": "f", **TAKES}
TEMPLATE: dict[str, Any] = {"machine_type": "m", "disk": [{}]}
KINDS: dict[str, dict[str, Any]] = {
    "network": NETWORK,
    "firewall": FIREWALL,
    "instance_template": TEMPLATE,
    "subnetwork": {"name": "s", "network": "n"},
    "empty network": {},
    "empty firewall": {"name": "f", "network": "n"},
}


def of_kind(kind: str, config: dict[str, Any]) -> list[validation.Finding]:
    """What is found in a right configuration of a kind, or an empty one, with these arguments."""
    return resource(f"google_compute_{kind.rsplit(maxsplit=1)[-1]}", **{**KINDS[kind], **config})


@cases(
    """
kind | config
network | {}
firewall | {}
# A conflict with an unknown value waits, and an unknown one of several satisfies.
firewall | {source_tags: [a], target_service_accounts: @unknown}
empty firewall | {allow: @unknown}
empty network | {name: @unknown, routing_mode: @unknown}
""",
    unknown=UNKNOWN,
)
def test_a_right_configuration_has_no_findings(kind: str, config: dict[str, Any]) -> None:
    assert of_kind(kind, config) == []


@cases(
    """
kind | config | path | words
empty network | {} | [name] | Missing required argument
network | {gateway_ipv4: 10.0.0.1} | [gateway_ipv4] | Value for unconfigurable attribute
network | {routing_mode: LOCAL} | [routing_mode]
    | 'expected routing_mode to be one of ["REGIONAL" "GLOBAL" ""], got LOCAL'
# An enum deep in lists is pointed at by index, a field of a set by the set.
instance_template | {network_interface: [{}, {nic_type: FAST}]} | [network_interface, 1, nic_type]
    | expected network_interface.1.nic_type to be one of
empty firewall | {allow: [{}]} | [allow] | "\\"allow.0.protocol\\" is required"
firewall | {source_service_accounts: @eleven} | [source_service_accounts] | Too many list items
""",
    eleven=[f"a{n}@p.iam.gserviceaccount.com" for n in range(11)],
)
def test_what_is_wrong_is_pointed_at(
    kind: str, config: dict[str, Any], path: list[Any], words: str
) -> None:
    (found,) = of_kind(kind, config)
    assert found.path == tuple(path)
    assert words in f"{found.summary}\n{found.detail}"
    assert not found.warning


@cases("""
kind | config | summary | detail
firewall | {source_tags: [a], target_service_accounts: [b]} | Conflicting configuration arguments
    | '"source_tags": conflicts with target_service_accounts'
empty firewall | {} | Invalid combination of arguments
    | '"allow": one of `allow,deny` must be specified'
firewall | {deny: [{protocol: udp}]} | Invalid combination of arguments
    | only one of `allow,deny` can be specified, but `allow,deny` were
instance_template | {shielded_instance_config: [{}]} | Invalid combination of arguments
    | '"shielded_instance_config.0.'
""")
def test_arguments_that_go_together_or_do_not(
    kind: str, config: dict[str, Any], summary: str, detail: str
) -> None:
    found = of_kind(kind, config)
    assert {each.summary for each in found} == {summary}
    assert detail in found[0].detail


def test_companions_are_asked_for() -> None:
    a, b = (Field(flags="o", type="string", required_with=it) for it in (("b",), ()))
    (found,) = validated({"a": a, "b": b}, {"a": "x"})
    assert found.detail == '"a": all of `a,b` must be specified'


def test_too_few_elements_are_refused_and_not_counted_while_some_are_unknown() -> None:
    block = {"a": Field(flags="o", type=["list", "string"], min=2)}
    (found,) = validated(block, {"a": ["x"]})
    assert found.summary == "Not enough list items"
    assert validated(block, {"a": [UNKNOWN]}) == []


def test_a_deprecated_argument_earns_a_warning_only() -> None:
    (found,) = of_kind("firewall", {"enable_logging": True})
    assert found.warning


@cases(
    """
kind | config | text
network | {name: N} | "\\"name\\" (\\"N\\") doesn't match regexp"
network | {name: @too_long} | doesn't match regexp
firewall | {priority: 65536} | in the range (0 - 65535), got 65536
instance_template | {name: @too_long} | "\\"name\\" cannot be longer than 63 characters"
instance_template | {name_prefix: @prefix} | cannot be longer than 54
subnetwork | {ip_cidr_range: 10.0.0.0} | IP CIDR
""",
    too_long="n" * 64,
    prefix="n" * 55,
)
def test_compute_refuses(kind: str, config: dict[str, Any], text: str) -> None:
    (found,) = of_kind(kind, config)
    assert text in found.summary


@pytest.mark.parametrize("account", ["short", "a" * 31, "Upper-case", "trailing-"])
def test_a_service_account_id_has_six_to_thirty_lower_case_characters(account: str) -> None:
    (found,) = resource("google_service_account", account_id=account)
    assert "doesn't match regexp" in found.summary


@cases(
    """
name | text
@too_long | cannot be longer than 40 characters
a_b | can only contain lowercase letters, numbers and hyphens
1a | must start with a letter
a- | must end with a number or a letter
""",
    too_long="c" * 41,
)
def test_a_cluster_name_is_refused(name: str, text: str) -> None:
    (found,) = resource("google_container_cluster", name=name)
    assert text in found.summary


def test_the_providers_block_is_validated_too() -> None:
    block = schema.load_provider().block
    assert validated(block, {"project": "p", "access_token": "t"}) == []
    both = validated(block, {"access_token": "t", "credentials": "{}"})
    assert {each.summary for each in both} == {"Conflicting configuration arguments"}
    (found,) = validated(block, {"credentials": "zzz"})
    assert found.summary.startswith("JSON credentials are not valid")


@cases(
    """
check | value | text
[at_least, 0] | 0 | -
[range, 2, 255] | 255 | -
[cidr] | 10.0.0.1/8 | -
[cidr_or_empty] | - | -
[full_hour] | 23:00 | -
[time_of_day] | 03:59 | -
[timestamp] | 2026-11-21T10:00:00Z | -
[timestamp] | 2026-11-21T10:00:00+01:00 | -
[duration] | 1h30m0.5s | -
[private_asn] | 64512 | -
[private_asn] | 16550 | -
[major_minor] | "1.33" | -
[iam_member] | serviceAccount:p.svc.id.goog[default/ksa] | -
[iam_member] | allUsers | -
[json] | "{}" | -
[credentials] | @here | -
[base64] | AAAA | -
[jwt] | a.b.c | -
[service_account_email] | a@p.iam.gserviceaccount.com | -
[at_least, 0] | -1 | expected x to be at least (0), got -1
[range, 2, 255] | 1 | expected x to be in the range (2 - 255), got 1
[cidr] | - | "\\"x\\" is not a valid IP CIDR range: invalid CIDR address: "
[cidr] | 10.0.0.300/8 | invalid CIDR address: 10.0.0.300/8
[cidr_or_empty] | x | expected x to contain a valid Value, got: x
[full_hour] | 23:30 | "\\"x\\" must be in the format HH:00, got: 23:30"
[time_of_day] | 24:00 | "\\"x\\" (\\"24:00\\") must be in the format HH:mm (RFC3339)"
[timestamp] | tomorrow | parsing time "tomorrow" as
[timestamp] | 2026-13-21T10:00:00Z | parsing time "2026-13-21T10:00:00Z"
[duration] | 7d | invalid duration "7d"
[private_asn] | 1 | RFC6996-compliant Local ASN
[major_minor] | 1.33.4 | must be in major.minor format
[iam_member] | somebody | invalid value "somebody" for x (IAM members must have
[iam_member] | deleted:user:a@b.c | does not support IAM members for deleted
[json] | "{" | "\\"x\\" contains an invalid JSON"
[base64] | A | Failed to decode (base64)
[jwt] | a.b | "\\"x\\" is not a valid JWT format"
[service_account_email] | a@b.c | not a valid service account email address
[regexp, "^a$"] | "a\\n" | doesn't match regexp
""",
    here=__file__,
)
def test_a_check_passes_or_refuses_in_the_providers_words(
    check: list[Any], value: Any, text: str
) -> None:
    found = validation.problem(check, "x", value)
    assert text in found
    assert bool(text) == bool(found)


def test_every_check_that_the_schema_names_is_there() -> None:
    def named(block: Any) -> set[str]:
        own = {field.check[0] for field in block.values() if field.check}
        return own.union(*(named(field.block) for field in block.values()))

    blocks = [schema.load("resources", name).block for name in schema.names("resources")]
    used = named(schema.load_provider().block).union(*map(named, blocks))
    assert used == set(validation.CHECKS)
