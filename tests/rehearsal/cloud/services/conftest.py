import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest

from rehearsal.cloud import (
    billing,
    compute,
    container,
    dashboards,
    filestore,
    iam,
    metadata,
    org_policies,
    projects,
    quota_limits,
    services,
)
from rehearsal.cloud.storage import service as storage
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request, Service

_SERVICES: dict[str, Service] = {
    "storage": storage.json_api,
    "upload": storage.upload,
    "media": storage.media,
    "iam": iam.service,
    "crm/v1": projects.service_v1,
    "crm/v3": projects.service_v3,
    "serviceusage": services.service,
    "cloudbilling": billing.service,
    "cloudquotas": quota_limits.shares,
    "orgpolicy": org_policies.service,
    "compute": compute.service,
    "container": container.service,
    "file": filestore.service,
    "monitoring": dashboards.service,
    "metadata": metadata.service,
}
_START = 1_795_000_000.0
PLACE = "projects/proj-a1/locations/us-central1"
CLUSTERS = f"{PLACE}/clusters"
CLUSTER = f"{CLUSTERS}/loom"
POOLS = f"{CLUSTER}/nodePools"
ZONE = "projects/proj-a1/zones/us-central1-a"
Json = dict[str, Any]
BODY: Json = {
    "name": "loom",
    "initialNodeCount": 1,
    "locations": ["us-central1-a"],
    "networkConfig": {"datapathProvider": "ADVANCED_DATAPATH", "enableMultiNetworking": True},
    "ipAllocationPolicy": {"useIpAliases": True, "stackType": "IPV4"},
    "releaseChannel": {"channel": "REGULAR"},
}
L4: Json = {
    "machineType": "g2-standard-4",
    "accelerators": [{"acceleratorType": "nvidia-l4", "acceleratorCount": "1"}],
}
NO_RESERVATION = {"reservationAffinity": {"consumeReservationType": "NO_RESERVATION"}}


class Api:
    """Sends requests to the services without a server; its clock stands still until it is moved."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.now = _START
        self.rate = 0.0
        self.scenarios: frozenset[str] = frozenset()

    def __call__(
        self,
        service: str,
        method: str,
        target: str,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """The answer; refusals are answers too."""
        path, _, query = target.partition("?")
        parameters = parse_qsl(query, keep_blank_values=True)
        request = Request(
            method=method,
            path=path,
            query=dict(parameters),
            parameters=parameters,
            headers=headers or {},
            body=body if isinstance(body, bytes) else json.dumps(body).encode() if body else b"",
            now=self.now,
            rate=self.rate,
            scenarios=self.scenarios,
        )
        try:
            with self.database.transaction() as store:
                return _SERVICES[service](request, store)
        except GoogleError as error:
            return error.reply()

    def json(self, service: str, method: str, target: str, body: Any = None) -> Json:
        """The document of an answer that must be a success."""
        reply = self(service, method, target, body)
        assert isinstance(reply.body, dict), reply
        assert reply.status == 200, reply.body
        return reply.body

    def refused(
        self, service: str, method: str, target: str, body: Any = None
    ) -> tuple[int, str, str]:
        """Code, reason and message of a refusal."""
        reply = self(service, method, target, body)
        assert isinstance(reply.body, dict), reply
        error = reply.body["error"]
        assert error["code"] == reply.status
        return reply.status, error["errors"][0]["reason"], error["message"]

    def gke(self, method: str, path: str, body: Any = None) -> Json:
        """A request to Kubernetes Engine that must be a success."""
        return self.json("container", method, path, body)

    def gke_refused(self, method: str, path: str, body: Any = None) -> str:
        """Code and message of Kubernetes Engine's refusal."""
        code, _, message = self.refused("container", method, path, body)
        return f"{code} {message}"

    def cluster(self, **changes: Any) -> Json:
        """Make a cluster, by default with one pool of one node; without what is None."""
        body = {key: value for key, value in (BODY | changes).items() if value is not None}
        return self.gke("POST", CLUSTERS, {"cluster": body})

    def pool(self, **fields: Any) -> Json:
        """Make a node pool."""
        return self.gke("POST", POOLS, {"nodePool": {"name": "p", **fields}})

    def compute(self, path: str) -> list[Json]:
        """What Compute Engine lists."""
        return list(self.json("compute", "GET", path).get("items", []))

    def network(self, name: str, address: str, **subnetwork: Any) -> None:
        """A network and its subnetwork."""
        network = "projects/proj-a1/global/networks"
        self.json("compute", "POST", network, {"name": name, "autoCreateSubnetworks": False})
        body = {"name": f"{name}-sub", "network": f"{network}/{name}", "ipCidrRange": address}
        subnetworks = "projects/proj-a1/regions/us-central1/subnetworks"
        self.json("compute", "POST", subnetworks, body | subnetwork)

    def bucket(self, name: str = "loom", **fields: Any) -> Json:
        """A new bucket of proj-a1."""
        return self.json("storage", "POST", "b?project=proj-a1", {"name": name, **fields})

    def put(self, name: str, content: bytes = b"x", query: str = "") -> Reply:
        """Upload an object to the bucket `loom`."""
        return self("upload", "POST", f"b/loom/o?uploadType=media&name={name}{query}", content)


@pytest.fixture
def api(tmp_path: Path) -> Iterator[Api]:
    database = Database(tmp_path / "cloud.sqlite")
    yield Api(database)
    database.close()
