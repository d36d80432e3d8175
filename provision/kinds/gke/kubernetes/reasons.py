"""What can be done about each reason that GKE's autoscaler gives for a ProvisioningRequest.

The reasons and the beginnings of the messages are those of the autoscaler's published source
(GoogleCloudPlatform/cluster-autoscaler, 2026-08-21), which names more than Google's documentation
(rule Q13). Kueue passes on messages without reasons, so a reason is also found by its message.
"""

from __future__ import annotations

import re
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from provision.google import refusals
from provision.google.refusals import Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.google.refusals import Quota

IN_BACKOFF: Final = "NodepoolInBackoff"
"""The autoscaler rests after a failure of that pool: the reason hides the failure before."""

_ELSEWHERE: Final = "the zone has no such machines now: try another zone, region or machine type"
_WAIT: Final = "Google has no such machines at the moment; the request stays in Google's queue"
_AGAIN: Final = "submit the job again; if it fails again, report it to Google"
_RESERVED: Final = "requests of a queue use no reservation: use a pool of the reservation instead"
_SUITS: Final = "run Plan, which checks machine type, GPU and zone against Google's lists"

_ADVICE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "NodepoolSizeReached": "the pool may not have so many nodes: wait until other jobs end, ask"
        " for fewer nodes, or raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)",
        "ClusterNodeLimitExceeded": "the cluster has as many nodes as GKE allows: wait until other"
        " jobs end, or use another cluster",
        "OutOfResources": "the cluster has limits for CPUs, memory or GPUs: raise them in the"
        " cluster's settings for node auto-provisioning",
        IN_BACKOFF: "GKE rests for 5 to 30 minutes after a failure of this pool, and says no more"
        " of it: the cause is the failure before",
        "NodepoolNotReady": "the pool is not healthy: see its state above, and what its nodes lack",
        "ProvisioningRequestNotSchedulableInNodepool": "no node of the pool could run the pods:"
        " compare the job's node selector, tolerations, CPUs, memory and GPUs with the pool's",
        "ProvisioningRequestSingleZoneInfeasible": "all pods must fit into one zone of one pool:"
        " ask for fewer, or remove rules that keep them apart",
        "NoQueuedNodepoolAvailable": "no pool with queued provisioning has room for all pods: ask"
        " for fewer nodes, or raise GKE_MAX_NODE_COUNT (max_node_count in GKE_NODE_POOLS)",
        "CannotExecuteObtainabilityStrategy": "the pools must have room for the request in every"
        " zone at once: remove capacitySearchStrategy from the job",
        "ObtainabilityStrategyAndZoneIncompatible": "remove the zone from the job's node selector,"
        " or capacitySearchStrategy from the job",
        "MissingPodTemplates": "the request's pod templates were deleted: submit the job again",
        "MultiplePodSetsUnsupported": "all pods of a job must be alike: submit the job again with"
        " one kind of pods",
        "InvalidArgumentMaxRunDurationParseError": "set the annotation"
        " provreq.kueue.x-k8s.io/maxRunDurationSeconds to a whole number of seconds",
        "InvalidArgument": "Google refuses what the request asks for, such as a run of less than 10"
        " minutes or more than 7 days: change the job and submit it again",
        "UnsupportedOperation": "Google does not support this for the pool: run Plan to check it",
        "ZoneNotSupported": "Google takes no such requests in this zone: try another one",
        "InvalidMachineType": _SUITS,
        "InvalidGPUType": _SUITS,
        "InvalidReservation": _RESERVED,
        "ReservationNotFound": _RESERVED,
        "ReservationNotReady": _RESERVED,
        "ReservationCapacityExceeded": _RESERVED,
        "ReservationIncompatible": _RESERVED,
        "PermissionDenied": "GKE's service agent lacks a permission in the project: see Google's"
        " message, or enable the Kubernetes Engine API again to restore its role",
        "PermissionsError": "GKE's service agent lacks a permission in the project: see Google's"
        " message, or enable the Kubernetes Engine API again to restore its role",
        "ConditionNotMet": "an organization policy or another condition forbids it: see Google's"
        " message, and ask an administrator",
        "VMExternalIPAccessPolicyConstraint": "an organization policy forbids external IP"
        " addresses: use private nodes, or ask an administrator for an exception",
        "IPSpaceExhausted": "the subnetwork has no free IP addresses: use a larger range, or delete"
        " nodes that are not needed",
        "LimitExceeded": "Google limits such requests, by default to 100 in a region: wait until"
        " others end",
        "WaitTimeExceeded": "the request got no nodes in the time that the job allows: submit it"
        " again, or without ValidUntilSeconds",
        "InternalErrorFailedToQueue": "Google did not take the request, for the cause in its"
        " message; without one, try another zone or submit the job again later",
        "InternalErrorResizeRequestGotCancelled": "somebody cancelled the resize request of the"
        " pool: submit the job again",
        "InternalErrorResizeRequestWasBeingDeleted": "somebody deleted the resize request of the"
        " pool: submit the job again",
        "MissingResizeRequest": "somebody deleted the resize request or the pool: submit the job"
        " again",
        "DuplicateResizeRequestName": _AGAIN,
        "InternalError": _AGAIN,
        "InternalErrorResizeRequestFailed": _AGAIN,
        "InternalErrorResizeRequestWasCreating": _AGAIN,
        "InternalErrorSkippedNodepool": _AGAIN,
        "InternalErrorUnexpectedState": _AGAIN,
        "CapacityRevoked": "the nodes' run is over, and the job had not ended: submit it again,"
        " with"
        " more time in the annotation provreq.kueue.x-k8s.io/maxRunDurationSeconds (7 days at"
        " most)",
    }
)
# Beginning of a message -> its reason, where the message is always the same.
_MESSAGES: Final = (
    ("Max nodepool size reached", "NodepoolSizeReached"),
    ("Max cluster size reached", "ClusterNodeLimitExceeded"),
    ("Max cluster limit reached", "OutOfResources"),
    ("Nodepool in backoff after failed scale-up", IN_BACKOFF),
    ("Nodepool not ready for scale-up", "NodepoolNotReady"),
    ("Provisioning Request's pods cannot be", "ProvisioningRequestNotSchedulableInNodepool"),
    ("Provisioning Request cannot be scheduled", "ProvisioningRequestSingleZoneInfeasible"),
    ("No nodepool with QueuedProvisioning enabled", "NoQueuedNodepoolAvailable"),
    ("Could not execute OBTAINABILITY", "CannotExecuteObtainabilityStrategy"),
    ("Provisioning Request failed because there were missing pod", "MissingPodTemplates"),
    ("Specified maxRunDuration is", "InvalidArgument"),
    ("Could not enqueue the Provisioning Request", "QueuingInfeasibleNoCapacity"),
    ("Provisioning Request is not supported in this zone", "ZoneNotSupported"),
    ("Provisioning Request failed to queue", "InternalErrorFailedToQueue"),
    ("Provisioning Request could not provision queued instances", "WaitTimeExceeded"),
    ("The corresponding Resize Request was missing", "MissingResizeRequest"),
    ("Capacity provisioned for the Provisioning Request was", "CapacityRevoked"),
)
# Kueue's words around a message of the autoscaler.
_PASSED_ON: Final = re.compile(
    r"(?:in (?:Retry|Rejected) state: \"[^\"]*\" \((?:Retrying after [a-z ]+: )?(?P<evicted>.*)\)"
    r"|to (?:Retry|Rejected) with message: (?:Retrying after [a-z ]+: )?(?P<checked>.*))$",
    re.DOTALL,
)


