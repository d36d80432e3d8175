"""The autoscaler's words for Compute Engine's errors, as its published source has them."""

from rehearsal.cloud.kubernetes import reasons
from rehearsal.cloud.kubernetes.reasons import Error
from tests.table import cases


def _error(code: str, message: str = "words") -> Error:
    return Error(code, message, {})


@cases(
    """
code | reason | message
INVALID_ARGUMENT | InvalidArgument | words
QUOTA_EXCEEDED | QuotaExceeded | words
INVALID_GPU_TYPE | InvalidGPUType | words
RESERVATION_NOT_READY | ReservationNotReady | words
AGGREGATE_RESERVATION_NOT_EXIST | ZoneNotSupported
    | Provisioning Request is not supported in this zone. Try different locations.
ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS | InternalErrorFailedToQueue
    | @failed: [ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS] "words"
- | InternalErrorFailedToQueue | @failed: words
""",
    failed='Provisioning Request failed to queue in nodepool "gke-grp" in zone us-central1-a,'
    " got error",
)
def test_a_request_that_is_not_taken(code: str, reason: str, message: str) -> None:
    said = reasons.refused(_error(code), "gke-grp", "us-central1-a")
    assert (said.reason, said.message) == (reason, message)


@cases("""
code | message | reason
SOME_QUOTA_OF_OURS | words | QuotaExceeded
IP_SPACE_EXHAUSTED | words | IPSpaceExhausted
PERMISSIONS_ERROR | words | PermissionsError
CONDITION_NOT_MET | Constraint constraints/compute.vmExternalIpAccess
    | VMExternalIPAccessPolicyConstraint
CONDITION_NOT_MET | another | InternalError
RESERVATION_NOT_FOUND | words | ReservationNotFound
""")
def test_the_last_attempt_of_a_request_that_waits(code: str, message: str, reason: str) -> None:
    said = reasons.waiting([_error(code, message)])
    assert said is not None
    assert said.reason == reason


def test_of_several_errors_a_quota_is_told_and_otherwise_the_first() -> None:
    several = [_error("IP_SPACE_EXHAUSTED", "a"), _error("QUOTA_EXCEEDED", "b")]
    said = reasons.waiting(several)
    assert said is not None
    assert (said.reason, said.message) == ("QuotaExceeded", "b")
    assert reasons.waiting(several[:1]) == reasons.Said("IPSpaceExhausted", "a")
    assert reasons.waiting([]) is None


@cases("""
errors | reason | message
{"QUOTA_EXCEEDED": "a", "IP_SPACE_EXHAUSTED": "b"} | IPSpaceExhausted
    | b; The remaining received errors: [QUOTA_EXCEEDED] "a"
{"NEW": "a"} | InternalError | Received unrecognized error: [NEW] "a"
{} | InternalErrorResizeRequestFailed
    | Provisioning Request failed, but no errors with details can be provided.
{"LIMIT_EXCEEDED": "Resize request could not provision queued instances in the allocated time."}
    | WaitTimeExceeded
    | Provisioning Request could not provision queued instances in the allocated time.
""")
def test_a_request_that_failed_after_it_was_taken(
    errors: dict[str, str], reason: str, message: str
) -> None:
    said = reasons.ended([_error(code, words) for code, words in errors.items()])
    assert (said.reason, said.message) == (reason, message)


def test_long_lists_are_cut() -> None:
    pools = [f"p{number}" for number in range(12)]
    assert reasons.full(pools).message.endswith("p8, p9, ...")
    unfit = dict.fromkeys(pools, ("why",))
    assert reasons.unschedulable(unfit).message.endswith("p4 (why), ...")
