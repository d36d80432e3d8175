"""The VMs of a managed instance group, as the group's own methods see and change them."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

from rehearsal.cloud import paging
from rehearsal.cloud.compute import fleet, links, refusals, resources
from rehearsal.cloud.compute.resources import GROUP_MANAGER, INSTANCE, TEMPLATE, Call, Resource
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    """Bring VMs to the group's present template, if that needs no more than is allowed.

    REFRESH is for labels and metadata of running VMs; anything else needs them to be replaced.
    """
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
    "instanceGroupManagers.deleteInstances": _delete_instances,
    "instanceGroupManagers.recreateInstances": _recreate_instances,
    "instanceGroupManagers.stopInstances": _stop_instances,
    "instanceGroupManagers.applyUpdatesToInstances": _apply_updates,
    "instanceGroupManagers.listManagedInstances": _list_managed,
    "instanceGroupManagers.listErrors": _list_errors,
}
