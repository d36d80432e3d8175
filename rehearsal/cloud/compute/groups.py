"""Managed instance groups of one zone."""

import operator
from collections.abc import Callable, Mapping

from rehearsal.cloud import paging, scenarios
from rehearsal.cloud.compute import (
    fleet,
    images,
    links,
    lists,
    properties,
    refusals,
    resize_requests,
    resource_policies,
    resources,
    shared_vpc,
    templates,
)
from rehearsal.cloud.compute.resources import (
    GROUP_MANAGER,
    INSTANCE,
    SUBNETWORK,
    TEMPLATE,
    Call,
    Resource,
)
from rehearsal.cloud.facts import machines, offers, places
from rehearsal.cloud.wire import GoogleError

_LARGEST = 1000  # VMs, unless its lists have pages (zonal-instance-group-manager-paginated)
_DEFAULTS: Resource = {
    "updatePolicy": {
        "type": "OPPORTUNISTIC",
        "minimalAction": "REPLACE",
        "replacementMethod": "SUBSTITUTE",
        "maxSurge": {"fixed": 1},
        "maxUnavailable": {"fixed": 1},
    },
    "standbyPolicy": {"mode": "MANUAL", "initialDelaySec": 0},
    "targetSuspendedSize": 0,
    "targetStoppedSize": 0,
    "instanceLifecyclePolicy": {
        "forceUpdateOnRepair": "NO",
        "defaultActionOnFailure": "REPAIR",
        "onFailedHealthCheck": "DEFAULT_ACTION",
        "onRepair": {"allowChangingZone": "NO"},
    },
    "listManagedInstancesResults": "PAGELESS",
}


def _completed(call: Call, given: Resource) -> Resource:
    # The provider sends {"workloadPolicy": null} and {"preservedState": {}} for what is not set,
    # and would see a difference for ever if they came back.
    result = {
        key: value
        for key, value in given.items()
        if key not in {"resourcePolicies", "statefulPolicy"} or any(value.values())
    }
    result = resources.defaults(result, _DEFAULTS)
    if result["updatePolicy"]["type"] != "OPPORTUNISTIC":
        raise GoogleError(501, "Proactive updates are not part of the simulated cloud.")
    result["updatePolicy"] = dict(result["updatePolicy"])
    for limit in ("maxSurge", "maxUnavailable"):
        result["updatePolicy"][limit] = _calculated(
            result["updatePolicy"][limit], result["targetSize"]
        )
    if "resourcePolicies" in result:
        workload = result["resourcePolicies"]["workloadPolicy"]
        result["resourcePolicies"] = {
            "workloadPolicy": resource_policies.resolve_workload(call, workload)
        }
    result["versions"] = _versions(call, result)
    result["instanceTemplate"] = result["versions"][0]["instanceTemplate"]
    _check_placement(call, result)
    return result


def _check_placement(call: Call, group: Resource) -> None:
    """Refuse policies that the VMs of a group cannot have, and the lack of one that they need."""
    template = resources.require(call, TEMPLATE, links.name_of(group["instanceTemplate"]))
    wanted = template["properties"]
    own, workload = wanted.get("resourcePolicies"), "resourcePolicies" in group
    machine, model = wanted["machineType"], wanted["scheduling"]["provisioningModel"]
    if own and workload:
        raise GoogleError(
            400,
            "A workload policy and an instance template with a placement policy exclude each"
            " other.",
            reason="invalid",
        )
    if workload and not machines.takes_workload(machine, model):
        raise GoogleError(
            400,
            f"Workload policies do not support the machine type {machine} with the"
            f" provisioning model {model}.",
            reason="invalid",
        )
    if machines.needs_policy(machine) and group["targetSize"] > 1 and not (own or workload):
        raise GoogleError(
            400,
            f"Several instances of the machine type {machine} need a placement or workload policy.",
            reason="invalid",
        )


