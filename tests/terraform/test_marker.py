"""Everything that is made carries the marker by which it is found again."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

MARKER = "3f9c2a71"
# Neither labels nor description: a NAT is found by its router, a role by its member, an object by
# its folder. A dashboard's labels are in its JSON.
BY_PARENT = {
    "google_compute_router_nat",
    "google_project_iam_member",
    "google_storage_bucket_iam_member",
    "google_storage_bucket_object",
}
IN_JSON = {"google_monitoring_dashboard"}


def _labels(schema: dict[str, Any], values: dict[str, Any], path: str) -> Iterator[tuple[str, Any]]:
    """The labels of a resource and of its nested blocks, with where they stand."""
    if "labels" in schema.get("attributes", {}):
        yield path, values["labels"]
    for name, nested in schema.get("block_types", {}).items():
        blocks = values.get(name)
        for block in blocks if isinstance(blocks, list) else []:
            yield from _labels(nested["block"], block, f"{path}.{name}")


@pytest.fixture(scope="session")
def schemas(made: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        kind: schema["block"]
        for state in made
        for provider in state["provider_schemas"].values()
        for kind, schema in provider["resource_schemas"].items()
    }


def test_whatever_has_labels_is_labelled_with_the_marker(
    resources: list[dict[str, Any]], schemas: dict[str, Any]
) -> None:
    labels = {
        path: found
        for resource in resources
        for path, found in _labels(schemas[resource["type"]], resource["values"], resource["type"])
    }

    assert set(labels) == {
        "google_compute_instance_template",
        "google_compute_instance_template.disk",
        "google_filestore_instance",
    }
    assert [path for path, found in labels.items() if found.get("aiinfra-cluster") != MARKER] == []


def test_whatever_has_a_description_is_described_by_the_marker(
    resources: list[dict[str, Any]], schemas: dict[str, Any]
) -> None:
    descriptions = {
        resource["address"]: resource["values"]["description"]
        for resource in resources
        if "description" in schemas[resource["type"]]["attributes"]
    }

    assert descriptions
    assert [
        address for address, text in descriptions.items() if text != f"aiinfra-cluster={MARKER}"
    ] == []


def test_only_what_cannot_carry_the_marker_goes_without(
    resources: list[dict[str, Any]], schemas: dict[str, Any]
) -> None:
    without = {
        resource["type"]
        for resource in resources
        if not {"labels", "description"} & set(schemas[resource["type"]]["attributes"])
    }

    assert without == BY_PARENT | IN_JSON


def test_a_dashboard_is_labelled_with_the_marker_in_its_json(
    resources: list[dict[str, Any]],
) -> None:
    labels = [
        json.loads(resource["values"]["dashboard_json"])["labels"]
        for resource in resources
        if resource["type"] in IN_JSON
    ]

    assert labels == [{"aiinfra-cluster": MARKER}]


def test_a_condition_of_a_role_is_described_by_the_marker(resources: list[dict[str, Any]]) -> None:
    descriptions = {
        condition["description"]
        for resource in resources
        for condition in resource["values"].get("condition") or []
    }

    assert descriptions == {f"aiinfra-cluster={MARKER}"}
