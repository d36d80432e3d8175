"""GKE's autoscaler's words for what keeps a ProvisioningRequest from its nodes.

Reasons and messages are those of its published source (2026-08-21): what a person reads of a real
cluster is compared by them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Said:
    """What a condition says."""

    reason: str
    message: str


@dataclass(frozen=True)
class Error:
    """An error of Compute Engine."""

    code: str  # such as "QUOTA_EXCEEDED"; "" for an answer that has none
    message: str
    # what it says of machines that a zone has not: reason, vmType, attachment
    details: Mapping[str, str]


NOT_ACCEPTED: Final = Said("NotAccepted", "Provisioning Request wasn't accepted.")
ACCEPTED: Final = Said("SuccessfullyQueued", "Provisioning Request was successfully queued.")
PROVISIONED: Final = Said("Provisioned", "Provisioning Request was successfully provisioned.")
EXPIRED: Final = Said(
    "BookingExpired",
    "Capacity booking for the Provisioning Request has expired and the nodes are now candidates for"
    " scale down when underutilized.",
)
REVOKED: Final = Said(
    "CapacityRevoked",
    "Capacity provisioned for the Provisioning Request was reclaimed and is no longer available in"
    " the cluster.",
)
LATE: Final = Said(
    "WaitTimeExceeded",
    "Provisioning Request could not provision queued instances in the allocated time.",
)
CANCELLED: Final = Said(
    "InternalErrorResizeRequestGotCancelled",
    "Provisioning Request failed because Resize Request got cancelled.",
)
MISSING: Final = Said("MissingResizeRequest", "The corresponding Resize Request was missing.")
NO_POOL: Final = Said(
    "NoQueuedNodepoolAvailable",
    "No nodepool with QueuedProvisioning enabled is available for scale up",
)

_MOST_POOLS: Final = 10
_MOST_PREDICATES: Final = 5


def full(pools: Sequence[str]) -> Said:
    """Pools that may have no more nodes, or not so many."""
    return Said("NodepoolSizeReached", f"Max nodepool size reached, affected {_named(pools)}")


def in_backoff(pools: Sequence[str]) -> Said:
    """Pools that rest after a failure."""
    words = f"Nodepool in backoff after failed scale-up, affected {_named(pools)}"
    return Said("NodepoolInBackoff", words)


def unschedulable(pools: Mapping[str, Sequence[str]]) -> Said:
    """Pools whose nodes would not run the pods, each with the scheduler's reasons."""
    found = [f"{name} ({', '.join(why)})" for name, why in pools.items()]
    words = (
        "Provisioning Request's pods cannot be scheduled in the nodepool. Predicate checking"
        f" errors: {_cut(found, _MOST_PREDICATES)}"
    )
    return Said("ProvisioningRequestNotSchedulableInNodepool", words)


def _named(pools: Sequence[str]) -> str:
    return f"nodepools: {_cut(pools, _MOST_POOLS)}"


def _cut(names: Sequence[str], most: int) -> str:
    return ", ".join([*names[:most], *(["..."] if len(names) > most else [])])


def missing_templates(names: Sequence[str], referenced: int, *, failed: bool) -> Said:
    """Templates of pods that are not there."""
    words = (
        f"missing pod templates, {referenced} pod templates were referenced, {len(names)} templates"
        f" were missing: {','.join(names)}"
    )
    soon = f"Provisioning Request will fail soon as it is {words}"
    over = f"Provisioning Request failed because there were {words}"
    return Said("MissingPodTemplates", over if failed else soon)


def unreadable_run(text: str) -> Said:
    """A run duration that is no number; the sentence is believed, the reason is not."""
    words = f'maxRunDurationSeconds "{text}" is not a base-10 integer'
    return Said("InvalidArgumentMaxRunDurationParseError", words)


# ------------------------------------------------------------------ Compute Engine's errors

