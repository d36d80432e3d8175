"""Preemption, maintenance and errors of hosts: what the VMs, the group and the operations say."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import scenarios

if TYPE_CHECKING:
    from tests.rehearsal.cloud.compute.conftest import Compute

ZONE = "projects/proj-a1/zones/us-central1-a"
GROUP = f"{ZONE}/instanceGroupManagers/grp"
SPOT = {
    "provisioningModel": "SPOT",
    "preemptible": True,
    "automaticRestart": False,
    "onHostMaintenance": "TERMINATE",
    "instanceTerminationAction": "DELETE",
}
STANDARD = {"onHostMaintenance": "TERMINATE"}
NEVER_AGAIN = {**STANDARD, "automaticRestart": False}
UP = 25 + 60
"""Seconds until a VM runs, and has for so long that something happens to it."""


@pytest.fixture
def grouped(wired: Compute) -> Any:
    """Make a group of two VMs under a scenario, by a clock that runs."""

    def make(
        scenario: str, scheduling: dict[str, Any], machine: str = "g2-standard-24", **group: Any
    ) -> Compute:
        wired.scenarios, wired.rate = frozenset({scenario}), 1.0
        wired.template(machineType=machine, scheduling=scheduling)
        wired.group(**group)
        wired.vms()  # a request after those that make it
        return wired

    return make


def _told(api: Compute) -> dict[str, tuple[str, str]]:
    """What the group says of its VMs: name -> status and action."""
    found = api.post(f"{GROUP}/listManagedInstances", {})["managedInstances"]
    return {it["name"]: (it.get("instanceStatus", ""), it["currentAction"]) for it in found}


def _after(api: Compute, seconds: float) -> list[tuple[str, str]]:
    api.now += seconds
    return list(_told(api).values())


def _operations(api: Compute) -> list[str]:
    """The types of what Google did of its own accord, in their order."""
    query = 'operationType eq "compute.instances..*"'
    found = api.get(f"{ZONE}/operations", filter=query).get("items", [])
    assert all(it["user"] == "system" and it["status"] == "DONE" for it in found)
    return [it["operationType"].removeprefix("compute.instances.") for it in found]


def test_a_spot_vm_is_preempted_and_made_again_when_there_is_room(grouped: Any) -> None:
    api = grouped("preempted", SPOT)
    names = list(_told(api))
    assert _after(api, UP - 1) == [("RUNNING", "NONE")] * 2

    assert _after(api, 1) == [("STOPPING", "RECREATING"), ("RUNNING", "NONE")]
    assert api.get_group()["currentActions"] == {
        **dict.fromkeys(api.get_group()["currentActions"], 0),
        "recreating": 1,
        "none": 1,
    }
    assert _operations(api) == ["preempted"]
    assert _after(api, 30) == [("", "RECREATING"), ("RUNNING", "NONE")]
    assert len(api.vms()) == 1
    (lost, _) = api.post(f"{GROUP}/listManagedInstances", {})["managedInstances"]
    (error,) = lost["lastAttempt"]["errors"]["errors"]
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    assert api.get_group()["currentActions"]["recreating"] == 1
    assert api.get_group()["targetSize"] == 2

    assert _after(api, 299)[0] == ("", "RECREATING")
    assert _after(api, 1)[0][0] == "PROVISIONING"
    assert _after(api, 25) == [("RUNNING", "NONE")] * 2
    assert list(_told(api)) == names
    assert api.get_group()["status"]["isStable"] is True
    # Once is enough.
    assert _after(api, 10_000) == [("RUNNING", "NONE")] * 2
    assert _operations(api) == ["preempted"]


def test_a_preempted_vm_comes_again_of_the_template_that_it_was_made_of(grouped: Any) -> None:
    api = grouped("", SPOT)
    _after(api, UP)
    api.template("newer", machineType="g2-standard-24", scheduling=SPOT)
    link = "projects/proj-a1/global/instanceTemplates/newer"
    api.patch(GROUP, {"versions": [{"instanceTemplate": link}]})
    vm, _ = api.vms()
    api.post(f"{ZONE}/instances/{vm['name']}/simulateMaintenanceEvent")

    def made_of() -> list[str]:
        found = api.post(f"{GROUP}/listManagedInstances", {})["managedInstances"]
        return [it["version"]["instanceTemplate"].rpartition("/")[2] for it in found]

    assert _after(api, 31)[0] == ("", "RECREATING")
    assert made_of() == ["tpl", "tpl"]
    assert _after(api, 10_000) == [("RUNNING", "NONE")] * 2
    assert api.vms()[0]["id"] != vm["id"]
    assert made_of() == ["tpl", "tpl"]


def test_a_new_start_of_the_cloud_strikes_again(grouped: Any) -> None:
    api = grouped("preempted", SPOT)
    _after(api, 10_000)
    _after(api, 10_000)
    with api.database.transaction() as store:
        scenarios.renew(store)
    _told(api)
    assert ("STOPPING", "RECREATING") in _after(api, 60)


def test_only_spot_vms_are_preempted(grouped: Any) -> None:
    api = grouped("preempted", STANDARD)
    assert _after(api, 10_000) == [("RUNNING", "NONE")] * 2
    assert _operations(api) == []


def test_a_spot_vm_whose_group_does_nothing_is_gone_for_good(grouped: Any) -> None:
    policy = {"defaultActionOnFailure": "DO_NOTHING"}
    api = grouped("preempted", SPOT, instanceLifecyclePolicy=policy)
    _after(api, UP)
    assert _after(api, 10_000) == [("RUNNING", "NONE")]


def test_maintenance_is_told_an_hour_before_where_the_api_tells_of_it(grouped: Any) -> None:
    api = grouped("maintenance", STANDARD, machine="a3-highgpu-8g")
    _after(api, UP)
    (first, second) = api.vms()
    upcoming = first["resourceStatus"]["upcomingMaintenance"]
    assert (upcoming["maintenanceStatus"], upcoming["type"]) == ("PENDING", "UNSCHEDULED")
    assert "upcomingMaintenance" not in second.get("resourceStatus", {})

    assert _after(api, 3599) == [("RUNNING", "NONE")] * 2
    assert _after(api, 1)[0] == ("STOPPING", "NONE")
    ongoing = api.vms()[0]["resourceStatus"]["upcomingMaintenance"]
    assert ongoing["maintenanceStatus"] == "ONGOING"
    assert _after(api, 30)[0] == ("TERMINATED", "NONE")
    assert _after(api, 600)[0] == ("PROVISIONING", "NONE")
    assert _after(api, 25)[0] == ("RUNNING", "NONE")
    assert "resourceStatus" not in api.vms()[0]
    assert [it["id"] for it in api.vms()] == [first["id"], second["id"]]
    assert _operations(api) == ["terminateOnHostMaintenance", "automaticRestart"]


def test_a_machine_whose_maintenance_the_api_does_not_tell_of_stops_all_the_same(
    grouped: Any,
) -> None:
    api = grouped("maintenance", STANDARD)
    _after(api, UP)
    assert all("resourceStatus" not in vm for vm in api.vms())
    assert _after(api, 3600)[0] == ("STOPPING", "NONE")


def test_a_vm_whose_host_fails_is_started_again_as_the_same(grouped: Any) -> None:
    api = grouped("host-error", STANDARD)
    before = [vm["id"] for vm in api.vms()]
    assert _after(api, UP)[0] == ("REPAIRING", "NONE")
    assert _after(api, 330 + 25) == [("RUNNING", "NONE")] * 2
    assert [vm["id"] for vm in api.vms()] == before
    assert _operations(api) == ["hostError", "automaticRestart"]


def test_a_vm_that_is_not_started_again_is_made_again_by_its_group(grouped: Any) -> None:
    api = grouped("host-error", NEVER_AGAIN)
    assert _after(api, UP)[0] == ("STOPPING", "RECREATING")
    assert _after(api, 60) == [("RUNNING", "NONE")] * 2
    assert _operations(api) == ["hostError"]


def test_a_vm_that_nobody_makes_again_stays_down(grouped: Any) -> None:
    policy = {"defaultActionOnFailure": "DO_NOTHING"}
    api = grouped("host-error", NEVER_AGAIN, instanceLifecyclePolicy=policy)
    _after(api, UP)
    assert _after(api, 10_000) == [("TERMINATED", "NONE"), ("RUNNING", "NONE")]


def test_machines_without_gpus_are_spared(grouped: Any) -> None:
    api = grouped("host-error", STANDARD, machine="e2-standard-4")
    assert _after(api, 10_000) == [("RUNNING", "NONE")] * 2
