from typing import Any

import pytest

from rehearsal.cloud.wire import rfc3339
from tests.rehearsal.cloud.compute.conftest import (
    CLOSE,
    GROUP,
    PROJECT,
    REGION,
    SPOT,
    STANDARD,
    TEMPLATES,
    ZONE,
    Compute,
    Json,
    boot,
)

RESERVATIONS, FUTURE = f"{ZONE}/reservations", f"{ZONE}/futureReservations"
MINE = f"{RESERVATIONS}/mine"
GPUS: Json = {"machineType": "a2-highgpu-1g", "scheduling": STANDARD}
BOUND = {
    "provisioningModel": "RESERVATION_BOUND",
    "instanceTerminationAction": "DELETE",
    "onHostMaintenance": "TERMINATE",
}
MEGA: Json = {"machineType": "a3-megagpu-8g", "scheduling": BOUND}
USED_UP = "Specified reservation 'mine' does not have available resources for the request."


@pytest.fixture(autouse=True)
def everywhere(api: Compute) -> None:
    """All machines in the one zone that the others are in."""
    api.scenarios = frozenset({"everywhere"})


def reserve(
    api: Compute, machine: str = "a2-highgpu-1g", count: int = 2, owner: str = PROJECT, **more: Any
) -> None:
    specific = {"count": str(count), "instanceProperties": {"machineType": machine}}
    body = {"specificReservation": specific, "specificReservationRequired": True, **more}
    api.post(f"{owner}/zones/us-central1-a/reservations", {"name": "mine"} | body)


def template(api: Compute, name: str = "mine", **properties: Any) -> None:
    affinity = {
        "consumeReservationType": "SPECIFIC_RESERVATION",
        "key": "compute.googleapis.com/reservation-name",
        "values": [name],
    }
    tpl = properties.pop("tpl", "tpl")
    api.template(tpl, **{**GPUS, "reservationAffinity": affinity, **properties})


def refused(api: Compute, group: str = "grp") -> list[str]:
    """What the VMs that have not come are told."""
    errors = api.errors(group)
    assert {it["code"] for it in errors} <= {"CONDITION_NOT_MET"}
    return [it["message"] for it in errors]


def free(api: Compute) -> tuple[str, str]:
    specific = api.get(MINE)["specificReservation"]
    return specific["count"], specific["inUseCount"]


def test_a_reservation_is_made_read_listed_and_deleted(api: Compute) -> None:
    reserve(api)
    made = api.get(MINE)
    assert made["status"] == "READY"
    assert made["zone"].endswith("/zones/us-central1-a")
    gpus = [{"acceleratorType": "nvidia-tesla-a100", "acceleratorCount": 1}]
    assert made["specificReservation"] == {
        "count": "2",
        "inUseCount": "0",
        "assuredCount": "2",
        "instanceProperties": {"machineType": "a2-highgpu-1g", "guestAccelerators": gpus},
    }
    assert api.names(RESERVATIONS) == ["mine"]
    places = api.get(f"{PROJECT}/aggregated/reservations")["items"]
    assert [it["name"] for it in places["zones/us-central1-a"]["reservations"]] == ["mine"]
    api.delete(MINE)
    assert api.gone(MINE)


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
    with pytest.raises(Exception, match=words):
        reserve(api, **changed)


@pytest.mark.parametrize("scenario", ["", "no-reservation"])
def test_a_reservation_that_does_not_exist_gives_no_vm(wired: Compute, scenario: str) -> None:
    if scenario:
        reserve(wired)
    wired.scenarios |= {scenario}
    assert wired.gone(MINE)
    template(wired)
    wired.group()
    assert wired.vms() == []
    assert refused(wired) == ["Specified reservations [mine] do not exist."] * 2


def test_vms_use_a_reservation_up_and_tell_so(wired: Compute) -> None:
    reserve(wired, count=2)
    template(wired)
    wired.group(size=3)
    assert len(wired.vms()) == 2
    assert free(wired) == ("2", "2")
    assert refused(wired) == [USED_UP]
    told = [it["resourceStatus"]["reservationConsumptionInfo"] for it in wired.vms()]
    assert {it["consumedReservation"] for it in told} == {wired.get(MINE)["selfLink"]}

    wired.post(f"{MINE}/resize", {"specificSkuCount": "3"})
    wired.get_group()
    assert len(wired.vms()) == 3
    assert refused(wired) == []
    # A place is free again when its VM has gone.
    wired.post(f"{GROUP}/resize", size="1")
    assert free(wired) == ("3", "1")
    wired.delete(f"{ZONE}/instances/{wired.vm()['name']}")  # its group makes it in the same place
    assert free(wired) == ("3", "1")


