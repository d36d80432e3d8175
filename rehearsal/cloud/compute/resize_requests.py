"""Resize requests: VMs of a group that come all at once, when there is room for them.

The agenda moves a request on: it is accepted, or fails for good, and later the VMs are granted. A
request counts in the size of its group from the beginning, until it fails or is given up. The rules
are those of Google's pages on resize requests and flex start, and of the published source of GKE's
autoscaler (2026-08-21).
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping

from rehearsal.cloud.compute import agenda, fleet, links, lists, operations, refusals, resources
from rehearsal.cloud.compute.resources import (
    GROUP_MANAGER,
    RESIZE_REQUEST,
    TEMPLATE,
    Call,
    Resource,
)
from rehearsal.cloud.wire import GoogleError

_OPEN = frozenset({"CREATING", "ACCEPTED"})
_LARGEST = 1000
_SHORTEST_RUN, _LONGEST_RUN = 600, 604_800

# Seconds of cloud time from the request on, and how long one that has ended can be looked at.
_ACCEPTED_AFTER, _GRANTED_AFTER, _QUEUED = 5.0, 20.0, 300.0
_SOME = 2
_REMEMBERED = 14 * 86_400.0
_SLOWEST = 0.001


def _base(call: Call) -> str:
    return f"{call.name(GROUP_MANAGER)}/resizeRequests/"


def _of_group(call: Call, group: str) -> Iterator[tuple[str, Resource]]:
    return resources.each(call, RESIZE_REQUEST, f"{group}/resizeRequests/")


def open_request(call: Call, group: str) -> str | None:
    """The name of a request of the group that has not ended, if there is one."""
    waiting = (name for name, it in _of_group(call, group) if it["state"] in _OPEN)
    return next(waiting, None)


def check_resizable(call: Call, group: str) -> None:
    """Refuse another size of a group while one of its requests waits."""
    name = open_request(call, group)
    if name is not None:
        raise GoogleError(
            400,
            f"The target size of '{group}' cannot be changed while resize request"
            f" '{links.last(name)}' is in progress. Cancel it first.",
            reason="conditionNotMet",
        )


def awaited(call: Call, group: str, end: float) -> float:
    """When a group's deletion ends (Unix epoch): not before its requests have, if that is later."""
    if open_request(call, group) is None:
        return end
    # Also where no time passes, somebody has to cancel the request.
    return call.now + _REMEMBERED * max(call.request.rate, _SLOWEST)


def note_deletion(call: Call, group: str, operation: str) -> None:
    """Remember the operation that deletes a group, which may have to wait for a request's end."""
    kept = resources.find(call, GROUP_MANAGER, group)
    if kept is not None:
        resources.keep(call, GROUP_MANAGER, group, {**kept, "_deletion": operation})


def _release(call: Call, name: str, group: Resource) -> None:
    """Let the deletion of a group go on that has waited for a request."""
    if "_deletion" not in group or open_request(call, name) is not None:
        return
    gone = call.now + operations.duration("instanceGroupManagers.delete") * call.request.rate
    operations.end_at(call.store, group["_deletion"], gone)
    resources.keep(call, GROUP_MANAGER, name, {**group, "_gone": gone})
    forget(call, name, gone)


def forget(call: Call, group: str, gone: float) -> None:
    """Let the requests of a group go with it, at the moment given."""
    for name, request in _of_group(call, group):
        resources.keep(call, RESIZE_REQUEST, name, {**request, "_gone": gone})


def _seconds(request: Resource) -> int | None:
    given = request.get("requestedRunDuration")
    return None if given is None else int(given.get("seconds", 0))


def _check(call: Call, body: Resource, name: str, group: Resource) -> None:
    """Refuse what no request may ask for, or may ask of this group."""
    count = body.get("resizeBy", 0)
    if not 1 <= count <= _LARGEST:
        raise links.invalid("resizeBy", count, f"Must be between 1 and {_LARGEST}.")
    if group["targetSize"] + count > _LARGEST:
        most = f"A group has at most {_LARGEST} instances; '{name}' has {group['targetSize']}."
        raise links.invalid("resizeBy", count, most)
    seconds = _seconds(body)
    if seconds is not None and seconds < _SHORTEST_RUN:
        raise GoogleError(
            400,
            "Specified maxRunDuration is too short. Minimum value is equal to 10 minutes.",
        )
    if seconds is not None and seconds > _LONGEST_RUN:
        between = f"Must be between {_SHORTEST_RUN} and {_LONGEST_RUN} seconds."
        raise links.invalid("requestedRunDuration.seconds", seconds, between)
    template = resources.require(call, TEMPLATE, links.name_of(group["instanceTemplate"]))
    for problem in _problems(group, template["properties"]):
        raise GoogleError(
            400,
            f"Resize requests are not supported by instance group manager '{name}': {problem}",
            reason="conditionNotMet",
        )


