"""Planning on small schemas of its own, then on the provider's."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.provider import planning, schema
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.schema import Field

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
    "id": "1",
    "name": "n",
    "text": None,
    "decided": "d",
    "switch": True,
    "count": None,
    "tags": None,
    "labels": {"a": "1"},
    "disk": [],
    "status": [{"phase": "up"}],
    "rule": [],
    "timeouts": None,
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


def test_what_google_decided_stays_when_the_configuration_is_silent() -> None:
    assert change({}, {"labels": None, "decided": None, "status": []}) == ({}, [])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("text", None, ""),
        ("text", "", None),
        ("count", 0, None),
        ("tags", ["a", "b"], ["b", "a"]),
        ("tags", [], None),
        ("tags", None, []),
        ("switch", True, None),
        ("disk", [], []),
    ],
)
def test_no_change_is_seen_between(name: str, before: Any, after: Any) -> None:
    assert change({name: before}, {name: after}) == ({}, [])


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("text", "a", None),
        ("text", None, "a"),
        ("count", None, 0),
        ("count", 1, None),
        ("tags", ["a"], ["a", "b"]),
        ("labels", {"a": "1"}, {"a": "2"}),
        ("switch", True, False),
        ("text", "a", UNKNOWN),
    ],
)
def test_an_update_in_place_is_planned_between(name: str, before: Any, after: Any) -> None:
    assert change({name: before}, {name: after}) == ({name: after}, [])


def test_a_default_replaces_what_was_configured_before() -> None:
    assert change({"switch": False}, {"switch": None}) == ({"switch": True}, [])


def test_a_default_meets_a_null_of_an_import_as_an_update() -> None:
    assert change({"switch": None}, {"switch": None}) == ({"switch": True}, [])


@pytest.mark.parametrize("name", ["m", UNKNOWN])
def test_a_changed_or_unknown_field_with_force_new_replaces(name: Any) -> None:
    assert change({}, {"name": name}) == ({"name": name}, [("name",)])


def test_a_block_keeps_by_index_what_google_decided_in_it() -> None:
    disk = {"image": "x", "size": "10"}
    assert change({"disk": [disk]}, {"disk": [{"image": "x", "size": None}]}) == ({}, [])


def test_a_change_in_a_block_names_the_field_that_forces_replacement() -> None:
    before = [{"image": "x", "size": "1"}, {"image": "y", "size": "2"}]
    after = [{"image": "x", "size": None}, {"image": "z", "size": None}]
    changed, paths = change({"disk": before}, {"disk": after})
    assert changed["disk"][1] == {"image": "z", "size": "2"}
    assert paths == [("disk", 1, "image")]


def test_a_block_that_comes_replaces_by_its_fields_with_force_new() -> None:
    disk = {"image": "x", "size": None}
    assert change({}, {"disk": [disk]}) == ({"disk": [disk]}, [("disk", 0, "image")])


def test_a_block_that_goes_replaces_by_its_fields_with_force_new() -> None:
    changed, paths = change({"disk": [{"image": "x", "size": "1"}]}, {})
    assert changed == {"disk": []}
    assert paths == [("disk", 0, "image")]


def test_what_google_decided_in_a_block_that_goes_replaces_nothing() -> None:
    device = Field(flags="oc", type="string", force_new=True)
    block = {"disk": Field(flags="o", nesting="list", block={"device": device})}
    prior = {"disk": [{"device": "sda"}]}
    assert planning.replacements(block, prior, {"disk": []}) == []


def test_another_number_of_blocks_replaces_where_the_list_says_so() -> None:
    block = {"disk": Field(flags="o", nesting="list", block={"text": STRING}, force_new=True)}
    prior: dict[str, Any] = {"disk": []}
    assert planning.replacements(block, prior, {"disk": [{"text": None}]}) == [("disk",)]


def test_blocks_of_a_set_correspond_by_value() -> None:
    one, two = {"port": "1", "note": "a"}, {"port": "2", "note": "b"}
    swapped = [{"port": "2", "note": None}, {"port": "1", "note": None}]
    assert change({"rule": [one, two]}, {"rule": swapped})[1] == []
    assert planning.plan(BLOCK, PRIOR | {"rule": [one, two]}, PRIOR | {"rule": swapped}, {}) == (
        PRIOR | {"rule": [one, two]}
    )


def test_another_block_in_a_set_leaves_the_rest_and_points_at_the_set() -> None:
    one = {"port": "1", "note": "a"}
    wanted = [{"port": "1", "note": None}, {"port": "3", "note": None}]
    changed, paths = change({"rule": [one]}, {"rule": wanted})
    assert changed == {"rule": [one, {"port": "3", "note": UNKNOWN}]}
    assert paths == [("rule",)]


def test_a_block_that_is_not_known_yet_is_planned_unknown() -> None:
    assert change({}, {"disk": UNKNOWN}) == ({"disk": UNKNOWN}, [])


def test_other_timeouts_alone_are_no_change() -> None:
    assert change({}, {"timeouts": {"create": "1h"}}) == ({}, [])


def test_other_timeouts_go_along_with_a_change() -> None:
    changed, _ = change({}, {"timeouts": {"create": "1h"}, "text": "x"})
    assert changed["timeouts"] == {"create": "1h"}


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
    guide = PRIOR | {
        "text": "",
        "tags": ["a", "b"],
        "timeouts": {"create": "1h"},
        "disk": [{"image": "x", "size": UNKNOWN}],
    }
    result = PRIOR | {
        "text": None,
        "tags": ["b", "a"],
        "timeouts": None,
        "disk": [{"image": "x", "size": "5"}],
    }
    settled = planning.settle(BLOCK, result, guide)
    assert settled == guide | {"disk": [{"image": "x", "size": "5"}]}


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
