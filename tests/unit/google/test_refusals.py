from typing import Any

import pytest

from provision.codes import Code
from provision.google import refusals
from provision.google.refusals import Quota, Reach, Refusal
from tests.unit import table

# Sentences as Google has been seen to say them; the first code or reason is that of Compute Engine,
# then those of ProvisioningRequests, then none, as in what Terraform prints.
STOCKOUT = (
    "The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill"
    " the request.  '(resource type:compute)'."
)
INDEFINITE = "Expected time is indefinite."
QUOTA_HERE = "Quota 'NVIDIA_A100_GPUS' exceeded.  Limit: 16.0 in region us-central1."
QUOTA_OF_KUBERNETES = "Quota 'NVIDIA_P4_GPUS' exceeded. Limit: 1.0 in region europe-west4."
QUOTA_EVERYWHERE = "Quota 'GPUS_ALL_REGIONS' exceeded.  Limit: 0.0 globally."
QUOTA_OF_NETWORKS = (
    "Error: Error waiting to create Network: Quota 'NETWORKS' exceeded.  Limit: 5.0 globally.\n"
)
NOT_COMPATIBLE = "[pd-ssd, n4-standard-16] features are not compatible for creating instance."
# Of reservations, with the code with which the autoscaler of Kubernetes has met them (tests of
# kubernetes/autoscaler, cluster-autoscaler/cloudprovider/gce; SkyPilot's issue 3327): it is that
# of policies, too.
CONDITION = "CONDITION_NOT_MET"
WRONG_RESERVATION = (
    "Specified reservation 'r' does not exist.",
    "Specified reservations [r] do not exist. (when acting as '1@cloudservices')",
    "Could not find the given reservation with the following name: r",
    "The VM must use ReservationAffinity of SPECIFIC_RESERVATION",
    "Instance 'i' creation failed: The reservation must exist in the same project as the instance.",
    "Reservation r is incorrect for the requested resources.",
    "No available resources in specified reservations 'r'",
    "Specified reservations [r] can not be targeted as specificReservationRequired is not set",
)
NOT_READY = "It is CREATING, as it requires reservation to be in READY state."
RESERVATION_FULL = (
    "Specified reservation 'r' does not have available resources for the request.",
    "Reservation r does not have sufficient capacity for the requested resources.",
    'Reservation does not have enough resources for the request: specific reservation "r" is short',
)


MEANINGS = table.lines(
    """
QUOTA QUOTA_EXCEEDED @QUOTA_HERE
QUOTA QUOTA_EXCEEDED
QUOTA ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS @QUOTA_HERE
QUOTA QuotaExceeded @QUOTA_OF_KUBERNETES
QUOTA QuotaExceeded
QUOTA NotProvisioned @QUOTA_EVERYWHERE
QUOTA - @QUOTA_OF_NETWORKS
STOCKOUT RESOURCE_POOL_EXHAUSTED
STOCKOUT ZONE_RESOURCE_POOL_EXHAUSTED @STOCKOUT
STOCKOUT ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS
STOCKOUT ResourcePoolExhausted @INDEFINITE
STOCKOUT - Error: Error waiting for instance to create: @STOCKOUT
STOCKOUT A_CODE_THAT_IS_NEW @STOCKOUT
NOT_YET NotProvisioned
NOT_YET NotProvisioned Waiting for resources. @STOCKOUT
PERMISSION - Required 'compute.networks.create' permission for 'projects/p'
PERMISSION - me@p does not have storage.buckets.get access to the bucket.
PERMISSION - Permission 'iam.serviceAccounts.actAs' denied on resource
PERMISSION PERMISSIONS_ERROR
PERMISSION SERVICE_ACCOUNT_ACCESS_DENIED
API_OFF - Compute Engine API has not been used in project 123 before or it is disabled.
POLICY CONDITION_NOT_MET Constraint constraints/compute.vmExternalIpAccess violated for project
    123.
POLICY - Constraint `constraints/gcp.restrictNonCmekServices` violated for `projects/1`
PERMISSION - Permission denied on Cloud KMS key. Please ensure that your Cloud Storage service
POLICY CONDITION_NOT_MET Location ZONE:us-central1-a violates constraint
    constraints/gcp.resourceLocations
POLICY - Operation denied by org policy: ["constraints/compute.managed.vmCanIpForward"]
MISSING - The resource 'projects/p/global/networks/n' was not found
MISSING - The resource 'One of [np@p]' of type 'serviceAccount' was not found.
MISSING - The referenced image resource cannot be found.
MISSING - Machine type with name 'a9-highgpu-8g' does not exist in zone 'us-central1-a'.
ADDRESSES SOME_IP_SPACE_EXHAUSTED
QUOTA ALL_QUOTAS
ADDRESSES - IP_SPACE: it does not have available private IP space
ADDRESSES - Cannot find pod range with enough available IPs for nodepool np
MISSING - Service account np@p.iam.gserviceaccount.com does not exist.
PERMISSION - The account is missing required permissions.
MISSING - Cross-project references for this resource are not allowed
CONFIGURATION UNSUPPORTED_OPERATION pd-ssd disk type cannot be used by n4-standard-2 machine
    type
CONFIGURATION ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS @STOCKOUT @NOT_COMPATIBLE
- CONDITION_NOT_MET @NOT_READY
- CONDITION_NOT_MET A condition that nobody has met yet.
- RESOURCE_NOT_READY The resource is not ready
- INTERNAL Internal error. Please try again.
- Provisioned
- -
""",
    globals(),
)
MEANINGS += [f"RESERVATION {CONDITION} {it}" for it in WRONG_RESERVATION]
MEANINGS += [f"RESERVED_OUT {CONDITION} {it}" for it in RESERVATION_FULL]


