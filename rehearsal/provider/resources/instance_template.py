"""google_compute_instance_template: named by the user, read by its number, never changed."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN, PartialError
from rehearsal.provider.resources import image, labels, links, operations, scopes
from rehearsal.provider.resources.fields import expand, flatten, is_zero
from rehearsal.provider.resources.instance_properties import PROPERTIES
from rehearsal.provider.resources.rest import (
    NOT_FOUND,
    kept,
    parse_import,
    place,
    present,
    scope,
    with_defaults,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rehearsal.provider.api import Api
    from rehearsal.provider.resource import State

_TYPE = "google_compute_instance_template"
_COLLECTION = "projects/{project}/global/instanceTemplates"
_LONG_PREFIX = 37
"""The longest prefix that leaves room for the full suffix."""

_counter = itertools.count(1)


class InstanceTemplate:
    """What VMs are made from."""

    suppress: Mapping[str, Callable[[Any, Any, State], bool]] = {
        "network_interface.network": links.same_object,
        "network_interface.subnetwork": links.same_object,
        "network_interface.network_attachment": links.same_object,
        # "/24" asks for any range of that size.
        "network_interface.alias_ip_range.ip_cidr_range": lambda prior, wanted, _: bool(
            prior and wanted and wanted.startswith("/") and prior.endswith(wanted)
        ),
        "guest_accelerator.type": links.same_object,
        "disk.disk_encryption_key.kms_key_self_link": links.same_path,
        "disk.storage_pool": links.same_object,
        "disk.resource_policies": links.same_names,
        "resource_policies": links.same_names,
    }

    def customize(self, api: Api, prior: State | None, plan: State) -> State:
        """Labels, short scopes, and images that mean what is there already.

        A source image that differs in its words is looked up, as provider 7.45.0 does in a plan.
        """
        plan = labels.plan(api, prior, with_defaults(api, plan))
        for account in _blocks(plan, "service_account"):
            if account.get("scopes") not in (None, UNKNOWN):
                account["scopes"] = [scopes.canonical(value) for value in account["scopes"]]
        pairs = zip(_blocks(plan, "disk"), _blocks(prior or {}, "disk"), strict=False)
        for disk, before in pairs:
            old, new = before.get("source_image"), disk.get("source_image")
            if old and new and new is not UNKNOWN and old != new:
                resolved = image.resolve(api, plan["project"], new)
                if image.relative(plan["project"], resolved) == old:
                    disk["source_image"] = old
        return plan

    def create(self, api: Api, plan: State) -> State:
        """Insert the template.

        Raises:
            PartialError: The operation failed, or nobody waited for its end.
        """
        where = scope(api, plan)
        name = _name(plan)
        properties = expand(PROPERTIES, plan, where)
        body = {"name": name, "properties": properties}
        if not is_zero(plan.get("description")):
            body["description"] = plan["description"]
        try:
            answer = api.plain("compute", "POST", place(_COLLECTION, where), body)
        except GoogleApiError as error:
            raise ProviderError(f"Error creating instance template: {error}") from error
        path = f"{place(_COLLECTION, where)}/{name}"
        unique = f"{path}?uniqueId={answer.get('targetId', '')}"
        made = {**plan, "id": path, "name": name, "self_link_unique": unique}
        limit = operations.timeout(plan, "create", _TYPE)
        activity = "Creating Instance Template"
        try:
            operations.compute(api, answer, where.project, activity, limit)
        except Exception as error:
            raise PartialError(_known(made), error) from error
        return present(self.read(api, made))

    def read(self, api: Api, state: State) -> State | None:
        """The template by its number, else by its name."""
        where = scope(api, state)
        name = links.name(unique_link(state.get("self_link_unique") or state["id"]))
        try:
            answer = api.plain("compute", "GET", f"{place(_COLLECTION, where)}/{name}")
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return None
            raise ProviderError(
                f'Error when reading or editing Instance Template "{state.get("name")}": {error}'
            ) from error
        properties = answer.get("properties") or {}
        return {
            **_kept(state),
            **flatten(PROPERTIES, properties, where),
            **labels.read(properties.get("labels"), state),
            **_region(properties, state),
            "id": f"{place(_COLLECTION, where)}/{answer['name']}",
            "project": where.project,
            "name": answer["name"],
            "description": answer.get("description", ""),
            "creation_timestamp": answer.get("creationTimestamp", ""),
            "numeric_id": str(answer.get("id", "")),
            "self_link": answer.get("selfLink", ""),
            "self_link_unique": f"{answer.get('selfLink', '')}?uniqueId={answer.get('id', '')}",
        }

    def update(self, api: Api, prior: State, plan: State) -> State:
        """Only what Google never hears of can change in place: nothing is sent but a read."""
        del prior
        return present(self.read(api, plan))

    def delete(self, api: Api, state: State) -> None:
        """Delete the template, by its name."""
        where = scope(api, state)
        path = f"{place(_COLLECTION, where)}/{links.name(state['id'])}"
        try:
            answer = api.plain("compute", "DELETE", path)
        except GoogleApiError as error:
            if error.code == NOT_FOUND:
                return
            raise ProviderError(f"Error deleting instance template: {error}") from error
        limit = operations.timeout(state, "delete", _TYPE)
        operations.compute(api, answer, where.project, "Deleting Instance Template", limit)

    def import_state(self, api: Api, import_id: str) -> State:
        """From the path, "PROJECT/NAME" or the name."""
        found = parse_import(api, f"{_COLLECTION}/{{name}}", import_id)
        return {**found, "id": f"{place(_COLLECTION, scope(api, found))}/{found['name']}"}


def unique_link(link: str) -> str:
    """The link by number, if it has one: ".../NAME?uniqueId=7" is ".../7"."""
    path, found, number = link.partition("?uniqueId=")
    return f"{path.rpartition('/')[0]}/{number}" if found else link


def _blocks(state: State, name: str) -> list[State]:
    value = state.get(name)
    return value if isinstance(value, list) else []


def _name(plan: State) -> str:
    """The given name, else a unique one that begins with the prefix."""
    if not is_zero(plan.get("name")):
        return str(plan["name"])
    prefix = plan.get("name_prefix")
    prefix = "terraform-" if is_zero(prefix) else str(prefix)
    now, number = datetime.now(UTC), next(_counter)
    if len(prefix) > _LONG_PREFIX:
        # Nine characters are left: tenths of milliseconds, which come again after five days.
        return f"{prefix}{int(now.timestamp() * 10_000) % 16**8:08x}{number % 16:x}"
    return f"{prefix}{now.strftime('%Y%m%d%H%M%S%f')[:18]}{number:08x}"


def _known(state: State) -> State:
    return {name: None if value is UNKNOWN else value for name, value in state.items()}


def _kept(state: State) -> State:
    """What Google doesn't answer."""
    names = ("name_prefix", "metadata_startup_script", "timeouts")
    return {name: kept(state, name, None) for name in names}


def _region(properties: dict[str, Any], state: State) -> State:
    """The region is where the subnetwork is."""
    interfaces = properties.get("networkInterfaces") or []
    found = [links.part(it.get("subnetwork") or "", "regions") for it in interfaces]
    return {"region": found[-1] if found and found[-1] else kept(state, "region", None)}


RESOURCE = InstanceTemplate()
