"""Which zones a ZONE names."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.catalogue import zones
from provision.intake import load
from provision.settings import candidates
from provision.settings.parsing import InvalidValueError

if TYPE_CHECKING:
    from provision.intake import Loaded

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np"}
USUAL = "a2-highgpu-2g"
EVERY = sorted(zone for names in zones.ZONES.values() for zone in names)


def _loaded(**settings: str) -> Loaded:
    return load({}, flags=MANDATORY | settings)


def _zones(text: str, **more: str) -> tuple[str, ...]:
    found = candidates.of({"zone": text, **more}, USUAL)
    assert found is not None
    return found.zones


def test_several_zones_stay_in_the_order_in_which_they_are_written() -> None:
    assert _zones("us-east4-b, us-central1-a") == ("us-east4-b", "us-central1-a")


def test_a_pattern_is_the_zones_that_have_the_machine_type_and_need_no_turning_on() -> None:
    found = _zones("us-central1-*")
    assert "us-central1-a" in found
    assert not any(map(zones.is_ai_zone, found))
    there = {zones.region_of(it) for it in _zones("europe-*", vm_type="a3-ultragpu-8g")}
    assert there == {"europe-west1", "europe-west4"}


@pytest.mark.parametrize("word", ["any", "cheapest", "ANY"])
def test_any_zone_is_all_zones_that_have_the_machines_and_region_narrows_them(word: str) -> None:
    assert {"us-central1-a", "europe-west4-a"} <= set(_zones(word))
    inside = _zones(word, region="europe-west4")
    assert inside
    assert {zones.region_of(it) for it in inside} == {"europe-west4"}


def test_one_zone_leaves_no_choice() -> None:
    found = candidates.of({"zone": "us-central1-a"}, USUAL)
    assert found is not None
    assert not found.is_several
    assert found.zones == ("us-central1-a",)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("us-central1-a,us-central1-a", "names a zone twice"),
        ("us-central1-a,any", "has any beside other zones"),
        ("us-central1-a,us-central1", "is a region"),
        ("us-nowhere1-*", "fits no zone"),
        ("us-central1-[ab]*", "fits no zone"),
        ("us-central1-a,,us-east4-b", "has an empty item"),
    ],
)
def test_what_names_no_zones_is_refused(text: str, what: str) -> None:
    (problem,) = _loaded(ZONE=text).problems
    assert problem.setting == "ZONE"
    assert what in problem.what


def test_zones_outside_of_region_are_a_contradiction() -> None:
    (problem,) = _loaded(ZONE="us-central1-a,us-east4-b", REGION="us-central1").problems
    assert "us-east4-b" in problem.what
    assert problem.setting == "REGION"


def test_a_gke_cluster_has_one_zone() -> None:
    loaded = _loaded(ZONE="us-central1-a,us-central1-b", ORCHESTRATOR_TYPE="gke")
    (problem,) = loaded.problems
    assert problem.setting == "ZONE"
    assert "not with a GKE cluster" in problem.why


def test_the_effective_value_is_what_was_written() -> None:
    loaded = _loaded(ZONE="us-central1-a, us-east4-b")
    assert loaded.effective["ZONE"] == "us-central1-a,us-east4-b"
    assert loaded.settings is not None
    assert loaded.settings.zone == "us-central1-a"


@given(st.lists(st.sampled_from([*EVERY, "us-*", "any", "", "x", "*", "us-central1"]), max_size=4))
def test_a_zone_that_is_accepted_names_each_of_its_zones(parts: list[str]) -> None:
    text = ",".join(parts)
    try:
        checked = candidates.check(text)
    except InvalidValueError:
        assert candidates.of({"zone": text}, USUAL) is None
        return
    found = candidates.of({"zone": checked}, USUAL)
    assert found is not None
    assert found.zones
    assert len(set(found.zones)) == len(found.zones)
    assert all(found.names(zone) for zone in found.zones)
    assert set(found.zones) <= set(EVERY)
