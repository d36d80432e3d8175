"""Calendar mode: Plan shows what a person can buy, and what they bought is waited for and used."""

import contextlib
import time

import pytest

from rehearsal import session
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import rfc3339
from tests.runs import rights
from tests.runs.conftest import Rehearsal, Rehearse

A, B = "us-central1-a", "us-central1-b"
RATE = 0.004
MACHINES = {"VM_TYPE": "a4-highgpu-8g", "INSTANCE_COUNT": "2", "NETWORK_CONFIG": "new_network"}
QUEUED = {**MACHINES, "ZONE": B, "ENABLE_FLEX_START": "yes", "MAX_RUN_DURATION": "7d"}
RESERVED = {**MACHINES, "ZONE": f"{A},{B}", "RESERVATION_NAME": "mine"}
NOTHING = {"add": 0, "change": 0, "destroy": 0}


@pytest.fixture
def rehearsal(rehearse: Rehearse) -> Rehearsal:
    return rehearse(rate=RATE)


def _buy(rehearsal: Rehearsal) -> None:
    """Buy as a person does, with gcloud: by Google's own API."""
    start = time.time() + 4 * 86400 * RATE
    sku = {"totalCount": "2", "instanceProperties": {"machineType": MACHINES["VM_TYPE"]}}
    body = {
        "name": "mine",
        "reservationName": "mine",
        "reservationMode": "CALENDAR",
        "deploymentType": "DENSE",
        "planningStatus": "SUBMITTED",
        "specificReservationRequired": True,
        "autoDeleteAutoCreatedReservations": True,
        "timeWindow": {"startTime": rfc3339(start), "endTime": rfc3339(start + 7 * 86400)},
        "specificSkuProperties": sku,
    }
    place = f"compute/v1/projects/{rehearsal.settings['PROJECT_ID']}/zones/{B}"
    rehearsal.google("POST", f"{place}/futureReservations", body)


def _begin(rehearsal: Rehearsal) -> None:
    """Let what is bought be approved, and its time begin."""
    database, kind = Database(rehearsal.folder / session.DATABASE), "compute/futureReservations"
    with contextlib.closing(database), database.transaction() as store:
        for name, found in list(store.list(kind)):
            window = {**found["timeWindow"], "startTime": "2026-01-01T00:00:00Z"}
            store.put(kind, name, {**found, "_asked": 0.0, "timeWindow": window})


def test_a_plan_says_when_where_and_for_how_much_and_the_command_that_buys(
    rehearsal: Rehearsal,
) -> None:
    planned = rehearsal.run("Plan", **QUEUED)

    assert planned.code == 0, planned.said
    (note,) = (it for it in planned.document["notes"] if "calendar" in it["what"])
    assert "Google sells 2 x a4-highgpu-8g for that time beforehand" in note["what"]
    assert f"in {B} from " in note["what"]
    assert note["what"].endswith("for ≈ $30,314 in all, by list price")  # 2 x 168 h x $90.22
    (start, end) = note["what"].partition(" from ")[2].partition(",")[0].split(" to ")
    assert f" --start-time={start} --end-time={end} " in note["fix"]
    assert f"RESERVATION_NAME=np-calendar, ZONE={B}" in note["fix"]
    role = rehearsal.run("Validate", "--role", **QUEUED).document["role"]
    assert rights.of(rehearsal.requests()) <= set(role)

    # Nobody has asked for advice: where there is none, nothing is said.
    rehearsal.stock({"zones": "*", "machines": 1, "way": "CALENDAR"})
    none = rehearsal.run("Plan", **QUEUED)
    assert none.code == 0, none.said
    assert "calendar" not in none.said


def test_what_is_bought_is_waited_for_whatever_zones_are_named(rehearsal: Rehearsal) -> None:
    _buy(rehearsal)
    for action in ("Validate", "Plan", "Create"):
        waiting = rehearsal.run(action, **RESERVED)
        assert waiting.code == 75, waiting.said
        assert waiting.problem["code"] == "waiting"
        assert "machines of the reservation mine are still to come" in waiting.problem["what"]
    assert rehearsal.objects() == set()


@pytest.mark.slow(sibling="::test_what_is_bought_is_waited_for_whatever_zones_are_named")
@pytest.mark.parametrize("kind", ["none", "gke"])
def test_what_is_bought_is_used_once_its_time_has_begun(rehearsal: Rehearsal, kind: str) -> None:
    rehearsal.settings |= RESERVED
    if kind == "gke":
        del rehearsal.settings["NETWORK_CONFIG"]
        rehearsal.settings["ORCHESTRATOR_TYPE"] = "gke"
    _buy(rehearsal)
    waiting = rehearsal.run("Create")
    assert waiting.code == 75, waiting.said
    _begin(rehearsal)

    made = rehearsal.run("Create")

    assert made.code == 0, made.said
    status = rehearsal.run("Status").document["status"]
    (pool,) = (it for it in status["machines"] if "system" not in it["name"])
    assert (pool["zone"], pool["ready"]) == (B, 2)
    assert pool["mode"] == "reservation_bound"
    same = rehearsal.run("Create")
    assert same.document["changes"] == NOTHING
    gone = rehearsal.run("Destroy", "--yes")
    assert gone.code == 0, gone.said
    (left,) = (line for line in rehearsal.resources() if "/futureReservations/" in line)
    assert f"/{B}/" in left
    role = rehearsal.run("Validate", "--role").document["role"]
    assert rights.of(rehearsal.requests()) - set(role) == {"compute.futureReservations.create"}
