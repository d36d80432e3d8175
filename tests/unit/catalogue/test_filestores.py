import pytest

from provision.catalogue import filestores
from provision.catalogue.filestores import Tier


@pytest.mark.parametrize(
    ("tier", "fits", "fails"),
    [
        (Tier.BASIC_HDD, (1024, 1025, 65433), (1023, 65434)),
        (Tier.BASIC_SSD, (2560, 2561, 65433), (2559, 65434)),
        (Tier.HIGH_SCALE_SSD, (10240, 12800, 102400), (2560, 10241, 102401)),
        (Tier.ENTERPRISE, (1024, 1280, 10240), (1023, 1100, 10496)),
        (Tier.ZONAL, (1024, 9984, 10240, 102400), (1025, 10000, 12801)),
        (Tier.REGIONAL, (1024, 9984, 10240, 102400), (10112, 104960)),
    ],
)
def test_a_tier_takes_the_sizes_of_its_range_and_step(
    tier: Tier, fits: tuple[int, ...], fails: tuple[int, ...]
) -> None:
    assert all(filestores.takes(tier, size) for size in fits)
    assert not any(filestores.takes(tier, size) for size in fails)


def test_every_tier_but_high_scale_has_the_default_size() -> None:
    assert {tier for tier in Tier if filestores.default_size(tier) is None} == {Tier.HIGH_SCALE_SSD}


@pytest.mark.parametrize(
    ("tier", "wanted", "nearest"),
    [
        (Tier.HIGH_SCALE_SSD, 0, 10240),
        (Tier.ZONAL, 10000, 9984),
        (Tier.ZONAL, 10200, 10240),
        (Tier.ENTERPRISE, 999_999, 10240),
    ],
)
def test_the_nearest_size_is_one_that_the_tier_takes(tier: Tier, wanted: int, nearest: int) -> None:
    assert filestores.nearest_size(tier, wanted) == nearest
    assert filestores.takes(tier, nearest)
