"""A simulated cloud with a cluster as an example's Create makes it, and the program's client."""

import contextlib
import dataclasses
import http.client
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from provision.deployment.deployment import RunInputs
from provision.documents.gke_status import Workload
from provision.google.owner import Owner
from provision.intake import load
from provision.kinds.gke import testing
from provision.kinds.gke import variables as gke
from provision.kinds.gke.kubernetes import facts, jobs, stages, status, trials
from provision.kinds.gke.kubernetes.client import Cluster, endpoint
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.objects import Object
from provision.kinds.gke.kubernetes.status import Status
from provision.kinds.gke.testing import Tested
from provision.spec import cluster as spec_cluster
from provision.state.location import StateLocation
from provision.time import clock as google_clock
from provision.time.stages import Progress
from rehearsal import clock as clouds_clock
from rehearsal import session
from rehearsal.cloud.server import Cloud

EXAMPLES = Path(__file__).parents[4] / "examples"
ACCOUNT = "w@my-project.iam.gserviceaccount.com"


@dataclass
class Gke:
    """A cluster in the simulated cloud."""

    url: str  # where the cloud is
    facts: ClusterFacts
    endpoint: str  # the DNS name of its control plane
    environ: dict[str, str]  # in which the program finds it
    api: Cluster  # the client of the program

    @property
    def progress(self) -> Progress:
        """The cluster's clock, and nobody to tell."""
        return Progress(google_clock.Clock(float(self.environ["CLOUD_CLOCK_RATE"])), lambda _: None)

    def create(self) -> int:
        """Bring everything into the cluster that Create does; how many objects changed.

        Without the managers of queue and JobSets: they take a while to start, and a test's clock
        may stand still.
        """
        found, _ = stages.stages(self.facts, self.environ)
        wanted = [
            dataclasses.replace(
                it, objects=[thing for thing in it.objects if thing["kind"] != "Deployment"]
            )
            for it in found
        ]
        return stages.apply(self.api, wanted, progress=self.progress)

    def test(self, timeout: float = 10) -> Tested:
        """What Test finds on the pool that jobs get without asking for one."""
        pool = self.pool
        nodes = min(self.facts.test_nodes, pool.max_nodes)
        ran = trials.bandwidth(
            self.api, self.facts, pool, nodes, timeout=timeout, progress=self.progress
        )
        return testing.of(pool, ran, {})

    def google(self, method: str, path: str, body: Any = None) -> dict[str, Any]:
        """One request to an API of Google's."""
        return google(self.url, method, path, body)

    def raw(
        self, method: str, path: str, body: Any = None, content_type: str = "application/json"
    ) -> tuple[int, Any, Mapping[str, str]]:
        """One request to the cluster's API: status, body, headers."""
        where = f"/kubernetes/{self.endpoint}{path}"
        return send(self.url, method, where, body, {"Content-Type": content_type})

    def find(self, thing: Object) -> Object:
        """An object as it is now."""
        metadata = thing["metadata"]
        found = self.api.find(
            thing["apiVersion"], thing["kind"], metadata["name"], metadata.get("namespace", "")
        )
        assert found is not None
        return found

    def nodes(self, pool: str = "") -> int:
        """How many nodes a pool has, or that which jobs get without asking for one."""
        selector = f"cloud.google.com/gke-nodepool={pool or self.pool.name}"
        return len(self.api.all("v1", "Node", selector=selector))

    def pods(self, selector: str = "") -> list[Object]:
        return self.api.all("v1", "Pod", "default", selector)

    def phases(self, selector: str = "") -> list[str]:
        return sorted(pod["status"]["phase"] for pod in self.pods(selector))

    def log(self, pod: Object, container: str) -> str:
        return self.api.log("default", pod["metadata"]["name"], container)

    def events(self) -> list[Object]:
        return self.api.all("v1", "Event", "default")

    @property
    def pool(self) -> GpuPool:
        return jobs.main_pool(self.facts.pools)

    @property
    def seen(self) -> Status:
        """What Status reads of the cluster."""
        return status.read(self.api)

    @property
    def work(self) -> Workload:
        """The only job in the queue."""
        (work,) = self.seen.workloads
        return work


