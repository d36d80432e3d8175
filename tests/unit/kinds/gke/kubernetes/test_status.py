from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from provision.documents.gke_status import JobState
from provision.kinds.gke.kubernetes import reasons, status
from provision.time.clock import Clock

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.objects import Object


def _request(*conditions: str) -> Object:
    """A request with conditions: type, then status, reason and message unless they are usual."""
    found = []
    for text in conditions:
        kind, status, reason, message = (*text.split(" ", 3), "", "", "")[:4]
        told = {"type": kind, "status": status or "True", "reason": reason, "message": message}
        found.append(told)
    return {"metadata": {"name": "job-train-1a2b3-dws-prov-1"}, "status": {"conditions": found}}


QUOTA = "Provisioned False QuotaExceeded"


@pytest.mark.parametrize(
    ("conditions", "state", "advice"),
    [
        ("", "pending", ""),
        ("Accepted", "accepted", ""),
        ("Accepted; Provisioned False NotProvisioned", "waiting", "stays in Google's queue"),
        (
            "Provisioned False ResourcePoolExhausted Expected time is indefinite.",
            "waiting",
            "the request stays in Google's queue: wait, or try another zone, region or machine",
        ),
        (
            f"{QUOTA} Quota 'NVIDIA_P4_GPUS' exceeded. Limit: 1.0 in region europe-west4.",
            "waiting",
            "request a higher quota NVIDIA_P4_GPUS of europe-west4, now 1,",
        ),
        (
            f"{QUOTA} Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally.",
            "waiting",
            "request a higher quota GPUS_ALL_REGIONS, now 0,",
        ),
        (f"{QUOTA} No more of it.", "waiting", "request a higher quota in the console"),
        ("Provisioned True Provisioned", "provisioned", "within 10 minutes"),
        ("Provisioned; BookingExpired", "expired", "its nodes stay as long as pods run on them"),
        (
            "Provisioned; BookingExpired; CapacityRevoked True CapacityRevoked reclaimed",
            "ended",
            "more time in the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds",
        ),
        ("Accepted False NotAccepted Provisioning Request wasn't accepted.", "pending", ""),
        (
            "Accepted False NodepoolSizeReached Max nodepool size reached",
            "pending",
            "raise GKE_MAX_NODE_COUNT",
        ),
        ("Accepted; Failed", "failed", "submit it again"),
    ],
)
def test_q13_every_state_of_a_request_has_its_advice(
    conditions: str, state: str, advice: str
) -> None:
    found = status.request(_request(*filter(None, conditions.split("; "))))
    assert found.state == state
    assert advice in found.advice
    assert bool(advice) == bool(found.advice)


@pytest.mark.parametrize(
    ("job", "advice"),
    [(JobState.PENDING, "Kueue tries again"), (JobState.GIVEN_UP, "no more attempts")],
)
def test_after_the_last_attempt_nobody_is_told_to_wait_for_another(
    job: JobState, advice: str
) -> None:
    assert advice in status.request(_request("Failed True Odd"), job).advice


def test_a_reason_that_nobody_knows_is_told_as_it_is() -> None:
    found = status.request(_request("Provisioned False Novel new words"))
    assert (found.reason, found.message, found.advice) == ("Novel", "new words", "")
    assert found.waits_for == "all its machines at once"


BEGAN = "2026-11-22T08:00:00Z"


@pytest.mark.parametrize(
    ("name", "holds", "parameters", "until", "then"),
    [
        ("Accepted", "False", {}, "2026-11-22T07:02:00Z", "it fails"),
        ("Accepted", "True", {"ValidUntilSeconds": "7200"}, "2026-11-22T09:00:00Z", "place"),
        ("Accepted", "True", {"ValidUntilSeconds": "-"}, None, ""),
        ("Provisioned", "True", {}, "2026-11-22T08:10:00Z", "nodes without pods are removed"),
        ("Failed", "True", {}, None, ""),
    ],
)
def test_a_request_says_since_when_and_until_when_it_is_so(
    name: str, holds: str, parameters: dict[str, str], until: str | None, then: str
) -> None:
    thing = _request(f"{name} {holds}")
    thing["metadata"]["creationTimestamp"] = "2026-11-22T07:00:00Z"
    thing["spec"] = {"parameters": parameters}
    thing["status"]["conditions"][0]["lastTransitionTime"] = BEGAN
    found = status.request(thing)
    assert found.since == (BEGAN if holds == "True" else "2026-11-22T07:00:00Z")
    assert found.until == until
    assert then in found.then


