"""The check of reservations: what it refuses, what it notes, and what comes of what it reads."""

import json
import threading
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from provision.codes import Code
from provision.errors import CheckError, Problem, StillWaiting
from provision.google.api import Service
from provision.settings.choices import OnlineCheck
from provision.spec.capacity import Mode
from provision.state import reservations as state
from tests.unit.preflight.stand_in import PROJECT, ZONE, Google
from tests.unit.preflight.test_quotas import RECORD
from tests.unit.table import Row, rows

HERE = f"{ZONE}/reservations/mine"
FUTURES = f"{ZONE}/futureReservations"
NAMED = {"reservation_name": "mine"}
SHARED = {"reservation_name": "projects/owner-1/reservations/mine"}
THERE = "projects/owner-1/zones/us-central1-a/reservations/mine"
MEGA = {"vm_type": "a3-megagpu-8g"}
ULTRA = {"vm_type": "a3-ultragpu-8g", "disk_type": "hyperdisk-balanced"}
GKE = {"orchestrator_type": "gke", "disk_size_gb": "100"}

Json = dict[str, Any]

TAKEN: Json = {
    "zone": f"https://x/v1/{ZONE}",
    "machineType": f"https://x/v1/{ZONE}/machineTypes/a2-highgpu-2g",
    "status": "RUNNING",
    "reservationAffinity": {"values": ["mine"]},
}


def document(machine: str = "a2-highgpu-2g", count: int = 2, used: int = 0, **more: Any) -> Json:
    specific = {
        "count": str(count),
        "inUseCount": str(used),
        "instanceProperties": {"machineType": machine},
    }
    return {
        "name": "mine",
        "zone": f"https://x/v1/{ZONE}",
        "status": "READY",
        "specificReservation": specific,
        "specificReservationRequired": True,
        "shareSettings": {"shareType": "LOCAL"},
        **more,
    }


def future(state: str, **more: Any) -> Json:
    """A future reservation that is to make the reservation, or has made it."""
    machine = {"machineType": "a2-highgpu-2g"}
    return {
        "name": "bought",
        "reservationName": "mine",
        "specificReservationRequired": True,
        "specificSkuProperties": {"totalCount": "2", "instanceProperties": machine},
        "timeWindow": {"startTime": "2096-12-24T00:00:00Z", "endTime": "2096-12-31T00:00:00Z"},
        "status": {"procurementStatus": state, "fulfilledCount": "1"},
        **more,
    }


@pytest.fixture
def having(google: Google) -> Google:
    """A Google that has the reservation, and machines for it."""
    google.documents[HERE] = document()
    google.documents[f"{ZONE}/machineTypes/a3-megagpu-8g"] = {"guestCpus": 208}
    return google


def told(problems: list[Problem]) -> str:
    return "\n".join(f"{it.setting}: {it.what}; {it.why}; {it.fix}" for it in problems)


def only(google: Google, settings: dict[str, str], **more: Any) -> Any:
    """The check of reservations alone."""
    others = ",".join(str(it) for it in OnlineCheck if it is not OnlineCheck.RESERVATION)
    return google.check({**settings, "skip_checks": others}, **more)


def test_a_reservation_that_fits_passes_and_is_read_once(having: Google) -> None:
    found = having.check(NAMED)

    assert found.problems == []
    assert found.notes == []
    assert having.asked[HERE] == 1
    group = found.spec.group
    assert (group.mode, group.reservation_read, group.policies) == (Mode.RESERVATION, True, ())


