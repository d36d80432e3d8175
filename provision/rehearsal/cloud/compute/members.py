"""The VMs of a managed instance group, as the group's own methods see and change them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from provision.rehearsal.cloud import paging
from provision.rehearsal.cloud.compute import fleet, links, resources
from provision.rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, Call, Resource
from provision.rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_PAGE = 500


def _named_members(call: Call) -> tuple[str, list[str]]:
    """The group's name, and the names of the VMs that the body lists.

    Raises:
        GoogleError: 400, when one of them is not the group's.
    """
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


def _list_managed(call: Call) -> Resource:
    name = call.name(GROUP_MANAGER)
    group = resources.require(call, GROUP_MANAGER, name)
    versions = {version["instanceTemplate"]: version for version in group["versions"]}
    entries = []
    for member, instance in fleet.members(call, name):
        link = instance["_template"]
        version = {"instanceTemplate": link}
        if "name" in versions.get(link, {}):
            version["name"] = versions[link]["name"]
        shown = {
            "id": instance["id"],
            "instance": links.ROOT + member,
            "name": links.last(member),
            "instanceStatus": fleet.status(instance, call.now),
            "currentAction": fleet.action(instance, call.now).upper(),
            "version": version,
        }
        entries.append((member, shown))
    items, token = paging.page(entries, call.parameters, size="maxResults", limit=_PAGE)
    return {**({"managedInstances": items} if items else {}), **token}


def _list_errors(call: Call) -> Resource:
    group = resources.require(call, GROUP_MANAGER, call.name(GROUP_MANAGER))
    errors = group.get("_errors", [])
    return {"items": errors} if errors else {}


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instanceGroupManagers.deleteInstances": _delete_instances,
    "instanceGroupManagers.recreateInstances": _recreate_instances,
    "instanceGroupManagers.listManagedInstances": _list_managed,
    "instanceGroupManagers.listErrors": _list_errors,
}
