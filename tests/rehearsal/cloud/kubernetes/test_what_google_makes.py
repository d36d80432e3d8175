"""What GKE makes in Compute Engine for a cluster's Services and claims, and what is left of it."""

from typing import Any

import pytest

from provision.kinds.gke import release
from provision.kinds.gke.kubernetes.objects import build
from provision.kinds.gke.left_behind import claim_of
from tests.rehearsal.cloud.kubernetes.conftest import Gke, Make, send

PROJECT = "/compute/v1/projects/my-project"
POOL = "cloud.google.com/gke-nodepool"
_SIZE = {"resources": {"requests": {"storage": "20Gi"}}, "accessModes": ["ReadWriteOnce"]}


@pytest.fixture
def cluster(gke_of: Make) -> Gke:
    return gke_of("gke-t4-a100-queued")


def service(name: str, **annotations: str) -> dict[str, Any]:
    spec = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": name}}
    thing = build("v1", "Service", name, "default", spec=spec)
    thing["metadata"]["annotations"] = annotations
    return thing


def names(cluster: Gke, collection: str) -> list[str]:
    """The names of what Compute Engine has of a collection, but for what others have made."""
    found = cluster.google("GET", f"{PROJECT}/{collection}").get("items", [])
    kind = collection.rpartition("/")[2]
    scopes = [scope[kind] for scope in found.values()] if isinstance(found, dict) else [found]
    every = (it["name"] for items in scopes for it in items)
    return sorted(name for name in every if name.startswith(("a", "k8s", "pvc-")))


def balancers(cluster: Gke) -> dict[str, list[str]]:
    kinds = ("forwardingRules", "targetPools")
    found = {kind: names(cluster, f"aggregated/{kind}") for kind in kinds}
    found |= {kind: names(cluster, f"global/{kind}") for kind in ("httpHealthChecks", "firewalls")}
    return {kind: known for kind, known in found.items() if known}


def settled(cluster: Gke, kind: str) -> list[str]:
    """The names of what is there of a kind, once its controllers have had their turns."""
    for _ in range(9):
        found = cluster.api.all("v1", kind)
    return [it["metadata"]["name"] for it in found]


def test_a_load_balancer_comes_and_goes_with_its_service(cluster: Gke) -> None:
    made = cluster.find(cluster.api.apply(service("web")))
    name = f"a{made['metadata']['uid'].replace('-', '')}"[:32]
    found = balancers(cluster)
    (check,) = found["httpHealthChecks"]
    assert found["forwardingRules"] == found["targetPools"] == [name]
    assert found["firewalls"] == [f"{check}-http-hc", f"k8s-fw-{name}"]
    cluster.api.apply(service("api"))
    cluster.api.delete("v1", "Service", "web", "default")
    settled(cluster, "Service")
    assert len(balancers(cluster)["firewalls"]) == 2
    assert name not in str(balancers(cluster))
    cluster.api.delete("v1", "Service", "api", "default")
    settled(cluster, "Service")
    assert balancers(cluster) == {}


def _claim(cluster: Gke, policy: str) -> str:
    kept = {"provisioner": "pd.csi.storage.gke.io", "reclaimPolicy": policy}
    cluster.api.apply(build("storage.k8s.io/v1", "StorageClass", policy.lower(), **kept))
    spec = {**_SIZE, "storageClassName": policy.lower()}
    thing = build("v1", "PersistentVolumeClaim", "data", "default", spec=spec)
    made = cluster.find(cluster.api.apply(thing))
    assert made["status"]["phase"] == "Bound"
    return str(made["spec"]["volumeName"])


@pytest.mark.parametrize("policy", ["Delete", "Retain"])
def test_a_disk_goes_with_its_claim_unless_its_policy_says_otherwise(
    cluster: Gke, policy: str
) -> None:
    name = _claim(cluster, policy)
    assert names(cluster, "aggregated/disks") == [name]
    cluster.api.delete("v1", "PersistentVolumeClaim", "data", "default")
    left = settled(cluster, "PersistentVolume")
    if policy == "Delete":
        assert name not in left
    else:
        volume = cluster.api.find("v1", "PersistentVolume", name) or {}
        assert volume["status"]["phase"] == "Released"
    assert names(cluster, "aggregated/disks") == ([name] if policy == "Retain" else [])


