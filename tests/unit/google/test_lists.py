"""The lists of one look at a project are asked for once, whoever needs what is in them."""

from collections import Counter
from typing import Any, cast

import pytest

from provision.google import resources
from provision.google.api import GoogleApiError
from provision.google.lists import Lists
from provision.google.owner import Owner
from provision.google.resources import GROUP

OURS, OTHER = (Owner.of("p", name, f"gs://b/{name}-deployment") for name in ("np", "other"))


def _path(name: str) -> str:
    return f"projects/p/zones/z/instanceGroupManagers/{name}-mig"


def _group(owner: Owner, name: str) -> dict[str, Any]:
    link = f"https://www.googleapis.com/compute/v1/{_path(name)}"
    return {"name": f"{name}-mig", "description": owner.text, "selfLink": link}


_PLACES = (("z", "np"), ("y", "np"), ("z", "other"), ("y", "other"))


class Google:
    """A project with a group of each of two deployments, and one without a marker."""

    def __init__(self, lists: int = 200) -> None:
        self.asked: Counter[str] = Counter()
        self._lists = lists
        self.groups = [_group(OURS, "np"), _group(OTHER, "other")]
        self.groups.append({**_group(OURS, "bare"), "description": ""})

    def marked(self, look: resources.Look, _project: str, owner: Owner) -> list[dict[str, Any]]:
        self.asked["marked"] += 1
        return [it for it in self.groups if look.is_of(it, owner)]

    def listed(self, _look: resources.Look, _project: str) -> list[dict[str, Any]]:
        self.asked["listed"] += 1
        if self._lists not in {200, 204}:
            raise GoogleApiError(self._lists, "no", "https://x")
        return self.groups if self._lists == 200 else []

    def find(self, _service: object, path: str) -> dict[str, Any] | None:
        self.asked["find"] += 1
        found = (it for it in self.groups if resources.path_in_document(it) == path)
        return next(found, None)

    def named_instances(self, *_: str) -> list[dict[str, Any]]:
        self.asked["named"] += 1
        return []

    def all_instances(self, _project: str, _fields: str) -> list[dict[str, Any]]:
        self.asked["all"] += 1
        link = "https://www.googleapis.com/compute/v1/projects/p/zones/"
        names = ("z/instances/np-vm-a", "y/instances/np-vm-b", "z/instances/other-vm-c")
        return [{"selfLink": f"{link}{name}"} for name in names]

    def operations_of(self, _project: str, zone: str, _types: object) -> list[dict[str, Any]]:
        self.asked["operations"] += 1
        return [{"zone": zone}]


def _lists(google: Google, *, of_all: bool = False) -> Lists:
    return Lists(cast("Any", google), of_all=of_all)


def test_what_was_found_by_its_marker_is_not_asked_for_by_its_path() -> None:
    google = Google()
    lists = _lists(google)
    for _ in range(2):
        assert lists.marked(GROUP.look, "p", OURS) == [google.groups[0]]
        assert lists.find(GROUP.look, "p", _path("np")) == google.groups[0]
    assert google.asked == {"marked": 1}
    assert lists.find(GROUP.look, "p", _path("bare")) == google.groups[2]
    assert lists.find(GROUP.look, "p", _path("gone")) is None
    assert google.asked["find"] == 2


def test_all_deployments_find_theirs_in_one_list() -> None:
    google = Google()
    lists = _lists(google, of_all=True)
    assert lists.marked(GROUP.look, "p", OURS) == [google.groups[0]]
    assert lists.marked(GROUP.look, "p", OTHER) == [google.groups[1]]
    assert lists.find(GROUP.look, "p", _path("bare")) == google.groups[2]
    assert lists.find(GROUP.look, "p", _path("gone")) is None
    assert google.asked == {"listed": 1}


@pytest.mark.parametrize("code", [204, 403])
def test_where_nothing_may_be_listed_each_is_asked_for(code: int) -> None:
    google = Google(code)
    lists = _lists(google, of_all=True)
    for number in range(2):
        found = lists.find(GROUP.look, "p", _path(("np", "other")[number]))
        assert found == google.groups[number]
    assert google.asked == {"listed": 1, "find": 2}
    with pytest.raises(GoogleApiError):
        _lists(Google(500), of_all=True).find(GROUP.look, "p", _path("np"))


def test_the_vms_of_all_deployments_are_one_list_and_those_of_one_are_their_own() -> None:
    google = Google()
    lists = _lists(google, of_all=True)
    found = [lists.instances("p", zone, f"{name}-vm", "name") for zone, name in _PLACES]
    assert [[it["selfLink"][-1] for it in them] for them in found] == [["a"], ["b"], ["c"], []]
    assert google.asked == {"all": 1}
    assert _lists(google).instances("p", "z", "np-vm", "name") == []
    assert google.asked["named"] == 1


def test_the_operations_of_a_zone_are_asked_for_once() -> None:
    google = Google()
    lists = _lists(google)
    for zone in "abab":
        assert lists.operations("p", zone, ["reset"]) == [{"zone": zone}]
    assert google.asked["operations"] == 2
