from typing import Any

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import labels

MARK = {"goog-terraform-provisioned": "true"}


def planned(api: Api, prior: dict[str, Any] | None, own: Any) -> tuple[Any, Any]:
    plan = labels.plan(api, prior, {"labels": own})
    return plan["terraform_labels"], plan["effective_labels"]


def test_a_new_object_is_marked() -> None:
    assert planned(Api({}, {}), None, {"a": "1"}) == ({"a": "1", **MARK}, {"a": "1", **MARK})


def test_an_old_object_without_the_mark_gets_it_only_on_demand() -> None:
    prior = {"terraform_labels": {"a": "1"}, "effective_labels": {"a": "1"}}
    assert planned(Api({}, {}), prior, {"a": "1"})[0] == {"a": "1"}
    strategy = {"terraform_attribution_label_addition_strategy": "PROACTIVE"}
    assert planned(Api(strategy, {}), prior, {"a": "1"})[0] == {"a": "1", **MARK}


def test_the_mark_can_be_switched_off() -> None:
    assert planned(Api({"add_terraform_attribution_label": False}, {}), None, None) == ({}, {})


def test_the_objects_labels_win_over_the_providers() -> None:
    api = Api({"default_labels": {"a": "0", "b": "2"}}, {})
    assert planned(api, None, {"a": "1"})[0] == {"a": "1", "b": "2", **MARK}


def test_other_peoples_labels_stay_and_own_ones_go() -> None:
    prior = {
        "terraform_labels": {"a": "1", **MARK},
        "effective_labels": {"a": "1", "theirs": "x", **MARK},
    }
    assert planned(Api({}, {}), prior, {"b": "2"}) == (
        {"b": "2", **MARK},
        {"b": "2", "theirs": "x", **MARK},
    )


def test_labels_that_are_not_known_yet_leave_the_others_unknown() -> None:
    assert planned(Api({}, {}), None, {"a": UNKNOWN}) == (UNKNOWN, UNKNOWN)


def test_a_read_shows_only_the_own_labels_as_such() -> None:
    state = {"labels": {"a": "1"}, "terraform_labels": {"a": "1", **MARK}}
    there = {"a": "2", "theirs": "x", **MARK}
    assert labels.read(there, state) == {
        "labels": {"a": "2"},
        "terraform_labels": {"a": "2", **MARK},
        "effective_labels": there,
    }
