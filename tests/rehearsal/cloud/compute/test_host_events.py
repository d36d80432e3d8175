"""Preemption, maintenance and errors of hosts: what the VMs, the group and the operations say."""

from collections.abc import Callable
from typing import Any

import pytest

from rehearsal.cloud import scenarios
from tests.rehearsal.cloud.compute.conftest import SPOT as ANY_SPOT
from tests.rehearsal.cloud.compute.conftest import STANDARD, ZONE, Compute

Grouped = Callable[..., Compute]
SPOT = {**ANY_SPOT, "instanceTerminationAction": "DELETE"}
NEVER_AGAIN = {**STANDARD, "automaticRestart": False}
NOTHING = {"instanceLifecyclePolicy": {"defaultActionOnFailure": "DO_NOTHING"}}
BOTH_RUN = [("RUNNING", "NONE")] * 2
UP = 25 + 60  # seconds until a VM runs, and has for so long that something happens to it


@pytest.fixture
def grouped(wired: Compute) -> Grouped:
    """Make a group of two VMs under a scenario, by a clock that runs."""

    def make(
        scenario: str, scheduling: Any, machine: str = "g2-standard-24", **more: Any
    ) -> Compute:
        wired.scenarios, wired.rate = frozenset({scenario}), 1.0
        wired.template(machineType=machine, scheduling=scheduling)
        wired.group(**more)
        wired.vms()  # a request after those that make it
        return wired

    return make


def _told(api: Compute) -> dict[str, tuple[str, str]]:
    """What the group says of its VMs: name -> status and action."""
    return {it["name"]: (it.get("instanceStatus", ""), it["currentAction"]) for it in api.managed()}


def _after(api: Compute, seconds: float) -> list[tuple[str, str]]:
    api.now += seconds
    return list(_told(api).values())


def _operations(api: Compute) -> list[str]:
    """The types of what Google did of its own accord, in their order."""
    query = 'operationType eq "compute.instances..*"'
    found = api.get(f"{ZONE}/operations", filter=query).get("items", [])
    assert all(it["user"] == "system" and it["status"] == "DONE" for it in found)
    return [it["operationType"].removeprefix("compute.instances.") for it in found]


def test_a_spot_vm_is_preempted_and_made_again_when_there_is_room(grouped: Grouped) -> None:
    api = grouped("preempted", SPOT)
    names = list(_told(api))
    assert _after(api, UP - 1) == BOTH_RUN

    assert _after(api, 1) == [("STOPPING", "RECREATING"), ("RUNNING", "NONE")]
    actions = {name: count for name, count in api.get_group()["currentActions"].items() if count}
    assert actions == {"recreating": 1, "none": 1}
    assert _operations(api) == ["preempted", "repair.recreateInstance"]
    assert _after(api, 30) == [("", "RECREATING"), ("RUNNING", "NONE")]
    assert len(api.vms()) == 1
    (error,) = api.errors()
    assert error["code"] == "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS"
    group = api.get_group()
    assert (group["currentActions"]["recreating"], group["targetSize"]) == (1, 2)

    assert _after(api, 299)[0] == ("", "RECREATING")
    assert _after(api, 1)[0][0] == "PROVISIONING"
    assert _after(api, 25) == BOTH_RUN
    assert list(_told(api)) == names
    assert api.get_group()["status"]["isStable"] is True
    # Once is enough.
    assert _after(api, 10_000) == BOTH_RUN
    assert _operations(api) == ["preempted", "repair.recreateInstance"]


def test_a_preempted_vm_comes_again_of_the_template_that_it_was_made_of(grouped: Grouped) -> None:
    api = grouped("", SPOT)
    _after(api, UP)
    api.template("newer", machineType="g2-standard-24", scheduling=SPOT)
    api.use("newer")
    vm, _ = api.vms()
    api.post(f"{ZONE}/instances/{vm['name']}/simulateMaintenanceEvent")

    def made_of() -> list[str]:
        return [it["version"]["instanceTemplate"].rpartition("/")[2] for it in api.managed()]

    assert _after(api, 31)[0] == ("", "RECREATING")
    assert made_of() == ["tpl", "tpl"]
    assert _after(api, 10_000) == BOTH_RUN
    assert api.vms()[0]["id"] != vm["id"]
    assert made_of() == ["tpl", "tpl"]


def test_a_new_start_of_the_cloud_strikes_again(grouped: Grouped) -> None:
    api = grouped("preempted", SPOT)
    _after(api, 10_000)
    _after(api, 10_000)
    with api.database.transaction() as store:
        scenarios.renew(store)
    _told(api)
    assert ("STOPPING", "RECREATING") in _after(api, 60)


@pytest.mark.parametrize(
    ("scenario", "machine"), [("preempted", "g2-standard-24"), ("host-error", "e2-standard-4")]
)
def test_only_spot_vms_are_preempted_and_machines_without_gpus_are_spared(
    grouped: Grouped, scenario: str, machine: str
) -> None:
    api = grouped(scenario, STANDARD, machine)
    assert _after(api, 10_000) == BOTH_RUN
    assert _operations(api) == []


@pytest.mark.parametrize(
    ("scenario", "scheduling", "left"),
    [("preempted", SPOT, []), ("host-error", NEVER_AGAIN, [("TERMINATED", "NONE")])],
)
def test_a_vm_whose_group_does_nothing_is_gone_for_good_or_stays_down(
    grouped: Grouped, scenario: str, scheduling: Any, left: list[Any]
) -> None:
    api = grouped(scenario, scheduling, **NOTHING)
    _after(api, UP)
    assert _after(api, 10_000) == [*left, ("RUNNING", "NONE")]


def test_maintenance_is_told_an_hour_before_where_the_api_tells_of_it(grouped: Grouped) -> None:
    api = grouped("maintenance", STANDARD, machine="a3-highgpu-8g")
    _after(api, UP)
    (first, second) = api.vms()
    upcoming = first["resourceStatus"]["upcomingMaintenance"]
    assert (upcoming["maintenanceStatus"], upcoming["type"]) == ("PENDING", "UNSCHEDULED")
    assert "upcomingMaintenance" not in second.get("resourceStatus", {})

    assert _after(api, 3599) == BOTH_RUN
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
    grouped: Grouped,
) -> None:
    api = grouped("maintenance", STANDARD)
    _after(api, UP)
    assert all("resourceStatus" not in vm for vm in api.vms())
    assert _after(api, 3600)[0] == ("STOPPING", "NONE")


def test_a_vm_whose_host_fails_is_started_again_as_the_same(grouped: Grouped) -> None:
    api = grouped("host-error", STANDARD)
    before = [vm["id"] for vm in api.vms()]
    assert _after(api, UP)[0] == ("REPAIRING", "NONE")
    assert _after(api, 330 + 25) == BOTH_RUN
    assert [vm["id"] for vm in api.vms()] == before
    assert _operations(api) == ["hostError", "automaticRestart"]


def test_a_vm_that_is_not_started_again_is_made_again_by_its_group(grouped: Grouped) -> None:
    api = grouped("host-error", NEVER_AGAIN)
    assert _after(api, UP)[0] == ("STOPPING", "RECREATING")
    assert _after(api, 60) == BOTH_RUN
    assert _operations(api) == ["hostError", "repair.recreateInstance"]
