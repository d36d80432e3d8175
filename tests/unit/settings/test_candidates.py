import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.catalogue import zones
from provision.intake import Loaded, load
from provision.settings import candidates
from provision.settings.choices import Way
from provision.settings.parsing import InvalidValueError
from provision.spec import cluster
from provision.spec.rules import every

MANDATORY = {"PROJECT_ID": "my-project", "NAME_PREFIX": "np"}
USUAL = "a2-highgpu-2g"
EVERY = sorted(zone for names in zones.ZONES.values() for zone in names)


def _loaded(**settings: str) -> Loaded:
    return load({}, flags=MANDATORY | settings)


def _zones(text: str, **more: str) -> tuple[str, ...]:
    found = candidates.of({"zone": text, **more}, USUAL)
    assert found is not None
    return found.zones


def test_zones_stay_in_the_order_in_which_they_are_written_and_one_leaves_no_choice() -> None:
    assert _zones("us-east4-b, us-central1-a") == ("us-east4-b", "us-central1-a")
    found = candidates.of({"zone": "us-central1-a"}, USUAL)
    assert found is not None
    assert not found.is_several
    assert found.zones == ("us-central1-a",)
    loaded = _loaded(ZONE="us-central1-a, us-east4-b")
    assert loaded.effective["ZONE"] == "us-central1-a,us-east4-b"
    assert loaded.settings is not None
    assert loaded.settings.zone == "us-central1-a"


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


