from typing import Any

import pytest

from rehearsal.cloud.compute import stock
from tests.rehearsal.cloud.compute.conftest import REGION, Compute

PATH = f"{REGION}/advice/capacity"


def _asked(zone: str, model: str = "SPOT", **more: Any) -> dict[str, Any]:
    return {
        "distributionPolicy": {"targetShape": "ANY_SINGLE_ZONE", "zones": [{"zone": zone}]},
        "instanceFlexibilityPolicy": {
            "instanceSelections": {"machines": {"machineTypes": ["a2-highgpu-1g"]}}
        },
        "instanceProperties": {"scheduling": {"provisioningModel": model}},
        "size": 2,
        **more,
    }


def _scores(wired: Compute, zone: str, model: str = "SPOT") -> object:
    (found,) = wired.post(PATH, _asked(f"zones/{zone}", model))["recommendations"]
    (shard,) = found["shards"]
    assert (shard["zone"], shard["provisioningModel"]) == (zone, model)
    return found["scores"]


def test_what_is_likely_follows_from_what_a_zone_has_left(wired: Compute) -> None:
    with wired.database.transaction() as store:
        stock.put(store, [{"zones": "us-central1-a", "machines": 1, "way": "SPOT"}])
    assert _scores(wired, "us-central1-a") == {"obtainability": 0.1, "estimatedUptime": "60s"}
    assert _scores(wired, "us-central1-b") == {"obtainability": 0.9, "estimatedUptime": "3600s"}
    assert _scores(wired, "us-central1-a", "FLEX_START") == {"obtainability": 0.9}


@pytest.mark.parametrize(
    "asked",
    [
        _asked("zones/europe-west4-a"),
        _asked("zones/us-central1-a", "STANDARD"),
        _asked("zones/us-central1-a", size=0),
        _asked("zones/us-central1-a", instanceFlexibilityPolicy={}),
        _asked("zones/us-central1-a", distributionPolicy={}),
    ],
    ids=["another_region", "on_demand", "nothing", "no_machines", "no_shape"],
)
def test_a_question_without_an_answer_is_refused(wired: Compute, asked: dict[str, Any]) -> None:
    assert wired.refused("POST", PATH, asked).startswith("400 ")
