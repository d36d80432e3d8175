"""Machines from a reservation: that it is there is found out, and what it is decides."""

from typing import Any

import pytest

from tests.runs.conftest import Rehearsal

ZONE = "us-central1-a"
HERE = f"compute/v1/projects/my-project/zones/{ZONE}"
ASKED = {"RESERVATION_NAME": "mine", "VM_TYPE": "a2-highgpu-1g", "INSTANCE_COUNT": "2"}
NOTHING = {"add": 0, "change": 0, "destroy": 0}


def _vms(rehearsal: Rehearsal) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = rehearsal.google("GET", f"{HERE}/instances").get("items", [])
    return found


@pytest.mark.slow(sibling="tests/runs/test_any_zone.py::test_a_reservation_decides_on_the_zone")
def test_a_reservation_that_does_not_exist_gives_no_vms(rehearsal: Rehearsal) -> None:
    refused = rehearsal.run("Create", **ASKED)
    assert refused.code == 4, refused.said
    assert "there is no reservation mine in my-project" in refused.problem["what"]
    assert rehearsal.writes() == []

    unchecked = rehearsal.run("Create", **ASKED, SKIP_CHECKS="reservation")
    assert unchecked.code == 7, unchecked.said
    assert "Specified reservations [mine] do not exist." in unchecked.problem["why"]
    assert _vms(rehearsal) == []

    rehearsal.reserve("mine", ASKED["VM_TYPE"], 2, ZONE)
    created = rehearsal.run("Create", **ASKED)
    assert created.code == 0, created.said
    told = {
        it["resourceStatus"]["reservationConsumptionInfo"]["consumedReservation"]
        for it in _vms(rehearsal)
    }
    assert [link.rpartition("/")[2] for link in told] == ["mine"]
    again = rehearsal.run("Plan", **ASKED)
    assert (again.code, again.document["changes"]) == (0, NOTHING), again.said
    assert rehearsal.run("Destroy", **ASKED).code == 0


@pytest.mark.slow(sibling="tests/runs/test_any_zone.py::test_a_reservation_decides_on_the_zone")
def test_vms_of_dense_capacity_are_bound_to_it_and_stay_so(rehearsal: Rehearsal) -> None:
    asked = {
        **ASKED,
        "VM_TYPE": "a3-megagpu-8g",
        "RESERVATION_NAME": "mine/reservationBlocks/mine-block-0001",
    }
    rehearsal.reserve("mine", "a3-megagpu-8g", 2, ZONE, deploymentType="DENSE")

    created = rehearsal.run("Create", **asked)
    assert created.code == 0, created.said
    vms = _vms(rehearsal)
    assert {it["scheduling"]["provisioningModel"] for it in vms} == {"RESERVATION_BOUND"}
    assert {it["scheduling"]["instanceTerminationAction"] for it in vms} == {"DELETE"}

    # A run that does not look keeps what the first one read.
    again = rehearsal.run("Plan", **asked, SKIP_CHECKS="reservation")
    assert (again.code, again.document["changes"]) == (0, NOTHING), again.said
    more = rehearsal.run("Plan", **{**asked, "INSTANCE_COUNT": "3"})
    assert "the settings ask for 1 more" in more.problem["what"]
    assert rehearsal.run("Destroy", **asked).code == 0
