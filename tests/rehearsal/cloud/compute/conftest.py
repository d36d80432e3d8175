"""A Compute Engine without a server: requests go to the service, at any moment one likes."""

from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import Reply
from tests.rehearsal.cloud.sending import Sender

PROJECT = "projects/proj-a1"
ZONE = f"{PROJECT}/zones/us-central1-a"
REGION = f"{PROJECT}/regions/us-central1"
GROUPS = f"{ZONE}/instanceGroupManagers"
GROUP = f"{GROUPS}/grp"
TEMPLATES = f"{PROJECT}/global/instanceTemplates"
NETWORKS = f"{PROJECT}/global/networks"
SUBNETWORKS = f"{REGION}/subnetworks"
ROOT = "https://www.googleapis.com/compute/v1/"
IMAGE = "projects/debian-cloud/global/images/family/debian-12"

Json = dict[str, Any]

STANDARD: Json = {"onHostMaintenance": "TERMINATE"}
SPOT: Json = {
    **STANDARD,
    "provisioningModel": "SPOT",
    "preemptible": True,
    "automaticRestart": False,
}
CLOSE: Json = {"name": "close", "groupPlacementPolicy": {"collocation": "COLLOCATED"}}


class Compute(Sender):
    """Compute Engine at the moment `now`, with `rate` seconds per second of cloud time."""

    def _answer(self, method: str, path: str, body: Json | None, query: dict[str, str]) -> Reply:
        return self("compute", method, f"{path}?{urlencode(query)}", body)

    def call(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        reply = self._answer(method, path, body, query)
        assert isinstance(reply.body, dict)
        assert reply.status == 200, reply.body
        return reply.body

    def get(self, path: str, **query: str) -> Json:
        return self.call("GET", path, None, **query)

    def post(self, path: str, body: Json | None = None, **query: str) -> Json:
        return self.call("POST", path, body, **query)

    def patch(self, path: str, body: Json) -> Json:
        return self.call("PATCH", path, body)

    def delete(self, path: str) -> Json:
        return self.call("DELETE", path)

    def names(self, path: str, **query: str) -> list[str]:
        return [it["name"] for it in self.get(path, **query).get("items", [])]

    def refusal(self, method: str, path: str, body: Json | None = None, **query: str) -> Json:
        """The error of a request that must be refused."""
        answered = self._answer(method, path, body, query).body
        assert isinstance(answered, dict)
        error: Json = answered["error"]
        return error

    def refused(self, method: str, path: str, body: Json | None = None, **query: str) -> str:
        """Code and message of a request that must be refused."""
        error = self.refusal(method, path, body, **query)
        return f"{error['code']} {error['message']}"

    def gone(self, path: str) -> bool:
        return bool(self.refusal("GET", path)["code"] == 404)

    def network(self, name: str = "net", **fields: Any) -> Json:
        return self.post(NETWORKS, {"name": name, "autoCreateSubnetworks": False, **fields})

    def subnetwork(self, name: str = "sub", network: str = "net", **fields: Any) -> Json:
        body: Json = {"name": name, "network": f"{NETWORKS}/{network}"}
        body |= {"ipCidrRange": "10.0.0.0/16", "privateIpGoogleAccess": True}
        return self.post(SUBNETWORKS, body | fields)

    def template(self, name: str = "tpl", **properties: Any) -> Json:
        body = {"name": name, "properties": template_properties(**properties)}
        return self.post(TEMPLATES, body)

    def group(self, name: str = "grp", size: int = 2, template: str = "tpl", **fields: Any) -> Json:
        return self.post(GROUPS, group_body(name, size, template) | fields)

    def of_one(self, name: str = "grp", template: str = "tpl", **properties: Any) -> None:
        """A template and a group of one VM."""
        self.template(template, **properties)
        self.group(name, size=1, template=template)

    def vms(self, **query: str) -> list[Json]:
        found: list[Json] = self.get(f"{ZONE}/instances", **query).get("items", [])
        return found

    def vm(self) -> Json:
        (found,) = self.vms()
        return found

    def get_group(self, name: str = "grp") -> Json:
        return self.get(f"{GROUPS}/{name}")

    def use(self, template: str) -> Json:
        """Give the group another template."""
        return self.patch(GROUP, {"versions": [{"instanceTemplate": f"{TEMPLATES}/{template}"}]})

    def managed(self, group: str = "grp") -> list[Json]:
        found = self.post(f"{GROUPS}/{group}/listManagedInstances").get("managedInstances", [])
        return list(found)

    def errors(self, group: str = "grp") -> list[Json]:
        """The errors of the VMs of a group that did not come."""
        tries = [it.get("lastAttempt", {}).get("errors", {}) for it in self.managed(group)]
        return [error for it in tries for error in it.get("errors", [])]


def group_body(name: str = "grp", size: int = 1, template: str = "tpl") -> Json:
    return {
        "name": name,
        "baseInstanceName": f"{name}-vm",
        "targetSize": size,
        "versions": [{"instanceTemplate": f"{TEMPLATES}/{template}"}],
    }


def boot(image: str = IMAGE, **parameters: Any) -> list[Json]:
    """The boot disk of a template."""
    given = {"sourceImage": image, **parameters}
    return [{"boot": True, "autoDelete": True, "initializeParams": given}]


def template_properties(**properties: Any) -> Json:
    """The least that a template needs, with changes."""
    return {
        "machineType": "e2-standard-4",
        "disks": boot(),
        "networkInterfaces": [{"subnetwork": f"{SUBNETWORKS}/sub"}],
        **properties,
    }


def metadata(**items: str) -> Json:
    """Metadata of a template; "-" is "_" in the keywords."""
    given = {key.replace("_", "-"): value for key, value in items.items()}
    return {"items": [{"key": key, "value": value} for key, value in given.items()]}


@pytest.fixture
def api(tmp_path: Path) -> Compute:
    return Compute(Database(tmp_path / "cloud.sqlite"))


@pytest.fixture
def wired(api: Compute) -> Compute:
    """With a network "net" and its subnetwork "sub"."""
    api.network()
    api.subnetwork()
    return api


@pytest.fixture
def made(wired: Compute) -> Compute:
    """With a template "tpl"."""
    wired.template()
    return wired