TABLE = """
no @HERE :: @MINE
    -> RESERVATION_NAME: there is no reservation mine in my-project
    | gcloud compute reservations list | projects/<project>/reservations/mine
# In another zone with other machines: both sides are told.
no @HERE; @ELSEWHERE :: @MINE
    -> RESERVATION_NAME: the reservation mine has a3-megagpu-8g in us-central1-c, the settings ask
    for a2-highgpu-2g in us-central1-a | ZONE=us-central1-c and VM_TYPE=a3-megagpu-8g
@HERE + {"status": "INVALID"} :: @MINE -> RESERVATION_NAME: is INVALID
@HERE + {"specificReservationRequired": false} :: @MINE
    -> RESERVATION_NAME: specificReservationRequired is false
@HERE + {"specificReservation": {}} :: @MINE -> RESERVATION_NAME: is not one of VMs
@HERE + {"deleteAtTime": "2026-01-01T00:00:00.000-08:00"} :: @MINE
    -> RESERVATION_NAME: has ended at
@HERE = @OTHER :: @MINE -> RESERVATION_NAME: VM_TYPE=a3-megagpu-8g
@HERE = @ONE :: @MINE instance_count=2 -> RESERVATION_NAME: INSTANCE_COUNT=1
@HERE = @HALF :: @MINE instance_count=2 -> RESERVATION_NAME: has 1 of 2 machines left
@HERE = @USED :: @MINE instance_count=2 -> RESERVATION_NAME: wait until others have ended
@HERE = @NOT_YET :: @MINE -> RESERVATION_NAME: has not begun | SKIP_CHECKS=reservation

# Another project's must be shared.
@THERE + {"shareSettings": {"shareType": "LOCAL"}} :: @THEIRS
    -> RESERVATION_NAME: --add-share-with=my-project
@THERE + {"shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"another": {}}}} ::
    @THEIRS -> RESERVATION_NAME: --add-share-with=my-project
@THERE + {"shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"my-project": {}}}} ::
    @THEIRS --
@THERE + {"shareSettings": {"shareType": "SPECIFIC_PROJECTS", "projectMap": {"42": {}}}} ::
    @THEIRS --
@THERE + {"shareSettings": {"shareType": "ORGANIZATION"}} :: @THEIRS --

# What is worth knowing.
@HERE + {"status": "CREATING"} :: @MINE ~> RESERVATION_NAME: is CREATING
@HERE + {"deleteAtTime": "2097-01-01T00:00:00Z"} :: @MINE
    ~> RESERVATION_NAME: ends at 2097-01-01T00:00:00Z
@HERE + {"resourceStatus": {"healthInfo": @ILL}} :: @MINE ~> RESERVATION_NAME: 2 blocks
@HERE + {"resourceStatus": {"reservationMaintenance": @PLANNED}} :: @MINE
    ~> RESERVATION_NAME: from 2026-12-24T00:00:00Z on

# Blocks and sub-blocks must be there and have machines left.
@DENSE :: @ULTRA reservation_name=mine/@B/b1 instance_count=2
    ~> RESERVATION_NAME: the block b1 as degraded
@DENSE :: @ULTRA reservation_name=mine/@B/b2 instance_count=2
    -> RESERVATION_NAME: the reservation mine has no block b2 | it has: b1
@DENSE :: @ULTRA reservation_name=mine/@B/b1/@S/s1 instance_count=2
    -> RESERVATION_NAME: the sub-block s1 of the reservation mine has 1 of 4 machines left
@DENSE :: @ULTRA reservation_name=mine/@B/b1/@S/s2 instance_count=2
    -> RESERVATION_NAME: no sub-block s2

# What does not go with it.
@HERE = @OTHER; @HERE + {"deploymentType": "DENSE"} :: @MEGA max_run_duration=1d
    -> MAX_RUN_DURATION: remove MAX_RUN_DURATION
@HERE = @OTHER; @HERE + {"deploymentType": "DENSE"} :: @MEGA enable_compact_placement=yes --
@HERE = @OTHER :: @MEGA enable_compact_placement=yes
    -> ENABLE_COMPACT_PLACEMENT: ENABLE_COMPACT_PLACEMENT=no
"""
ELSEWHERE = {**document("a3-megagpu-8g"), "zone": f"https://x/v1/{PROJECT}/zones/us-central1-c"}
NOT_YET = document()
NOT_YET["specificReservation"]["assuredCount"] = "0"
ILL = {"healthStatus": "DEGRADED", "degradedBlockCount": 2}
PART_ILL = {"healthStatus": "DEGRADED", "degradedSubBlockCount": 1}
BLOCK = {"name": "b1", "count": 20, "inUseCount": 3, "healthInfo": PART_ILL}
SUB_BLOCK = {"name": "s1", "count": 4, "inUseCount": 3}
DENSE = {
    HERE: document("a3-ultragpu-8g", count=50, deploymentType="DENSE"),
    f"{HERE}/reservationBlocks/b1": {"resource": BLOCK},
    f"{HERE}/reservationBlocks/b1/reservationSubBlocks/s1": {"resource": SUB_BLOCK},
}
PLANNED = {"upcomingGroupMaintenance": {"windowStartTime": "2026-12-24T00:00:00Z"}}
DOCUMENTS = {
    "OTHER": document("a3-megagpu-8g"),
    "ONE": document(count=1),
    "HALF": document(used=1),
    "USED": document(used=2),
    "NOT_YET": NOT_YET,
    "ILL": ILL,
    "PLANNED": PLANNED,
}


