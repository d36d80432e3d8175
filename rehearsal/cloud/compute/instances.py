"""VMs and their disks, as far as they can be looked at, changed and deleted one by one.

They come from managed instance groups; a VM of its own is not part of the simulated cloud.
"""

import operator
from collections.abc import Callable, Mapping

from rehearsal.cloud import org_policies, projects
from rehearsal.cloud.compute import fleet, links, lists, properties, resources, startup_told, vms
from rehearsal.cloud.compute.resources import (
    DISK,
    GROUP_MANAGER,
    INSTANCE,
    INSTANCE_GROUP,
    Call,
    Resource,
)
from rehearsal.cloud.wire import GoogleError


def _get(call: Call) -> Resource:
    return fleet.viewer(call)(resources.require(call, INSTANCE, call.name(INSTANCE)))


def _list(call: Call) -> Resource:
    prefix = call.prefix(INSTANCE)
    found = resources.each(call, INSTANCE, prefix)
    view = fleet.viewer(call)
    entries = ((name, view(it)) for name, it in found)
    return lists.listed(call, INSTANCE.singular, prefix.removesuffix("/"), entries)


def _aggregated(call: Call) -> Resource:
    found = resources.each(call, INSTANCE, f"projects/{call.project}/")
    view = fleet.viewer(call)
    entries = ((name, view(it)) for name, it in found)
    return lists.aggregated(call, INSTANCE.collection, INSTANCE.singular, entries)


def _delete(call: Call) -> Resource:
    return fleet.delete(call, call.name(INSTANCE))


def _start(call: Call) -> Resource:
    name = call.name(INSTANCE)
    vm = resources.require_ready(call, INSTANCE, name)
    if fleet.status(vm, call.now) == "TERMINATED":
        fleet.restart(call, name, [], call.now)
    return call.operate(name, vm["id"])


def _set_metadata(call: Call) -> Resource:
    name = call.name(INSTANCE)
    instance = resources.require_ready(call, INSTANCE, name)
    if call.body.get("fingerprint") != vms.metadata_of(call, instance)["fingerprint"]:
        raise GoogleError(
            412,
            "Supplied fingerprint does not match current metadata fingerprint.",
            reason="conditionNotMet",
        )
    items = call.body.get("items") or []
    properties.check_metadata(items)
    resources.keep(call, INSTANCE, name, {**instance, "_given": items})
    return call.operate(name, instance["id"])


def _insert_disk(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    kind = body.get("type", f"zones/{call.parameters['zone']}/diskTypes/pd-standard")
    zone = f"{links.ROOT}projects/{call.project}/zones/{call.parameters['zone']}"
    own = {"type": f"{zone}/diskTypes/{links.last(kind)}", "status": "READY"}
    return resources.insert(call, DISK, {**body, **own, "physicalBlockSizeBytes": "4096"})


def _delete_disk(call: Call) -> Resource:
    name = call.name(DISK)
    disk = resources.require_ready(call, DISK, name)
    if disk.get("users"):
        raise resources.in_use(DISK, name, links.name_of(disk["users"][0]))
    return resources.remove(call, DISK, name)


def _group(call: Call, name: str) -> Resource:
    """The unmanaged side of a managed group: its list of VMs."""
    manager = resources.require(
        call, GROUP_MANAGER, name.replace("/instanceGroups/", "/instanceGroupManagers/")
    )
    return {
        "kind": "compute#instanceGroup",
        "id": manager["id"],
        "creationTimestamp": manager["creationTimestamp"],
        "name": manager["name"],
        "zone": manager["zone"],
        "selfLink": manager["instanceGroup"],
        "size": len(fleet.members(call, links.name_of(manager["selfLink"]))),
        "fingerprint": manager["fingerprint"],
    }


def _group_name(call: Call) -> str:
    zone, group = call.parameters["zone"], call.parameters["instanceGroup"]
    return f"projects/{call.project}/zones/{zone}/instanceGroups/{group}"


def _get_group(call: Call) -> Resource:
    unmanaged = resources.find(call, INSTANCE_GROUP, _group_name(call))
    return resources.show(unmanaged) if unmanaged else _group(call, _group_name(call))


def _aggregated_groups(call: Call) -> Resource:
    """Groups that are not managed, and the unmanaged side of those that are."""
    project = f"projects/{call.project}/"
    entries = [
        (name, resources.show(group))
        for name, group in resources.each(call, INSTANCE_GROUP, project)
    ]
    for _, manager in resources.each(call, GROUP_MANAGER, project):
        name = links.name_of(manager["instanceGroup"])
        entries.append((name, _group(call, name)))
    entries.sort(key=operator.itemgetter(0))
    return lists.aggregated(call, INSTANCE_GROUP.collection, INSTANCE_GROUP.singular, entries)


_SWITCH = "enable-guest-attributes"


def _get_guest_attributes(call: Call) -> Resource:
    name = call.name(INSTANCE)
    instance = resources.require(call, INSTANCE, name)
    constraint = org_policies.GUEST_ATTRIBUTES
    if org_policies.in_force(call.request.scenarios, constraint):
        number = projects.require(call.project, call.store).number
        raise GoogleError(
            412, f"Constraint constraints/{constraint} violated for project {number}."
        )
    metadata = vms.metadata_of(call, instance)
    if (properties.item(metadata, _SWITCH) or "").upper() != "TRUE":
        raise GoogleError(412, "Guest attributes endpoint access is disabled.")
    written = {
        f"{startup_told.NAMESPACE}/{key}": value
        for key, value in startup_told.attributes(instance, call.now).items()
    }
    link = f"{instance['selfLink']}/getGuestAttributes"
    answer = {"kind": "compute#guestAttributes", "selfLink": link}
    if "variableKey" in call.parameters:
        raise GoogleError(501, "A variableKey is not part of the simulated cloud.")
    path = call.parameters.get("queryPath", "")
    found = {key: value for key, value in written.items() if _is_below(key, path)}
    if not found:
        raise GoogleError(404, f"The resource '{path}' of type 'Guest Attribute' was not found.")
    items = [
        {"namespace": key.partition("/")[0], "key": key.partition("/")[2], "value": value}
        for key, value in sorted(found.items())
    ]
    return {**answer, "queryPath": path, "queryValue": {"items": items}}


def _is_below(key: str, path: str) -> bool:
    """Whether a query path ("", "namespace/", "namespace/key") names this key."""
    return path in ("", key) or (path.endswith("/") and key.startswith(path))


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instances.get": _get,
    "instances.list": _list,
    "instances.aggregatedList": _aggregated,
    "instances.delete": _delete,
    "instances.start": _start,
    "instances.setMetadata": _set_metadata,
    "instanceGroups.get": _get_group,
    "instanceGroups.aggregatedList": _aggregated_groups,
    "disks.insert": _insert_disk,
    "disks.get": resources.get(DISK),
    "disks.list": lists.of_place(DISK),
    "disks.aggregatedList": lists.of_project(DISK),
    "disks.delete": _delete_disk,
    "instances.getGuestAttributes": _get_guest_attributes,
}