Make = Callable[..., Gke]


def send(
    url: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
) -> tuple[int, Any, Mapping[str, str]]:
    connection = http.client.HTTPConnection(url.removeprefix("http://"), timeout=600)
    content = body if isinstance(body, bytes) else json.dumps(body).encode() if body else None
    given = {"Authorization": "Bearer token", **(headers or {})}
    connection.request(method, path, content, given)
    reply = connection.getresponse()
    text = reply.read()
    connection.close()
    kind = reply.headers.get("Content-Type", "")
    found = json.loads(text) if "json" in kind and text.count(b"\n") < 1 else text.decode()
    return reply.status, found, dict(reply.headers)


def google(url: str, method: str, path: str, body: Any = None) -> dict[str, Any]:
    code, found, _ = send(url, method, path, body)
    assert code == 200, found
    return dict(found)


def _networks(variables: Mapping[str, Any]) -> list[dict[str, str]]:
    """The networks of the machines' GPUs, as the root's output tells them."""
    kinds = {it["gpu_networks"]: None for it in variables["node_pools"].values()}
    names = {
        "rdma": ["gvnic-1", *(f"rdma-{number}" for number in range(8))],
        "tcpxo": [f"vpc{number}" for number in range(1, 9)],
        "tcpx": [f"vpc{number}" for number in range(1, 5)],
    }
    return [
        {
            "name": name,
            "kind": kind,
            "kubernetes_name": name,
            "network": f"net-{name.partition('-')[0]}",
            "subnetwork": f"sub-{name}",
            "device_mode": "RDMA" if name.startswith("rdma-") else "NetDevice",
        }
        for kind in kinds
        for name in names.get(kind, ())
    ]


