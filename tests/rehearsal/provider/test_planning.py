"""Planning on small schemas of its own, then on the provider's."""

from typing import Any

import pytest

from rehearsal.provider import planning, schema
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import Field
from tests.table import cases

STRING = Field(flags="o", type="string")
DECIDED = Field(flags="oc", type="string")
FIXED = Field(flags="o", type="string", force_new=True)
BLOCK = {
    "id": Field(flags="c", type="string"),
    "name": Field(flags="r", type="string", force_new=True),
    "text": STRING,
    "decided": DECIDED,
    "switch": Field(flags="o", type="bool", default=True),
    "count": Field(flags="o", type="number"),
    "tags": Field(flags="o", type=["set", "string"]),
    "labels": Field(flags="oc", type=["map", "string"]),
    "disk": Field(flags="o", nesting="list", block={"image": FIXED, "size": DECIDED}),
    "status": Field(flags="oc", nesting="list", block={"phase": DECIDED}),
    "rule": Field(flags="o", nesting="set", block={"port": FIXED, "note": DECIDED}),
    "timeouts": Field(flags="o", nesting="single", block={"create": STRING}),
}
PRIOR: dict[str, Any] = {
    **dict.fromkeys(("text", "count", "tags", "timeouts")),
    "id": "1",
    "name": "n",
    "decided": "d",
    "switch": True,
    "labels": {"a": "1"},
    "disk": [],
    "status": [{"phase": "up"}],
    "rule": [],
}
NEW = {**PRIOR, "id": None, "decided": None, "switch": None, "labels": None, "status": []}


def plan(prior: Any, proposed: Any, suppress: planning.Suppress | None = None) -> dict[str, Any]:
    return planning.plan(BLOCK, prior, proposed, suppress or {})