_REFUSED_PLAINLY: Final[Mapping[str, str]] = {
    "INVALID_ARGUMENT": "InvalidArgument",
    "UNSUPPORTED_OPERATION": "UnsupportedOperation",
    "QUOTA_EXCEEDED": "QuotaExceeded",
    "INVALID_MACHINE_TYPE": "InvalidMachineType",
    "INVALID_GPU_TYPE": "InvalidGPUType",
    "PERMISSION_DENIED": "PermissionDenied",
    "CONDITION_NOT_MET": "ConditionNotMet",
    "INVALID_RESERVATION": "InvalidReservation",
    "RESERVATION_NOT_FOUND": "ReservationNotFound",
    "RESERVATION_NOT_READY": "ReservationNotReady",
    "RESERVATION_CAPACITY_EXCEEDED": "ReservationCapacityExceeded",
    "RESERVATION_INCOMPATIBLE": "ReservationIncompatible",
}
WITHOUT_BACKOFF: Final = frozenset({"INVALID_ARGUMENT", "UNSUPPORTED_OPERATION"})
"""Codes of refusals that are the request's own fault: its group may be asked again at once."""


def refused(error: Error, group: str, zone: str) -> Said:
    """A resize request of a group (to the autoscaler, a node pool) that is not taken."""
    if error.code in _REFUSED_PLAINLY:
        return Said(_REFUSED_PLAINLY[error.code], error.message)
    if error.code == "QUEUING_INFEASIBLE_NO_CAPACITY":
        words = (
            f"Could not enqueue the Provisioning Request due to insufficient capacity in zone"
            f" {zone}. Try different locations or hardware."
        )
        return Said("QueuingInfeasibleNoCapacity", words)
    if error.code == "AGGREGATE_RESERVATION_NOT_EXIST":
        words = "Provisioning Request is not supported in this zone. Try different locations."
        return Said("ZoneNotSupported", words)
    said = f'[{error.code}] "{error.message}"' if error.code else error.message
    words = (
        f'Provisioning Request failed to queue in nodepool "{group}" in zone {zone}, got error:'
        f" {said}"
    )
    return Said("InternalErrorFailedToQueue", words)


_EXHAUSTED: Final = frozenset(
    {
        "RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED",
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
    }
)
_REPORTED: Final[Mapping[str, str]] = {
    **dict.fromkeys(_EXHAUSTED, "ResourcePoolExhausted"),
    "IP_SPACE_EXHAUSTED": "IPSpaceExhausted",
    "PERMISSIONS_ERROR": "PermissionsError",
    "LIMIT_EXCEEDED": "LimitExceeded",
    **{code: it for code, it in _REFUSED_PLAINLY.items() if "RESERVATION" in code},
}
_UNKNOWN: Final = "InternalError"
_EXTERNAL: Final = "compute.vmExternalIpAccess"


def _reason(error: Error) -> str:
    if "QUOTA" in error.code:
        return "QuotaExceeded"
    if error.code == "CONDITION_NOT_MET" and _EXTERNAL in error.message:
        return "VMExternalIPAccessPolicyConstraint"
    return _REPORTED.get(error.code, _UNKNOWN)


def _words(error: Error) -> str:
    if error.code not in _EXHAUSTED or not error.details:
        return error.message
    reason, machine, attached = (
        error.details.get(key, "") for key in ("reason", "vmType", "attachment")
    )
    return f'{error.message} Reason: "{reason}", VMType: "{machine}", Attachment: "{attached}".'


def waiting(errors: Sequence[Error]) -> Said | None:
    """What the last attempt of a request that waits came to; None without an error."""
    if not errors:
        return None
    quota = next((it for it in errors if it.code == "QUOTA_EXCEEDED"), None)
    chosen = quota or errors[0]
    return Said(_reason(chosen), _words(chosen))


_TIME_IS_UP: Final = "Resize request could not provision queued instances in the allocated time."
_MOST_REMAINING: Final = 5


def ended(errors: Sequence[Error]) -> Said:
    """A request that failed after it had been accepted."""
    if not errors:
        words = "Provisioning Request failed, but no errors with details can be provided."
        return Said("InternalErrorResizeRequestFailed", words)
    known = [it for it in errors if _reason(it) != _UNKNOWN]
    if not known:
        shown = "; ".join(f'[{it.code}] "{it.message}"' for it in errors)
        plural = "s" if len(errors) > 1 else ""
        return Said(_UNKNOWN, f"Received unrecognized error{plural}: {shown}")
    last = known[-1]
    if last.code == "LIMIT_EXCEEDED" and last.message == _TIME_IS_UP:
        return LATE
    others = [it for it in errors if it is not last][-_MOST_REMAINING:]
    rest = "; ".join(f'[{it.code}] "{it.message}"' for it in others)
    more = f"; The remaining received errors: {rest}" if rest else ""
    return Said(_reason(last), f"{_words(last)}{more}")
