"""A Compute Engine without a server: requests go to the service, at any moment one likes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.cloud import compute
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Request

if TYPE_CHECKING:
    from pathlib import Path

PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
REGION = f"{PROJECT}/regions/us-central1"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"

Json = dict[str, Any]


class Compute:
    """Compute Engine at the moment `now`, with `rate` seconds per second of cloud time."""

    def __init__(self, path: Path) -> None:
        self.database = Database(path)
        self.now = 1_800_000_000.0
        self.rate = 0.0
        self.scenarios: frozenset[str] = frozenset()

    def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        request = Request(
            method=method,
            path=path,
            query=query,
            body=b"" if body is None else json.dumps(body).encode(),
            now=self.now,
            rate=self.rate,
            scenarios=self.scenarios,
        )
        with self.database.transaction() as store:
            reply = compute.service(request, store)
        assert isinstance(reply.body, dict)
        return reply.body

    def get(self, path: str, **query: str) -> Json:
        return self.call("GET", path, None, **query)

    def post(self, path: str, body: Json | None = None, **query: str) -> Json:
        return self.call("POST", path, body, **query)

    def patch(self, path: str, body: Json) -> Json:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Json:
        return self.call("DELETE", path)

    def refusal(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        """The error of a request that must be refused."""
        with pytest.raises(GoogleError) as caught:
            self.call(method, path, body, **query)
        answered = caught.value.reply().body
        assert isinstance(answered, dict)
        error: Json = answered["error"]
        return error

    def network(self, name: str = "net", **fields: Any) -> Json:
        body = {"name": name, "autoCreateSubnetworks": False, **fields}
        return self.post(f"{PROJECT}/global/networks", body)

    def subnetwork(self, name: str = "sub", network: str = "net", **fields: Any) -> Json:
        body = {
            "name": name,
            "network": f"{PROJECT}/global/networks/{network}",
            "ipCidrRange": "10.0.0.0/16",
            **fields,
        }
        return self.post(f"{REGION}/subnetworks", body)

    def template(self, name: str = "tpl", **properties: Any) -> Json:
        body = {"name": name, "properties": template_properties(**properties)}
        return self.post(f"{PROJECT}/global/instanceTemplates", body)

    def group(self, name: str = "grp", size: int = 2, template: str = "tpl", **fields: Any) -> Json:
        body = {
            "name": name,
            "baseInstanceName": f"{name}-vm",
            "targetSize": size,
            "versions": [{"instanceTemplate": f"{PROJECT}/global/instanceTemplates/{template}"}],
            **fields,
        }
        return self.post(f"{ZONE}/instanceGroupManagers", body)

    def vms(self, **query: str) -> list[Json]:
        found: list[Json] = self.get(f"{ZONE}/instances", **query).get("items", [])
        return found

    def get_group(self, name: str = "grp") -> Json:
        return self.get(f"{ZONE}/instanceGroupManagers/{name}")


def template_properties(**properties: Any) -> Json:
    """The least that a template needs, with changes."""
    return {
        "machineType": "e2-standard-4",
        "disks": [{"boot": True, "autoDelete": True, "initializeParams": {"sourceImage": IMAGE}}],
        "networkInterfaces": [{"subnetwork": f"{REGION}/subnetworks/sub"}],
        **properties,
    }


@pytest.fixture
def api(tmp_path: Path) -> Compute:
    return Compute(tmp_path / "cloud.sqlite")


@pytest.fixture
def wired(api: Compute) -> Compute:
    """With a network "net" and its subnetwork "sub"."""
    api.network()
    api.subnetwork()
    return api
