from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import labels

MARK = {"goog-terraform-provisioned": "true"}


PROACTIVE = {"terraform_attribution_label_addition_strategy": "PROACTIVE"}


def planned(block: dict[str, Any], prior: dict[str, Any] | None, own: Any) -> tuple[Any, Any]:
    plan = labels.plan(Api(block, {}), prior, {"labels": own})
    return plan["terraform_labels"], plan["effective_labels"]


def test_a_new_object_is_marked_unless_that_is_switched_off() -> None:
    assert planned({}, None, {"a": "1"}) == ({"a": "1", **MARK}, {"a": "1", **MARK})
    assert planned({"add_terraform_attribution_label": False}, None, None) == ({}, {})


def test_an_old_object_without_the_mark_gets_it_only_on_demand() -> None:
    prior = {"terraform_labels": {"a": "1"}, "effective_labels": {"a": "1"}}
    assert planned({}, prior, {"a": "1"})[0] == {"a": "1"}
    assert planned(PROACTIVE, prior, {"a": "1"})[0] == {"a": "1", **MARK}


def test_the_objects_labels_win_over_the_providers_and_unknown_ones_leave_all_unknown() -> None:
    block = {"default_labels": {"a": "0", "b": "2"}}
    assert planned(block, None, {"a": "1"})[0] == {"a": "1", "b": "2", **MARK}
    assert planned({}, None, {"a": UNKNOWN}) == (UNKNOWN, UNKNOWN)


def test_other_peoples_labels_stay_and_own_ones_go() -> None:
    both = {"a": "1", **MARK}
    prior = {"terraform_labels": both, "effective_labels": {**both, "theirs": "x"}}
    own = {"b": "2", **MARK}
    assert planned({}, prior, {"b": "2"}) == (own, {**own, "theirs": "x"})


def test_a_read_shows_only_the_own_labels_as_such() -> None:
    state = {"labels": {"a": "1"}, "terraform_labels": {"a": "1", **MARK}}
    there = {"a": "2", "theirs": "x", **MARK}
    assert labels.read(there, state) == {
        "labels": {"a": "2"},
        "terraform_labels": {"a": "2", **MARK},
        "effective_labels": there,
    }