def _calculated(given: Resource, size: int) -> Resource:
    count = given["fixed"] if "fixed" in given else -(-size * given.get("percent", 0) // 100)
    return {**given, "calculated": count}


def _versions(call: Call, group: Resource) -> list[Resource]:
    result = []
    for index, version in enumerate(group["versions"]):
        field = f"versions[{index}].instanceTemplate"
        template = templates.resolve(call, version.get("instanceTemplate", ""), field)
        _check_placeable(call, template)
        shared_vpc.check_agent(call, template)
        images.check_use(call, template)
        result.append({**version, "instanceTemplate": template["selfLink"]})
    return result


def _check_placeable(call: Call, template: Resource) -> None:
    """Refuse a template of which no VM can be made in the group's zone."""
    zone = call.parameters["zone"]
    wanted = template["properties"]
    where = f"projects/{call.project}/zones/{zone}"
    scenarios = call.request.scenarios
    if offers.machine_in(zone, wanted["machineType"], scenarios) is None:
        raise resources.not_found(f"{where}/machineTypes/{wanted['machineType']}")
    for name, _ in properties.accelerators(wanted):
        if name not in offers.gpus_in(zone, scenarios):
            raise resources.not_found(f"{where}/acceleratorTypes/{name}")
    named = wanted.get("resourcePolicies") or []
    resource_policies.check_usable(call, named, wanted["machineType"])
    properties.check_zone(call, zone, wanted["networkInterfaces"])
    for index, interface in enumerate(wanted["networkInterfaces"]):
        link = interface.get("subnetwork")
        if link is None:
            continue
        field = f"networkInterfaces[{index}].subnetwork"
        if resources.find(call, SUBNETWORK, links.name_of(link)) is None:
            raise links.invalid(field, link, "The referenced subnetwork resource cannot be found.")
        region = links.last(links.scope(links.name_of(link)))
        if region != places.region_of(zone):
            raise links.invalid(
                field, link, f"The subnetwork is in region {region}, the instance in zone {zone}."
            )


def _check_network(call: Call, group: Resource, template: str) -> None:
    """Refuse a template whose VMs would be in another network than those of the group's.

    "If you are creating a new template to update an existing instance group, your new instance
    template must use the same network" (compute v1, instanceTemplates.insert); the words are those
    that people met.
    """
    before, now = (_network(call, it) for it in (group["instanceTemplate"], template))
    if before and now != before:
        raise GoogleError(
            400,
            "Networks specified in new and old network interfaces must be the same."
            f" Expected: {before} Actual: {now}",
            reason="invalid",
        )


def _network(call: Call, template: str) -> str:
    """The path of the network of the first interface of a template's VMs; "" if it is gone."""
    found = resources.require(call, TEMPLATE, links.name_of(template))
    network = properties.network_of(call, found["properties"]["networkInterfaces"][0])
    return links.name_of(network["selfLink"]) if network else ""


def _check_size(size: int) -> None:
    if not 0 <= size <= _LARGEST:
        raise links.invalid("targetSize", size, f"Must be between 0 and {_LARGEST}.")


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    permission = "compute.instanceGroupManagers.create"
    if scenarios.is_withheld(permission, call.request.scenarios):
        name = call.prefix(GROUP_MANAGER) + body["name"]
        raise GoogleError(403, f"Required '{permission}' permission for '{name}'")
    _check_size(body["targetSize"])
    # A group's name is cut, if need be, for the names of its VMs.
    body["baseInstanceName"] = body.get("baseInstanceName") or body["name"][:58]
    group = _completed(call, body)
    name = call.prefix(GROUP_MANAGER) + body["name"]
    group["instanceGroup"] = links.ROOT + name.replace(
        "/instanceGroupManagers/", "/instanceGroups/"
    )
    group["fingerprint"] = resources.fingerprint(group)
    group = resources.create(call, GROUP_MANAGER, name, {**group, "_ready": call.end()})
    fleet.grow(call, name, group, group["targetSize"])
    return call.operate(name, group["id"])


def view(call: Call, name: str, group: Resource) -> Resource:
    """A group as it is answered, with what its VMs are up to."""
    counts = dict.fromkeys(fleet.ACTIONS, 0)
    members = fleet.members(call, name)
    for _, member in members:
        counts[fleet.action(member, call.now)] += 1
    missing = group["targetSize"] - sum("_gone" not in member for _, member in members)
    repairs = group["instanceLifecyclePolicy"]["defaultActionOnFailure"] == "REPAIR"
    lost = len(group.get("_lost", {}))
    counts["recreating"] += max(0, lost - sum("_remade" in member for _, member in members))
    counts["creating"] += (
        max(0, missing - lost) if repairs else len(group.get("_waiting", [])) - lost
    )
    reached = all(
        member["_template"] == group["instanceTemplate"] or "_gone" in member
        for _, member in members
    )
    versions = [
        {"targetSize": {"calculated": group["targetSize"]}, **version}
        for version in group["versions"]
    ]
    return {
        **resources.show(group),
        "versions": versions,
        "currentActions": counts,
        "status": {
            "isStable": not any(count for key, count in counts.items() if key != "none"),
            "stateful": {"hasStatefulConfig": False, "perInstanceConfigs": {"allEffective": True}},
            "versionTarget": {"isReached": reached},
            "allInstancesConfig": {"effective": True},
        },
    }


def _get(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    group = resources.require(call, GROUP_MANAGER, name)
    return view(call, name, fleet.retry(call, name, group))


def _list(call: Call) -> Resource:
    prefix = call.prefix(GROUP_MANAGER)
    found = resources.each(call, GROUP_MANAGER, prefix)
    entries = ((name, view(call, name, group)) for name, group in found)
    return lists.listed(call, GROUP_MANAGER.singular, prefix.removesuffix("/"), entries)


def _aggregated(call: Call) -> Resource:
    found = resources.each(call, GROUP_MANAGER, f"projects/{call.project}/")
    entries = ((name, view(call, name, group)) for name, group in found)
    return lists.aggregated(call, GROUP_MANAGER.collection, GROUP_MANAGER.singular, entries)


def _patch(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    changes = dict(call.body)
    if changes.pop("fingerprint", group["fingerprint"]) != group["fingerprint"]:
        raise GoogleError(412, "Invalid fingerprint.")
    size = changes.pop("targetSize", None)
    changed = _completed(call, resources.merge(group, changes))
    _check_network(call, group, changed["instanceTemplate"])
    own = group.get("resourcePolicies")
    if own and own != changed.get("resourcePolicies") and fleet.members(call, name):
        raise GoogleError(
            400,
            "The workload policy of a group with instances can be neither replaced nor removed.",
            reason="invalid",
        )
    changed["fingerprint"] = resources.fingerprint([changed, call.now])
    resources.keep(call, GROUP_MANAGER, name, changed)
    return call.operate(name, changed["id"]) if size is None else _resized(call, name, size)


def _resize(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    resources.require_ready(call, GROUP_MANAGER, name)
    return _resized(call, name, int(call.parameters["size"]))


def _resized(call: Call, name: str, size: int) -> Resource:
    _check_size(size)
    resize_requests.check_resizable(call, name)
    group = fleet.retry(call, name, resources.require(call, GROUP_MANAGER, name))
    group["targetSize"] = size
    resources.keep(call, GROUP_MANAGER, name, group)
    fleet.resize(call, name, group, size)
    return call.operate(name, group["id"])


def _delete(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    scenarios.spare(call.store, fleet.members(call, name))
    end = max(call.end(), fleet.shrink(call, name, len(fleet.members(call, name))))
    end = resize_requests.awaited(call, name, end)
    resize_requests.forget(call, name, end)
    resources.keep(call, GROUP_MANAGER, name, {**group, "targetSize": 0, "_waiting": []})
    operation = resources.remove(call, GROUP_MANAGER, name, end)
    resize_requests.note_deletion(call, name, links.name_of(operation["selfLink"]))
    return operation


_PAGE = 500


def _named_members(call: Call) -> tuple[str, list[str]]:
    """The group's name, and the names of the VMs that the body lists."""
    name = call.name(GROUP_MANAGER)
    own = {member for member, it in fleet.members(call, name) if "_gone" not in it}
    wanted = []
    for index, reference in enumerate(call.body.get("instances") or []):
        field = f"instances[{index}]"
        wanted.append(call.resolve(reference, INSTANCE, field))
        if wanted[-1] not in own:
            raise GoogleError(
                400,
                f"Invalid value for field '{field}': '{reference}'. Instance is not a member of "
                f"'{name}'.",
            )
    return name, wanted


def _delete_instances(call: Call) -> Resource:
    name, wanted = _named_members(call)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    fleet.retire(call, wanted)
    group["targetSize"] -= len(wanted)
    return resources.change(call, GROUP_MANAGER, name, group)


def _recreate_instances(call: Call) -> Resource:
    name, wanted = _named_members(call)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    fleet.recreate(call, group, wanted)
    return call.operate(name, group["id"])


def _apply_updates(call: Call) -> Resource:
    """Bring VMs to the present template, by REFRESH (labels, metadata) or by being replaced."""
    name, wanted = _named_members(call)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    template = resources.require(call, TEMPLATE, links.name_of(group["instanceTemplate"]))
    older = [
        member
        for member in wanted
        if resources.require(call, INSTANCE, member)["_template"] != group["instanceTemplate"]
        or call.body.get("minimalAction") == "REPLACE"
    ]
    if call.body.get("mostDisruptiveAllowedAction", "REPLACE") == "REPLACE":
        fleet.recreate(call, group, older)
    else:
        fleet.refresh(call, template, older)
    return call.operate(name, group["id"])


def _stop_instances(call: Call) -> Resource:
    """Stop VMs, which the group then neither starts nor makes again (compute v1, stopInstances)."""
    name, wanted = _named_members(call)
    group = resources.require_ready(call, GROUP_MANAGER, name)
    fleet.stop(call, wanted)
    group["targetSize"] -= len(wanted)
    group["targetStoppedSize"] += len(wanted)
    return resources.change(call, GROUP_MANAGER, name, group)


def _list_managed(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    group = fleet.retry(call, name, resources.require(call, GROUP_MANAGER, name))
    entries = [
        (
            member,
            {
                **_managed(group, member, instance["_template"]),
                "id": instance["id"],
                "instanceStatus": fleet.status(instance, call.now),
                "currentAction": fleet.action(instance, call.now).upper(),
            },
        )
        for member, instance in fleet.members(call, name)
    ]
    entries = sorted([*entries, *_waiting(call, group)], key=operator.itemgetter(0))
    items, token = paging.page(entries, call.parameters, size="maxResults", limit=_PAGE)
    return {**({"managedInstances": items} if items else {}), **token}


def _managed(group: Resource, member: str, template: str) -> Resource:
    names = {it["instanceTemplate"]: it["name"] for it in group["versions"] if "name" in it}
    named = {"name": names[template]} if template in names else {}
    return {
        "instance": links.ROOT + member,
        "name": links.last(member),
        "version": {"instanceTemplate": template, **named},
    }


def _waiting(call: Call, group: Resource) -> list[tuple[str, Resource]]:
    """The VMs that Google refuses: they have no id and no status, as they do not exist."""
    # What a group loses is there until it has shut down.
    names = [it for it in group.get("_waiting", []) if resources.find(call, INSTANCE, it) is None]
    if not names:
        return []
    template = group["instanceTemplate"]
    wanted = resources.require(call, TEMPLATE, links.name_of(template))
    refusal = refusals.of(call, wanted, len(names))
    if refusal is None:
        refusal = refusals.exhausted(call, call.parameters["zone"], wanted)
    attempt = {"lastAttempt": {"errors": {"errors": [refusal]}}}
    lost = group.get("_lost", {})
    return [
        (
            name,
            {
                **_managed(group, name, links.ROOT + lost[name] if name in lost else template),
                **attempt,
                "currentAction": "RECREATING" if name in lost else "CREATING",
            },
        )
        for name in names
    ]


def _list_errors(call: Call) -> Resource:
    group = resources.require(call, GROUP_MANAGER, call.name(GROUP_MANAGER))
    errors = group.get("_errors", [])
    return {"items": errors} if errors else {}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instanceGroupManagers.insert": _insert,
    "instanceGroupManagers.get": _get,
    "instanceGroupManagers.list": _list,
    "instanceGroupManagers.aggregatedList": _aggregated,
    "instanceGroupManagers.patch": _patch,
    "instanceGroupManagers.resize": _resize,
    "instanceGroupManagers.delete": _delete,
    "instanceGroupManagers.deleteInstances": _delete_instances,
    "instanceGroupManagers.recreateInstances": _recreate_instances,
    "instanceGroupManagers.stopInstances": _stop_instances,
    "instanceGroupManagers.applyUpdatesToInstances": _apply_updates,
    "instanceGroupManagers.listManagedInstances": _list_managed,
    "instanceGroupManagers.listErrors": _list_errors,
}
