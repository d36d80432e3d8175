import pytest

from rehearsal.provider.resources import links

FULL = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"


@pytest.mark.parametrize(
    "link",
    [
        "n",
        "global/networks/n",
        "projects/p/global/networks/n",
        FULL,
        "https://compute.googleapis.com/compute/beta/projects/p/global/networks/n",
    ],
)
def test_a_network_may_be_named_in_any_way(link: str) -> None:
    assert links.at("networks", link, project="p") == "projects/p/global/networks/n"


def test_a_subnetwork_without_a_place_is_in_the_objects_region() -> None:
    found = links.at("subnetworks", "s", project="p", region="r")
    assert found == "projects/p/regions/r/subnetworks/s"
    found = links.at("subnetworks", "regions/q/subnetworks/s", project="p", region="r")
    assert found == "projects/p/regions/q/subnetworks/s"


@pytest.mark.parametrize("wanted", ["n", "projects/p/global/networks/n", FULL])
def test_another_name_of_the_same_object_is_no_change(wanted: str) -> None:
    assert links.same_object(FULL, wanted, {})


@pytest.mark.parametrize("wanted", ["m", "projects/q/global/networks/n", "", None])
def test_another_object_is_a_change(wanted: str | None) -> None:
    assert not links.same_object(FULL, wanted, {})


def test_a_bare_name_is_no_path() -> None:
    assert not links.same_path(FULL, "n", {})
    assert links.same_path(FULL, FULL.replace("/v1/", "/beta/"), {})


@pytest.mark.parametrize(
    ("prior", "wanted", "same"),
    [
        (["p"], ["projects/p/regions/r/resourcePolicies/p"], True),
        (["p"], ["q"], False),
        (["p"], ["p", "p"], False),
        ([], None, True),
    ],
)
def test_lists_of_names_are_compared_one_by_one(
    prior: list[str],
    wanted: list[str] | None,
    same: bool,  # noqa: FBT001 - a case
) -> None:
    assert links.same_names(prior, wanted, {}) == same
