"""What Kubernetes Engine answers is what Google's own description of the API allows."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from rehearsal.cloud import discovery
from tests.rehearsal.cloud.services.conftest import (
    CLUSTER,
    CLUSTERS,
    L4,
    NO_RESERVATION,
    PLACE,
    POOLS,
    Api,
)

TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "boolean": bool,
    "integer": int,
    "number": (int, float),
    "array": list,
    "object": dict,
}

_DOCUMENT = json.loads((discovery.folder() / "container.v1.json").read_text())


def _problems(schema: dict[str, Any], value: Any, path: str) -> Iterator[str]:
    """Where a value is not as a schema describes it."""
    if "$ref" in schema:
        schema = _DOCUMENT["schemas"][schema["$ref"]]
    kind = schema.get("type", "any")
    if kind != "any" and not isinstance(value, TYPES[kind]):
        yield f"{path}: {value!r} is no {kind}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"{path}: {value!r} is none of {schema['enum']}"
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _problems(schema["items"], each, f"{path}[{index}]")
    elif isinstance(value, dict):
        fields = schema.get("properties", {})
        for name, each in value.items():
            known = fields.get(name) or schema.get("additionalProperties")
            if known is None:
                yield f"{path}.{name}: there is no such field"
            else:
                yield from _problems(known, each, f"{path}.{name}")


def _found(schema: str, answer: Any) -> list[str]:
    return list(_problems({"$ref": schema}, answer, schema))


@pytest.fixture
def full(api: Api) -> Api:
    """A cluster with a pool of GPUs, both still being made."""
    api.rate = 1.0
    window = {"dailyMaintenanceWindow": {"startTime": "03:00"}}
    api.cluster(locations=None, maintenancePolicy={"window": window})
    api.now += 500
    api.pool(
        locations=["us-central1-a"],
        autoscaling={"enabled": True, "totalMaxNodeCount": 2, "locationPolicy": "ANY"},
        management={"autoUpgrade": True},
        config=L4 | NO_RESERVATION | {"flexStart": True},
    )
    return api


def test_an_answer_has_no_field_and_no_value_that_google_does_not_know(full: Api) -> None:
    for _ in range(2):
        for path, schema in {
            f"{PLACE}/serverConfig": "ServerConfig",
            CLUSTERS: "ListClustersResponse",
            CLUSTER: "Cluster",
            POOLS: "ListNodePoolsResponse",
            f"{POOLS}/p": "NodePool",
            f"{PLACE}/operations": "ListOperationsResponse",
        }.items():
            assert _found(schema, full.gke("GET", path)) == []
        full.now += 500


def test_an_operation_that_fails_is_answered_as_google_does(full: Api) -> None:
    full.now += 500
    full.scenarios = frozenset({"stockout"})
    begun = full.pool(name="more", initialNodeCount=1, config=L4)
    assert _found("Operation", begun) == []
    full.now += 500
    ended = full.gke("GET", f"{PLACE}/operations/{begun['name']}")
    assert "error" in ended
    assert _found("Operation", ended) == []
    assert _found("NodePool", full.gke("GET", f"{POOLS}/more")) == []


def test_the_check_finds_what_is_wrong() -> None:
    wrong = {"name": 1, "status": "WELL", "colour": "red", "nodePools": [{"locations": "a"}]}
    assert [it.partition(":")[0] for it in _found("Cluster", wrong)] == [
        "Cluster.name",
        "Cluster.status",
        "Cluster.colour",
        "Cluster.nodePools[0].locations",
    ]
