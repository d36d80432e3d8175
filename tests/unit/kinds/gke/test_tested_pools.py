from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.catalogue import prices
from provision.errors import SettingsError
from provision.kinds.gke import tested_pools
from provision.spec.capacity import Mode
from provision.spec.pools import Pool, Size
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import GpuPool

ARM = samples.pool_like(
    samples.ULTRA, name="demo-gb200", machine_type="a4x-highgpu-4g", accelerator="nvidia-gb200"
)
FACTS = samples.facts(samples.MEGA, samples.L4, ARM, samples.HIGH)


def _made(pool: GpuPool) -> Pool:
    return Pool(
        name=pool.name,
        machine_type=pool.machine_type,
        zone="us-central1-a",
        gpu_type=pool.accelerator,
        gpu_count=pool.gpus,
        mode=Mode(pool.mode),
        max_run_seconds=None,
        size=Size(count=pool.max_nodes),
        disk_size_gb=100,
        disk_type="pd-balanced",
    )


MADE = {pool.name: _made(pool) for pool in FACTS.pools}


def _names(parts: list[tested_pools.Part]) -> list[str]:
    return [part.pool.name for part in parts]


def test_every_pool_that_can_be_tested_comes_the_cheapest_first() -> None:
    parts = tested_pools.of(FACTS, None, "demo", MADE, prices.listed())
    assert _names(parts) == ["demo-l4", "demo-high", "demo-mega"]
    costs = [part.per_hour for part in parts]
    assert None not in costs
    assert costs == sorted(costs, key=lambda it: it or 0)


def test_without_prices_the_fewest_gpus_come_first() -> None:
    parts = tested_pools.of(FACTS, None, "demo", {}, None)
    assert _names(parts) == ["demo-l4", "demo-mega", "demo-high"]
    assert {part.per_hour for part in parts} == {None}


@pytest.mark.parametrize("asked", ["high", "demo-high"])
def test_one_pool_is_chosen_by_its_full_name_or_its_own(asked: str) -> None:
    assert _names(tested_pools.of(FACTS, asked, "demo", MADE, None)) == ["demo-high"]


@pytest.mark.parametrize("asked", ["gone", "gb200"])
def test_a_pool_that_is_not_there_or_has_no_image_is_refused(asked: str) -> None:
    with pytest.raises(SettingsError) as caught:
        tested_pools.of(FACTS, asked, "demo", MADE, None)
    (problem,) = caught.value.problems
    assert problem.setting == "--pool"
    assert "demo-high, demo-l4, demo-mega" in problem.why


def test_what_a_test_takes_is_said_in_one_sentence() -> None:
    one = tested_pools.of(samples.facts(samples.MEGA), None, "demo", {}, None)
    assert tested_pools.told(one, 7200) == (
        "Test of demo-mega (2 nodes, 16 GPUs); waits for nodes at most 2 h 0 min, measures at most"
        " 30 min"
    )
    several = tested_pools.told(tested_pools.of(FACTS, None, "demo", MADE, prices.listed()), 600)
    assert several.startswith("Test of 3 pools, the cheapest first: demo-l4 (2 nodes, 2 GPUs, ")
    assert several.endswith(
        "; waits for nodes at most 10 min in all, each is measured at most 30 min"
    )
    assert several.count("/h)") == 3
