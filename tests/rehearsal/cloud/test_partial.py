from typing import Any

import pytest

from rehearsal.cloud import discovery, partial
from rehearsal.cloud.wire import GoogleError, Reply
from tests.table import cases

ANSWER: dict[str, Any] = {
    "kind": "list",
    "items": [
        {"name": "a", "nics": [{"ip": "1", "more": [{"nat": "2", "kind": "x"}]}], "metadata": {}},
        {"name": "b", "run": {"model": "SPOT", "again": True}},
    ],
    "nextPageToken": "t",
}


@cases("""
fields                       | answer
kind                         | {kind: list}
nextPageToken,kind           | {kind: list, nextPageToken: t}
items/name                   | {items: [{name: a}, {name: b}]}
items(name)                  | {items: [{name: a}, {name: b}]}
items(nics/ip),nextPageToken | {items: [{nics: [{ip: "1"}]}, {}], nextPageToken: t}
items(nics(ip,more/nat))     | {items: [{nics: [{ip: "1", more: [{nat: "2"}]}]}, {}]}
items/run                    | {items: [{}, {run: {model: SPOT, again: true}}]}
items(run(*),name)           | {items: [{name: a}, {name: b, run: {model: SPOT, again: true}}]}
unheard                      | {}
""")
def test_an_answer_has_the_fields_alone_that_were_asked_for(
    fields: str, answer: dict[str, Any]
) -> None:
    assert partial.of(Reply(body=ANSWER), {"fields": fields}).body == answer
    assert partial.of(Reply(body=ANSWER), {}).body == ANSWER


@pytest.mark.parametrize("text", ["a,", "a(b", "a)b", "a//b", "(a)", "a b", ","])
def test_what_is_no_selection_is_refused(text: str) -> None:
    with pytest.raises(GoogleError, match="Invalid field selection"):
        partial.parse(text)


@pytest.mark.parametrize(
    ("fields", "is_good"),
    [
        ("items(name,networkInterfaces(networkIP,accessConfigs/natIP)),nextPageToken", True),
        ("items(name,metadata/items/key)", True),
        ("items/nmae", False),
        ("items(networkInterfaces(ip))", False),
        ("entries", False),
    ],
)
def test_a_field_that_googles_description_does_not_have_is_refused(
    fields: str, *, is_good: bool
) -> None:
    api = discovery.api("compute.v1")
    match = api.match("GET", "projects/p/zones/z/instances")
    if is_good:
        api.check(match, {"fields": fields}, {})
        return
    with pytest.raises(GoogleError, match="Invalid field selection"):
        api.check(match, {"fields": fields}, {})
