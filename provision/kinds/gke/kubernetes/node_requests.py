"""ProvisioningRequests: where each stands, what it waits for, how long yet, what fixes it."""

from __future__ import annotations

import dataclasses
import datetime as dt
from typing import TYPE_CHECKING, Any, Final, assert_never

from provision.documents.gke_status import JobState, NodeRequest, RequestState
from provision.kinds.gke.kubernetes import reasons
from provision.kinds.gke.kubernetes.objects import conditions, holds
from provision.kinds.gke.kubernetes.workloads import GIVEN_UP
from provision.time.clock import Clock

if TYPE_CHECKING:
    from collections.abc import Mapping

    from provision.kinds.gke.kubernetes.objects import Object

API: Final = "autoscaling.x-k8s.io/v1"
KIND: Final = "ProvisioningRequest"

_START: Final = (
    "start the pods within 10 minutes after the nodes came, otherwise the autoscaler removes the"
    " nodes"
)
_EXPIRED: Final = (
    "no job runs on its nodes, so the autoscaler removes them: delete the request and submit the"
    " job again"
)
_UNKNOWN: Final = (
    "no job of the queue made it: its nodes stay as long as pods run on them, and go when none does"
)
_RETRIED: Final = "Kueue tries again"
_MADE_BY_HAND: Final = "no job of the queue made it: fix the cause, and submit it again"
_PLACELESS_SECONDS: Final = 120
"""How long a request may be without a pool that takes it (the autoscaler's source)."""
_BOOKED_SECONDS: Final = 600
"""How long the nodes of a request are kept without pods (rule Q12)."""
_LONGEST_RUN_SECONDS: Final = 604_800
_CLOCK: Final = Clock()
_WITH_NODES: Final = frozenset({JobState.STARTING, JobState.RUNNING, JobState.ENDING})


def read(thing: Object, job: JobState | None = None, clock: Clock = _CLOCK) -> NodeRequest:
    """Read the state of a ProvisioningRequest (rules Q12 to Q14, and the autoscaler's source).

    `job`: the state of its job; None if no job of the queue made it. The booking of the nodes
    expires 10 minutes after they came, whether or not a job runs on them: alone it says nothing.
    """
    state, kind = _state(thing, job)
    condition = conditions(thing).get(kind, {})
    reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
    name, created = thing["metadata"]["name"], thing["metadata"].get("creationTimestamp")
    found = NodeRequest(name=name, state=state, created=created)
    if state not in {RequestState.RUNNING, RequestState.DONE}:
        found = dataclasses.replace(found, reason=reason, message=message)
    until, then = _until(thing, state, clock)
    return dataclasses.replace(
        found,
        advice=_advice(state, reason, message, job),
        waits_for=_waits_for(state, reason, message),
        since=_since(thing, state),
        until=until,
        then=then,
    )


def _state(thing: Object, job: JobState | None) -> tuple[RequestState, str]:
    """The state of a request, and the condition that decides it; "" for none."""
    said = conditions(thing)
    if holds(thing, "Failed"):
        found = RequestState.FAILED, "Failed"
    elif holds(thing, "CapacityRevoked"):
        # Every run ends so, that of a job that had finished long before as well.
        ended = RequestState.DONE if job is JobState.FINISHED else RequestState.ENDED
        found = ended, "CapacityRevoked"
    elif holds(thing, "Provisioned") or holds(thing, "BookingExpired"):
        found = _granted(thing, job)
    elif "Provisioned" in said:
        found = RequestState.WAITING, "Provisioned"
    elif holds(thing, "Accepted"):
        found = RequestState.ACCEPTED, "Accepted"
    else:
        found = RequestState.PENDING, "Accepted" if "Accepted" in said else ""
    return found


def _granted(thing: Object, job: JobState | None) -> tuple[RequestState, str]:
    """The same of a request whose nodes have come."""
    if job in _WITH_NODES:
        return RequestState.RUNNING, "Provisioned"
    if job is JobState.FINISHED:
        return RequestState.DONE, "Provisioned"
    if holds(thing, "BookingExpired"):
        return RequestState.EXPIRED, "BookingExpired"
    return RequestState.PROVISIONED, "Provisioned"


