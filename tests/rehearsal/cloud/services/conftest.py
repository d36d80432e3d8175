from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import Reply
from tests.rehearsal.cloud.sending import Sender

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


class Api(Sender):
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
    yield Api(database, 1_795_000_000.0)
    database.close()