@pytest.mark.parametrize("row", MEANINGS)
def test_a_refusal_means_the_same_whoever_of_google_says_it(row: str) -> None:
    meaning, code, message = f"{row} ".split(" ", 2)
    found = refusals.read(code.strip("-"), message)
    assert (found.name if found else "-") == meaning


@pytest.mark.parametrize(
    ("message", "quota"),
    [
        (QUOTA_HERE, Quota(metric="NVIDIA_A100_GPUS", limit=16, region="us-central1")),
        (QUOTA_OF_KUBERNETES, Quota(metric="NVIDIA_P4_GPUS", limit=1, region="europe-west4")),
        (QUOTA_EVERYWHERE, Quota(metric="GPUS_ALL_REGIONS", limit=0, region="", everywhere=True)),
        (QUOTA_OF_NETWORKS, Quota(metric="NETWORKS", limit=5, region="", everywhere=True)),
        (STOCKOUT, None),
    ],
)
def test_the_sentence_of_a_quota_tells_it_with_its_limit_and_region(
    message: str, quota: Quota | None
) -> None:
    assert refusals.quota(message) == quota


def test_a_reservation_that_is_full_or_not_ready_is_waited_for() -> None:
    for sentence in (*RESERVATION_FULL, NOT_READY):
        meaning = refusals.read(CONDITION, sentence)
        assert meaning not in refusals.CAPACITY | refusals.PERMANENT


def test_the_zone_is_read_out_of_a_message_that_names_it() -> None:
    assert refusals.zone(STOCKOUT) == "us-central1-a"
    assert refusals.zone(INDEFINITE) == ""


def test_errors_of_vms_that_do_not_run_are_told_once_each() -> None:
    refused = {"code": "QUOTA_EXCEEDED", "message": QUOTA_HERE}
    other = {"code": "INTERNAL"}
    instances: list[dict[str, Any]] = [
        {"instanceStatus": "RUNNING", "lastAttempt": {"errors": {"errors": [other]}}},
        *2 * [{"lastAttempt": {"errors": {"errors": [refused]}}}],
        {"instanceStatus": "STAGING"},
    ]

    assert refusals.of_instances(instances) == [refused]
    assert refusals.words(other) == "INTERNAL"


@pytest.mark.parametrize(
    ("user", "way"),
    [
        ("zones/us-central1-a/instances/np-vm-1", "Create --replace-vms"),
        ("zones/us-central1-a/instanceGroupManagers/np-mig", "is deleted, or uses it no more"),
    ],
)
def test_what_is_in_use_says_who_holds_it_and_what_lets_go(user: str, way: str) -> None:
    said = (
        "Error: googleapi: Error 400: The resource_policy resource"
        " 'projects/p/regions/us-central1/resourcePolicies/np-placement' is already being used by"
        f" 'projects/p/{user}', resourceInUseByAnotherResource"
    )
    assert refusals.read("", said) is Refusal.IN_USE
    holder = user.rpartition("/")[2]
    assert f"np-placement is free once {holder} " in refusals.remedy(said)
    assert way in refusals.remedy(said)
    bare = "The network resource is already being used by x"
    assert refusals.remedy(bare).startswith("it is free once x is deleted")


@pytest.mark.parametrize(
    ("code", "message", "reach"),
    [
        (Code.STOCK_OUT, STOCKOUT, Reach.ZONE),
        (Code.WAITING, INDEFINITE, Reach.ZONE),
        (Code.RESERVATION_FULL, RESERVATION_FULL[0], Reach.ZONE),
        (Code.QUOTA_EXCEEDED, QUOTA_HERE, Reach.REGION),
        (Code.QUOTA_EXCEEDED, QUOTA_EVERYWHERE, Reach.EVERYWHERE),
        (Code.QUOTA_EXCEEDED, QUOTA_OF_NETWORKS, Reach.EVERYWHERE),
        (
            Code.RESOURCE_NOT_FOUND,
            "Machine type with name 'a3-ultragpu-8g' does not exist in zone 'us-central1-a'.",
            Reach.ZONE,
        ),
        (Code.RESOURCE_NOT_FOUND, "The resource 'x' was not found", Reach.EVERYWHERE),
        (
            Code.POLICY_FORBIDS,
            "Location ZONE:us-a1-a violates constraint constraints/gcp.resourceLocations on 'i'",
            Reach.REGION,
        ),
        (
            Code.POLICY_FORBIDS,
            "Constraint constraints/compute.vmExternalIpAccess violated for project 1.",
            Reach.EVERYWHERE,
        ),
        (Code.PERMISSION_MISSING, "Required 'p' permission for 'x'", Reach.EVERYWHERE),
        (Code.INCOMPATIBLE_REQUEST, NOT_COMPATIBLE, Reach.EVERYWHERE),
        (None, "", Reach.EVERYWHERE),
    ],
)
def test_a_refusal_reaches_a_zone_a_region_or_everything(
    code: Code | None, message: str, reach: Reach
) -> None:
    assert refusals.reach(code, message) is reach


def test_of_a_refused_upload_googles_own_words_are_told() -> None:
    answer = '{"error": {"code": 403, "message": "Permission denied: x.", "errors": []}}'
    text = f"POST http://g/o?uploadType=multipart: {answer}: ('Request failed', 403)"
    assert refusals.said(text) == "Permission denied: x."
    assert refusals.said("GET http://g/b: Forbidden") == "GET http://g/b: Forbidden"