def _advice(state: RequestState, reason: str, message: str, job: JobState | None) -> str:
    """What a person can do; "" for nothing but to wait."""
    match state:
        case RequestState.FAILED:
            if job is None:
                usual = _MADE_BY_HAND
            else:
                usual = GIVEN_UP if job is JobState.GIVEN_UP else _RETRIED
            return reasons.advice(reason, message) or usual
        case RequestState.WAITING:
            return reasons.advice(reason, message, waiting=True)
        case RequestState.PENDING | RequestState.ACCEPTED | RequestState.ENDED:
            return reasons.advice(reason, message)
        case RequestState.PROVISIONED:
            return _START
        case RequestState.EXPIRED:
            return _UNKNOWN if job is None else _EXPIRED
        case RequestState.RUNNING | RequestState.DONE:
            return ""
        case _:
            assert_never(state)


def _waits_for(state: RequestState, reason: str, message: str) -> str:
    """What a request waits for, or got no nodes for lack of."""
    match state:
        case RequestState.PENDING:
            return reasons.lacks(reason, message) or "a pool that takes it"
        case RequestState.ACCEPTED:
            return "all its machines at once"
        case RequestState.WAITING:
            return reasons.lacks(reason, message) or "all its machines at once"
        case RequestState.FAILED | RequestState.ENDED:
            return reasons.lacks(reason, message)
        case RequestState.PROVISIONED:
            return "its pods"
        case RequestState.RUNNING | RequestState.EXPIRED | RequestState.DONE:
            return ""
        case _:
            assert_never(state)


def _since(thing: Object, state: RequestState) -> str | None:
    """Since when a request is in its state; a change of a reason alone is no new beginning."""
    match state:
        case RequestState.PENDING:
            kind = ""
        case RequestState.ACCEPTED | RequestState.WAITING:
            kind = "Accepted"
        case RequestState.PROVISIONED | RequestState.RUNNING | RequestState.DONE:
            kind = "Provisioned"
        case RequestState.EXPIRED:
            kind = "BookingExpired"
        case RequestState.FAILED:
            kind = "Failed"
        case RequestState.ENDED:
            kind = "CapacityRevoked"
        case _:
            assert_never(state)
    found: str | None = conditions(thing).get(kind, {}).get("lastTransitionTime")
    return found or thing["metadata"].get("creationTimestamp")


def _until(thing: Object, state: RequestState, clock: Clock) -> tuple[str | None, str]:
    """When the state of a request ends automatically, and what happens then."""
    created = thing["metadata"].get("creationTimestamp")
    came = _changed(conditions(thing).get("Provisioned", {}))
    parameters = (thing.get("spec") or {}).get("parameters") or {}
    match state:
        case RequestState.PENDING:
            return _after(
                created, clock.wall(_PLACELESS_SECONDS)
            ), "it fails, if no pool has taken it"
        case RequestState.ACCEPTED | RequestState.WAITING:
            patience = _seconds(parameters.get("ValidUntilSeconds"))
            if not patience:
                return None, ""
            return _after(created, clock.wall(patience)), "it gives up its place in Google's queue"
        case RequestState.PROVISIONED:
            return _after(came, clock.wall(_BOOKED_SECONDS)), "nodes without pods are removed"
        case RequestState.RUNNING | RequestState.EXPIRED:
            run = _seconds(parameters.get("maxRunDurationSeconds")) or _LONGEST_RUN_SECONDS
            return _after(came, clock.wall(run)), "Google deletes its nodes"
        case RequestState.FAILED | RequestState.DONE | RequestState.ENDED:
            return None, ""
        case _:
            assert_never(state)


def _changed(condition: Mapping[str, Any]) -> str | None:
    return condition.get("lastTransitionTime")


def _seconds(text: object) -> int:
    return int(str(text)) if str(text).isdecimal() else 0


def _after(moment: str | None, seconds: float) -> str | None:
    if not moment:
        return None
    then = dt.datetime.fromisoformat(moment) + dt.timedelta(seconds=seconds)
    return then.isoformat(timespec="seconds").replace("+00:00", "Z")
