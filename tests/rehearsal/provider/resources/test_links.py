from rehearsal.provider.resources import links
from tests.table import cases

FULL = "https://www.googleapis.com/compute/v1/projects/p/global/networks/n"


@cases(
    """
link | found
n | projects/p/global/networks/n
global/networks/n | projects/p/global/networks/n
projects/p/global/networks/n | projects/p/global/networks/n
@full | projects/p/global/networks/n
https://compute.googleapis.com/compute/beta/projects/p/global/networks/n
    | projects/p/global/networks/n
# A subnetwork without a place is in the object's region.
s | projects/p/regions/r/subnetworks/s
regions/q/subnetworks/s | projects/p/regions/q/subnetworks/s
""",
    full=FULL,
)
def test_a_network_or_subnetwork_may_be_named_in_any_way(link: str, found: str) -> None:
    if link.endswith("s"):
        assert links.at("subnetworks", link, project="p", region="r") == found
    else:
        assert links.at("networks", link, project="p") == found


@cases(
    """
wanted | same
n | true
projects/p/global/networks/n | true
@full | true
m | false
projects/q/global/networks/n | false
- | false
null | false
""",
    full=FULL,
)
def test_another_name_of_the_same_object_is_no_change(wanted: str | None, *, same: bool) -> None:
    assert links.same_object(FULL, wanted, {}) is same


def test_a_bare_name_is_no_path() -> None:
    assert not links.same_path(FULL, "n", {})
    assert links.same_path(FULL, FULL.replace("/v1/", "/beta/"), {})


@cases("""
prior | wanted | same
[p] | [projects/p/regions/r/resourcePolicies/p] | true
[p] | [q] | false
[p] | [p, p] | false
[] | null | true
""")
def test_lists_of_names_are_compared_one_by_one(
    prior: list[str], wanted: list[str] | None, *, same: bool
) -> None:
    assert links.same_names(prior, wanted, {}) is same