PATH = "projects/proj-a1/reservations/mine/reservationBlocks/b"
ULTRA, DENSE = {"machineType": "a3-ultragpu-8g"}, {"machineType": "a3-megagpu-8g"}


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
        ({}, {"name": PATH}, "do not exist"),
        ({}, {"scheduling": BOUND}, "RESERVATION_BOUND"),
        ({"machine": "a3-ultragpu-8g"}, ULTRA, "RESERVATION_BOUND"),
        ({"machine": "a3-megagpu-8g", "deploymentType": "DENSE"}, DENSE, "RESERVATION_BOUND"),
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


@pytest.mark.parametrize("share", ["proj-a1", "123456789012", ""])
def test_a_shared_reservation_gives_vms_of_another_project(wired: Compute, share: str) -> None:
    settings: Json = {"shareType": "ORGANIZATION"}
    if share:
        settings = {"shareType": "SPECIFIC_PROJECTS", "projectMap": {share: {"projectId": share}}}
    reserve(wired, owner="projects/another-one", shareSettings=settings)
    template(wired, "projects/another-one/reservations/mine")
    wired.group()
    assert len(wired.vms()) == 2


def test_dense_capacity_has_blocks_and_takes_bound_vms(wired: Compute) -> None:
    reserve(wired, "a3-ultragpu-8g", count=300)
    made = wired.get(MINE)
    assert made["deploymentType"] == "DENSE"
    assert made["resourceStatus"]["reservationBlockCount"] == 2
    blocks = f"{MINE}/reservationBlocks"
    assert [it["count"] for it in wired.get(blocks)["items"]] == [256, 44]

    path = "projects/proj-a1/reservations/mine/reservationBlocks/mine-block-0002"
    template(wired, path, **ULTRA, scheduling=BOUND)
    wired.group()
    second = wired.get(f"{blocks}/mine-block-0002")["resource"]
    assert (second["inUseCount"], second["status"]) == (2, "READY")
    assert second["healthInfo"]["healthStatus"] == "HEALTHY"
    parts = f"{blocks}/mine-block-0002/reservationSubBlocks"
    assert wired.names(parts) == ["mine-block-0002-subblock-0001"]
    one = wired.get(f"{parts}/mine-block-0002-subblock-0001")["resource"]
    assert one["inUseCount"] == 2
    told = wired.vms()[0]["resourceStatus"]["reservationConsumptionInfo"]
    assert told["consumedReservationBlock"].endswith("/reservationBlocks/mine-block-0002")
    assert wired.gone(f"{blocks}/mine-block-0003")


def test_bound_vms_end_with_their_reservation(wired: Compute) -> None:
    end = wired.now + 3600
    reserve(wired, "a3-megagpu-8g", deploymentType="DENSE", deleteAtTime=rfc3339(end))
    template(wired, **MEGA)
    wired.group()
    assert len(wired.vms()) == 2
    wired.now = end + 60
    assert wired.vms() == []
    assert wired.gone(MINE)


def _bought(api: Compute, start: float, status: str = "SUBMITTED") -> None:
    sku = {"totalCount": "2", "instanceProperties": {"machineType": "a3-megagpu-8g"}}
    body = {
        "name": "bought",
        "reservationName": "mine",
        "reservationMode": "CALENDAR",
        "planningStatus": status,
        "timeWindow": {"startTime": rfc3339(start), "endTime": rfc3339(start + 7 * 86400)},
        "specificSkuProperties": sku,
    }
    api.post(FUTURE, body)


def test_what_calendar_mode_sells_is_an_empty_reservation_until_its_time(wired: Compute) -> None:
    wired.rate, start = 1.0, wired.now + 4 * 86400
    _bought(wired, start)
    (future,) = wired.get(FUTURE)["items"]
    assert future["status"] == {"procurementStatus": "PENDING_APPROVAL"}
    assert wired.gone(MINE)

    wired.now += 120
    made = wired.get(MINE)
    assert made["specificReservation"]["assuredCount"] == "0"
    (future,) = wired.get(FUTURE)["items"]
    assert future["status"]["procurementStatus"] == "APPROVED"
    assert future["status"]["autoCreatedReservations"] == [made["selfLink"]]
    wired.now += 60
    template(wired, **MEGA)
    wired.group("early", size=1)
    assert refused(wired, "early") == [USED_UP]

    wired.now = start + 3600
    assert wired.get(MINE)["specificReservation"]["assuredCount"] == "2"
    assert wired.get(f"{FUTURE}/bought")["status"]["fulfilledCount"] == "2"
    wired.group("late", size=1)
    assert refused(wired, "late") == []
    wired.now += 7 * 86400
    assert wired.vms() == []