@pytest.mark.parametrize(("run", "end"), [("3600", "22T09:00"), (None, "29T08:00")])
def test_the_nodes_of_a_job_that_runs_go_when_its_request_says(run: str | None, end: str) -> None:
    thing = _request("Provisioned", "BookingExpired")
    thing["spec"] = {"parameters": {"maxRunDurationSeconds": run} if run else {}}
    thing["status"]["conditions"][0]["lastTransitionTime"] = BEGAN
    for job in (JobState.STARTING, JobState.RUNNING):
        found = status.request(thing, job)
        assert (found.state, found.until) == ("running", f"2026-11-{end}:00Z")
        assert found.then == "Google deletes its nodes"
    # Time runs faster in a rehearsal.
    hasty = status.request(thing, JobState.RUNNING, Clock(1 / 3600))
    assert hasty.until is not None
    assert hasty.until < "2026-11-22T08:04:00Z"


@pytest.mark.parametrize(
    ("conditions", "job", "state", "advice"),
    [
        ("Accepted; Provisioned", JobState.RUNNING, "running", ""),
        ("Provisioned; BookingExpired True BookingExpired x", JobState.RUNNING, "running", ""),
        ("Provisioned; BookingExpired", JobState.FINISHED, "done", ""),
        ("Provisioned; CapacityRevoked True  reclaimed", JobState.FINISHED, "done", ""),
        ("Provisioned; BookingExpired", JobState.PENDING, "expired", "submit the job again"),
    ],
)
def test_the_end_of_a_booking_or_of_a_run_is_a_failure_only_where_no_job_has_run(
    conditions: str, job: JobState, state: str, advice: str
) -> None:
    found = status.request(_request(*conditions.split("; ")), job)
    assert found.state == state
    assert advice in found.advice
    if not advice:
        told = (found.reason, found.message, found.waits_for, found.advice)
        assert told == ("", "", "", "")


QUOTA_WORDS = "Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 1.0 in region us-central1."
REST = "Nodepool in backoff after failed scale-up, affected nodepools: np-t4"
REASONS = """
NodepoolSizeReached ClusterNodeLimitExceeded OutOfResources NodepoolInBackoff NodepoolNotReady
ProvisioningRequestNotSchedulableInNodepool ProvisioningRequestSingleZoneInfeasible
NoQueuedNodepoolAvailable CannotExecuteObtainabilityStrategy MissingPodTemplates
ObtainabilityStrategyAndZoneIncompatible MultiplePodSetsUnsupported InvalidArgument
InvalidArgumentMaxRunDurationParseError UnsupportedOperation QueuingInfeasibleNoCapacity
ZoneNotSupported QuotaExceeded InvalidMachineType InvalidGPUType PermissionDenied ConditionNotMet
InvalidReservation ReservationNotFound ReservationNotReady ReservationCapacityExceeded
ReservationIncompatible InternalErrorFailedToQueue ResourcePoolExhausted IPSpaceExhausted
PermissionsError VMExternalIPAccessPolicyConstraint LimitExceeded InternalError WaitTimeExceeded
InternalErrorResizeRequestFailed InternalErrorResizeRequestGotCancelled
InternalErrorResizeRequestWasBeingDeleted InternalErrorResizeRequestWasCreating
MissingResizeRequest DuplicateResizeRequestName InternalErrorUnexpectedState
InternalErrorSkippedNodepool CapacityRevoked InternalErrorMissingBulkMig
InternalErrorBulkMigNotInProgress InternalErrorBulkMigUnexpectedState InternalErrorMissingDetails
NotProvisioned
"""


@pytest.mark.parametrize("reason", REASONS.split())
def test_every_reason_of_the_autoscaler_says_what_a_person_can_do(reason: str) -> None:
    found = status.request(_request(f"Failed True {reason} no words"))
    assert found.state == "failed"
    assert found.advice
    assert "tries again" not in found.advice
    # What is internal to Google does not say what was lacking.
    assert found.waits_for or reason.startswith(("InternalError", "Duplicate"))


def test_every_known_reason_is_one_of_the_autoscalers_source() -> None:
    states = {"NotAccepted"}
    assert {it.word for it in reasons.REASONS} == {*REASONS.split(), *states}


@pytest.mark.parametrize(
    ("word", "message", "lacks"),
    [
        ("InternalErrorFailedToQueue", QUOTA_WORDS, "quota"),
        ("", "Max nodepool size reached, affected nodepools: p", "room in the pool"),
        ("NodepoolSizeReached", "", "room in the pool"),
        ("Novel", "Max nodepool size reached", ""),
    ],
)
def test_what_a_request_lacks_is_told_by_reason_or_message(
    word: str, message: str, lacks: str
) -> None:
    assert reasons.lacks(word, message) == lacks