def _problems(group: Resource, wanted: Resource) -> Iterator[str]:
    """What a group, or its template, has that does not go with resize requests."""
    if "statefulPolicy" in group or "allInstancesConfig" in group:
        yield "it has a stateful policy or an all-instances configuration."
    if wanted["scheduling"]["provisioningModel"] == "SPOT":
        yield "its instance template has the provisioning model SPOT."
    if wanted["scheduling"]["provisioningModel"] != "FLEX_START":
        return
    if group["instanceLifecyclePolicy"]["defaultActionOnFailure"] != "DO_NOTHING":
        yield "its default action on failure must be DO_NOTHING."
    if group["updatePolicy"]["type"] != "OPPORTUNISTIC":
        yield "its update policy must be of type OPPORTUNISTIC."
    if wanted.get("resourcePolicies"):
        yield "its instance template has a placement policy."


def _insert(call: Call) -> Resource:
    group_name = call.name(GROUP_MANAGER)
    group = resources.require_ready(call, GROUP_MANAGER, group_name)
    body = resources.without_nulls(call.body)
    _check(call, body, group_name, group)
    name = _base(call) + body["name"]
    fields = {**body, "zone": None, "state": "CREATING", "status": {}}
    resources.create(call, RESIZE_REQUEST, name, fields)
    _count(call, name, body["resizeBy"])
    _plan(call, "acceptance", _ACCEPTED_AFTER, name)
    return _operate(call, "createResizeRequest", group_name, group)


def _plan(call: Call, what: str, seconds: float, name: str) -> None:
    agenda.note(call, call.request.after(seconds), what, request=name)


def _operate(call: Call, kind: str, group_name: str, group: Resource) -> Resource:
    """Begin an operation on the group, whose type is not the method's name."""
    named = dataclasses.replace(call, method=f"instanceGroupManagers.{kind}")
    return named.operate(group_name, group["id"])


def accept(call: Call, about: Resource) -> None:
    """A new request is accepted, unless Google knows that it can never be fulfilled.

    Under `queue`, `some` and `never` it is accepted whatever keeps its VMs from coming: it goes on
    trying, and tells the error of its last attempt.
    """
    name = about["request"]
    request = resources.find(call, RESIZE_REQUEST, name)
    if request is None or request["state"] != "CREATING":
        return
    template = _template_of(call, name)
    refusal = refusals.of(call, template, int(request["resizeBy"]))
    scenarios = call.request.scenarios
    status = {}
    if not scenarios.isdisjoint({"queue", "some", "never"}):
        refusal = refusal or refusals.exhausted(call, call.parameters["zone"], template)
        status = {"lastAttempt": {"error": {"errors": [refusal]}}}
    elif refusal is not None:
        _end(call, name, request, "FAILED", {"error": {"errors": [_infeasible(refusal)]}})
        return
    kept = {**request, "state": "ACCEPTED", "status": status}
    resources.keep(call, RESIZE_REQUEST, name, kept)
    _plan(call, "grant", _QUEUED if "queue" in scenarios else _GRANTED_AFTER, name)


def _infeasible(refusal: Resource) -> Resource:
    """A refusal as a request gets it that is not even queued: a stock-out has a code of its own."""
    if not refusal["code"].startswith("ZONE_RESOURCE_POOL_EXHAUSTED"):
        return refusal
    return {**refusal, "code": "QUEUING_INFEASIBLE_NO_CAPACITY"}


def _count(call: Call, name: str, more: int) -> None:
    """Let a group be as much larger, or smaller, as a request that it counts, or no longer."""
    group_name = name.partition("/resizeRequests/")[0]
    group = resources.find(call, GROUP_MANAGER, group_name)
    if group is not None and "_gone" not in group:
        size = max(0, group["targetSize"] + more)
        resources.keep(call, GROUP_MANAGER, group_name, {**group, "targetSize": size})


