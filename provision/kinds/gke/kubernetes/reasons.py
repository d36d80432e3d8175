"""What each reason means that GKE's autoscaler gives for a ProvisioningRequest, and what fixes it.

The reasons and the beginnings of the messages are those of the autoscaler's published source
(GoogleCloudPlatform/cluster-autoscaler, 2026-08-21), which names more than Google's documentation
(rule Q13). Kueue passes on messages without reasons, so a reason is also found by its message.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from provision.google import refusals
from provision.google.refusals import Quota, Refusal

if TYPE_CHECKING:
    from collections.abc import Iterator


_ELSEWHERE: Final = (
    "the zone has no such machines now: try another zone, region or machine type; another ZONE and"
    " Create --yes move its pool, and its jobs go on there"
)
_WAIT: Final = "Google has no such machines at the moment; the request stays in Google's queue"
_GRANT: Final = (
    "GKE's service agent lacks a permission in the project: see Google's message, or enable the"
    " Kubernetes Engine API again to restore its role"
)
_MORE: Final = "raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)"
_MACHINES: Final = "machines in the zone"
_QUOTA: Final = "quota"
_PERMISSION: Final = "a permission of GKE's service agent"
_POLICY: Final = "an exception from the organization's policy"


@dataclass(frozen=True)
class Reason:
    """A reason of the autoscaler."""

    # what a request with it waits for, or got no nodes for lack of, such as "room in the pool"; ""
    # where the autoscaler itself does not know
    lacks: str
    begins: tuple[str, ...]  # how its message begins, or may begin; () where that is not known
    advice: str  # what a person can do


# Each names its reasons, and behind a colon what such a request lacks. Below it stands, in quotes,
# how the message begins, and then the advice.
_TABLE: Final = f"""
# no pool takes it: it fails after two minutes
NotAccepted: the autoscaler's next look
NodepoolSizeReached: room in the pool
    "Max nodepool size reached"
    the pool may not have so many nodes: wait until other jobs end, ask for fewer nodes, or {_MORE}
ClusterNodeLimitExceeded: room in the cluster
    "Max cluster size reached"
    the cluster has as many nodes as GKE allows: wait until other jobs end, or use another cluster
OutOfResources: room within the cluster's limits
    "Max cluster limit reached"
    the cluster has limits for CPUs, memory or GPUs: raise them in the cluster's settings for node
    auto-provisioning
NodepoolInBackoff: the end of the pool's rest after a failure
    "Nodepool in backoff after failed scale-up"
    GKE rests for 5 to 30 minutes after a failure of this pool, and says no more of it: the cause
    is the failure before
NodepoolNotReady: a healthy pool
    "Nodepool not ready for scale-up"
    the pool is not healthy: see its state above, and what its nodes lack
ProvisioningRequestNotSchedulableInNodepool: a pool whose nodes can run its pods
    "Provisioning Request's pods cannot be"
    no node of the pool could run the pods: compare the job's node selector, tolerations, CPUs,
    memory and GPUs with the pool's
ProvisioningRequestSingleZoneInfeasible: a zone that takes all its pods
    "Provisioning Request cannot be scheduled"
    all pods must fit into one zone of one pool: ask for fewer, or remove rules that keep them
    apart
NoQueuedNodepoolAvailable: a queued pool with room for all its pods
    "No nodepool with QueuedProvisioning enabled"
    no pool with queued provisioning has room for all pods: ask for fewer nodes, or {_MORE}
CannotExecuteObtainabilityStrategy: room in every zone at once
    "Could not execute OBTAINABILITY"
    the pools must have room for the request in every zone at once: remove capacitySearchStrategy
    from the job
ObtainabilityStrategyAndZoneIncompatible: a job that names no zone
    remove the zone from the job's node selector, or capacitySearchStrategy from the job
MissingPodTemplates: its pod templates
    "Provisioning Request failed because there were missing pod"
    the request's pod templates were deleted: submit the job again
MultiplePodSetsUnsupported: one kind of pods
    all pods of a job must be alike: submit the job again with one kind of pods
# Google does not take the request
InvalidArgumentMaxRunDurationParseError: a run duration that is a number
    set the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds to a whole number of seconds
# The second is how Compute Engine itself begins.
InvalidArgument: a request that Google can grant
    "Specified maxRunDuration is"
    "Invalid value for field"
    Google refuses what the request asks for, such as a run of less than 10 minutes or more than 7
    days: change the job and submit it again
UnsupportedOperation: a request that Google can grant
    Google does not support this for the pool: run Plan to check it
QueuingInfeasibleNoCapacity: {_MACHINES}
    "Could not enqueue the Provisioning Request"
    {_ELSEWHERE}
ZoneNotSupported: a zone that takes such requests
    "Provisioning Request is not supported in this zone"
    Google takes no such requests in this zone: try another one
InvalidMachineType InvalidGPUType: a machine type that the zone has
    run Plan, which checks machine type, GPU and zone against Google's lists
PermissionDenied: {_PERMISSION}
    {_GRANT}
ConditionNotMet: {_POLICY}
    an organization policy or another condition forbids it: see Google's message, and ask an
    administrator
InvalidReservation ReservationNotFound ReservationNotReady ReservationCapacityExceeded
    ReservationIncompatible: a pool of the reservation
    requests of a queue use no reservation: use a pool of the reservation instead
InternalErrorFailedToQueue:
    "Provisioning Request failed to queue"
    Google did not take the request, for the cause in its message; without one, try another zone or
    submit the job again later
# in Google's queue: it waits, or Google gave it up
NotProvisioned: {_MACHINES}
    {_WAIT}
