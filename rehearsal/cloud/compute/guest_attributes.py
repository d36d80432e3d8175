"""Guest attributes: what the programs on a VM have written about themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rehearsal.cloud import org_policies, projects
from rehearsal.cloud.compute import properties, resources, shared_metadata, startup_told
from rehearsal.cloud.compute.resources import INSTANCE, Call, Resource
from rehearsal.cloud.wire import GoogleError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_SWITCH = "enable-guest-attributes"


def _get(call: Call) -> Resource:
    name = call.name(INSTANCE)
    instance = resources.require(call, INSTANCE, name)
    constraint = org_policies.GUEST_ATTRIBUTES
    if org_policies.in_force(call.request.scenarios, constraint):
        number = projects.require(call.project, call.store).number
        raise GoogleError(
            412, f"Constraint constraints/{constraint} violated for project {number}."
        )
    metadata = shared_metadata.of(call, instance)
    if (properties.item(metadata, _SWITCH) or "").upper() != "TRUE":
        raise GoogleError(412, "Guest attributes endpoint access is disabled.")
    written = {
        f"{startup_told.NAMESPACE}/{key}": value
        for key, value in startup_told.attributes(instance, call.now).items()
    }
    link = f"{instance['selfLink']}/getGuestAttributes"
    answer = {"kind": "compute#guestAttributes", "selfLink": link}
    key = call.parameters.get("variableKey")
    if key is not None:
        if key not in written:
            raise _not_found(key)
        return {**answer, "variableKey": key, "variableValue": written[key]}
    path = call.parameters.get("queryPath", "")
    found = {key: value for key, value in written.items() if _is_below(key, path)}
    if not found:
        raise _not_found(path)
    items = [
        {"namespace": key.partition("/")[0], "key": key.partition("/")[2], "value": value}
        for key, value in sorted(found.items())
    ]
    return {**answer, "queryPath": path, "queryValue": {"items": items}}


def _is_below(key: str, path: str) -> bool:
    """Whether a query path ("", "namespace/", "namespace/key") names this key."""
    return path in ("", key) or (path.endswith("/") and key.startswith(path))


def _not_found(path: str) -> GoogleError:
    return GoogleError(404, f"The resource '{path}' of type 'Guest Attribute' was not found.")


METHODS: Mapping[str, Callable[[Call], Resource]] = {"instances.getGuestAttributes": _get}
