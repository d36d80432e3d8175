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
from provision.google.refusals import Refusal

if TYPE_CHECKING:
    from provision.google.refusals import Quota

_ELSEWHERE: Final = "the zone has no such machines now: try another zone, region or machine type"
_WAIT: Final = "Google has no such machines at the moment; the request stays in Google's queue"
_AGAIN: Final = "submit the job again; if it fails again, report it to Google"
_RESERVED: Final = "requests of a queue use no reservation: use a pool of the reservation instead"
_SUITS: Final = "run Plan, which checks machine type, GPU and zone against Google's lists"
_GRANT: Final = (
    "GKE's service agent lacks a permission in the project: see Google's message, or enable the"
    " Kubernetes Engine API again to restore its role"
)
_MORE: Final = "raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)"

_INTERNAL: Final = (
    *("", "ResizeRequestFailed", "ResizeRequestWasCreating", "UnexpectedState", "MissingDetails"),
    *("MissingBulkMig", "BulkMigNotInProgress", "BulkMigUnexpectedState"),
)
_MACHINES: Final = "machines in the zone"
_QUOTA: Final = "quota"
_ROOM: Final = "room in the pool"
_PERMISSION: Final = "a permission of GKE's service agent"
_POLICY: Final = "an exception from the organization's policy"
_FITTING: Final = "a machine type that the zone has"
_OWN: Final = "a pool of the reservation"


@dataclass(frozen=True)
class Reason:
    """A reason of the autoscaler."""

    word: str
    # what a request with it waits for, or got no nodes for lack of, such as "room in the pool"; ""
    # where the autoscaler itself does not know
    lacks: str
    advice: str  # what a person can do
    # how its message begins, or may begin; "" where that is not known
    begins: str | tuple[str, ...] = ""


