import pytest

from provision.documents.gke_status import JobState
from provision.kinds.gke.kubernetes import kueue, reasons, status
from provision.kinds.gke.kubernetes.objects import Object
from provision.time.clock import Clock
from tests.table import cases


def _request(*conditions: str) -> Object:
    """A request with conditions: type, then status, reason and message unless they are usual."""
    found = []
    for text in conditions:
        kind, status, reason, message = (*text.split(" ", 3), "", "", "")[:4]
        told = {"type": kind, "status": status or "True", "reason": reason, "message": message}
        found.append(told)
    return {"metadata": {"name": "job-train-1a2b3-dws-prov-1"}, "status": {"conditions": found}}


QUOTA = "Provisioned False QuotaExceeded"


@cases("""
conditions | state | advice
- | pending | -
Accepted | accepted | -
Accepted; Provisioned False NotProvisioned | waiting | stays in Google's queue
Provisioned False ResourcePoolExhausted Expected time is indefinite. | waiting | the request stays
    in Google's queue: wait, or try another zone, region or machine
Provisioned False QuotaExceeded Quota 'NVIDIA_P4_GPUS' exceeded. Limit: 1.0 in region europe-west4.
    | waiting | request a higher quota NVIDIA_P4_GPUS of europe-west4, now 1,
Provisioned False QuotaExceeded Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally. | waiting
    | request a higher quota GPUS_ALL_REGIONS, now 0,
Provisioned False QuotaExceeded No more of it. | waiting | request a higher quota in the console
Provisioned True Provisioned | provisioned | within 10 minutes
Provisioned; BookingExpired | expired | its nodes stay as long as pods run on them
Provisioned; BookingExpired; CapacityRevoked True CapacityRevoked reclaimed | ended | more time in
    the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds
Accepted False NotAccepted Provisioning Request wasn't accepted. | pending | -
Accepted False NodepoolSizeReached Max nodepool size reached | pending | raise GKE_MAX_NODE_COUNT
Accepted; Failed | failed | submit it again
""")
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
def test_after_the_last_attempt_nobody_waits_for_another(job: JobState, advice: str) -> None:
    assert advice in status.request(_request("Failed True Odd"), job).advice


BEGAN = "2026-11-22T08:00:00Z"


@cases("""
name | holds | parameters | until | then
Accepted | False | {} | 2026-11-22T07:02:00Z | it fails
Accepted | True | {ValidUntilSeconds: "7200"} | 2026-11-22T09:00:00Z | place
Accepted | True | {ValidUntilSeconds: "-"} | null | -
Provisioned | True | {} | 2026-11-22T08:10:00Z | nodes without pods are removed
Failed | True | {} | null | -
""")
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


@cases("""
conditions                                             | job      | state   | advice
Accepted; Provisioned                                  | running  | running | -
Provisioned; BookingExpired True BookingExpired x      | running  | running | -
Provisioned; BookingExpired                            | finished | done    | -
Provisioned; CapacityRevoked True CapacityRevoked gone | finished | done    | -
Provisioned; BookingExpired                            | pending  | expired | submit the job again
""")
def test_the_end_of_a_booking_or_of_a_run_is_a_failure_only_where_no_job_has_run(
    conditions: str, job: str, state: str, advice: str
) -> None:
    found = status.request(_request(*conditions.split("; ")), JobState(job))
    assert found.state == state
    assert advice in found.advice
    told = {found.reason, found.message, found.waits_for, found.advice}
    assert advice or told == {""}


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
    assert reasons.REASONS.keys() == {*REASONS.split(), *states}
    found = status.request(_request("Provisioned False Novel new words"))
    assert (found.reason, found.message, found.advice) == ("Novel", "new words", "")
    assert found.waits_for == "all its machines at once"


