"""Which zone has what, and in which way Google gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud.facts import places

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
EVERYWHERE = frozenset({"everywhere"})


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
    if there:
        assert api.get(path)["name"] == machine
    else:
        assert api.refusal("GET", path)["code"] == 404
        api.scenarios = EVERYWHERE
        assert api.get(path)["name"] == machine


def test_a_part_of_a_gpu_counts_as_one(api: Compute) -> None:
    found = api.get(f"{PROJECT}/zones/us-central1-b/machineTypes/g4-standard-6")

    assert found["accelerators"] == [
        {"guestAcceleratorType": "nvidia-rtx-pro-6000", "guestAcceleratorCount": 1}
    ]


def test_a_gpu_that_is_shut_down_is_nowhere(api: Compute) -> None:
    name = "nvidia-tesla-p100"

    listed = api.get(f"{PROJECT}/aggregated/acceleratorTypes", filter=f"name={name}")
    assert not [it for it in listed["items"].values() if "acceleratorTypes" in it]
    assert api.refusal("GET", f"{ZONE}/acceleratorTypes/{name}")["code"] == 404


@pytest.mark.parametrize("zone", [zone for zones in places.AI_ZONES.values() for zone in zones])
def test_an_ai_zone_is_there_once_it_is_turned_on(api: Compute, zone: str) -> None:
    region = f"{PROJECT}/regions/{places.region_of(zone)}"
    assert api.refusal("GET", f"{PROJECT}/zones/{zone}")["code"] == 400
    assert not [it for it in api.get(region)["zones"] if it.endswith(zone)]

    api.scenarios = frozenset({"ai-zones"})

    assert api.get(f"{PROJECT}/zones/{zone}")["name"] == zone
    assert [it for it in api.get(region)["zones"] if it.endswith(zone)]


def _spot(machine: str) -> dict[str, Any]:
    scheduling = {
        "provisioningModel": "SPOT",
        "preemptible": True,
        "automaticRestart": False,
        "onHostMaintenance": "TERMINATE",
    }
    return {"machineType": machine, "scheduling": scheduling}


def _on_demand(machine: str) -> dict[str, Any]:
    return {"machineType": machine, "scheduling": {"onHostMaintenance": "TERMINATE"}}


@pytest.mark.parametrize(
    ("properties", "model"),
    [
        (_on_demand("a3-highgpu-1g"), "STANDARD"),
        (_on_demand("a4x-highgpu-4g"), "STANDARD"),
        (_spot("a4x-highgpu-4g"), "SPOT"),
    ],
)
def test_a_vm_that_google_never_gives_in_that_way_is_refused_for_good(
    wired: Compute, properties: dict[str, Any], model: str
) -> None:
    image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2204-lts"
    if properties["machineType"].startswith("a4x"):
        image += "-arm64"
    disk = {"boot": True, "initializeParams": {"sourceImage": image}}
    wired.template(**properties, disks=[disk])
    wired.group(size=1)

    (member,) = wired.post(f"{ZONE}/instanceGroupManagers/grp/listManagedInstances")[
        "managedInstances"
    ]
    (error,) = member["lastAttempt"]["errors"]["errors"]
    assert error["code"] == "UNSUPPORTED_OPERATION"
    assert f"[{properties['machineType']}, {model}]" in error["message"]
    assert not wired.vms()

    wired.scenarios = EVERYWHERE
    wired.get_group()
    assert len(wired.vms()) == 1


def test_a_machine_that_is_not_given_on_demand_comes_by_spot_or_a_reservation(
    wired: Compute,
) -> None:
    wired.template(**_spot("a3-highgpu-1g"))
    wired.group(size=1)
    assert len(wired.vms()) == 1
