import pytest

from provision.catalogue import zones as places


def test_every_zone_lies_in_the_region_that_lists_it() -> None:
    for region, zones in places.ZONES.items():
        assert zones
        for zone in zones:
            assert places.region_of(zone) == region
            assert places.has_zone_form(zone)


def test_the_list_covers_all_continents_and_the_zones_that_break_the_pattern() -> None:
    assert len(places.REGIONS) == 43
    assert "us-central1-f" in places.ZONES["us-central1"]
    assert "europe-west1-a" not in places.ZONES["europe-west1"]
    assert {region.split("-")[0] for region in places.REGIONS} == {
        "africa", "asia", "australia", "europe", "me", "northamerica", "southamerica", "us",
    }  # fmt: skip


def test_the_region_of_an_ai_zone_is_the_zone_without_its_last_part() -> None:
    assert places.region_of("us-central1-ai1a") == "us-central1"


@pytest.mark.parametrize("name", ["us-central1", "us-central1-aa", "us-central1-", "a", "", "-"])
def test_what_has_no_zone_letter_has_no_zone_form(name: str) -> None:
    assert not places.has_zone_form(name)


def test_a_misspelt_place_finds_the_one_that_was_meant() -> None:
    assert places.did_you_mean_zone("us-cental1-a") == "us-central1-a"
    assert places.did_you_mean_region("europe-wst4") == "europe-west4"
    assert places.did_you_mean_zone("narnia") is None


@pytest.mark.parametrize("region", ["us-west8", "us-east7", "europe-west15"])
def test_a_region_of_another_number_is_a_new_one_and_no_slip(region: str) -> None:
    assert region not in places.REGIONS
    assert places.has_region_form(region)
    assert places.did_you_mean_region(region) is None
    assert places.did_you_mean_zone(f"{region}-a") is None
