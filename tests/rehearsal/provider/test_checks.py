from __future__ import annotations

from typing import Any

import pytest

from rehearsal.provider import checks, schema

GOOD: list[tuple[list[Any], Any]] = [
    (["at_least", 0], 0),
    (["range", 2, 255], 255),
    (["cidr"], "10.0.0.1/8"),
    (["cidr_or_empty"], ""),
    (["full_hour"], "23:00"),
    (["time_of_day"], "03:59"),
    (["timestamp"], "2026-11-21T10:00:00Z"),
    (["timestamp"], "2026-11-21T10:00:00+01:00"),
    (["duration"], "1h30m0.5s"),
    (["private_asn"], 64512),
    (["private_asn"], 16550),
    (["major_minor"], "1.33"),
    (["iam_member"], "serviceAccount:p.svc.id.goog[default/ksa]"),
    (["iam_member"], "allUsers"),
    (["json"], "{}"),
    (["credentials"], __file__),
    (["base64"], "AAAA"),
    (["jwt"], "a.b.c"),
    (["service_account_email"], "a@p.iam.gserviceaccount.com"),
]
BAD: list[tuple[list[Any], Any, str]] = [
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


@pytest.mark.parametrize(("check", "value"), GOOD)
def test_a_check_passes(check: list[Any], value: Any) -> None:
    assert checks.problem(check, "x", value) == ""


@pytest.mark.parametrize(("check", "value", "text"), BAD)
def test_a_check_refuses_in_the_providers_words(check: list[Any], value: Any, text: str) -> None:
    assert text in checks.problem(check, "x", value)


def test_every_check_that_the_schema_names_is_there() -> None:
    def named(block: Any) -> set[str]:
        own = {field.check[0] for field in block.values() if field.check}
        return own.union(*(named(field.block) for field in block.values()))

    blocks = [schema.load("resources", name).block for name in schema.names("resources")]
    used = named(schema.load_provider().block).union(*map(named, blocks))
    assert used == set(checks.CHECKS)