def grant(call: Call, about: Resource) -> None:
    """The VMs of a request come, all of them, unless something keeps them from coming still."""
    name = about["request"]
    request = resources.find(call, RESIZE_REQUEST, name)
    if request is None or request["state"] != "ACCEPTED":
        return
    group_name = name.partition("/resizeRequests/")[0]
    group = resources.require(call, GROUP_MANAGER, group_name)
    if _holds_back(call, group_name, int(request["resizeBy"])) or (
        "_gone" not in group
        and refusals.of(call, _template_of(call, name), int(request["resizeBy"])) is not None
    ):
        resources.keep(call, RESIZE_REQUEST, name, {**request, "_stuck": True})
        return
    _end(call, name, request, "SUCCEEDED", {})
    if "_gone" in group:
        _release(call, group_name, group)
        return
    fleet.grow(
        call,
        group_name,
        group,
        request["resizeBy"],
        run_seconds=_seconds(request),
        request=links.last(name),
    )


def _holds_back(call: Call, group: str, count: int) -> bool:
    """Whether a scenario keeps Google from giving so many more VMs of flex start to a group."""
    if "some" not in call.request.scenarios:
        return "never" in call.request.scenarios
    waits = (int(it["resizeBy"]) for _, it in _of_group(call, group) if it["state"] in _OPEN)
    there = resources.require(call, GROUP_MANAGER, group)["targetSize"] - sum(waits)
    return bool(there + count > _SOME)


def _settled(call: Call, name: str, request: Resource) -> Resource:
    """A request as it is now: `never` lasts as long as the scenario does."""
    if "_stuck" not in request or request["state"] != "ACCEPTED":
        return request
    grant(call, {"request": name})
    return resources.require(call, RESIZE_REQUEST, name)


def _template_of(call: Call, request: str) -> Resource:
    group = resources.require(call, GROUP_MANAGER, request.partition("/resizeRequests/")[0])
    return resources.require(call, TEMPLATE, links.name_of(group["instanceTemplate"]))


def _end(call: Call, name: str, request: Resource, state: str, status: Resource) -> None:
    """A request has come to its end; Google forgets it after two weeks."""
    if state != "SUCCEEDED":
        _count(call, name, -request["resizeBy"])
    ended = {**request, "state": state, "status": status}
    if call.request.rate:
        ended["_gone"] = call.request.after(_REMEMBERED)
    resources.keep(call, RESIZE_REQUEST, name, ended)


def _required(call: Call) -> tuple[str, Resource, Resource]:
    """The name of the request that the path names, the request, and its group."""
    group = resources.require(call, GROUP_MANAGER, call.name(GROUP_MANAGER))
    name = _base(call) + call.parameters["resizeRequest"]
    return name, resources.require(call, RESIZE_REQUEST, name), group


def _get(call: Call) -> Resource:
    name, request, _ = _required(call)
    return resources.show(_settled(call, name, request))


def _list(call: Call) -> Resource:
    resources.require(call, GROUP_MANAGER, call.name(GROUP_MANAGER))
    base = _base(call)
    found = resources.each(call, RESIZE_REQUEST, base)
    entries = ((name, resources.show(_settled(call, name, it))) for name, it in found)
    return lists.listed(call, RESIZE_REQUEST.singular, base.removesuffix("/"), entries)


def _cancel(call: Call) -> Resource:
    name, request, group = _required(call)
    if request["state"] not in _OPEN:
        raise GoogleError(
            400,
            "Cancelling resize request that has reached a final state is not possible.",
            reason="badRequest",
        )
    group_name = call.name(GROUP_MANAGER)
    _end(call, name, request, "CANCELLED", request["status"])
    _release(call, group_name, resources.require(call, GROUP_MANAGER, group_name))
    return _operate(call, "cancelResizeRequest", group_name, group)


def _delete(call: Call) -> Resource:
    name, request, group = _required(call)
    if request["state"] in _OPEN:
        raise GoogleError(
            400,
            f"Resize request '{links.last(name)}' in state {request['state']} cannot be deleted."
            " Cancel it first.",
            reason="badRequest",
        )
    resources.keep(call, RESIZE_REQUEST, name, {**request, "_gone": call.end()})
    return _operate(call, "deleteResizeRequest", call.name(GROUP_MANAGER), group)


HAPPENINGS: Mapping[str, Callable[[Call, Resource], None]] = {
    "acceptance": accept,
    "grant": grant,
}
"""What happens to a request with time."""

METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instanceGroupManagerResizeRequests.insert": _insert,
    "instanceGroupManagerResizeRequests.get": _get,
    "instanceGroupManagerResizeRequests.list": _list,
    "instanceGroupManagerResizeRequests.cancel": _cancel,
    "instanceGroupManagerResizeRequests.delete": _delete,
}