def change(before: dict[str, Any], after: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Plan from one to another; what differs from the prior state, and what forces replacement."""
    prior = PRIOR | before
    planned = plan(prior, PRIOR | after)
    changed = {name: value for name, value in planned.items() if value != prior[name]}
    return changed, planning.replacements(BLOCK, prior, planned)


def test_a_new_object_has_defaults_and_unknown_where_google_decides() -> None:
    planned = plan(None, NEW)
    assert planned["switch"] is True
    unknown = [name for name, value in planned.items() if value is UNKNOWN]
    assert unknown == ["id", "decided", "labels", "status"]


def test_what_is_configured_is_planned_as_it_stands() -> None:
    planned = plan(None, NEW | {"decided": "mine", "switch": False, "status": [{"phase": "up"}]})
    assert (planned["decided"], planned["switch"]) == ("mine", False)
    assert planned["status"] == [{"phase": "up"}]


def test_an_empty_text_counts_as_not_configured_where_google_decides() -> None:
    assert plan(None, NEW | {"decided": ""})["decided"] is UNKNOWN


def test_an_unchanged_object_is_planned_as_it_was() -> None:
    assert plan(PRIOR, {**PRIOR, "status": []}) == PRIOR


X1, X0 = {"image": "x", "size": "1"}, {"image": "x", "size": None}
ONE, TWO = {"port": "1", "note": "a"}, {"port": "2", "note": "b"}
KNOWN = {"x1": X1, "x0": X0, "one": ONE, "two": TWO, "unknown": UNKNOWN}


@cases(
    """
before | after
{text: null} | {text: ""}
{text: ""} | {text: null}
{count: 0} | {count: null}
{tags: [a, b]} | {tags: [b, a]}
{tags: []} | {tags: null}
{tags: null} | {tags: []}
{switch: true} | {switch: null}
# What Google decided stays when the configuration is silent.
{} | {labels: null, decided: null, status: []}
{disk: [@x1]} | {disk: [@x0]}
# Blocks of a set correspond by value.
{rule: [@one, @two]} | {rule: [{port: "2", note: null}, {port: "1", note: null}]}
# Other timeouts alone are no change.
{} | {timeouts: {create: 1h}}
""",
    **KNOWN,
)
def test_no_change_is_seen_between(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert change(before, after) == ({}, [])


@cases(
    """
before | after
{text: a} | {text: null}
{text: null} | {text: a}
{count: null} | {count: 0}
{count: 1} | {count: null}
{tags: [a]} | {tags: [a, b]}
{labels: {a: "1"}} | {labels: {a: "2"}}
{switch: true} | {switch: false}
{text: a} | {text: @unknown}
{} | {disk: @unknown}
{} | {timeouts: {create: 1h}, text: x}
""",
    **KNOWN,
)
def test_an_update_in_place_is_planned_between(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    assert change(before, after) == (after, [])


@pytest.mark.parametrize("before", [False, None])
def test_a_default_replaces_what_was_configured_or_imported(before: Any) -> None:
    assert change({"switch": before}, {"switch": None}) == ({"switch": True}, [])


@cases(
    """
before | after | changed | path
{} | {name: m} | {name: m} | [name]
{} | {name: @unknown} | {name: @unknown} | [name]
{disk: [@x1, {image: y, size: "2"}]} | {disk: [@x0, {image: z, size: null}]}
    | {disk: [@x1, {image: z, size: "2"}]} | [disk, 1, image]
# A block that comes or goes does so with its fields.
{} | {disk: [@x0]} | {disk: [@x0]} | [disk, 0, image]
{disk: [@x1]} | {} | {disk: []} | [disk, 0, image]
# Terraform's paths can't point into a set.
{rule: [@one]} | {rule: [{port: "1", note: null}, {port: "3", note: null}]}
    | {rule: [@one, {port: "3", note: @unknown}]} | [rule]
""",
    **KNOWN,
)
def test_a_change_of_a_field_with_force_new_replaces_and_is_named(
    before: dict[str, Any], after: dict[str, Any], changed: dict[str, Any], path: Any
) -> None:
    assert change(before, after) == (changed, [tuple(path)])


def test_what_google_decided_in_a_block_that_goes_replaces_nothing() -> None:
    device = Field(flags="oc", type="string", force_new=True)
    block = {"disk": Field(flags="o", nesting="list", block={"device": device})}
    prior = {"disk": [{"device": "sda"}]}
    assert planning.replacements(block, prior, {"disk": []}) == []


def test_another_number_of_blocks_replaces_where_the_list_says_so() -> None:
    block = {"disk": Field(flags="o", nesting="list", block={"text": STRING}, force_new=True)}
    prior: dict[str, Any] = {"disk": []}
    assert planning.replacements(block, prior, {"disk": [{"text": None}]}) == [("disk",)]


def test_a_suppressed_difference_keeps_the_prior_value() -> None:
    seen = []

    def suppress(old: Any, new: Any, state: Any) -> bool:
        seen.append((old, new, state["id"]))
        return True

    prior = PRIOR | {"disk": [{"image": "https://x/a", "size": "1"}]}
    proposed = PRIOR | {"disk": [{"image": "a", "size": None}]}
    assert plan(prior, proposed, {"disk.image": suppress}) == prior
    assert seen == [("https://x/a", "a", "1")]


def test_an_unknown_value_is_never_suppressed() -> None:
    planned = plan(PRIOR, PRIOR | {"text": UNKNOWN}, {"text": lambda *_: True})
    assert planned["text"] is UNKNOWN


def test_a_result_speaks_as_the_plan_did_of_nothing_and_of_order() -> None:
    size = [{"image": "x", "size": "5"}]
    guide = PRIOR | {"text": "", "tags": ["a", "b"], "timeouts": {"create": "1h"}}
    guide |= {"disk": [{"image": "x", "size": UNKNOWN}]}
    result = PRIOR | {"text": None, "tags": ["b", "a"], "timeouts": None, "disk": size}
    settled = planning.settle(BLOCK, result, guide)
    assert settled == guide | {"disk": size}


def test_a_result_that_differs_is_kept() -> None:
    result = PRIOR | {"text": "drifted", "tags": ["c"], "count": 5}
    assert planning.settle(BLOCK, result, PRIOR) == result


@pytest.mark.parametrize(
    ("policies", "paths"),
    [
        ([], [("resource_policies", 0, "workload_policy")]),
        ([{"workload_policy": ""}], [("resource_policies", 0, "workload_policy")]),
        # One that is not known yet reads as empty to the SDK.
        ([{"workload_policy": UNKNOWN}], [("resource_policies", 0, "workload_policy")]),
        ([{"workload_policy": "another"}], []),
    ],
)
def test_a_group_that_loses_its_workload_policy_is_replaced(
    policies: list[dict[str, Any]], paths: list[Any]
) -> None:
    name = "google_compute_instance_group_manager"
    block = schema.load("resources", name).block
    prior = planning.nothing(block) | {"resource_policies": [{"workload_policy": "w"}]}
    planned = prior | {"resource_policies": policies}
    assert planning.replacements(block, prior, planned) == paths


@pytest.mark.parametrize("name", list(schema.names("resources")))
def test_every_type_plans_an_empty_block_and_then_nothing(name: str) -> None:
    block = schema.load("resources", name).block
    nothing = planning.nothing(block)
    created = planning.plan(block, None, nothing, {})
    assert created["id"] is UNKNOWN
    state = {
        key: ([] if block[key].repeated else None) if value is UNKNOWN else value
        for key, value in created.items()
    }
    assert planning.plan(block, state, nothing, {}) == state
