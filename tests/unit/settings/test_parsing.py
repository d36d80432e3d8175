"""From texts to data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.settings import parsing
from provision.settings.parsing import InvalidValueError

if TYPE_CHECKING:
    from tests.unit.conftest import Given


@pytest.mark.parametrize("text", ["yes", "YES", "True", "on", "1"])
def test_a_yes_is_written_in_four_ways_and_any_case(text: str) -> None:
    assert parsing.boolean(text) is True


@pytest.mark.parametrize("text", ["no", "No", "FALSE", "off", "0"])
def test_a_no_is_written_in_four_ways_and_any_case(text: str) -> None:
    assert parsing.boolean(text) is False


@pytest.mark.parametrize("text", ["flase", "yess", "y", "2", "none", ""])
def test_a_misspelt_switch_is_an_error_and_never_a_silent_no(text: str) -> None:
    with pytest.raises(InvalidValueError, match="neither yes nor no"):
        parsing.boolean(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        *[("90", 90), ("90s", 90), ("10m", 600), ("12h", 43200), ("7d", 604800)],
        *[("90 seconds", 90), ("10 min", 600), ("1 hour", 3600), ("8 days", 691200)],
        *[("1h30m", 5400), ("1d 12h", 129600), ("1w", 604800), ("2 weeks", 1209600)],
    ],
)
def test_a_duration_is_whole_seconds(text: str, seconds: int) -> None:
    assert parsing.duration(text) == seconds


@pytest.mark.parametrize(
    ("name", "number", "fits"),
    [
        *[("MAX_RUN_DURATION", "48", False), ("MAX_RUN_DURATION", "599", False)],
        *[("MAX_RUN_DURATION", "600", True), ("IDLE_TIMEOUT", "30", False)],
        *[("CAPACITY_TIMEOUT", "59", False)],
    ],
)
def test_a_small_number_without_a_unit_is_no_duration_and_none_is_guessed(
    given: Given, name: str, number: str, *, fits: bool
) -> None:
    told = [it for it in given(**{name: number}).loaded.problems if "no unit" in it.what]

    assert not told if fits else told[0].fix == f"{name}=<{number}h or {number}m>"
    assert all(it.what == f"'{number}' has no unit: {number}h or {number}m?" for it in told)
    assert not any(it.alternatives.settings for it in told)


@pytest.mark.parametrize(
    "text", ["", "1.5h", "1h30", "-1", "10  m", "5ms", "m", "7D", "h30m", "1 2h", "٣"]
)
def test_another_form_of_duration_is_an_error(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parsing.duration(text)


@pytest.mark.parametrize("text", ["abc", "1.0", "1_000", "1,000", "٣", "", "0x10", "1e3"])
def test_only_decimal_digits_are_a_whole_number(text: str) -> None:
    with pytest.raises(InvalidValueError):
        parsing.whole_number(text)


def test_a_list_allows_blanks_around_items_and_one_comma_at_the_end() -> None:
    assert parsing.comma_list("a, b ,c,") == ["a", "b", "c"]


@pytest.mark.parametrize("text", ["a,,b", "a,,", ",a", ","])
def test_an_empty_item_of_a_list_is_an_error(text: str) -> None:
    with pytest.raises(InvalidValueError, match="empty item"):
        parsing.comma_list(text)


@pytest.mark.parametrize(
    "text",
    [
        '{ key1 = "val", key2 = "val2"}',
        '{ "key1" = "val", key2 : "val2", }',
        '{"key1": "val", "key2": "val2"}',
        "key1=val,key2=val2",
        ' key1 = "val" , key2 = val2, '.strip(),
    ],
)
def test_a_map_is_read_in_three_syntaxes(text: str) -> None:
    assert parsing.mapping(text) == {"key1": "val", "key2": "val2"}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("{}", {}),
        ("{ }", {}),
        ('{ a = "q\\"x\\n" }', {"a": 'q"x\n'}),
        ('{ a = "$${b}%%{c}" }', {"a": "${b}%{c}"}),
        ('{ a = "\\u00e9" }', {"a": "é"}),
        ("{ a = 1, b = true }", {"a": "1", "b": "true"}),
        ('{"a": 1.50, "b": false}', {"a": "1.50", "b": "false"}),
        ("a=b=c", {"a": "b=c"}),
        ("a=", {"a": ""}),
        ('{ a-b = "c", "d.e" = "f" }', {"a-b": "c", "d.e": "f"}),
    ],
)
def test_a_map_keeps_what_its_literals_stand_for(text: str, found: dict[str, str]) -> None:
    assert parsing.mapping(text) == found


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("{", "is not a map"),
        ("[]", "not key=value"),
        ('{"a": "b"} x', "is not a map"),
        ('{ a = "b" }\nc = 1', "is not a map"),
        ('{ a = "${b}" }', "has a template"),
        ("{ a = b }", "has an expression"),
        ('{ (a) = "b" }', "has an expression as a key"),
        ('{ a = { b = "c" } }', "that is not text"),
        ('{"a": null}', "that is not text"),
        ('{"a": "b", "a": "c"}', "same key twice"),
        ("a=b,a=c", "same key twice"),
        ("a", "not key=value"),
        ('{ a = "\\U0000d800" }', "is not a valid character"),
        ("{for k in a: k => 1}", "is not a map"),
        ("{" * 1000, "is not a map"),
    ],
)
def test_what_is_no_map_of_texts_is_an_error(text: str, what: str) -> None:
    with pytest.raises(InvalidValueError, match=what.replace("(", "\\(")):
        parsing.mapping(text)


@pytest.mark.parametrize(
    ("text", "bare"),
    [
        ('"a"', "a"),
        ("'a'", "a"),
        ('""', ""),
        ('"', '"'),
        ("\"a'", "\"a'"),
        ('"a"="b"', '"a"="b"'),
        ('\'{"a": "b"}\'', '{"a": "b"}'),
        ('"{ a = "b" }"', '{ a = "b" }'),
    ],
)
def test_one_pair_of_quotes_around_the_whole_value_is_removed(text: str, bare: str) -> None:
    assert parsing.unquoted(text) == bare


def test_node_pools_are_maps_between_semicolons() -> None:
    pools = parsing.pools("name=a, count=1; name=b;", ("name", "count"), {})

    assert pools == [{"name": "a", "count": "1"}, {"name": "b"}]


def test_a_key_that_no_node_pool_has_gets_a_suggestion() -> None:
    with pytest.raises(InvalidValueError) as caught:
        parsing.pools("name=a,vmtype=b", ("name", "vm_type"), {})

    assert caught.value.why == "did you mean vm_type?"


def test_a_key_by_another_tool_s_name_gets_the_one_that_is_meant() -> None:
    with pytest.raises(InvalidValueError) as caught:
        parsing.pools("name=a,machine=b", ("name", "min", "vm_type"), {"machine": "vm_type"})

    assert caught.value.why == "did you mean vm_type?"


def test_an_excerpt_shows_control_characters_and_cuts_the_end() -> None:
    assert parsing.shorten("a\nb") == "'a\\nb'"
    assert len(parsing.shorten("x" * 500)) == 82
