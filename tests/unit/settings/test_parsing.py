import re
from collections.abc import Callable
from typing import Any

import pytest

from provision.settings import parsing
from provision.settings.parsing import InvalidValueError
from tests.unit.conftest import Given

READ: dict[Callable[[str], object], dict[str, object]] = {
    parsing.boolean: {
        **dict.fromkeys(("yes", "YES", "True", "on", "1"), True),
        **dict.fromkeys(("no", "No", "FALSE", "off", "0"), False),
    },
    parsing.duration: {
        text: int(seconds)
        for text, seconds in re.findall(
            r"(\w[\w ]*)=(\d+)",
            "90=90, 90s=90, 10m=600, 12h=43200, 7d=604800, 90 seconds=90, 10 min=600, 1 hour=3600,"
            " 8 days=691200, 1h30m=5400, 1d 12h=129600, 1w=604800, 2 weeks=1209600",
        )
    },
    parsing.comma_list: {"a, b ,c,": ["a", "b", "c"]},
    # A map has three syntaxes, and keeps what its literals stand for.
    parsing.mapping: {
        '{ key1 = "val", key2 = "val2"}': {"key1": "val", "key2": "val2"},
        '{ "key1" = "val", key2 : "val2", }': {"key1": "val", "key2": "val2"},
        '{"key1": "val", "key2": "val2"}': {"key1": "val", "key2": "val2"},
        "key1=val,key2=val2": {"key1": "val", "key2": "val2"},
        'key1 = "val" , key2 = val2,': {"key1": "val", "key2": "val2"},
        "{}": {},
        "{ }": {},
        '{ a = "q\\"x\\n" }': {"a": 'q"x\n'},
        '{ a = "$${b}%%{c}" }': {"a": "${b}%{c}"},
        '{ a = "\\u00e9" }': {"a": "é"},
        "{ a = 1, b = true }": {"a": "1", "b": "true"},
        '{"a": 1.50, "b": false}': {"a": "1.50", "b": "false"},
        "a=b=c": {"a": "b=c"},
        "a=": {"a": ""},
        '{ a-b = "c", "d.e" = "f" }': {"a-b": "c", "d.e": "f"},
    },
    # One pair of quotes around the whole value is removed.
    parsing.unquoted: {
        '"a"': "a",
        "'a'": "a",
        '""': "",
        '"': '"',
        "\"a'": "\"a'",
        '"a"="b"': '"a"="b"',
        '\'{"a": "b"}\'': '{"a": "b"}',
        '"{ a = "b" }"': '{ a = "b" }',
    },
}
REFUSED: dict[Callable[[str], object], dict[str, list[str]]] = {
    parsing.boolean: {"neither yes nor no": ["flase", "yess", "y", "2", "none", ""]},
    parsing.duration: {
        ".": ["", "1.5h", "1h30", "-1", "10  m", "5ms", "m", "7D", "h30m", "1 2h", "٣"]
    },
    parsing.whole_number: {".": ["abc", "1.0", "1_000", "1,000", "٣", "", "0x10", "1e3"]},
    parsing.comma_list: {"empty item": ["a,,b", "a,,", ",a", ","]},
    parsing.mapping: {
        "is not a map": [
            *("{", '{"a": "b"} x', '{ a = "b" }\nc = 1', "{for k in a: k => 1}", "{" * 1000)
        ],
        "not key=value": ["[]", "a"],
        "has a template": ['{ a = "${b}" }'],
        "has an expression": ["{ a = b }"],
        "has an expression as a key": ['{ (a) = "b" }'],
        "that is not text": ['{ a = { b = "c" } }', '{"a": null}'],
        "same key twice": ['{"a": "b", "a": "c"}', "a=b,a=c"],
        "is not a valid character": ['{ a = "\\U0000d800" }'],
    },
}


@pytest.mark.parametrize(("read", "text"), [(it, text) for it in READ for text in READ[it]])
def test_a_text_is_read_as_what_it_stands_for(read: Callable[[str], Any], text: str) -> None:
    found = read(text)
    assert found == READ[read][text]
    assert type(found) is type(READ[read][text])


@pytest.mark.parametrize(
    ("read", "what", "text"),
    [
        (read, what, text)
        for read, wrong in REFUSED.items()
        for what, texts in wrong.items()
        for text in texts
    ],
)
def test_another_form_is_an_error_and_nothing_is_guessed(
    read: Callable[[str], object], what: str, text: str
) -> None:
    with pytest.raises(InvalidValueError, match=what):
        read(text)


@pytest.mark.parametrize(
    "text",
    ["MAX_RUN_DURATION 48", "MAX_RUN_DURATION 599", "IDLE_TIMEOUT 30", "CAPACITY_TIMEOUT 59"],
)
def test_a_small_number_without_a_unit_is_no_duration_and_none_is_guessed(
    given: Given, text: str
) -> None:
    name, number = text.split()
    (told, *_) = [it for it in given(**{name: number}).loaded.problems if "no unit" in it.what]

    assert told.fix == f"{name}=<{number}h or {number}m>"
    assert told.what == f"'{number}' has no unit: {number}h or {number}m?"
    assert not told.alternatives.settings
    assert "no unit" not in str(given(MAX_RUN_DURATION="600").loaded.problems)


def test_node_pools_are_maps_between_semicolons_and_a_key_of_none_gets_a_suggestion() -> None:
    pools = parsing.pools("name=a, count=1; name=b;", ("name", "count"), {})
    assert pools == [{"name": "a", "count": "1"}, {"name": "b"}]

    # Misspelt, and by the name that another tool has for it.
    for text, others in (("name=a,vmtype=b", {}), ("name=a,machine=b", {"machine": "vm_type"})):
        with pytest.raises(InvalidValueError) as caught:
            parsing.pools(text, ("name", "min", "vm_type"), others)
        assert caught.value.why == "did you mean vm_type?"


def test_an_excerpt_shows_control_characters_and_cuts_the_end() -> None:
    assert parsing.shorten("a\nb") == "'a\\nb'"
    assert len(parsing.shorten("x" * 500)) == 82
