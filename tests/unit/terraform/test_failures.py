import os
import signal
import threading
from pathlib import Path

import pytest

from provision.codes import Code
from provision.errors import (
    CapacityError,
    CredentialsError,
    ProvisionError,
    StateError,
    TerraformError,
)
from provision.google import auth
from provision.terraform import child, failures

# The last lines of provider 7.45.0 in recorded traffic.
QUOTA = "Error: Error waiting to create Network: Quota 'NETWORKS' exceeded.  Limit: 5.0 globally.\n"
FORBIDDEN = (
    "Error: Error creating Network: googleapi: Error 403: Required 'compute.networks.create'"
    " permission for 'projects/proj-a1/global/networks/n1', forbidden\n"
)
STOCKOUT = (
    "Error: Error waiting for instance to create: The zone 'projects/p/zones/us-central1-a' does"
    " not have enough resources available to fulfill the request.  '(resource type:compute)'.\n"
)
OUTAGES = (
    "Error: Error creating Network: googleapi: Error 503: Service unavailable., backendError",
    "Error: googleapi: got HTTP response code 502 with body: <html>Bad Gateway</html>",
    'Error: Get "https://x.googleapis.com": dial tcp: lookup x on 10.0.0.2:53: no such host',
    'Error: Get "https://x": read tcp 10.0.0.3:50000->1.1.1.1:443: read: connection reset by peer',
    "Error: Error reading Network: googleapi: Error 429: Rate Limit Exceeded, rateLimitExceeded",
    "Error: Failed to get state: invalid character '<' looking for beginning of value",
)
LOCKED_AT_INIT = """Error: Error loading state: writing "gs://b/f/default.tflock" failed: Error 412
Lock Info:
  ID:        1
  Path:      gs://b/f/default.tflock
  Operation: OperationTypeApply
  Who:       ann@laptop
  Created:   2026-11-21 09:00:00 +0000 UTC
"""


def _failure(*errors: str) -> ProvisionError:
    ended = child.Ended(1, "\n╵\n".join(errors).encode(), None)
    return failures.failure("apply", ended)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([QUOTA], Code.QUOTA_EXCEEDED),
        ([STOCKOUT], Code.STOCK_OUT),
        # Somebody has to act on the one before waiting for the other makes sense.
        ([STOCKOUT, QUOTA], Code.QUOTA_EXCEEDED),
    ],
)
def test_a_failure_for_want_of_quota_or_stock_is_one_of_capacity(
    errors: list[str], code: Code
) -> None:
    failure = _failure(*errors)
    assert isinstance(failure, CapacityError)
    (problem,) = failure.problems
    assert all(error.strip() in problem.why for error in errors)
    assert problem.code is code
    assert "https://console.cloud.google.com/iam-admin/quotas" in problem.fix


def test_a_failure_for_other_reasons_too_is_terraforms_and_names_a_role() -> None:
    failure = _failure(QUOTA, FORBIDDEN)
    assert isinstance(failure, TerraformError)
    assert failure.problems[0].code is Code.TERRAFORM_FAILED
    missing = _failure(FORBIDDEN)
    assert isinstance(missing, TerraformError)
    (problem,) = missing.problems
    assert "compute.networks.create" in problem.fix
    assert "roles/compute.networkAdmin" in problem.fix
    assert problem.code is Code.PERMISSION_MISSING


@pytest.mark.parametrize(
    ("error", "renewal"),
    [
        pytest.param(
            "Error: Error creating R: googleapi: Error 401: Request had invalid authentication"
            " credentials. Expected OAuth 2 access token, login cookie or other valid",
            "gcloud auth print-access-token",
            id="token",
        ),
        ("Error: googleapi: Error 401: Invalid Credentials, authError", auth.RENEW),
        (
            'Error: Get "https://x": oauth2: "invalid_grant" "reauth related error (invalid_rapt)"',
            auth.RENEW,
        ),
    ],
)
def test_a_login_that_ends_in_the_middle_is_one_to_renew(error: str, renewal: str) -> None:
    failure = _failure(error)
    assert isinstance(failure, CredentialsError)
    (problem,) = failure.problems
    assert renewal in problem.fix
    assert "continues where this one stopped" in problem.fix
    assert error in problem.why


def test_a_lock_that_is_held_at_the_first_init_is_no_failure_of_terraform() -> None:
    failure = _failure(LOCKED_AT_INIT)
    assert isinstance(failure, StateError)
    assert "ann@laptop" in failure.problems[0].what
    assert failure.problems[0].lock_id == "1"


@pytest.mark.parametrize("error", OUTAGES)
def test_an_outage_is_one_and_may_be_tried_again(error: str) -> None:
    (problem,) = _failure(error, error).problems
    assert problem.code is Code.UNREACHABLE
    assert "https://status.cloud.google.com" in problem.fix
    (mixed,) = _failure(error, FORBIDDEN).problems
    assert mixed.code is Code.TERRAFORM_FAILED


def test_an_outage_is_not_told_as_a_lock_of_somebody_else() -> None:
    cause = OUTAGES[0].removeprefix("Error: ")
    (problem,) = _failure(f"Error: Error acquiring the state lock\n\n{cause}").problems
    assert problem.code is Code.UNREACHABLE


_PATIENT = "trap 'exit 3' INT; echo ready; while :; do sleep 0.02; done"


def test_an_interrupt_that_cuts_into_a_write_is_passed_on_and_said(tmp_path: Path) -> None:
    said = []

    def tell(text: str) -> None:
        # From within the handler this would be refused: the write below is still under way.
        said.append((text.partition(":")[0], threading.current_thread().name == "MainThread"))

    def write(_chunk: bytes) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    command = child.Command(argv=["/bin/sh", "-c", _PATIENT], folder=tmp_path, environ={})
    ended = child.run(command, tell, write)

    assert (ended.code, ended.interrupted_by) == (3, signal.SIGINT)
    assert said == [("Stopping", False)]
