"""Resource policies: how VMs are placed, and what else a region keeps in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud.compute import links, lists, quotas, resources
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, POLICY, Call, Resource
from rehearsal.cloud.facts import placement, places
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

_KINDS = (
    "diskConsistencyGroupPolicy",
    "groupPlacementPolicy",
    "instanceSchedulePolicy",
    "snapshotSchedulePolicy",
    "workloadPolicy",
)
_PLACEMENTS = 1500
"""The greatest number of VMs in a placement policy."""


def check_usable(call: Call, names: list[str], machine: str) -> None:
    """Refuse policies that VMs of a machine type in the call's zone cannot have."""
    region = places.region_of(call.parameters["zone"])
    for name in names:
        full = POLICY.prefix(call.project, region) + links.last(name)
        policy = resources.require_ready(call, POLICY, full)
        if "groupPlacementPolicy" in policy and not placement.takes_compact(machine):
            raise GoogleError(
                400,
                f"Compact placement policies do not support the machine type {machine}.",
                reason="invalid",
            )


def resolve_workload(call: Call, reference: str) -> str:
    """The link of a group's workload policy."""
    field = "resourcePolicies.workloadPolicy"
    name = call.resolve(reference, POLICY, field)
    policy = resources.require_ready(call, POLICY, name)
    if "workloadPolicy" not in policy:
        raise links.invalid(field, reference, "The resource policy is not a workload policy.")
    if links.last(policy["region"]) != places.region_of(call.parameters["zone"]):
        raise links.invalid(field, reference, "The resource policy is in another region.")
    return str(policy["selfLink"])


def _check(body: Resource) -> None:
    given = [kind for kind in _KINDS if kind in body]
    if len(given) != 1:
        raise GoogleError(
            400,
            f"Exactly one kind of policy is required, found {', '.join(given) or 'none'}.",
            reason="invalid",
        )
    placement = body.get("groupPlacementPolicy", {})
    if placement.get("vmCount", 1) not in range(1, _PLACEMENTS + 1):
        at_most = f"Must be between 1 and {_PLACEMENTS}."
        raise links.invalid("groupPlacementPolicy.vmCount", placement["vmCount"], at_most)
    workload = body.get("workloadPolicy", {})
    if "workloadPolicy" in body and "type" not in workload:
        raise GoogleError(
            400, "Required field 'resource.workloadPolicy.type' not specified", reason="required"
        )
    if workload.get("type") == "HIGH_AVAILABILITY" and len(workload) > 1:
        only = "Only a HIGH_THROUGHPUT policy has a topology."
        raise links.invalid("workloadPolicy.type", workload["type"], only)


def _insert(call: Call) -> Resource:
    # The provider sends null for a kind of policy that is not configured.
    body = resources.without_nulls(call.body)
    _check(body)
    quotas.check(call, POLICY)
    return resources.insert(call, POLICY, {**body, "region": None, "status": "READY"})


def _patch(call: Call) -> Resource:
    name = call.name(POLICY)
    policy = resources.require_ready(call, POLICY, name)
    changed = resources.merge(policy, call.body)
    _check(changed)
    return resources.change(call, POLICY, name, changed)


def _users(call: Call, link: str) -> Iterator[str]:
    for name, group in resources.each(call, GROUP_MANAGER, f"projects/{call.project}/"):
        if (group.get("resourcePolicies") or {}).get("workloadPolicy") == link:
            yield name
    for name, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if link in (instance.get("resourcePolicies") or []):
            yield name


def _delete(call: Call) -> Resource:
    name = call.name(POLICY)
    for user in _users(call, links.ROOT + name):
        raise resources.in_use(POLICY, name, user)
    return resources.remove(call, POLICY, name)


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "resourcePolicies.insert": _insert,
    "resourcePolicies.get": resources.get(POLICY),
    "resourcePolicies.list": lists.of_place(POLICY),
    "resourcePolicies.aggregatedList": lists.of_project(POLICY),
    "resourcePolicies.patch": _patch,
    "resourcePolicies.delete": _delete,
}
