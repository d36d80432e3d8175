import re

from provision.catalogue import names


def test_a_pool_is_called_by_prefix_and_name() -> None:
    assert names.node_pool("train", "a100") == "train-a100"


def test_a_name_that_is_too_long_is_cut_and_stays_one_of_its_own() -> None:
    long = [names.node_pool(21 * "p", 30 * "n" + last) for last in "ab"]

    assert [len(name) for name in long] == [40, 40]
    assert len(set(long)) == 2
    assert long[0] == names.node_pool(21 * "p", 30 * "n" + "a")


def test_a_cut_name_is_still_a_name() -> None:
    cut = names.node_pool("p", 31 * "n" + "-" + 8 * "m")

    assert re.fullmatch(r"[a-z]([a-z0-9-]*[a-z0-9])?", cut)
    assert "--" not in cut


def test_the_last_of_fifty_equal_pools_is_not_cut() -> None:
    prefix = names.TIGHTEST_OF_GKE.longest_prefix * "p"

    assert names.node_pool(prefix, "nodepool-50") == f"{prefix}-nodepool-50"


def test_the_cluster_for_an_image_has_a_prefix_of_its_own_that_fits() -> None:
    assert names.for_image("np") == "np-bake"
    longest = names.TIGHTEST.longest_prefix
    made = {names.for_image(f"{'a' * (longest - 1)}{last}") for last in "bc"}
    assert len(made) == 2
    assert all(len(it) <= longest and it.endswith(names.BAKE) for it in made)