ResourcePoolExhausted: {_MACHINES}
    {_ELSEWHERE}
QuotaExceeded: {_QUOTA}
    request a higher quota
IPSpaceExhausted: free IP addresses
    the subnetwork has no free IP addresses: use a larger range, or delete nodes that are not
    needed
PermissionsError: {_PERMISSION}
    {_GRANT}
VMExternalIPAccessPolicyConstraint: {_POLICY}
    an organization policy forbids external IP addresses: use private nodes, or ask an
    administrator for an exception
LimitExceeded: room within Google's limit of requests
    Google limits such requests, by default to 100 in a region: wait until others end
WaitTimeExceeded: {_MACHINES} in the time that it had
    "Provisioning Request could not provision queued instances"
    the request got no nodes in the time that the job allows: submit it again, or without
    ValidUntilSeconds
InternalErrorResizeRequestGotCancelled: its resize request
    somebody cancelled the resize request of the pool: submit the job again
InternalErrorResizeRequestWasBeingDeleted: its resize request
    somebody deleted the resize request of the pool: submit the job again
MissingResizeRequest: its resize request
    "The corresponding Resize Request was missing"
    somebody deleted the resize request or the pool: submit the job again
# what is Google's own fault
DuplicateResizeRequestName InternalError InternalErrorBulkMigNotInProgress
    InternalErrorBulkMigUnexpectedState InternalErrorMissingBulkMig InternalErrorMissingDetails
    InternalErrorResizeRequestFailed InternalErrorResizeRequestWasCreating
    InternalErrorSkippedNodepool InternalErrorUnexpectedState:
    submit the job again; if it fails again, report it to Google
# after it was granted
CapacityRevoked: more time
    "Capacity provisioned for the Provisioning Request was"
    the nodes' run is over, and the job had not ended: submit it again, with more time in the
    annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds (7 days at most)
"""


def _read(table: str) -> Iterator[tuple[str, Reason]]:
    for block in re.split(r"\n(?=\S)", re.sub(r"(?m)^#.*\n", "", table).strip()):
        words, _, told = block.partition(":")
        lacks, _, told = told.partition("\n")
        begins = tuple(re.findall(r'^ +"(.+)"$', told, re.MULTILINE))
        advice = re.sub(r'^ +".+"$', "", told, flags=re.MULTILINE)
        reason = Reason(lacks.strip(), begins, " ".join(advice.split()))
        yield from ((word, reason) for word in words.split())


REASONS: Final = dict(_read(_TABLE))
"""A reason's word -> what it means."""

IN_BACKOFF: Final = "NodepoolInBackoff"
"""The autoscaler rests after a failure of that pool: the reason hides the failure before."""
REVOKED: Final = "CapacityRevoked"

_FOR_EVER: Final = refusals.PERMANENT - {Refusal.MISSING, Refusal.ADDRESSES}
"""Refusals that each request meets again; what is missing may be back, addresses may be free."""

# Kueue's words around a message of the autoscaler.
_PASSED_ON: Final = re.compile(
    r"(?:in (?:Retry|Rejected) state: \"[^\"]*\" \((?:Retrying after [a-z ]+: )?(?P<evicted>.*)\)"
    r"|to (?:Retry|Rejected) with message: (?:Retrying after [a-z ]+: )?(?P<checked>.*))$",
    re.DOTALL,
)


def passed_on(words: str) -> str:
    """The autoscaler's message about a request that failed, in what Kueue says; "" for none.

    `words`: the message of a workload's condition, or of an event about its admission check.
    """
    found = _PASSED_ON.search(words)
    return (found["evicted"] or found["checked"] or "") if found else ""


def named(message: str) -> str:
    """The reason that a message belongs to; "" if several reasons, or none known, have it."""
    return next((word for word, it in REASONS.items() if message.startswith(it.begins)), "")


def lacks(word: str, message: str) -> str:
    """What a request with a reason waits for, or lacked, such as "quota"; "" if not known.

    `word`: the autoscaler's reason; "" if only its message is known, which may also name a cause
    that the reason does not.
    """
    word = word or named(message)
    reason = REASONS.get(word)
    match refusals.read(word, message):
        case Refusal.QUOTA:
            return _QUOTA
        case Refusal.STOCKOUT | Refusal.NOT_YET:
            return _MACHINES
        case _:
            return reason.lacks if reason else ""


def is_for_ever(message: str) -> bool:
    """Whether every other request of the same job would be refused, which Kueue does not know."""
    quota = refusals.quota(message)
    if quota is not None:
        return not quota.limit
    if named(message) in {"InvalidArgument", "ZoneNotSupported"}:
        return True
    return refusals.read("", message) in _FOR_EVER and not refusals.may_be_late(message)


def advice(word: str, message: str, *, waiting: bool = False) -> str:
    """What to do about a reason, which is told as in `lacks`; "" if it is not known."""
    word = word or named(message)
    reason = REASONS.get(word)
    match refusals.read(word, message):
        case Refusal.QUOTA:
            return _quota(refusals.quota(message))
        case Refusal.NOT_YET:
            return _WAIT
        case Refusal.STOCKOUT if waiting:
            return f"{_WAIT}: wait, or try another zone, region or machine type"
        case Refusal.STOCKOUT:
            return _ELSEWHERE
        case _:
            return reason.advice if reason else ""


def _quota(quota: Quota | None) -> str:
    asking = "in the console (IAM & Admin > Quotas), or use fewer GPUs"
    if quota is None:
        return f"request a higher quota {asking}"
    place = f" of {quota.region}" if quota.region else ""
    return f"request a higher quota {quota.metric}{place}, now {quota.limit:.15g}, {asking}"
