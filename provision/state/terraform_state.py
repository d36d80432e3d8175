"""Reading Terraform's state as a document, in Terraform's format version 4."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping


def known(state: Mapping[str, Any]) -> set[str]:
    """What the state has: paths ("projects/..."), IDs, and account email addresses."""
    found: set[str] = set()
    for _, instance in _instances(state):
        attributes = instance["attributes"]
        found.add(str(attributes.get("self_link") or "").partition("/v1/")[2])
        found |= {str(attributes.get(name) or "") for name in ("email", "id")}
    return found - {""}


def addresses(state: Mapping[str, Any]) -> set[str]:
    """The addresses of all resources in the state."""
    return {_address(*found) for found in _instances(state)}


def of_type(state: Mapping[str, Any], resource_type: str) -> dict[str, dict[str, Any]]:
    """The resources of one type in the state: address -> attributes."""
    return {
        _address(resource, instance): instance["attributes"]
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


def untainted(state: Mapping[str, Any], kept: Collection[str]) -> dict[str, Any]:
    """A copy of the state in which the resources at these addresses are not tainted."""
    found = copy.deepcopy(dict(state))
    for resource, instance in _instances(found):
        if _address(resource, instance) in kept:
            instance.pop("status", None)
    return found


def _instances(state: Mapping[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for resource in state.get("resources", []):
        if resource["mode"] == "managed":
            for instance in resource["instances"]:
                yield resource, instance


def _address(resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    parts = [resource.get("module", ""), resource["type"], resource["name"]]
    key = instance.get("index_key")
    index = "" if key is None else f"[{json.dumps(key)}]"
    return ".".join(part for part in parts if part) + index
