"""Resource policies: how VMs are placed."""

from collections.abc import Callable, Iterator, Mapping

from rehearsal.cloud.compute import links, resources
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, POLICY, Call, Resource
from rehearsal.cloud.compute.rest import Rest
from rehearsal.cloud.facts import machines, places
from rehearsal.cloud.wire import GoogleError

_SIMULATED = frozenset({"groupPlacementPolicy", "workloadPolicy"})


def check_usable(call: Call, names: list[str], machine: str) -> None:
    """Refuse policies that VMs of a machine type in the call's zone cannot have."""
    region = places.region_of(call.parameters["zone"])
    for name in names:
        full = POLICY.prefix(call.project, region) + links.last(name)
        policy = resources.require_ready(call, POLICY, full)
        if "groupPlacementPolicy" in policy and not machines.takes_compact(machine):
            raise GoogleError(
                400,
                f"Compact placement policies do not support the machine type {machine}.",
                reason="invalid",
            )


def resolve_workload(call: Call, reference: str) -> str:
    """The link of a group's workload policy."""
    field = "resourcePolicies.workloadPolicy"
    policy = resources.require_ready(call, POLICY, call.resolve(reference, POLICY, field))
    if "workloadPolicy" not in policy:
        raise links.invalid(field, reference, "The resource policy is not a workload policy.")
    return str(policy["selfLink"])


def _completed(_call: Call, body: Resource) -> Resource:
    # The provider sends null for a kind of policy that is not configured: that is gone by now.
    if body.keys().isdisjoint(_SIMULATED):
        raise GoogleError(501, "Policies of this kind are not part of the simulated cloud.")
    return {**body, "region": None, "status": "READY"}


def _users(call: Call, link: str) -> Iterator[str]:
    for name, group in resources.each(call, GROUP_MANAGER, f"projects/{call.project}/"):
        if (group.get("resourcePolicies") or {}).get("workloadPolicy") == link:
            yield name
    for name, instance in resources.each(call, INSTANCE, f"projects/{call.project}/"):
        if link in (instance.get("resourcePolicies") or []):
            yield name


METHODS: Mapping[str, Callable[[Call], Resource]] = Rest(
    kind=POLICY, completed=_completed, users=_users
).methods("insert", "get", "list", "aggregatedList", "delete")