def _given_up(message: str) -> Object:
    words = f'The workload is deactivated due to AdmissionCheck in Rejected state: "c" ({message})'
    evicted = {"type": "Evicted", "status": "True", "message": words}
    return {
        "metadata": {"name": "work", "uid": "1"},
        "spec": {"active": False},
        "status": {"conditions": [evicted]},
    }


def test_a_job_that_is_given_up_while_its_pool_rests_is_told_the_failure_before() -> None:
    found = status.of_workload(_given_up(REST), said_before=[QUOTA_WORDS, REST])
    assert found.message.endswith(f"{REST}); the failure before: {QUOTA_WORDS}")
    assert "request a higher quota NVIDIA_T4_GPUS of us-central1, now 1" in found.advice
    alone = status.of_workload(_given_up(REST), said_before=[REST])
    assert "the cause is the failure before" in alone.advice


def test_until_it_is_evicted_a_job_that_is_given_up_tells_why_it_will_be() -> None:
    thing = _given_up(REST)
    before = {"type": "Evicted", "status": "False", "message": "Previously: another attempt"}
    words = f'AdmissionCheck in Rejected state: "c" ({QUOTA_WORDS})'
    target = {"type": "DeactivationTarget", "status": "True", "message": words}
    thing["status"]["conditions"] = [before, target]
    found = status.of_workload(thing)
    assert found.message == words
    assert "request a higher quota NVIDIA_T4_GPUS" in found.advice


RETRY = "AdmissionCheck in Retry"
UPDATED = "Admission check c updated state from Pending to"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (f'Evicted due to {RETRY} state: "c" (Retrying after failure: {QUOTA_WORDS})', QUOTA_WORDS),
        (f'due to {RETRY} state: "c" (Retrying after failure: pool (why))', "pool (why)"),
        (f"{UPDATED} Retry with message: Retrying after failure: pool (why)", "pool (why)"),
        (f"{UPDATED} Rejected with message: {REST}", REST),
        (f"{UPDATED} Ready with message: provisioned", ""),
        ("The ClusterQueue is stopped", ""),
    ],
)
def test_the_autoscalers_words_are_found_in_kueues(words: str, message: str) -> None:
    assert reasons.passed_on(words) == message
    assert status.failure(f"{words}; the failure before: that one") == "that one"


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Invalid value for field 'resource.requestedRunDuration.seconds': '605700'.", True),
        ("Specified maxRunDuration is too short. Minimum value is equal to 10 minutes.", True),
        ("Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 0.0 in region us-central1.", True),
        ("Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 8.0 in region us-central1.", False),
        ("Required 'compute.instances.create' permission for 'projects/p'", True),
        ("The user does not have access to service account 'np-nodes@p'. Required", False),
        ("Constraint constraints/compute.vmExternalIpAccess violated for project 1.", True),
        ("The resource 'projects/p/zones/z/instanceGroupManagers/m' was not found", False),
        ("Max nodepool size reached, affected nodepools: gke-grp", False),
        ("The zone 'z' does not have enough resources available", False),
        ("", False),
    ],
)
def test_a_refusal_that_no_other_request_changes_is_known(message: str, *, expected: bool) -> None:
    assert reasons.is_for_ever(message) is expected


def _workload(conditions: str, *, active: bool = True, check: str = "") -> Object:
    """A workload with conditions, of which those with a minus do not hold."""
    return {
        "metadata": {
            "name": "job-train-1a2b3",
            "ownerReferences": [{"kind": "Job", "name": "train"}],
        },
        "spec": {"active": active},
        "status": {
            "admissionChecks": [{"message": check}] if check else [],
            "conditions": [
                {"type": it.strip("-"), "status": str(it[0] != "-"), "message": f"about {it}"}
                for it in conditions.split()
            ],
        },
    }


def test_a_workload_is_named_after_the_job_that_people_know() -> None:
    assert status.of_workload(_workload("")).name == "Job train"


@pytest.mark.parametrize(
    ("thing", "state", "message"),
    [
        (_workload("-QuotaReserved"), "pending", "about -QuotaReserved"),
        (_workload("QuotaReserved", check="no machines"), "waiting for nodes", "no machines"),
        (_workload("QuotaReserved Admitted PodsReady"), "running", "about Admitted"),
        (_workload("QuotaReserved Admitted -PodsReady"), "starting", "about -PodsReady"),
        (_workload("QuotaReserved Admitted Evicted"), "pending", "about Evicted"),
        (_workload("Admitted Finished"), "finished", "about Finished"),
        (_workload("Evicted", active=False), "given up", "about Evicted"),
    ],
)
def test_a_workload_says_where_it_is(thing: Object, state: str, message: str) -> None:
    found = status.of_workload(thing)
    assert (found.state, found.message) == (state, message)
    assert bool(found.advice) == (state == "given up")