TWO = "us-central1-a,us-east4-b"
REFUSED = {
    # what is set -> the one problem's setting, what it says, and a part of its reason and fix
    "ZONE=us-central1-a,us-central1-a": "ZONE | names a zone twice |",
    "ZONE=us-central1-a,any": "ZONE | has any beside other zones |",
    "ZONE=us-central1-a,us-central1": "ZONE | is a region |",
    "ZONE=us-nowhere1-*": "ZONE | fits no zone |",
    "ZONE=us-central1-[ab]*": "ZONE | fits no zone |",
    "ZONE=us-central1-a,,us-east4-b": "ZONE | has an empty item |",
    "REGION=us-central1": "REGION | us-east4-b |",
    "ORCHESTRATOR_TYPE=gke": "ZONE | | a GKE cluster is in one region",
    "CAPACITY=spot ENABLE_SPOT=yes": "CAPACITY | in place of ENABLE_SPOT | remove ENABLE_SPOT",
    "CAPACITY=flex_start,spot ENABLE_FLEX_START=my": (
        "CAPACITY | in place of ENABLE_FLEX_START | remove"
    ),
    "CAPACITY=spot ENABLE_FLEX_START=no": (
        "CAPACITY | ENABLE_FLEX_START | remove ENABLE_FLEX_START"
    ),
    "CAPACITY=spot RESERVATION_NAME=r": "CAPACITY | leaves out | CAPACITY=reservation,spot",
    "CAPACITY=reservation,spot": (
        "CAPACITY | RESERVATION_NAME is not set | RESERVATION_NAME=my-reservation"
    ),
    "CAPACITY=spot,spot": "CAPACITY | names a way twice |",
    "CAPACITY=spot,ondemand": "CAPACITY | has 'ondemand' | CAPACITY=spot,on_demand",
    "CAPACITY=spot VM_TYPE=a4x-highgpu-4g": (
        "CAPACITY | 'spot' is not available | RESERVATION_NAME"
    ),
    # Nodes that nobody asks for at a Create are no way before another.
    "@gke CAPACITY=flex_start,spot": (
        "CAPACITY | can't go on after flex_start | CAPACITY=spot,flex_start"
    ),
    "@gke CAPACITY=spot,on_demand GKE_MIN_NODE_COUNT=0 GKE_MAX_NODE_COUNT=2": (
        "CAPACITY | can't go on after spot | GKE_MIN_NODE_COUNT=1"
    ),
    "@gke CAPACITY=spot GKE_NODE_POOLS=name=a,vm_type=a2-highgpu-1g,count=1": (
        "CAPACITY | can't be combined with GKE_NODE_POOLS | remove CAPACITY"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_names_no_zones_and_what_does_not_go_with_a_setting_is_refused(text: str) -> None:
    two = {"ZONE": "us-central1-a,us-east4-b"}
    written = text.replace("@gke", "ORCHESTRATOR_TYPE=gke ZONE=us-central1-a").split()
    (problem,) = _loaded(**two | dict(it.split("=", 1) for it in written)).problems

    setting, what, more = (it.strip() for it in REFUSED[text].split("|"))
    assert problem.setting == setting
    assert what in problem.what
    assert more in f"{problem.why} {problem.fix}"


def test_a_gke_cluster_may_have_several_zones_of_one_region() -> None:
    assert not _loaded(ZONE="us-central1-a,us-central1-b", ORCHESTRATOR_TYPE="gke").problems


def _ways(capacity: str, **more: str) -> Loaded:
    return _loaded(ZONE="us-central1-a,us-east4-b", CAPACITY=capacity, **more)


def test_each_way_asks_for_what_its_own_setting_asks_for() -> None:
    settings = _ways("reservation,flex-start,spot,on_demand", RESERVATION_NAME="mine").settings
    assert settings is not None
    found = {way: cluster.vms(settings.by(way)).group for way in Way}
    assert {way: str(group.mode) for way, group in found.items()} == {
        Way.RESERVATION: "reservation",
        Way.FLEX_START: "flex_start",
        Way.SPOT: "spot",
        Way.ON_DEMAND: "standard",
    }
    assert [way for way, group in found.items() if group.reservation] == [Way.RESERVATION]
    assert [way for way, group in found.items() if group.max_run_seconds] == [Way.FLEX_START]


def test_all_zones_of_a_way_come_before_the_next_way() -> None:
    settings = _ways("spot,on_demand").settings
    assert settings is not None
    assert list(map(str, cluster.vms(settings).places)) == [
        "us-central1-a (spot)",
        "us-east4-b (spot)",
        "us-central1-a (on demand)",
        "us-east4-b (on demand)",
    ]


def test_a_list_of_one_way_is_that_way() -> None:
    one = _loaded(ZONE="us-central1-a", CAPACITY="spot").settings
    old = _loaded(ZONE="us-central1-a", ENABLE_SPOT="yes").settings
    assert one is not None
    assert old is not None
    assert cluster.vms(one).group == cluster.vms(old).group
    assert cluster.vms(one).places == ()


def test_a_way_that_a_rule_refuses_is_passed_by_as_long_as_there_is_another() -> None:
    # Google has A4X from reservations alone.
    loaded = _ways("spot,reservation", VM_TYPE="a4x-highgpu-4g", RESERVATION_NAME="mine")
    assert loaded.settings is not None
    assert loaded.settings.way is Way.RESERVATION
    (note,) = (it for it in loaded.notes if "goes without spot" in it.what)
    assert "is not available for a4x-highgpu-4g" in note.what
    assert every.against(loaded.settings, Way.SPOT).startswith("spot in CAPACITY is not available")
    assert not every.against(loaded.settings, Way.RESERVATION)
    assert loaded.effective["ENABLE_SPOT"] is False


def test_a_problem_of_all_ways_is_told_once_and_those_of_one_way_not() -> None:
    loaded = _ways(
        "spot,reservation", VM_TYPE="a4x-highgpu-4g", RESERVATION_NAME="mine", REGION="us-west1"
    )
    assert [it.setting for it in loaded.problems] == ["REGION"]


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


@pytest.mark.parametrize("ways", ["spot,flex_start", "spot,on_demand", "flex_start"])
def test_the_last_way_of_nodes_may_be_one_that_comes_later(ways: str) -> None:
    assert not _loaded(ZONE="us-central1-a", ORCHESTRATOR_TYPE="gke", CAPACITY=ways).problems