def passed_on(words: str) -> str:
    """The autoscaler's message about a request that failed, in what Kueue says; "" for none.

    Args:
        words: The message of a workload's condition, or of an event about its admission check.
    """
    found = _PASSED_ON.search(words)
    return (found["evicted"] or found["checked"] or "") if found else ""


def named(message: str) -> str:
    """The reason that a message belongs to; "" if several reasons, or none known, have it."""
    return next((it for words, it in _MESSAGES if message.startswith(words)), "")


def advice(reason: str, message: str, *, waiting: bool = False) -> str:
    """What to do about a reason; "" if it is not known.

    Args:
        reason: The autoscaler's; "" if only the message is known.
        message: The autoscaler's.
        waiting: Whether the request stays in Google's queue all the same.
    """
    refusal = refusals.read(reason or named(message), message)
    if refusal is Refusal.QUOTA:
        return _quota(refusals.quota(message))
    if refusal is Refusal.NOT_YET:
        return _WAIT
    if refusal is Refusal.STOCKOUT:
        return (
            f"{_WAIT}: wait, or try another zone, region or machine type" if waiting else _ELSEWHERE
        )
    return _ADVICE.get(reason or named(message), "")


def _quota(quota: Quota | None) -> str:
    asking = "in the console (IAM & Admin > Quotas), or use fewer GPUs"
    if quota is None:
        return f"request a higher quota {asking}"
    place = f" of {quota.region}" if quota.region else ""
    return f"request a higher quota {quota.metric}{place}, now {quota.limit:g}, {asking}"
