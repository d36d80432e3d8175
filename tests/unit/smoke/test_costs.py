import json
from pathlib import Path

import pytest

from provision.catalogue import prices
from provision.cost import estimate
from provision.documents.cost import PartKind
from provision.kinds import registry
from provision.settings.model import Settings
from smoke import costs, steps, walk
from smoke.costs import Part, Prices, UnknownPriceError
from smoke.steps import Place

PLACE = Place("my-project", "us-central1-a", "us-central1-b", "smk1a2b")


def test_prices_are_sums_of_a_dated_table() -> None:
    prices = Prices.of("us-central1")
    assert prices.date == "2026-07-30"
    # Google's price page: n1-standard-4 is 0.19 an hour and a T4 0.35; 100 GiB of disk 0.0137.
    assert prices.hourly[Part.GPU_VM] == pytest.approx(0.19 + 0.35 + 0.0137, abs=0.001)
    assert prices.usd({Part.GPU_VM: 2, Part.CLUSTER: 1}, 1800) == pytest.approx(
        prices.hourly[Part.GPU_VM] + 0.05
    )


def test_a_region_without_prices_is_not_taken_for_free() -> None:
    with pytest.raises(UnknownPriceError, match="no prices for mars-north1"):
        Prices.of("mars-north1")


def test_a_share_is_taken_for_dearer_where_its_price_is_unknown() -> None:
    here, there = Prices.of("us-central1"), Prices.of("europe-west4")
    assert there.hourly[Part.SHARE] == pytest.approx(1.5 * here.hourly[Part.SHARE])


def test_all_of_it_is_within_the_usual_limit() -> None:
    assert 3 < walk.most(steps.plan(PLACE), Prices.of("us-central1")) < 12


def test_every_deployment_is_destroyed_and_each_step_has_its_time() -> None:
    wanted = steps.plan(PLACE)
    for deployment in steps.DEPLOYMENTS:
        own = [step for step in wanted if step.deployment == deployment]
        assert (own[0].action, own[-1].action) == ("Create", "Destroy")
        assert all(step.minutes > 0 and step.billed for step in own)
        assert {step.settings["NAME_PREFIX"] for step in own} == {f"smk1a2b-{deployment}"}
    assert steps.plan(PLACE, frozenset({"gke"}))[0].deployment == "gke"


_REGIONS = json.loads(Path(costs.__file__).with_name("prices.json").read_text())["regions"]


@pytest.mark.parametrize("region", _REGIONS)
def test_the_program_which_has_a_list_of_its_own_tells_the_same_cost(region: str) -> None:
    # The zone is the first of the plan that a smoke test makes; its region alone has a price.
    place = Place("my-project", f"{region}-b", f"{region}-c", "smk1a2b")
    wanted = Prices.of(region).hourly
    for deployment, machines in (("vm", PartKind.MACHINES), ("gke", PartKind.SYSTEM_NODES)):
        step = steps.plan(place, frozenset({deployment}))[0]
        asked = Settings({name.lower(): text for name, text in step.settings.items()})
        spec = registry.of(asked).spec(asked)
        cost = estimate.of(spec, prices.listed(), {pool.name: 1 for pool in spec.pools})
        (machine,) = [part for part in cost.parts if part.kind is machines]
        (disk,) = [
            part for part in cost.parts if part.kind is PartKind.DISKS and part.pool == machine.pool
        ]
        assert machine.now is not None
        assert disk.now is not None
        own = Part.GPU_VM if deployment == "vm" else Part.SYSTEM_NODE
        assert float(machine.now + disk.now) == pytest.approx(wanted[own], abs=1e-5)
