"""Reservations: made, looked at, and used up by VMs; and what Google refuses of them."""

from __future__ import annotations

from typing import Any

import pytest

from rehearsal.cloud.wire import rfc3339
from tests.rehearsal.cloud.compute.conftest import PROJECT, REGION, ZONE, Compute

RESERVATIONS = f"{ZONE}/reservations"
GPUS: dict[str, Any] = {
    "machineType": "a2-highgpu-1g",
    "scheduling": {"onHostMaintenance": "TERMINATE"},
}
BOUND = {
    "provisioningModel": "RESERVATION_BOUND",
    "instanceTerminationAction": "DELETE",
    "onHostMaintenance": "TERMINATE",
}

Json = dict[str, Any]


@pytest.fixture(autouse=True)
def everywhere(api: Compute) -> None:
    """All machines in the one zone that the others are in."""
    api.scenarios = frozenset({"everywhere"})


def reserve(
    api: Compute, machine: str = "a2-highgpu-1g", count: int = 2, owner: str = PROJECT, **more: Any
) -> Json:
    body = {
        "name": "mine",
        "specificReservation": {
            "count": str(count),
            "instanceProperties": {"machineType": machine},
        },
        "specificReservationRequired": True,
        **more,
    }
    return api.post(f"{owner}/zones/us-central1-a/reservations", body)


def template(api: Compute, name: str = "mine", **properties: Any) -> None:
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    api.template(**{**GPUS, "reservationAffinity": affinity, **properties})


def refused(api: Compute, group: str = "grp") -> list[str]:
    """What the VMs that have not come are told, with their code."""
    answer = api.post(f"{ZONE}/instanceGroupManagers/{group}/listManagedInstances")
    errors = [
        error
        for it in answer.get("managedInstances", [])
        for error in it.get("lastAttempt", {}).get("errors", {}).get("errors", [])
    ]
    assert {it["code"] for it in errors} <= {"CONDITION_NOT_MET"}
    return [it["message"] for it in errors]


def free(api: Compute) -> tuple[str, str]:
    specific = api.get(f"{RESERVATIONS}/mine")["specificReservation"]
    return specific["count"], specific["inUseCount"]


def test_a_reservation_is_made_read_listed_and_deleted(api: Compute) -> None:
    reserve(api)
    made = api.get(f"{RESERVATIONS}/mine")
    assert made["status"] == "READY"
    assert made["zone"].endswith("/zones/us-central1-a")
    assert made["specificReservation"] == {
        "count": "2",
        "inUseCount": "0",
        "assuredCount": "2",
        "instanceProperties": {
            "machineType": "a2-highgpu-1g",
            "guestAccelerators": [{"acceleratorType": "nvidia-tesla-a100", "acceleratorCount": 1}],
        },
    }
    assert [it["name"] for it in api.get(RESERVATIONS)["items"]] == ["mine"]
    places = api.get(f"{PROJECT}/aggregated/reservations")["items"]
    assert [it["name"] for it in places["zones/us-central1-a"]["reservations"]] == ["mine"]
    api.delete(f"{RESERVATIONS}/mine")
    assert api.refusal("GET", f"{RESERVATIONS}/mine")["code"] == 404


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"machine": "a2-highgpu-3g"}, "was not found"),
        ({"machine": "a3-highgpu-1g"}, "does not support reservations"),
        ({"count": 0}, "count"),
        ({"machine": "a3-highgpu-8g", "specificReservationRequired": False}, "targeted"),
    ],
)
def test_what_cannot_be_reserved_is_refused(api: Compute, changed: Json, words: str) -> None:
    body: Json = {"machine": "a2-highgpu-1g", "count": 2, **changed}
    machine, count = body.pop("machine"), body.pop("count")
    with pytest.raises(Exception, match=words):
        reserve(api, machine, count, **body)


def test_a_reservation_that_does_not_exist_gives_no_vm(wired: Compute) -> None:
    template(wired)
    wired.group()
    assert wired.vms() == []
    assert set(refused(wired)) == {"Specified reservations [mine] do not exist."}


