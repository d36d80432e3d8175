"""Reading Terraform's state as a document, in Terraform's format version 4."""

from __future__ import annotations

import copy
import json
import re
import uuid
from typing import TYPE_CHECKING, Any, Final

from provision.documents import json_object

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

_PROVIDER: Final = re.compile(r'provider\["([^"]+)"\]')


def parse(text: str | bytes) -> dict[str, Any]:
    """Read a state; ValueError says what is wrong with one that Terraform could not read either."""
    document = json_object.read(text)
    if not isinstance(document.get("terraform_version", ""), str):
        raise ValueError('its "terraform_version" is no text')  # noqa: TRY004
    outputs = document.get("outputs", {})
    if not isinstance(outputs, dict) or not all(
        isinstance(it, dict) and "value" in it for it in outputs.values()
    ):
        raise ValueError('its "outputs" are no values')
    resources = document.get("resources", [])
    if not isinstance(resources, list):
        raise ValueError('its "resources" are not a list')  # noqa: TRY004
    for number, resource in enumerate(resources):
        if not _is_resource(resource):
            raise ValueError(f"resource {number} lacks type, name or instances")
    return document


def _is_resource(resource: object) -> bool:
    if not isinstance(resource, dict):
        return False
    if not all(isinstance(resource.get(it, ""), str) for it in ("mode", "module", "provider")):
        return False
    if resource.get("mode") != "managed":
        return True  # of data sources, and of what older Terraforms wrote, nothing is read
    if not isinstance(resource.get("instances"), list):
        return False
    if not all(isinstance(resource.get(name), str) for name in ("type", "name")):
        return False
    return all(
        isinstance(one, dict) and isinstance(one.get("attributes") or {}, dict)
        for one in resource["instances"]
    )


def empty(terraform_version: str) -> str:
    """The text of a state without resources, as `terraform init` writes a new one."""
    document = {
        "version": 4,
        "terraform_version": terraform_version,
        "serial": 0,
        "lineage": str(uuid.uuid4()),
        "outputs": {},
        "resources": [],
    }
    return json.dumps(document, indent=2) + "\n"


def known(state: Mapping[str, Any]) -> set[str]:
    """What the state has: paths ("projects/..."), IDs, email addresses of accounts, and grants.

    A grant is its parent, role and member, and the title of its condition if it has one. The
    provider's own ID of a grant is something else (see `grant`).
    """
    found: set[str] = set()
    for _, instance in _instances(state):
        attributes = instance.get("attributes") or {}
        found.add(str(attributes.get("self_link") or "").partition("/v1/")[2])
        found |= {str(attributes.get(name) or "") for name in ("email", "id")}
        if attributes.get("role") and attributes.get("member"):
            parents = (attributes.get(name) for name in ("bucket", "service_account_id", "project"))
            condition: dict[str, Any] = next(iter(attributes.get("condition") or []), {})
            role, member = attributes["role"], attributes["member"]
            found.add(grant(next(filter(None, parents), ""), role, member, condition))
    return found - {""}


def grant(parent: str, role: str, member: str, condition: Mapping[str, Any]) -> str:
    """What `known` has of a grant.

    It is made of the attributes: the provider's ID of a conditional grant ends with the condition's
    title, description and expression (google 7.45.0, conditionKey.String in tpgiamresource/iam.go),
    and may end otherwise in another version. `parent`: what the role is granted on: "b/BUCKET", a
    project, a service account's path. `member`: who has it, such as "serviceAccount:EMAIL".
    """
    return "/".join(filter(None, (parent, role, member, condition.get("title"))))


def addresses(state: Mapping[str, Any]) -> set[str]:
    """The addresses of all resources in the state."""
    return {_address(*found) for found in _instances(state)}


def ids(state: Mapping[str, Any]) -> dict[str, str]:
    """The addresses of all resources in the state -> what the provider calls each."""
    return {
        _address(*found): str((found[1].get("attributes") or {}).get("id"))
        for found in _instances(state)
    }


def providers(state: Mapping[str, Any]) -> set[str]:
    """The providers that Terraform would start to work with the state, by their addresses."""
    named = {str(one.get("provider") or "") for one in state.get("resources", [])} - {""}
    # "provider" may follow the path of a module, and an alias may follow the address.
    return {found[1] if (found := _PROVIDER.search(it)) else it for it in named}


def is_empty(state: Mapping[str, Any]) -> bool:
    """Whether it has no resources: neither of ours nor of a Terraform that wrote other formats.

    What Terraform has only read, such as an image, is no resource; of what is not understood it
    is taken that something lives.
    """
    resources = state.get("resources", [])
    unknown = [one for one in resources if one.get("mode") not in {"managed", "data"}]
    # Format 3, of Terraform before 0.12, has modules in place of resources.
    return not (addresses(state) or unknown or state.get("modules"))


def of_type(state: Mapping[str, Any], resource_type: str) -> dict[str, dict[str, Any]]:
    """The resources of one type in the state: address -> attributes."""
    return {
        _address(resource, instance): instance.get("attributes") or {}
        for resource, instance in _instances(state)
        if resource["type"] == resource_type
    }


def outputs(state: Mapping[str, Any]) -> dict[str, Any]:
    """The state's outputs by name, without sensitive ones."""
    return {
        name: output["value"]
        for name, output in state.get("outputs", {}).items()
        if not output.get("sensitive")
    }


def attributes(state: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Type and attributes of each thing that it has."""
    for resource, instance in _instances(state):
        yield resource["type"], instance.get("attributes") or {}


def untainted(state: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
    """A copy of the state in which the resources at these addresses are not tainted."""
    found = copy.deepcopy(dict(state))
    for resource, instance in _instances(found):
        if _address(resource, instance) in kept:
            instance.pop("status", None)
    return found


def without(state: Mapping[str, Any], left: Collection[str]) -> dict[str, Any]:
    """A copy of the state in which the resources at these addresses are missing."""
    found = copy.deepcopy(dict(state))
    for resource in found.get("resources", []):
        if resource.get("mode") == "managed":
            own = resource["instances"]
            resource["instances"] = [it for it in own if _address(resource, it) not in left]
    return found


def _instances(state: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for resource in state.get("resources", []):
        if resource.get("mode") == "managed":
            for instance in resource["instances"]:
                yield resource, instance


def _address(resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    parts = [resource.get("module", ""), resource["type"], resource["name"]]
    key = instance.get("index_key")
    index = "" if key is None else f"[{json.dumps(key)}]"
    return ".".join(part for part in parts if part) + index