REASONS: Final = (
    # --------------------------------------------- no pool takes it: it fails after two minutes
    Reason("NotAccepted", "the autoscaler's next look", ""),
    Reason(
        "NodepoolSizeReached",
        _ROOM,
        f"the pool may not have so many nodes: wait until other jobs end, ask for fewer nodes,"
        f" or {_MORE}",
        "Max nodepool size reached",
    ),
    Reason(
        "ClusterNodeLimitExceeded",
        "room in the cluster",
        "the cluster has as many nodes as GKE allows: wait until other jobs end, or use another"
        " cluster",
        "Max cluster size reached",
    ),
    Reason(
        "OutOfResources",
        "room within the cluster's limits",
        "the cluster has limits for CPUs, memory or GPUs: raise them in the cluster's settings"
        " for node auto-provisioning",
        "Max cluster limit reached",
    ),
    Reason(
        "NodepoolInBackoff",
        "the end of the pool's rest after a failure",
        "GKE rests for 5 to 30 minutes after a failure of this pool, and says no more of it:"
        " the cause is the failure before",
        "Nodepool in backoff after failed scale-up",
    ),
    Reason(
        "NodepoolNotReady",
        "a healthy pool",
        "the pool is not healthy: see its state above, and what its nodes lack",
        "Nodepool not ready for scale-up",
    ),
    Reason(
        "ProvisioningRequestNotSchedulableInNodepool",
        "a pool whose nodes can run its pods",
        "no node of the pool could run the pods: compare the job's node selector, tolerations,"
        " CPUs, memory and GPUs with the pool's",
        "Provisioning Request's pods cannot be",
    ),
    Reason(
        "ProvisioningRequestSingleZoneInfeasible",
        "a zone that takes all its pods",
        "all pods must fit into one zone of one pool: ask for fewer, or remove rules that keep"
        " them apart",
        "Provisioning Request cannot be scheduled",
    ),
    Reason(
        "NoQueuedNodepoolAvailable",
        "a queued pool with room for all its pods",
        f"no pool with queued provisioning has room for all pods: ask for fewer nodes, or {_MORE}",
        "No nodepool with QueuedProvisioning enabled",
    ),
    Reason(
        "CannotExecuteObtainabilityStrategy",
        "room in every zone at once",
        "the pools must have room for the request in every zone at once: remove"
        " capacitySearchStrategy from the job",
        "Could not execute OBTAINABILITY",
    ),
    Reason(
        "ObtainabilityStrategyAndZoneIncompatible",
        "a job that names no zone",
        "remove the zone from the job's node selector, or capacitySearchStrategy from the job",
    ),
    Reason(
        "MissingPodTemplates",
        "its pod templates",
        "the request's pod templates were deleted: submit the job again",
        "Provisioning Request failed because there were missing pod",
    ),
    Reason(
        "MultiplePodSetsUnsupported",
        "one kind of pods",
        "all pods of a job must be alike: submit the job again with one kind of pods",
    ),
    Reason("InternalErrorSkippedNodepool", "", _AGAIN),
    # ------------------------------------------------------------- Google does not take the request
    Reason(
        "InvalidArgumentMaxRunDurationParseError",
        "a run duration that is a number",
        "set the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds to a whole number of"
        " seconds",
    ),
    Reason(
        "InvalidArgument",
        "a request that Google can grant",
        "Google refuses what the request asks for, such as a run of less than 10 minutes or"
        " more than 7 days: change the job and submit it again",
        # The second is how Compute Engine itself begins.
        ("Specified maxRunDuration is", "Invalid value for field"),
    ),
    Reason(
        "UnsupportedOperation",
        "a request that Google can grant",
        "Google does not support this for the pool: run Plan to check it",
    ),
    Reason(
        "QueuingInfeasibleNoCapacity",
        _MACHINES,
        _ELSEWHERE,
        "Could not enqueue the Provisioning Request",
    ),
    Reason(
        "ZoneNotSupported",
        "a zone that takes such requests",
        "Google takes no such requests in this zone: try another one",
        "Provisioning Request is not supported in this zone",
    ),
    Reason("InvalidMachineType", _FITTING, _SUITS),
    Reason("InvalidGPUType", _FITTING, _SUITS),
    Reason("PermissionDenied", _PERMISSION, _GRANT),
    Reason(
        "ConditionNotMet",
        _POLICY,
        "an organization policy or another condition forbids it: see Google's message, and ask"
        " an administrator",
    ),
    Reason("InvalidReservation", _OWN, _RESERVED),
    Reason("ReservationNotFound", _OWN, _RESERVED),
    Reason("ReservationNotReady", _OWN, _RESERVED),
    Reason("ReservationCapacityExceeded", _OWN, _RESERVED),
    Reason("ReservationIncompatible", _OWN, _RESERVED),
    Reason(
        "InternalErrorFailedToQueue",
        "",
        "Google did not take the request, for the cause in its message; without one, try"
        " another zone or submit the job again later",
        "Provisioning Request failed to queue",
    ),
    # ------------------------------------------- in Google's queue: it waits, or Google gave it up
    Reason("NotProvisioned", _MACHINES, _WAIT),
    Reason("ResourcePoolExhausted", _MACHINES, _ELSEWHERE),
    Reason("QuotaExceeded", _QUOTA, "request a higher quota"),
    Reason(
        "IPSpaceExhausted",
        "free IP addresses",
        "the subnetwork has no free IP addresses: use a larger range, or delete nodes that are"
        " not needed",
    ),
    Reason("PermissionsError", _PERMISSION, _GRANT),
    Reason(
        "VMExternalIPAccessPolicyConstraint",
        _POLICY,
        "an organization policy forbids external IP addresses: use private nodes, or ask an"
        " administrator for an exception",
    ),
    Reason(
        "LimitExceeded",
        "room within Google's limit of requests",
        "Google limits such requests, by default to 100 in a region: wait until others end",
    ),
    Reason(
        "WaitTimeExceeded",
        f"{_MACHINES} in the time that it had",
        "the request got no nodes in the time that the job allows: submit it again, or without"
        " ValidUntilSeconds",
        "Provisioning Request could not provision queued instances",
    ),
    Reason(
        "InternalErrorResizeRequestGotCancelled",
        "its resize request",
        "somebody cancelled the resize request of the pool: submit the job again",
    ),
    Reason(
        "InternalErrorResizeRequestWasBeingDeleted",
        "its resize request",
        "somebody deleted the resize request of the pool: submit the job again",
    ),
    Reason(
        "MissingResizeRequest",
        "its resize request",
        "somebody deleted the resize request or the pool: submit the job again",
        "The corresponding Resize Request was missing",
    ),
    Reason("DuplicateResizeRequestName", "", _AGAIN),
    *(Reason(f"InternalError{it}", "", _AGAIN) for it in _INTERNAL),
    # -------------------------------------------------------------------- after it was granted
    Reason(
        "CapacityRevoked",
        "more time",
        "the nodes' run is over, and the job had not ended: submit it again, with more time in"
        " the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds (7 days at most)",
        "Capacity provisioned for the Provisioning Request was",
    ),
)

IN_BACKOFF: Final = "NodepoolInBackoff"
"""The autoscaler rests after a failure of that pool: the reason hides the failure before."""
REVOKED: Final = "CapacityRevoked"

_FOR_EVER: Final = refusals.PERMANENT - {Refusal.MISSING, Refusal.ADDRESSES}
"""Refusals that each request meets again; what is missing may be back, addresses may be free."""

_BY_WORD: Final = {it.word: it for it in REASONS}

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
    return next((it.word for it in REASONS if it.begins and message.startswith(it.begins)), "")


def lacks(word: str, message: str) -> str:
    """What a request with a reason waits for, or lacked, such as "quota"; "" if not known.

    `word`: the autoscaler's reason; "" if only its message is known, which may also name a cause
    that the reason does not.
    """
    word = word or named(message)
    reason = _BY_WORD.get(word)
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
    reason = _BY_WORD.get(word)
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
    return f"request a higher quota {quota.metric}{place}, now {quota.limit:g}, {asking}"
