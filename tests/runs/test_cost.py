"""What a cluster costs, in whole runs: a limit refuses it, and Google's prices are kept a week."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.runs.conftest import Rehearsal


def _price_lists(rehearsal: Rehearsal) -> int:
    """How many pages of Google's price list were read so far."""
    return sum("/cloudbilling/v1/services/" in asked["path"] for asked in rehearsal.requests())


def _per_hour(document: dict[str, Any]) -> float:
    return round(float(document["cost"]["now"]["per_hour"]), 2)


@pytest.mark.slow(
    sibling="tests/unit/lifecycle/test_pricing.py::"
    "test_what_costs_more_than_the_limit_is_refused_with_its_cost"
)
def test_a_limit_refuses_before_anything_is_made_and_live_prices_are_kept_by_create_alone(
    rehearsal: Rehearsal,
) -> None:
    refused = rehearsal.run("Create", MAX_HOURLY_COST="5")
    assert refused.code == 2
    assert refused.problem["code"] == "cost-limit"
    assert refused.document["cost"]["prices"] == "list"
    assert rehearsal.writes() == []

    planned = rehearsal.run("Plan", PRICES="live", MAX_HOURLY_COST="10")
    pages = _price_lists(rehearsal)
    assert planned.document["cost"]["prices"] == "live"
    # The machine is two of a2-highgpu-1g, as Google's own SKUs have it.
    machine = planned.document["cost"]["parts"][0]
    assert round(machine["now"], 4) == round(2 * (12 * 0.031611 + 85 * 0.004237 + 2.93391), 4)
    assert pages > 4
    assert rehearsal.writes() == []

    created = rehearsal.run("Create", PRICES="live")
    assert created.code == 0
    assert _price_lists(rehearsal) == 2 * pages
    assert any(name.endswith("np-deployment/prices.json") for name in rehearsal.objects())

    again = rehearsal.run("Plan", PRICES="live")
    before = again.document["cost"].pop("before")
    assert round(before, 4) == round(planned.document["cost"]["most"]["per_hour"], 4)
    assert again.document["cost"] == planned.document["cost"]
    assert _price_lists(rehearsal) == 2 * pages


def test_machines_that_a_change_keeps_are_billed_by_what_they_are(
    standing: Callable[..., Rehearsal],
) -> None:
    small = {"VM_TYPE": "g2-standard-8"}
    rehearsal = standing(small)
    before = _per_hour(rehearsal.run("Status").document["status"])
    flex = {**small, "ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "7d"}
    assert _per_hour(rehearsal.run("Plan", **small).document) == before

    def plans() -> None:
        planned = rehearsal.run("Plan", **flex)
        assert planned.code == 0, planned.said
        assert _per_hour(planned.document) == before
        assert "at_most_in_all" not in planned.document["cost"]
        assert "now nothing" not in planned.said

    plans()
    created = rehearsal.run("Create", "--yes", **flex)
    assert created.code in {0, 75}, created.said
    plans()
    assert _per_hour(rehearsal.run("Status", **flex).document["status"]) == before


@pytest.mark.slow(
    sibling="tests/unit/lifecycle/test_pricing.py::"
    "test_a_limit_of_the_whole_ends_vms_whose_end_was_open"
)
def test_a_limit_of_the_whole_gives_vms_the_same_end_at_each_run(
    standing: Callable[..., Rehearsal],
) -> None:
    limited = {"VM_TYPE": "g2-standard-8", "MAX_COST": "20"}
    rehearsal = standing(limited)
    again = rehearsal.run("Plan", **limited).document
    assert again["plan"]["change"] == "nothing"
    assert again["settings"]["MAX_RUN_DURATION"] == 15 * 3600
    shown = rehearsal.run("Validate", **limited)
    assert "at most $19.87 until they end" in shown.said
    offers = rehearsal.run("Offers", behind=["L4"]).document["offers"]
    told = {it["quota"]["metric"] for it in offers if "quota" in it}
    assert told == {"NVIDIA_L4_GPUS", "PREEMPTIBLE_NVIDIA_L4_GPUS"}