def test_a_draft_of_a_future_reservation_gets_nothing(wired: Compute) -> None:
    wired.rate = 1.0
    _bought(wired, wired.now + 4 * 86400, "DRAFT")
    wired.now += 3600
    assert wired.get(f"{FUTURE}/bought")["status"] == {"procurementStatus": "DRAFTING"}
    assert wired.gone(MINE)


REFUSED: dict[str, Json] = {
    "STOP or DELETE": {"scheduling": {**BOUND, "instanceTerminationAction": ""}},
    "requires no run duration": {"scheduling": {**BOUND, "maxRunDuration": {"seconds": "3600"}}},
    "TERMINATE": {"scheduling": {**BOUND, "onHostMaintenance": "MIGRATE"}},
    "SPECIFIC_RESERVATION": {"scheduling": BOUND, "reservationAffinity": {}},
    "consume no reservation": {"scheduling": SPOT},
}


@pytest.mark.parametrize("words", REFUSED)
def test_what_does_not_go_with_a_reservation_is_refused_in_the_template(
    wired: Compute, words: str
) -> None:
    with pytest.raises(Exception, match=words):
        template(wired, **REFUSED[words])


def test_an_open_reservation_is_used_by_vms_that_name_none_but_not_by_spot(wired: Compute) -> None:
    reserve(wired, specificReservationRequired=False)
    wired.template("spot", **{**GPUS, "scheduling": SPOT})
    wired.group("spot", template="spot")
    assert free(wired) == ("2", "0")
    wired.template(**GPUS)
    wired.group(size=3)
    assert len(wired.vms()) == 5
    assert free(wired) == ("2", "2")


def test_a_plain_reservation_takes_no_placement_policy_and_a_dense_one_does(wired: Compute) -> None:
    wired.post(f"{REGION}/resourcePolicies", CLOSE)
    reserve(wired)
    template(wired, resourcePolicies=["close"])
    wired.group(size=1)
    assert "placement policy" in refused(wired)[0]

    reserve(wired, "a3-megagpu-8g", name="dense", deploymentType="DENSE")
    wired.delete(GROUP)
    wired.delete(f"{TEMPLATES}/tpl")
    wired.now += 60
    template(wired, "dense", **MEGA, resourcePolicies=["close"])
    wired.group(size=1)
    assert len(wired.vms()) == 1


def test_placement_policies_are_refused_with_what_does_not_take_them(wired: Compute) -> None:
    policies = f"{REGION}/resourcePolicies"
    wired.post(policies, CLOSE)
    wired.post(policies, {"name": "work", "workloadPolicy": {"type": "HIGH_THROUGHPUT"}})
    workload: Json = {"resourcePolicies": {"workloadPolicy": f"{policies}/work"}}
    close: Json = {"resourcePolicies": ["close"]}
    image = "projects/ubuntu-os-cloud/global/images/family/ubuntu-2404-lts-arm64"
    arm: Json = {"disks": boot(image), "scheduling": STANDARD}
    words = "do not support the machine type"
    for machine, properties, fields, said in (
        ("n1-standard-8", close, {}, f"{words} n1-standard-8"),
        ("a2-highgpu-1g", {"scheduling": STANDARD}, workload, f"{words} a2-highgpu-1g"),
        ("a4x-highgpu-4g", arm, {}, "need a placement or workload policy"),
        ("a3-megagpu-8g", close | {"scheduling": STANDARD}, workload, "exclude each other"),
    ):
        wired.template(machine, machineType=machine, **properties)
        with pytest.raises(Exception, match=said):
            wired.group(machine, template=machine, **fields)


def test_a_reservation_of_ones_own_has_used_the_quota_and_another_projects_has_not(
    wired: Compute,
) -> None:
    wired.scenarios = frozenset({"quota", "everywhere"})
    reserve(wired)
    template(wired)
    wired.group(size=1)
    assert len(wired.vms()) == 1
    reserve(wired, owner="projects/another-one", shareSettings={"shareType": "ORGANIZATION"})
    template(wired, "projects/another-one/reservations/mine", tpl="other")
    wired.group("other", size=1, template="other")
    (error,) = wired.errors("other")
    assert error["code"] == "QUOTA_EXCEEDED"