def test_vms_use_a_reservation_up_and_tell_so(wired: Compute) -> None:
    reserve(wired, count=2)
    template(wired)
    wired.group(size=3)
    assert len(wired.vms()) == 2
    assert free(wired) == ("2", "2")
    assert refused(wired) == [
        "Specified reservation 'mine' does not have available resources for the request."
    ]
    told = {
        it["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
        for it in wired.vms()
    }
    assert told == {wired.get(f"{RESERVATIONS}/mine")["selfLink"]}

    wired.post(f"{RESERVATIONS}/mine/resize", {"specificSkuCount": "3"})
    wired.get_group()
    assert len(wired.vms()) == 3
    assert refused(wired) == []


def test_a_place_is_free_again_when_its_vm_has_gone(wired: Compute) -> None:
    reserve(wired, count=2)
    template(wired)
    wired.group()
    wired.post(f"{ZONE}/instanceGroupManagers/grp/resize", size="1")
    assert free(wired) == ("2", "1")
    name = wired.vms()[0]["name"]
    wired.delete(f"{ZONE}/instances/{name}")  # made anew by its group, in the same place
    assert free(wired) == ("2", "1")


@pytest.mark.parametrize(
    ("made", "asked", "words"),
    [
        ({"machine": "a2-highgpu-2g"}, {}, "is incorrect for the requested resources"),
        ({"specificReservationRequired": False}, {}, "specificReservationRequired is not set"),
        (
            {"owner": "projects/another-one"},
            {"name": "projects/another-one/reservations/mine"},
            "must exist in the same project",
        ),
        ({}, {"name": "mine/reservationBlocks/mine-block-0001"}, "do not exist"),
        ({}, {"name": "projects/proj-a1/reservations/mine/reservationBlocks/b"}, "do not exist"),
        ({}, {"scheduling": BOUND}, "RESERVATION_BOUND"),
        ({"machine": "a3-ultragpu-8g"}, {"machineType": "a3-ultragpu-8g"}, "RESERVATION_BOUND"),
        (
            {"machine": "a3-megagpu-8g", "deploymentType": "DENSE"},
            {"machineType": "a3-megagpu-8g"},
            "RESERVATION_BOUND",
        ),
    ],
)
def test_a_reservation_gives_what_fits_it_alone(
    wired: Compute, made: Json, asked: Json, words: str
) -> None:
    reserve(wired, **made)
    template(wired, **asked)
    wired.group(size=1)
    assert wired.vms() == []
    (said,) = refused(wired)
    assert words in said


@pytest.mark.parametrize("share", ["proj-a1", "123456789012", None])
def test_a_shared_reservation_gives_vms_of_another_project(
    wired: Compute, share: str | None
) -> None:
    settings: Json = {"shareType": "ORGANIZATION"}
    if share:
        settings = {"shareType": "SPECIFIC_PROJECTS", "projectMap": {share: {"projectId": share}}}
    reserve(wired, owner="projects/another-one", shareSettings=settings)
    template(wired, "projects/another-one/reservations/mine")
    wired.group()
    assert len(wired.vms()) == 2


def test_dense_capacity_has_blocks_and_takes_bound_vms(wired: Compute) -> None:
    reserve(wired, "a3-ultragpu-8g", count=300)
    made = wired.get(f"{RESERVATIONS}/mine")
    assert made["deploymentType"] == "DENSE"
    assert made["resourceStatus"]["reservationBlockCount"] == 2
    blocks = f"{RESERVATIONS}/mine/reservationBlocks"
    assert [it["count"] for it in wired.get(blocks)["items"]] == [256, 44]

    template(
        wired,
        "projects/proj-a1/reservations/mine/reservationBlocks/mine-block-0002",
        machineType="a3-ultragpu-8g",
        scheduling=BOUND,
    )
    wired.group()
    second = wired.get(f"{blocks}/mine-block-0002")["resource"]
    assert (second["inUseCount"], second["status"]) == (2, "READY")
    assert second["healthInfo"]["healthStatus"] == "HEALTHY"
    (part,) = wired.get(f"{blocks}/mine-block-0002/reservationSubBlocks")["items"]
    assert part["name"] == "mine-block-0002-subblock-0001"
    one = wired.get(f"{blocks}/mine-block-0002/reservationSubBlocks/{part['name']}")["resource"]
    assert one["inUseCount"] == 2
    told = wired.vms()[0]["resourceStatus"]["reservationConsumptionInfo"]
    assert told["consumedReservationBlock"].endswith("/reservationBlocks/mine-block-0002")
    assert wired.refusal("GET", f"{blocks}/mine-block-0003")["code"] == 404


def test_bound_vms_end_with_their_reservation(wired: Compute) -> None:
    end = wired.now + 3600
    reserve(wired, "a3-megagpu-8g", deploymentType="DENSE", deleteAtTime=rfc3339(end))
    template(wired, machineType="a3-megagpu-8g", scheduling=BOUND)
    wired.group()
    assert len(wired.vms()) == 2
    wired.now = end + 60
    assert wired.vms() == []
    assert wired.refusal("GET", f"{RESERVATIONS}/mine")["code"] == 404


def _bought(api: Compute, start: float, **more: Any) -> None:
    sku = {"totalCount": "2", "instanceProperties": {"machineType": "a3-megagpu-8g"}}
    body = {
        "name": "bought",
        "reservationName": "mine",
        "reservationMode": "CALENDAR",
        "planningStatus": "SUBMITTED",
        "timeWindow": {"startTime": rfc3339(start), "endTime": rfc3339(start + 7 * 86400)},
        "specificSkuProperties": sku,
        **more,
    }
    api.post(f"{ZONE}/futureReservations", body)


def test_what_calendar_mode_sells_is_an_empty_reservation_until_its_time(wired: Compute) -> None:
    wired.rate, start = 1.0, wired.now + 4 * 86400
    _bought(wired, start)
    (future,) = wired.get(f"{ZONE}/futureReservations")["items"]
    assert future["status"] == {"procurementStatus": "PENDING_APPROVAL"}
    assert wired.refusal("GET", f"{RESERVATIONS}/mine")["code"] == 404

    wired.now += 120
    made = wired.get(f"{RESERVATIONS}/mine")
    assert made["specificReservation"]["assuredCount"] == "0"
    (future,) = wired.get(f"{ZONE}/futureReservations")["items"]
    assert future["status"]["procurementStatus"] == "APPROVED"
    assert future["status"]["autoCreatedReservations"] == [made["selfLink"]]
    wired.now += 60
    template(wired, machineType="a3-megagpu-8g", scheduling=BOUND)
    wired.group("early", size=1)
    assert refused(wired, "early") == [
        "Specified reservation 'mine' does not have available resources for the request."
    ]

    wired.now = start + 3600
    assert wired.get(f"{RESERVATIONS}/mine")["specificReservation"]["assuredCount"] == "2"
    assert wired.get(f"{ZONE}/futureReservations/bought")["status"]["fulfilledCount"] == "2"
    wired.group("late", size=1)
    assert refused(wired, "late") == []
    wired.now += 7 * 86400
    assert wired.vms() == []


def test_a_draft_of_a_future_reservation_gets_nothing(wired: Compute) -> None:
    wired.rate = 1.0
    _bought(wired, wired.now + 4 * 86400, planningStatus="DRAFT")
    wired.now += 3600
    future = wired.get(f"{ZONE}/futureReservations/bought")
    assert future["status"] == {"procurementStatus": "DRAFTING"}
    assert wired.refusal("GET", f"{RESERVATIONS}/mine")["code"] == 404


@pytest.mark.parametrize(
    ("properties", "words"),
    [
        ({"scheduling": {**BOUND, "instanceTerminationAction": ""}}, "STOP or DELETE"),
        (
            {"scheduling": {**BOUND, "maxRunDuration": {"seconds": "3600"}}},
            "requires no run duration",
        ),
        ({"scheduling": {**BOUND, "onHostMaintenance": "MIGRATE"}}, "TERMINATE"),
        ({"scheduling": BOUND, "reservationAffinity": {}}, "SPECIFIC_RESERVATION"),
        (
            {
                "scheduling": {
                    "provisioningModel": "SPOT",
                    "preemptible": True,
                    "automaticRestart": False,
                    "onHostMaintenance": "TERMINATE",
                }
            },
            "consume no reservation",
        ),
    ],
)
def test_what_does_not_go_with_a_reservation_is_refused_in_the_template(
    wired: Compute, properties: Json, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        template(wired, **properties)


def test_an_open_reservation_is_used_by_vms_that_name_none_but_not_by_spot(wired: Compute) -> None:
    reserve(wired, specificReservationRequired=False)
    spot = {"provisioningModel": "SPOT", "preemptible": True, "automaticRestart": False}
    wired.template("spot", **{**GPUS, "scheduling": {**GPUS["scheduling"], **spot}})
    wired.group("spot", template="spot")
    assert free(wired) == ("2", "0")
    wired.template(**GPUS)
    wired.group(size=3)
    assert len(wired.vms()) == 5
    assert free(wired) == ("2", "2")


def test_a_plain_reservation_takes_no_placement_policy_and_a_dense_one_does(
    wired: Compute,
) -> None:
    close = {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}
    wired.post(f"{REGION}/resourcePolicies", close)
    reserve(wired)
    template(wired, resourcePolicies=["close"])
    wired.group(size=1)
    assert "placement policy" in refused(wired)[0]

    reserve(wired, "a3-megagpu-8g", name="dense", deploymentType="DENSE")
    wired.delete(f"{ZONE}/instanceGroupManagers/grp")
    wired.delete(f"{PROJECT}/global/instanceTemplates/tpl")
    wired.now += 60
    template(
        wired,
        "dense",
        machineType="a3-megagpu-8g",
        scheduling=BOUND,
        resourcePolicies=["close"],
    )
    wired.group(size=1)
    assert len(wired.vms()) == 1


def test_placement_policies_are_refused_with_what_does_not_take_them(wired: Compute) -> None:
    policies = f"{REGION}/resourcePolicies"
    wired.post(policies, {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}})
    wired.post(policies, {"name": "work", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}})
    workload = {"workloadPolicy": f"{policies}/work"}
    wired.template("n1", machineType="n1-standard-8", resourcePolicies=["close"])
    wired.template("a2", **GPUS)
    wired.template("a4x", machineType="a4x-highgpu-4g", scheduling=GPUS["scheduling"], disks=arm())
    close = {"resourcePolicies": ["close"], "scheduling": GPUS["scheduling"]}
    wired.template("mega", machineType="a3-megagpu-8g", **close)
    cases: list[tuple[str, Json, str]] = [
        ("n1", {}, "do not support the machine type n1-standard-8"),
        ("a2", {"resourcePolicies": workload}, "do not support the machine type a2-highgpu-1g"),
        ("a4x", {}, "need a placement or workload policy"),
        ("mega", {"resourcePolicies": workload}, "exclude each other"),
    ]
    for name, fields, words in cases:
        with pytest.raises(Exception, match=words):
            wired.group(name, template=name, **fields)


