"""Which zone has what, in which way Google gives it, how much is left, and what quotas allow."""

from typing import Any

import pytest

from rehearsal.cloud.compute import stock
from rehearsal.cloud.facts import places
from tests.rehearsal.cloud.compute.conftest import (
    PROJECT,
    REGION,
    SPOT,
    STANDARD,
    ZONE,
    Compute,
    boot,
)

EVERYWHERE = frozenset({"everywhere"})
HERE = "us-central1-a"
NONE = "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"


@pytest.mark.parametrize(
    ("zone", "machine", "there"),
    [
        ("us-central1-b", "a3-ultragpu-8g", True),
        ("us-central1-a", "a3-ultragpu-8g", False),  # a zone of a region whose zones are known
        ("europe-north1-a", "a3-ultragpu-8g", False),  # a region that is not listed
        ("europe-west1-c", "a4-highgpu-8g", True),  # a listed region without a known zone
        ("us-central1-a", "g4-standard-6", False),
        ("us-central1-f", "g4-standard-48", True),
        ("africa-south1-a", "n1-standard-8", True),
        ("africa-south1-a", "e2-standard-4", True),
    ],
)
def test_a_zone_has_a_machine_where_the_list_has_it(
    api: Compute, zone: str, machine: str, *, there: bool
) -> None:
    path = f"{PROJECT}/zones/{zone}/machineTypes/{machine}"
    listed = api.get(f"{PROJECT}/aggregated/machineTypes", filter=f"name={machine}")["items"]
    assert (f"zones/{zone}" in listed) is there
    if not there:
        assert api.gone(path)
        api.scenarios = EVERYWHERE
    assert api.get(path)["name"] == machine


def test_a_part_of_a_gpu_counts_as_one_and_a_gpu_that_is_shut_down_is_nowhere(api: Compute) -> None:
    found = api.get(f"{PROJECT}/zones/us-central1-b/machineTypes/g4-standard-6")
    part = {"guestAcceleratorType": "nvidia-rtx-pro-6000", "guestAcceleratorCount": 1}
    assert found["accelerators"] == [part]
    name = "nvidia-tesla-p100"
    listed = api.get(f"{PROJECT}/aggregated/acceleratorTypes", filter=f"name={name}")
    assert not [it for it in listed["items"].values() if "acceleratorTypes" in it]
    assert api.gone(f"{ZONE}/acceleratorTypes/{name}")


def test_an_ai_zone_is_there_once_it_is_turned_on(api: Compute) -> None:
    for zone in (zone for zones in places.AI_ZONES.values() for zone in zones):
        region = f"{PROJECT}/regions/{places.region_of(zone)}"
        api.scenarios = frozenset()
        assert api.refusal("GET", f"{PROJECT}/zones/{zone}")["code"] == 400
        assert not [it for it in api.get(region)["zones"] if it.endswith(zone)]
        api.scenarios = frozenset({"ai-zones"})
        assert api.get(f"{PROJECT}/zones/{zone}")["name"] == zone
        assert [it for it in api.get(region)["zones"] if it.endswith(zone)]


@pytest.mark.parametrize(
    ("machine", "model", "scheduling"),
    [
        ("a3-highgpu-1g", "STANDARD", STANDARD),
        ("a4x-highgpu-4g", "STANDARD", STANDARD),
        ("a4x-highgpu-4g", "SPOT", SPOT),
    ],
)
def test_a_vm_that_google_never_gives_in_that_way_is_refused_for_good(
    wired: Compute, machine: str, model: str, scheduling: dict[str, Any]
) -> None:
    arm = "-arm64" if machine.startswith("a4x") else ""
    image = f"projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts{arm}"
    wired.of_one(machineType=machine, scheduling=scheduling, disks=boot(image))
    (error,) = wired.errors()
    assert error["code"] == "UNSUPPORTED_OPERATION"
    assert f"[{machine}, {model}]" in error["message"]
    assert not wired.vms()

    wired.scenarios = EVERYWHERE
    wired.get_group()
    assert len(wired.vms()) == 1


def test_a_machine_that_is_not_given_on_demand_comes_by_spot_or_a_reservation(
    wired: Compute,
) -> None:
    wired.of_one(machineType="a3-highgpu-1g", scheduling=SPOT)
    assert len(wired.vms()) == 1


def _came(api: Compute, *rows: dict[str, Any]) -> list[str]:
    """For each VM of a new group, with these rows of stock, why it has not come; "" if it has."""
    with api.database.transaction() as store:
        stock.put(store, rows)
    api.template(machineType="a2-highgpu-2g", scheduling=STANDARD)
    api.group(size=3)
    return [""] * len(api.vms()) + [it["code"] for it in api.errors()]


@pytest.mark.parametrize(
    ("rows", "came"),
    [
        ([], ["", "", ""]),
        ([{"zones": "us-*", "machines": 0}], [NONE, NONE, NONE]),
        ([{"zones": "us-*", "machines": 0, "way": "SPOT"}], ["", "", ""]),
        ([{"zones": "us-*", "machines": 0}, {"zones": HERE, "machines": 9}], ["", "", ""]),
        ([{"zones": HERE, "machines": 2}], ["", "", NONE]),
        ([{"zones": "us-*", "quota": 0}], 3 * ["QUOTA_EXCEEDED"]),
    ],
)
def test_vms_come_as_far_as_there_are_machines_and_quota(
    wired: Compute, rows: list[dict[str, Any]], came: list[str]
) -> None:
    assert _came(wired, *rows) == came


def test_machines_come_once_there_are_some_again(wired: Compute) -> None:
    wired.rate = 1.0
    assert _came(wired, {"zones": "*", "machines": 0, "until": 3600}) == [NONE, NONE, NONE]
    wired.now += 3601
    assert wired.errors() == []
    assert len(wired.managed()) == 3


def test_a_region_shows_the_quota_that_it_has(wired: Compute) -> None:
    _came(wired, {"zones": "us-central1-*", "quota": 2})
    shown = {it["metric"]: it["limit"] for it in wired.get(REGION)["quotas"]}
    assert shown["NVIDIA_A100_GPUS"] == 2