def test_an_instance_of_filestore_is_as_the_driver_makes_it_and_goes_with_its_claim(
    cluster: Gke,
) -> None:
    own = {"provisioner": "filestore.csi.storage.gke.io", "parameters": {"network": "default"}}
    cluster.api.apply({**build("storage.k8s.io/v1", "StorageClass", "shared"), **own})
    spec = {**_SIZE, "accessModes": ["ReadWriteMany"], "storageClassName": "shared"}
    claim = build("v1", "PersistentVolumeClaim", "data", "default", spec=spec)
    name = cluster.find(cluster.api.apply(claim))["spec"]["volumeName"]
    (volume,) = cluster.api.all("v1", "PersistentVolume")
    _, zone, instance, _ = volume["spec"]["csi"]["volumeHandle"].split("/")
    path = f"projects/my-project/locations/{zone}/instances"
    found = cluster.google("GET", f"/file/v1/{path}/{instance}")
    assert found["labels"] == {
        "kubernetes_io_created-for_pv_name": name,
        "kubernetes_io_created-for_pvc_name": "data",
        "kubernetes_io_created-for_pvc_namespace": "default",
        "storage_gke_io_created-by": "filestore_csi_storage_gke_io",
    }
    assert found["fileShares"][0]["capacityGb"] == "1024"
    assert release.storage(cluster.api, "my-project") == {f"{path}/{instance}": "Delete"}
    assert claim_of(found) == "default/data"
    cluster.api.delete("v1", "PersistentVolumeClaim", "data", "default")
    settled(cluster, "PersistentVolume")
    assert cluster.google("GET", f"/file/v1/{path}").get("instances", []) == []


def test_a_claim_that_a_pod_uses_stays_until_the_pod_is_gone(cluster: Gke) -> None:
    name = _claim(cluster, "Delete")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    container = {"name": "main", "image": "busybox", "resources": {}}
    pod = {"volumes": volumes, "containers": [container], "restartPolicy": "Never"}
    spec = {"template": {"spec": {**pod, "nodeSelector": {POOL: "none"}}}}
    cluster.api.apply(build("batch/v1", "Job", "user", "default", spec=spec))
    assert cluster.pods()
    cluster.api.delete("v1", "PersistentVolumeClaim", "data", "default")
    assert cluster.api.find("v1", "PersistentVolumeClaim", "data", "default") is not None
    assert names(cluster, "aggregated/disks") == [name]
    cluster.api.delete("batch/v1", "Job", "user", "default")
    for _ in range(3):
        left = cluster.api.find("v1", "PersistentVolumeClaim", "data", "default")
    assert left is None


def test_all_stays_that_a_deleted_cluster_has_not_taken_away_and_keeps_its_network(
    cluster: Gke,
) -> None:
    cluster.api.apply(service("web"))
    cluster.api.apply(service("inside", **{"networking.gke.io/load-balancer-type": "Internal"}))
    disk = _claim(cluster, "Delete")
    left, facts = balancers(cluster), cluster.facts
    where = f"/container/v1/projects/{facts.project}/locations/{facts.location}"
    cluster.google("DELETE", f"{where}/clusters/{facts.name}")
    assert balancers(cluster) == left
    assert len(left["forwardingRules"]) == 2
    assert names(cluster, "aggregated/disks") == [disk]

    def refusal() -> str:
        status, found, _ = send(cluster.url, "DELETE", f"{PROJECT}/global/networks/default")
        assert status == 400
        return str(found["error"]["message"])

    rules = cluster.google("GET", f"{PROJECT}/global/firewalls")["items"]
    for rule in [it["name"] for it in rules if not it["name"].startswith("k8s")]:
        cluster.google("DELETE", f"{PROJECT}/global/firewalls/{rule}")
    assert "/global/firewalls/k8s" in refusal()
    for rule in left["firewalls"]:
        cluster.google("DELETE", f"{PROJECT}/global/firewalls/{rule}")
    # That of the internal one: the other leads to a target pool, and is in no network.
    assert "/forwardingRules/" in refusal()
