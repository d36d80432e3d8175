"""Terraform's failures that are refusals of capacity, of rights, or of the lock."""

from __future__ import annotations

import pytest

from provision.codes import Code
from provision.errors import CapacityError, ProvisionError, StateError, TerraformError
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


def test_a_failure_for_other_reasons_too_is_terraforms() -> None:
    failure = _failure(QUOTA, FORBIDDEN)
    assert isinstance(failure, TerraformError)
    assert failure.problems[0].code is Code.TERRAFORM_FAILED


def test_a_missing_permission_is_named_with_a_role() -> None:
    failure = _failure(FORBIDDEN)
    assert isinstance(failure, TerraformError)
    (problem,) = failure.problems
    assert "compute.networks.create" in problem.fix
    assert "roles/compute.networkAdmin" in problem.fix
    assert problem.code is Code.PERMISSION_MISSING


def test_a_lock_that_is_held_at_the_first_init_is_no_failure_of_terraform() -> None:
    failure = _failure(LOCKED_AT_INIT)
    assert isinstance(failure, StateError)
    assert "ann@laptop" in failure.problems[0].what
    assert failure.problems[0].lock_id == "1"