@rows(
    TABLE,
    HERE=HERE,
    THERE=f"{THERE} = {json.dumps(document())}; {THERE}",
    MINE="reservation_name=mine",
    THEIRS="reservation_name=projects/owner-1/reservations/mine",
    MEGA="vm_type=a3-megagpu-8g reservation_name=mine",
    ULTRA="vm_type=a3-ultragpu-8g disk_type=hyperdisk-balanced",
    B="reservationBlocks",
    S="reservationSubBlocks",
    ELSEWHERE=f"{PROJECT}/zones/us-central1-c/reservations/mine = {json.dumps(ELSEWHERE)}",
    DENSE="; ".join(f"{path} = {json.dumps(it)}" for path, it in DENSE.items()),
    **{name: json.dumps(it) for name, it in DOCUMENTS.items()},
)
def test_a_reservation_can_be_used_or_is_refused_with_what_mends_it(
    having: Google, row: Row
) -> None:
    having.have(row.world)
    found = only(having, dict(row.environ))
    row.is_said_by(found.problems, found.notes)


def test_one_that_google_makes_between_two_looks_is_no_other_zones(
    google: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    get = google.get

    def read(service: Service, path: str) -> Json:
        try:
            return get(service, path)
        finally:
            if path == HERE:
                google.documents[HERE] = document()

    monkeypatch.setattr(google, "get", read)
    assert only(google, NAMED).problems == []


def test_all_that_is_wrong_is_told_at_once(having: Google) -> None:
    properties = {
        "machineType": "n1-standard-8",
        "minCpuPlatform": "Intel Skylake",
        "guestAccelerators": [{"acceleratorType": "nvidia-tesla-v100", "acceleratorCount": 2}],
        "localSsds": [{"diskSizeGb": "375", "interface": "NVME"}],
    }
    specific = {"count": "1", "inUseCount": "1", "instanceProperties": properties}
    open_one = {"specificReservation": specific, "specificReservationRequired": False}
    having.documents[HERE] = document() | open_one
    asked = {"vm_type": "n1-standard-8", "gpu_count": "1", "accelerator_type": "nvidia-tesla-t4"}

    said = told(only(having, {**NAMED, **asked}).problems)

    for words in (
        "has 2 x nvidia-tesla-v100, CPUs of Intel Skylake or newer, 1 local SSD to attach",
        "the settings ask for 1 x nvidia-tesla-t4",
        "ACCELERATOR_TYPE=nvidia-tesla-v100 and GPU_COUNT=2",
        "can't be named",
        "0 of 1 machine left",
    ):
        assert words in said


def test_machines_that_the_own_group_takes_during_the_checks_are_not_those_of_others(
    having: Google, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted = threading.Event()
    pages, get = having.pages, having.get

    def listed(method: str, path: str, *more: Any, **named: Any) -> Iterator[Json]:
        found = list(pages(method, path, *more, **named))
        if path.endswith("/aggregated/instances"):
            counted.set()
        return iter(found)

    def read(service: Service, path: str) -> Json:
        if path == HERE:
            counted.wait(10)  # the check of quotas lists the VMs too
            having.instances = [TAKEN, TAKEN]
        return get(service, path)

    monkeypatch.setattr(having, "pages", listed)
    monkeypatch.setattr(having, "get", read)
    having.documents[HERE] = document(count=2, used=2)

    assert having.check({**NAMED, "instance_count": "2"}, record=RECORD).problems == []


def test_what_the_deployment_uses_already_is_not_counted_twice(having: Google) -> None:
    having.documents[HERE] = document(count=2, used=2)
    vm = TAKEN
    having.instances = [vm, vm]
    assert only(having, {**NAMED, "instance_count": "2"}, record=RECORD).problems == []
    (problem,) = only(having, {**NAMED, "instance_count": "3"}, record=RECORD).problems
    assert "the settings ask for 1 more, besides the 2" in problem.what
    assert "INSTANCE_COUNT=2" in problem.fix
    whole = {"values": ["projects/my-project/reservations/mine/reservationBlocks/b"]}
    having.instances = [vm, {**vm, "reservationAffinity": whole}]
    assert only(having, {**NAMED, "instance_count": "2"}, record=RECORD).problems == []
    having.instances = [vm, {**vm, "reservationAffinity": {"values": ["other"]}}]
    assert only(having, {**NAMED, "instance_count": "2"}, record=RECORD).problems != []
    having.instances = [vm, {**vm, "status": "TERMINATED"}]
    assert only(having, {**NAMED, "instance_count": "2"}, record=RECORD).problems != []


def test_one_that_may_not_be_read_is_a_note_and_the_run_goes_on(having: Google) -> None:
    having.refusals["projects/owner-1"] = 403
    found = only(having, SHARED)
    (note,) = found.notes
    assert found.problems == []
    assert "could not look at the reservation mine of owner-1" in note.what
    assert not found.spec.group.reservation_read


@pytest.mark.parametrize(
    ("settings", "more", "bound"),
    [
        ({}, {}, False),
        ({}, {"deploymentType": "DENSE"}, False),
        ({}, {"deleteAtTime": "2097-01-01T00:00:00Z"}, False),
        (MEGA, {}, False),
        (MEGA, {"deploymentType": "DENSE"}, True),
        (MEGA, {"deleteAtTime": "2097-01-01T00:00:00Z"}, False),
        (ULTRA, {}, True),
        ({**ULTRA, **GKE}, {}, True),
    ],
)
def test_machines_are_bound_to_their_reservation_where_they_must_be(
    having: Google, *, settings: dict[str, str], more: Json, bound: bool
) -> None:
    machine = settings.get("vm_type", "a2-highgpu-2g")
    having.documents[HERE] = document(machine, **more)
    found = only(having, {**NAMED, **settings})
    assert found.problems == []
    assert [it.mode.means.bound for it in found.spec.pools if it.reservation] == [bound]


def test_dense_capacity_changes_what_is_made(having: Google) -> None:
    having.documents[HERE] = document("a3-megagpu-8g")
    record = replace(RECORD, **state.recorded(only(having, {**NAMED, **MEGA}).spec))
    having.documents[HERE] |= {"deploymentType": "DENSE"}
    found = only(having, {**NAMED, **MEGA}, record=record).spec
    assert found.group.mode is Mode.RESERVATION_BOUND


def test_a_policy_of_the_reservations_own_takes_the_place_of_ours(having: Google) -> None:
    policies = {"policy": f"https://x/v1/{PROJECT}/regions/us-central1/resourcePolicies/own"}
    having.documents[HERE] = document("a3-megagpu-8g", resourcePolicies=policies)
    found = only(having, {**NAMED, **MEGA, "enable_compact_placement": "yes"})
    assert found.problems == []
    assert (found.spec.group.policies, found.spec.group.compact) == (("own",), False)


def test_what_was_read_once_is_kept_by_a_run_that_may_not_read(having: Google) -> None:
    having.documents[HERE] = document("a3-megagpu-8g", deploymentType="DENSE")
    first = only(having, {**NAMED, **MEGA}).spec
    record = replace(RECORD, **state.recorded(first))
    having.refusals[HERE] = 403

    again = state.resolve(only(having, {**NAMED, **MEGA}, record=record).spec, record)

    assert again.group == first.group
    other = {**MEGA, "reservation_name": "other"}
    assert state.resolve(only(having, other, record=record).spec, record).group.mode is (
        Mode.RESERVATION
    )


def test_how_it_was_bought_tells_whether_machines_are_bound_and_stays_so_once_that_is_gone(
    having: Google,
) -> None:
    having.documents[HERE] = document("a3-megagpu-8g")
    made = {"status": {"autoCreatedReservations": [f"https://x/v1/{HERE}"]}}
    for mode, bound in (("DEFAULT", False), ("CALENDAR", True)):
        bought = future("FULFILLED", **made, reservationMode=mode)
        having.documents[f"{FUTURES}/bought"] = bought
        found = only(having, {**NAMED, **MEGA}).spec
        assert found.group.mode.means.bound is bound

    record = replace(RECORD, **state.recorded(found))
    del having.documents[f"{FUTURES}/bought"]
    assert only(having, {**NAMED, **MEGA}, record=record).spec.group.mode is Mode.RESERVATION_BOUND
    having.refusals[FUTURES] = 403
    unseen = only(having, {**NAMED, **MEGA}, record=record)
    assert unseen.spec.group.mode is Mode.RESERVATION_BOUND
    assert "could not look for a future reservation of mine" in told(unseen.notes)


# What becomes of a reservation that is not there yet, by how far Google is.
WAITS, NEVER, AS_IT_IS = (
    (Code.WAITING, "still to come: from 2096-12-24T00:00:00Z to 2096-12-31"),
    (Code.RESERVATION_UNUSABLE, "has no machines, and gets none"),
    (Code.RESERVATION_UNUSABLE, "there is no reservation mine"),
)
STATES = {
    "DRAFTING": (*NEVER, "nobody has submitted it"),
    "PENDING_APPROVAL": (*WAITS, "has not approved it yet"),
    "PENDING_AMENDMENT_APPROVAL": (*WAITS, "about a change of it"),
    "APPROVED": (*WAITS, "when its time begins"),
    "COMMITTED": (*WAITS, "when its time begins"),
    "PROCURING": (*WAITS, "when its time begins"),
    "PROVISIONING": (*WAITS, "a day after its begin"),
    "FULFILLED": (*AS_IT_IS, "has given all of them"),
    "FAILED_PARTIALLY_FULFILLED": (*AS_IT_IS, "has given 1 of them, and gives no more"),
    "FAILED": (*NEVER, "nothing comes of it"),
    "DECLINED": (*NEVER, "nothing comes of it"),
    "CANCELLED": (*NEVER, "nothing comes of it"),
    "PROCUREMENT_STATUS_UNSPECIFIED": (*AS_IT_IS, "does not know what that means"),
    "A_STATE_OF_NEXT_YEAR": (*AS_IT_IS, "does not know what that means"),
}


@pytest.mark.parametrize("empty", [False, True], ids=["missing", "empty"])
@pytest.mark.parametrize(("status", "expected"), STATES.items())
def test_a_reservation_without_machines_is_waited_for_or_not_by_how_far_google_is(
    google: Google, status: str, expected: tuple[Code, str, str], *, empty: bool
) -> None:
    code, what, why = expected
    google.documents[f"{FUTURES}/bought"] = future(status)
    if empty:
        google.documents[HERE] = document(status="INACTIVE")
        google.documents[HERE]["specificReservation"]["assuredCount"] = "0"
        if (code, what) == AS_IT_IS:
            code, what = Code.RESERVATION_FULL, "has none of its 2 machines yet"

    found = only(google, NAMED)

    (problem,) = found.problems
    assert (problem.code, problem.setting) == (code, "RESERVATION_NAME")
    assert what in problem.what
    assert f"its future reservation bought of 2 machines is {status}: " in problem.why
    assert why in problem.why
    if status == "DRAFTING":
        assert "--planning-status=SUBMITTED" in problem.fix
    error = StillWaiting if code is Code.WAITING else CheckError
    with pytest.raises(error):
        found.require()


def test_more_machines_that_are_still_to_come_are_waited_for_and_no_more_are_not(
    having: Google,
) -> None:
    asked = {**NAMED, "instance_count": "4"}
    having.documents[f"{FUTURES}/early"] = future("FULFILLED", name="early")
    having.documents[f"{FUTURES}/late"] = future("PROVISIONING", name="late")
    (problem,) = only(having, asked).problems
    assert problem.code is Code.WAITING
    assert "its future reservation late" in problem.why

    having.documents[f"{FUTURES}/early"]["timeWindow"] = {}
    for status, why in (
        ("FAILED_PARTIALLY_FULFILLED", "Google has given 1 of them, and gives no more"),
        ("DECLINED", "nothing comes of it"),
    ):
        having.documents[f"{FUTURES}/late"] = future(status, name="late")
        (problem,) = only(having, asked).problems
        assert problem.code is Code.RESERVATION_FULL
        assert "has 2 of 2 machines left, the settings ask for 4" in problem.what
        assert why in problem.why
        assert "INSTANCE_COUNT=2" in problem.fix


def test_what_is_to_come_and_would_not_fit_is_refused_before_it_comes(google: Google) -> None:
    google.documents[f"{FUTURES}/bought"] = future("APPROVED")
    found = only(google, {**NAMED, **MEGA, "instance_count": "3"})
    assert "VM_TYPE=a2-highgpu-2g" in told(found.problems)
    assert "has 2 of 2 machines left, the settings ask for 3" in told(found.problems)
    with pytest.raises(CheckError):
        found.require()


def test_blocks_that_are_still_to_come_are_not_missed(google: Google) -> None:
    google.documents[f"{FUTURES}/bought"] = future("APPROVED")
    google.documents[HERE] = document(deploymentType="DENSE")
    google.documents[HERE]["specificReservation"]["assuredCount"] = "0"
    (problem,) = only(google, {"reservation_name": "mine/reservationBlocks/b1"}).problems
    assert problem.code is Code.WAITING


def test_what_has_ended_never_comes_and_what_nobody_may_see_may_come(google: Google) -> None:
    over = {"timeWindow": {"endTime": "2026-01-08T00:00:00.000-08:00"}}
    google.documents[f"{FUTURES}/bought"] = future("FULFILLED", **over)
    (problem,) = only(google, NAMED).problems
    assert "it has ended at 2026-01-08" in problem.why
    google.refusals[FUTURES] = 403
    found = only(google, NAMED)
    assert "there is no reservation mine" in told(found.problems)
    assert "compute.futureReservations.list" in told(found.notes)


def test_machines_that_calendar_mode_sells_come_with_the_commands_that_buy_them(
    google: Google,
) -> None:
    (problem,) = only(google, {**NAMED, **MEGA, "instance_count": "3"}).problems

    assert "gcloud compute advice calendar-mode --project=my-project --region=us-central1" in (
        problem.fix
    )
    assert "--machine-type=a3-megagpu-8g --vm-count=3 " in problem.fix
    assert problem.fix.endswith(
        "gcloud compute future-reservations create mine --project=my-project"
        " --zone=us-central1-a --machine-type=a3-megagpu-8g --total-count=3"
        " --reservation-mode=CALENDAR --deployment-type=DENSE --require-specific-reservation"
        " --reservation-name=mine --auto-delete-auto-created-reservations --start-time=<START>"
        " --end-time=<END> --planning-status=SUBMITTED"
    )
    (other,) = only(google, NAMED).problems
    assert "calendar" not in other.fix
    (theirs,) = only(google, {**SHARED, **MEGA}).problems
    assert "calendar" not in theirs.fix


def test_the_quota_of_ones_own_is_needed_for_another_projects_plain_reservation(
    having: Google,
) -> None:
    having.limit("NVIDIA_A100_GPUS", 1)
    assert having.check(NAMED).problems == []
    having.documents[THERE] = document(shareSettings={"shareType": "ORGANIZATION"})
    (problem,) = having.check(SHARED).problems
    assert "the quota NVIDIA_A100_GPUS" in problem.what
