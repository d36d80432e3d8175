from ipaddress import IPv4Network

import pytest

from provision.spec import ranges
from provision.spec.ranges import Ranges


@pytest.mark.parametrize(
    ("pods", "addresses"),
    [(8, 16), (9, 32), (16, 32), (17, 64), (32, 64), (33, 128), (64, 128), (65, 256), (110, 256)],
)
def test_a_node_takes_twice_its_pods_rounded_up_to_a_block(pods: int, addresses: int) -> None:
    """The table of GKE's "Flexible Pod CIDR": /28 for 8, /27 to 16, and so on to /24."""
    assert ranges.addresses_for(pods) == addresses


def test_without_settings_the_parts_are_as_they_always_were() -> None:
    usual = Ranges()
    for is_cut in (False, True):
        assert usual.first(is_cut=is_cut) == IPv4Network("10.0.0.0/16")
    assert usual.interface(9) == IPv4Network("10.9.0.0/16")
    assert (str(usual.pods), str(usual.services)) == ("10.16.0.0/12", "10.32.0.0/20")


def test_a_range_is_the_vms_own_but_where_interfaces_share_it() -> None:
    own = Ranges(block=IPv4Network("10.64.0.0/23"))
    assert own.first(is_cut=False) == own.block
    assert own.first(is_cut=True) == IPv4Network("10.64.0.0/27")
    assert own.interface(8) == IPv4Network("10.64.1.0/27")


@pytest.mark.parametrize(
    ("prefix", "machines", "is_gke", "is_cut", "fits", "needed"),
    [
        (29, 4, False, False, 4, 29),
        (29, 5, False, False, 4, 28),
        (29, 1, False, False, 4, 29),
        (23, 28, False, True, 28, 23),
        (23, 29, False, True, 28, 22),
        (30, 1, False, True, 0, 25),
        # Google's four, the control plane's and that of a node more while nodes are upgraded.
        (28, 10, True, False, 10, 28),
        (28, 11, True, False, 10, 27),
    ],
)
def test_a_part_says_how_many_fit_and_what_is_needed(  # noqa: PLR0913 - a row of a table
    *, prefix: int, machines: int, is_gke: bool, is_cut: bool, fits: int, needed: int
) -> None:
    own = Ranges(block=IPv4Network(f"10.64.0.0/{prefix}"))
    first = ranges.parts(own, machines, is_gke=is_gke, is_cut=is_cut)[0]
    assert (first.fits, first.needed) == (fits, needed)
    assert first.is_too_small == (machines > fits)


@pytest.mark.parametrize(
    ("prefix", "pods", "nodes", "fits", "needed", "would_fit"),
    [
        (21, 110, 7, 7, 21, 110),  # /24 each, one for an upgrade: 8 of a /21
        (21, 110, 8, 7, 20, 64),
        (21, 32, 31, 31, 21, 32),
        (25, 8, 3, 7, 24, 16),  # GKE takes no range for pods under a /24
        (24, 32, 40, 3, 20, 0),
    ],
)
def test_pods_need_a_block_for_each_node_and_one_more(  # noqa: PLR0913, PLR0917 - a row of a table
    prefix: int, pods: int, nodes: int, fits: int, needed: int, would_fit: int
) -> None:
    own = Ranges(pods=IPv4Network(f"10.64.8.0/{prefix}"), max_pods=pods)
    found = ranges.parts(own, nodes, is_gke=True, is_cut=False)[1]
    assert (found.fits, found.needed) == (fits, needed)
    assert ranges.pods_that_fit(own.pods, nodes) == would_fit