def _pool(name: str, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """A pool in the form of the API, as the module's resource becomes a request."""
    model, size = wanted["capacity"]["model"], wanted["size"]
    dws = model.startswith("flex_start") or model.endswith("queued")
    gpu = {"acceleratorType": wanted["gpu"]["type"], "acceleratorCount": wanted["gpu"]["count"]}
    affinity = "NO_RESERVATION" if dws else "ANY_RESERVATION"
    config = {
        "machineType": wanted["machine_type"],
        "accelerators": [gpu],
        "reservationAffinity": {"consumeReservationType": affinity},
        "flexStart": model.startswith("flex_start"),
        "spot": model == "spot",
        "labels": {"cloud.google.com/gke-queued": "true"} if model.endswith("queued") else {},
        "taints": [{"key": "nvidia.com/gpu", "value": "present", "effect": "NO_SCHEDULE"}],
        "diskType": wanted["disk"]["type"],
        "diskSizeGb": wanted["disk"]["size_gb"],
    }
    pool = {
        "name": name,
        "locations": [wanted["zone"]],
        "initialNodeCount": size["count"] or size["min"] or 0,
        "config": config,
        "management": {"autoRepair": not dws, "autoUpgrade": True},
        "queuedProvisioning": {"enabled": model.endswith("queued")},
    }
    if wanted.get("managed_rdma"):
        config["gpuDirectConfig"] = {"gpuDirectStrategy": "RDMA"}
        config["labels"] = {"cloud.google.com/gke-networking-dra-driver": "true"}
        pool["networkConfig"] = {"acceleratorNetworkProfile": "auto"}
    if size["count"] is None:
        limits = {"totalMinNodeCount": size["min"], "totalMaxNodeCount": size["max"]}
        pool["autoscaling"] = {"enabled": True, "locationPolicy": "ANY", **limits}
    return pool


def _outputs(
    variables: Mapping[str, Any], location: str, made: Mapping[str, Any], endpoint: str
) -> dict[str, Any]:
    """What the root tells of the cluster."""
    pools = {
        name: {
            "name": name,
            "machine_type": it["machine_type"],
            "mode": it["capacity"]["model"],
            "max": it["size"]["count"] or it["size"]["max"],
        }
        for name, it in variables["node_pools"].items()
    }
    return {
        "cluster": {
            "name": "demo-gke",
            "location": location,
            "version": made["currentMasterVersion"],
            "dns_endpoint": endpoint,
        },
        "node_pools": pools,
        "networks": _networks(variables),
        "service_accounts": {"workload": ACCOUNT},
    }


def _body(variables: Mapping[str, Any], version: str) -> dict[str, Any]:
    system = {"name": "system", "initialNodeCount": 1, "config": {"machineType": "e2-standard-8"}}
    wanted = variables["node_pools"]
    options = {"scope": "NO_MINOR_OR_NODE_UPGRADES", "endTimeBehavior": "UNTIL_END_OF_SUPPORT"}
    hold = {"startTime": "2026-01-01T00:00:00Z", "maintenanceExclusionOptions": options}
    return {
        "maintenancePolicy": {"window": {"maintenanceExclusions": {"hold": hold}}},
        "name": "demo-gke",
        **({"initialClusterVersion": version} if version else {}),
        "releaseChannel": {"channel": "REGULAR"},
        "networkConfig": {
            "enableMultiNetworking": bool(variables["gpu_networks"]),
            "datapathProvider": "ADVANCED_DATAPATH",
        },
        "ipAllocationPolicy": {"useIpAliases": True},
        "addonsConfig": {"rayOperatorConfig": {"enabled": variables["cluster"]["ray_operator"]}},
        "controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"allowExternalTraffic": True}},
        "nodePools": [system, *(_pool(name, it) for name, it in wanted.items())],
    }


class Clock:
    """The cloud's clock: it stands still until it is moved."""

    def __init__(self) -> None:
        self._now = 1_795_000_000.0

    def time(self) -> float:
        """The moment (Unix epoch)."""
        return self._now

    def forward(self, seconds: float) -> None:
        """Let time pass."""
        self._now += seconds


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The server's clock; with rate "1" each second of it is one of the cloud's."""
    made = Clock()
    monkeypatch.setattr(clouds_clock, "time", made)
    return made


@pytest.fixture
def gke_of(tmp_path: Path) -> Iterator[Make]:
    """Makes the cluster of an example, under a scenario, by a clock."""
    with contextlib.ExitStack() as open_clouds:

        def make(
            example: str,
            scenario: str = "",
            rate: str = "0",
            manifests: Mapping[str, str] | None = None,
            version: str = "",
            **changes: str,
        ) -> Gke:
            own = {session.MANIFESTS_VARIABLE: str(session.MANIFESTS)}
            environ = {"CLOUD_CLOCK_RATE": rate, **(own if manifests is None else manifests)}
            database = tmp_path / "cloud.sqlite"
            settings = load({}, EXAMPLES / f"{example}.env.list", flags=changes).settings
            assert settings is not None
            location = StateLocation("bucket", "folder", is_default=True)
            spec = spec_cluster.gke(settings)
            managed = bool(version) and spec.managed_by(version)
            spec = dataclasses.replace(spec, version=None, managed=managed)
            variables = gke.variables(spec, Owner("3f9c2a71"), location, RunInputs())
            at = f"/container/v1/projects/my-project/locations/{settings.region}/clusters"
            # Making a cluster is not what is tested: it takes no time and goes well.
            with Cloud(database=database, environ={"CLOUD_CLOCK_RATE": "0"}) as cloud:
                google(cloud.base_url, "POST", at, {"cluster": _body(variables, version)})
                made = google(cloud.base_url, "GET", f"{at}/demo-gke")
            cloud = open_clouds.enter_context(
                Cloud(database=database, environ=environ, scenario=scenario)
            )
            name = made["controlPlaneEndpointsConfig"]["dnsEndpointConfig"]["endpoint"]
            outputs = _outputs(variables, settings.region, made, name)
            environ["KUBERNETES_CUSTOM_ENDPOINT"] = f"{cloud.base_url}/kubernetes/{{endpoint}}"
            known = facts.read(spec, outputs)
            reached = Cluster(endpoint(name, environ), lambda _: "token")
            return Gke(cloud.base_url, known, name, environ, reached)

        yield make
