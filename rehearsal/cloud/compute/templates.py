"""Instance templates: what the VMs of a group are made from."""

from collections.abc import Callable, Mapping

from rehearsal.cloud.compute import images, links, lists, operations, properties, resources
from rehearsal.cloud.compute.resources import GROUP_MANAGER, TEMPLATE, Call, Resource


def name_of(call: Call, reference: str) -> str:
    """The name of the template that a name or link ending with a name or a numeric id means."""
    last = links.last(reference)
    if not last.isdecimal():
        return reference
    for name, template in resources.each(call, TEMPLATE, reference[: -len(last)]):
        if template["id"] == last:
            return name
    raise resources.not_found(reference)


def resolve(call: Call, reference: str, field: str) -> Resource:
    """The template that a field of a body refers to."""
    name = name_of(call, call.resolve(reference, TEMPLATE, field))
    return resources.require(call, TEMPLATE, name)


def _insert(call: Call) -> Resource:
    body = resources.without_nulls(call.body)
    body["properties"] = properties.completed(call, body.get("properties", {}))
    operation = resources.insert(call, TEMPLATE, body)
    _, image = images.of_boot_disk(call, body["properties"])
    if image is None or image.warning is None:
        return operation
    return operations.warn(call.store, operation, image.warning)


def _get(call: Call) -> Resource:
    return resources.show(resources.require(call, TEMPLATE, name_of(call, call.name(TEMPLATE))))


def _delete(call: Call) -> Resource:
    name = name_of(call, call.name(TEMPLATE))
    template = resources.require(call, TEMPLATE, name)
    for user, manager in resources.each(call, GROUP_MANAGER, f"projects/{call.project}/"):
        used = [version["instanceTemplate"] for version in manager["versions"]]
        if template["selfLink"] in used:
            raise resources.in_use(TEMPLATE, name, user)
    return resources.remove(call, TEMPLATE, name)


METHODS: Mapping[str, Callable[[Call], Resource]] = {
    "instanceTemplates.insert": _insert,
    "instanceTemplates.get": _get,
    "instanceTemplates.list": lists.of_place(TEMPLATE),
    "instanceTemplates.delete": _delete,
}
