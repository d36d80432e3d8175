"""Each planted error, on the provider's true schema."""

from typing import Any

import pytest

from rehearsal.provider import schema, validation
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import Field


def validated(block: schema.Block, config: dict[str, Any]) -> list[validation.Finding]:
    return validation.validate(block, schema.complete(block, config))


def resource(kind: str, /, **config: Any) -> list[validation.Finding]:
    return validated(schema.load("resources", kind).block, config)


NETWORK: dict[str, Any] = {"name": "n"}
FIREWALL: dict[str, Any] = {"name": "f", "network": "n", "allow": [{"protocol": "tcp"}]}


def test_a_right_configuration_has_no_findings() -> None:
    assert resource("google_compute_network", **NETWORK) == []
    assert resource("google_compute_firewall", **FIREWALL) == []


def test_a_missing_argument_is_named() -> None:
    (found,) = resource("google_compute_network")
    assert found.summary == "Missing required argument"
    assert found.path == ("name",)


def test_a_value_for_what_google_decides_is_refused() -> None:
    (found,) = resource("google_compute_network", **NETWORK, gateway_ipv4="10.0.0.1")
    assert found.summary == "Value for unconfigurable attribute"
    assert found.path == ("gateway_ipv4",)


def test_a_value_outside_the_enum_is_refused_with_the_values_allowed() -> None:
    (found,) = resource("google_compute_network", **NETWORK, routing_mode="LOCAL")
    text = 'expected routing_mode to be one of ["REGIONAL" "GLOBAL" ""], got LOCAL'
    assert found == validation.Finding(text, path=("routing_mode",))


def test_an_enum_deep_in_lists_is_pointed_at_by_index() -> None:
    found = resource(
        "google_compute_instance_template",
        machine_type="m",
        disk=[{}],
        network_interface=[{}, {"nic_type": "FAST"}],
    )
    assert [each.path for each in found] == [("network_interface", 1, "nic_type")]
    assert found[0].summary.startswith("expected network_interface.1.nic_type to be one of")


def test_a_finding_within_a_set_points_at_the_set() -> None:
    (found,) = resource("google_compute_firewall", name="f", network="n", allow=[{}])
    assert found.path == ("allow",)
    assert '"allow.0.protocol" is required' in found.detail


def test_conflicting_arguments_are_refused() -> None:
    found = resource(
        "google_compute_firewall", **FIREWALL, source_tags=["a"], target_service_accounts=["b"]
    )
    assert {each.summary for each in found} == {"Conflicting configuration arguments"}
    assert found[0].detail == '"source_tags": conflicts with target_service_accounts'


def test_a_conflict_with_an_unknown_value_waits() -> None:
    found = resource(
        "google_compute_firewall", **FIREWALL, source_tags=["a"], target_service_accounts=UNKNOWN
    )
    assert found == []


def test_exactly_one_of_several_is_asked_for() -> None:
    none = resource("google_compute_firewall", name="f", network="n")
    assert none[0].detail == '"allow": one of `allow,deny` must be specified'
    both = resource("google_compute_firewall", **FIREWALL, deny=[{"protocol": "udp"}])
    assert "only one of `allow,deny` can be specified, but `allow,deny` were" in both[0].detail


def test_one_of_several_that_is_unknown_satisfies() -> None:
    assert resource("google_compute_firewall", name="f", network="n", allow=UNKNOWN) == []


def test_at_least_one_of_several_is_asked_for_within_a_block() -> None:
    found = resource(
        "google_compute_instance_template",
        machine_type="m",
        disk=[{}],
        shielded_instance_config=[{}],
    )
    assert found[0].summary == "Invalid combination of arguments"
    assert found[0].path[:2] == ("shielded_instance_config", 0)


def test_companions_are_asked_for() -> None:
    block = {
        "a": Field(flags="o", type="string", required_with=("b",)),
        "b": Field(flags="o", type="string"),
    }
    (found,) = validated(block, {"a": "x"})
    assert found.detail == '"a": all of `a,b` must be specified'


def test_too_many_elements_are_refused() -> None:
    accounts = [f"a{n}@p.iam.gserviceaccount.com" for n in range(11)]
    (found,) = resource("google_compute_firewall", **FIREWALL, source_service_accounts=accounts)
    assert found.summary == "Too many list items"
    assert found.path == ("source_service_accounts",)


def test_too_few_elements_are_refused() -> None:
    block = {"a": Field(flags="o", type=["list", "string"], min=2)}
    (found,) = validated(block, {"a": ["x"]})
    assert found.summary == "Not enough list items"


def test_elements_are_not_counted_while_some_are_unknown() -> None:
    block = {"a": Field(flags="o", type=["list", "string"], min=2)}
    assert validated(block, {"a": [UNKNOWN]}) == []