def arm() -> list[Json]:
    image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-arm64"
    return [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": image}}]


def test_a_reservation_of_ones_own_has_used_the_quota_and_another_projects_has_not(
    wired: Compute,
) -> None:
    wired.scenarios = frozenset({"quota", "everywhere"})
    reserve(wired)
    template(wired)
    wired.group(size=1)
    assert len(wired.vms()) == 1
    reserve(wired, owner="projects/another-one", shareSettings={"shareType": "ORGANIZATION"})
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": ["projects/another-one/reservations/mine"],
    }
    wired.template("other", **GPUS, reservationAffinity=affinity)
    wired.group("other", size=1, template="other")
    answer = wired.post(f"{ZONE}/instanceGroupManagers/other/listManagedInstances")
    (error,) = answer["managedInstances"][0]["lastAttempt"]["errors"]["errors"]
    assert error["code"] == "QUOTA_EXCEEDED"


def test_no_reservation_is_there_under_its_scenario(wired: Compute) -> None:
    reserve(wired)
    wired.scenarios = frozenset({"no-reservation", "everywhere"})
    assert wired.refusal("GET", f"{RESERVATIONS}/mine")["code"] == 404
    template(wired)
    wired.group(size=1)
    assert refused(wired) == ["Specified reservations [mine] do not exist."]