def test_what_a_request_lacks_is_told_by_reason_or_message() -> None:
    full = "Max nodepool size reached, affected nodepools: p"
    assert reasons.lacks("InternalErrorFailedToQueue", QUOTA_WORDS) == "quota"
    assert reasons.lacks("", full) == reasons.lacks("NodepoolSizeReached", "") == "room in the pool"
    assert reasons.lacks("Novel", full) == ""


def _given_up(message: str) -> Object:
    words = f'The workload is deactivated due to AdmissionCheck in Rejected state: "c" ({message})'
    evicted = {"type": "Evicted", "status": "True", "message": words}
    return {
        "metadata": {"name": "work", "uid": "1"},
        "spec": {"active": False},
        "status": {"conditions": [evicted]},
    }


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


@cases("""
message                                                                      | expected
Invalid value for field 'resource.requestedRunDuration.seconds': '605700'.   | true
Specified maxRunDuration is too short. Minimum value is equal to 10 minutes. | true
Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 0.0 in region us-central1.          | true
Quota 'NVIDIA_T4_GPUS' exceeded.  Limit: 8.0 in region us-central1.          | false
Required 'compute.instances.create' permission for 'projects/p'              | true
The user does not have access to service account 'np-nodes@p'. Required      | false
Constraint constraints/compute.vmExternalIpAccess violated for project 1.    | true
The resource 'projects/p/zones/z/instanceGroupManagers/m' was not found      | false
Max nodepool size reached, affected nodepools: gke-grp                       | false
The zone 'z' does not have enough resources available                        | false
-                                                                            | false
""")
def test_a_refusal_that_no_other_request_changes_is_known(message: str, *, expected: bool) -> None:
    assert reasons.is_for_ever(message) is expected


def _workload(conditions: str, *, active: bool = True, check: str = "") -> Object:
    """A workload with conditions, of which those with a minus do not hold."""
    owner = {"kind": "Job", "name": "train"}
    told = [
        {"type": it.strip("-"), "status": str(it[0] != "-"), "message": f"about {it}"}
        for it in conditions.split()
    ]
    checks = [{"message": check}] if check else []
    return {
        "metadata": {"name": "job-train-1a2b3", "ownerReferences": [owner]},
        "spec": {"active": active},
        "status": {"admissionChecks": checks, "conditions": told},
    }


def test_a_job_that_is_given_up_tells_why_and_the_failure_before() -> None:
    assert status.of_workload(_workload("")).name == "Job train"
    found = status.of_workload(_given_up(REST), said_before=[QUOTA_WORDS, REST])
    assert found.message.endswith(f"{REST}); the failure before: {QUOTA_WORDS}")
    assert "request a higher quota NVIDIA_T4_GPUS of us-central1, now 1" in found.advice
    alone = status.of_workload(_given_up(REST), said_before=[REST])
    assert "the cause is the failure before" in alone.advice
    thing = _given_up(REST)
    before = {"type": "Evicted", "status": "False", "message": "Previously: another attempt"}
    words = f'AdmissionCheck in Rejected state: "c" ({QUOTA_WORDS})'
    target = {"type": "DeactivationTarget", "status": "True", "message": words}
    thing["status"]["conditions"] = [before, target]
    found = status.of_workload(thing)
    assert found.message == words
    assert "request a higher quota NVIDIA_T4_GPUS" in found.advice


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


@pytest.mark.parametrize("pool", ["a", "b"])
def test_a_job_for_a_pool_whose_nodes_are_chosen_hears_what_it_lacks_and_no_other(
    pool: str,
) -> None:
    thing = _workload("-QuotaReserved")
    template = {"spec": {"nodeSelector": {kueue.POOL_LABEL: pool}}}
    thing["spec"]["podSets"] = [{"template": template}, {"template": {"spec": {}}}]
    said = 'couldn\'t assign flavors: Flavor "a-placed" supports only TopologyAwareScheduling'
    thing["status"]["conditions"][0]["message"] = said
    found = status.of_workload(thing)
    assert found.message == said
    assert (next(iter(kueue.PLACED)) in found.advice) is (pool == "a")