def test_a_deprecated_argument_earns_a_warning_only() -> None:
    (found,) = resource("google_compute_firewall", **FIREWALL, enable_logging=True)
    assert found.warning


def test_unknown_values_pass() -> None:
    assert resource("google_compute_network", name=UNKNOWN, routing_mode=UNKNOWN) == []


@pytest.mark.parametrize(
    ("kind", "config", "text"),
    [
        ("network", {"name": "N"}, '"name" ("N") doesn\'t match regexp'),
        ("network", {"name": "n" * 64}, "doesn't match regexp"),
        ("firewall", FIREWALL | {"priority": 65536}, "in the range (0 - 65535), got 65536"),
        ("instance_template", {"name": "n" * 64}, '"name" cannot be longer than 63 characters'),
        ("instance_template", {"name_prefix": "n" * 55}, "cannot be longer than 54"),
        ("subnetwork", {"name": "s", "network": "n", "ip_cidr_range": "10.0.0.0"}, "IP CIDR"),
    ],
)
def test_compute_refuses(kind: str, config: dict[str, Any], text: str) -> None:
    if kind == "instance_template":
        config = {"machine_type": "m", "disk": [{}], **config}
    (found,) = resource(f"google_compute_{kind}", **config)
    assert text in found.summary


@pytest.mark.parametrize("account", ["short", "a" * 31, "Upper-case", "trailing-"])
def test_a_service_account_id_has_six_to_thirty_lower_case_characters(account: str) -> None:
    (found,) = resource("google_service_account", account_id=account)
    assert "doesn't match regexp" in found.summary


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c" * 41, "cannot be longer than 40 characters"),
        ("a_b", "can only contain lowercase letters, numbers and hyphens"),
        ("1a", "must start with a letter"),
        ("a-", "must end with a number or a letter"),
    ],
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


CHECKS: list[tuple[list[Any], Any, str]] = [
    (["at_least", 0], 0, ""),
    (["range", 2, 255], 255, ""),
    (["cidr"], "10.0.0.1/8", ""),
    (["cidr_or_empty"], "", ""),
    (["full_hour"], "23:00", ""),
    (["time_of_day"], "03:59", ""),
    (["timestamp"], "2026-11-21T10:00:00Z", ""),
    (["timestamp"], "2026-11-21T10:00:00+01:00", ""),
    (["duration"], "1h30m0.5s", ""),
    (["private_asn"], 64512, ""),
    (["private_asn"], 16550, ""),
    (["major_minor"], "1.33", ""),
    (["iam_member"], "serviceAccount:p.svc.id.goog[default/ksa]", ""),
    (["iam_member"], "allUsers", ""),
    (["json"], "{}", ""),
    (["credentials"], __file__, ""),
    (["base64"], "AAAA", ""),
    (["jwt"], "a.b.c", ""),
    (["service_account_email"], "a@p.iam.gserviceaccount.com", ""),
    (["at_least", 0], -1, "expected x to be at least (0), got -1"),
    (["range", 2, 255], 1, "expected x to be in the range (2 - 255), got 1"),
    (["cidr"], "", '"x" is not a valid IP CIDR range: invalid CIDR address: '),
    (["cidr"], "10.0.0.300/8", "invalid CIDR address: 10.0.0.300/8"),
    (["cidr_or_empty"], "x", "expected x to contain a valid Value, got: x"),
    (["full_hour"], "23:30", '"x" must be in the format HH:00, got: 23:30'),
    (["time_of_day"], "24:00", '"x" ("24:00") must be in the format HH:mm (RFC3339)'),
    (["timestamp"], "tomorrow", 'parsing time "tomorrow" as'),
    (["timestamp"], "2026-13-21T10:00:00Z", 'parsing time "2026-13-21T10:00:00Z"'),
    (["duration"], "7d", 'invalid duration "7d"'),
    (["private_asn"], 1, "RFC6996-compliant Local ASN"),
    (["major_minor"], "1.33.4", "must be in major.minor format"),
    (["iam_member"], "somebody", 'invalid value "somebody" for x (IAM members must have'),
    (["iam_member"], "deleted:user:a@b.c", "does not support IAM members for deleted"),
    (["json"], "{", '"x" contains an invalid JSON'),
    (["base64"], "A", "Failed to decode (base64)"),
    (["jwt"], "a.b", '"x" is not a valid JWT format'),
    (["service_account_email"], "a@b.c", "not a valid service account email address"),
    (["regexp", "^a$"], "a\n", "doesn't match regexp"),
]


@pytest.mark.parametrize(("check", "value", "text"), CHECKS)
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
