"""What Kubernetes Engine answers is what Google's own description of the API allows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import discovery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.rehearsal.cloud.services.conftest import Api

PLACE = "projects/proj-a1/locations/us-central1"
CLUSTER = f"{PLACE}/clusters/loom"
POOL = f"{CLUSTER}/nodePools/gpus"
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
    body = {
        "name": "loom",
        "initialNodeCount": 1,
        "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH"},
        "ipAllocationPolicy": {"useIpAliases": True},
        "releaseChannel": {"channel": "REGULAR"},
        "maintenancePolicy": {"window": {"dailyMaintenanceWindow": {"startTime": "03:00"}}},
    }
    api.json("container", "POST", f"{PLACE}/clusters", {"cluster": body})
    api.now += 500
    pool = {
        "name": "gpus",
        "locations": ["us-central1-a"],
        "autoscaling": {"enabled": True, "totalMaxNodeCount": 2, "locationPolicy": "ANY"},
        "management": {"autoUpgrade": True},
        "config": {
            "machineType": "g2-standard-4",
            "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
            "reservationAffinity": {"consumeReservationType": "NO_RESERVATION"},
            "flexStart": True,
        },
    }
    api.json("container", "POST", f"{CLUSTER}/nodePools", {"nodePool": pool})
    return api


@pytest.mark.parametrize(
    ("path", "schema"),
    [
        (f"{PLACE}/serverConfig", "ServerConfig"),
        (f"{PLACE}/clusters", "ListClustersResponse"),
        (CLUSTER, "Cluster"),
        (f"{CLUSTER}/nodePools", "ListNodePoolsResponse"),
        (POOL, "NodePool"),
        (f"{PLACE}/operations", "ListOperationsResponse"),
    ],
)
def test_an_answer_has_no_field_and_no_value_that_google_does_not_know(
    full: Api, path: str, schema: str
) -> None:
    assert _found(schema, full.json("container", "GET", path)) == []
    full.now += 500
    assert _found(schema, full.json("container", "GET", path)) == []


def test_an_operation_that_fails_is_answered_as_google_does(full: Api) -> None:
    full.now += 500
    full.scenarios = frozenset({"stockout"})
    gpus = [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}]
    config = {"machineType": "g2-standard-4", "accelerators": gpus}
    pool = {"name": "more", "initialNodeCount": 1, "config": config}
    begun = full.json("container", "POST", f"{CLUSTER}/nodePools", {"nodePool": pool})
    assert _found("Operation", begun) == []
    full.now += 500
    ended = full.json("container", "GET", f"{PLACE}/operations/{begun['name']}")
    assert "error" in ended
    assert _found("Operation", ended) == []
    assert _found("NodePool", full.json("container", "GET", f"{CLUSTER}/nodePools/more")) == []


def test_the_check_finds_what_is_wrong() -> None:
    wrong = {"name": 1, "status": "WELL", "colour": "red", "nodePools": [{"locations": "a"}]}
    assert [it.partition(":")[0] for it in _found("Cluster", wrong)] == [
        "Cluster.name",
        "Cluster.status",
        "Cluster.colour",
        "Cluster.nodePools[0].locations",
    ]
