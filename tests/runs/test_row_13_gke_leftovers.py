"""What GKE makes for a cluster's Services and claims goes with the cluster, and nothing else."""

from typing import Any

import pytest

from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.gke.kubernetes.objects import build
from rehearsal.inventory import stays
from tests.runs import cluster_side, state_file
from tests.runs.conftest import Ended, Rehearsal, Rehearse

GKE = {"ORCHESTRATOR_TYPE": "gke", "VM_TYPE": "g2-standard-24", "INSTANCE_COUNT": "1"}
COMPUTE = "compute/v1/"
DRIVER = "pd.csi.storage.gke.io"
SERVICE = build(
    "v1", "Service", "web", "default", spec={"type": "LoadBalancer", "ports": [{"port": 80}]}
)
SILENT = "http://127.0.0.1:9/{endpoint}"
"""Where nothing listens."""


SLOW = pytest.mark.slow(sibling="::test_destroy_leaves_only_the_disk_that_is_to_stay_and_names_it")


@pytest.fixture
def gke(standing: Rehearse) -> Rehearsal:
    """A rehearsal with a cluster in which somebody has a Service and two claims."""
    rehearsal = standing(GKE)
    rehearsal.settings |= GKE
    use(kubectl(rehearsal))
    return rehearsal


def kubectl(rehearsal: Rehearsal) -> Cluster:
    (facts,) = [line for line in rehearsal.resources() if line.endswith("/cluster.json")]
    state = facts.partition("b/")[2].replace("/o/", "/", 1).removesuffix("/cluster.json")
    return cluster_side.kubectl(rehearsal, {"state": f"gs://{state}"})


def use(cluster: Cluster) -> None:
    cluster.apply(SERVICE)
    for name, policy in {"scratch": "Delete", "results": "Retain"}.items():
        provider: dict[str, Any] = {"provisioner": DRIVER, "reclaimPolicy": policy}
        cluster.apply(build("storage.k8s.io/v1", "StorageClass", name, **provider))
        claim = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "50Gi"}},
            "storageClassName": name,
        }
        cluster.apply(build("v1", "PersistentVolumeClaim", name, "default", spec=claim))


def left(rehearsal: Rehearsal) -> list[str]:
    found = rehearsal.resources()
    return [line for line in found if not stays(line)]


def disk_of(rehearsal: Rehearsal, claim: str) -> str:
    """The line of a claim's disk."""
    places = "projects/my-project/aggregated/disks"
    scopes = rehearsal.google("GET", f"{COMPUTE}{places}")["items"].values()
    disks = [disk for scope in scopes for disk in scope["disks"]]
    (found,) = [it for it in disks if f'"{claim}"' in it.get("description", "")]
    return f"compute/disks {found['selfLink'].partition('/v1/')[2]}"


def test_destroy_leaves_only_the_disk_that_is_to_stay_and_names_it(gke: Rehearsal) -> None:
    kept = disk_of(gke, "results")
    assert [line for line in left(gke) if "/forwardingRules/" in line]
    ended = gke.run("Destroy")
    assert ended.code == 0, ended.said
    assert left(gke) == [kept]
    (note,) = ended.document["notes"]
    name = kept.rpartition("/")[2]
    assert note["what"] == f"The disk {name} is kept: 50 GB, which are billed"
    assert "default/results" in note["why"]
    command = f"gcloud compute disks delete {name} --zone us-central1-a --project my-project"
    assert note["fix"].endswith(command)
    goes = "Volume of the claim default/scratch, 50Gi, with all its files"
    assert f"  for ever   {goes}\n" in ended.said
    assert "Service default/web" in ended.said
    assert "PersistentVolumeClaim default/scratch" in ended.said


@SLOW
def test_what_a_silent_control_plane_leaves_is_removed_but_for_what_holds_data(
    gke: Rehearsal,
) -> None:
    disks = [disk_of(gke, claim) for claim in ("scratch", "results")]
    leads_there = gke.environ["KUBERNETES_CUSTOM_ENDPOINT"]
    gke.environ["KUBERNETES_CUSTOM_ENDPOINT"] = SILENT
    ended = gke.run("Destroy")
    assert ended.code == 8, ended.said
    # Nobody could be asked whether the data may go.
    assert left_in_cloud(gke) == sorted(disks)
    assert "Could not delete Services and claims in Kubernetes first" in ended.said
    heading = "Destroy is not done: something of the cluster is left (exit code 8):"
    assert heading in ended.said.splitlines()
    assert "  for ever " not in ended.said
    heading = "Destroy is not done: something of the cluster is left (exit code 8):"
    assert heading in ended.said.splitlines()
    assert "  for ever " not in ended.said
    fixes = {problem["fix"] for problem in ended.document["problems"]}
    assert len(fixes) == 2
    for disk in disks:
        assert any(f"disks delete {disk.rpartition('/')[2]} " in fix for fix in fixes)
    # Whoever deletes them as he was told ends it.
    gke.environ["KUBERNETES_CUSTOM_ENDPOINT"] = leads_there
    for disk in disks:
        gke.google("DELETE", COMPUTE + disk.removeprefix("compute/disks "))
    again = gke.run("Destroy")
    assert again.code == 0, again.said
    assert left(gke) == []


def left_in_cloud(rehearsal: Rehearsal) -> list[str]:
    return sorted(line for line in left(rehearsal) if not line.startswith("storage/"))


@SLOW
def test_the_wait_for_what_does_not_go_is_bounded_and_told(gke: Rehearsal) -> None:
    cluster = kubectl(gke)
    cluster.apply({**SERVICE, "metadata": {**SERVICE["metadata"], "finalizers": ["a.b/never"]}})
    kept = disk_of(gke, "results")
    ended = gke.run("Destroy")
    assert ended.code == 0, ended.said
    assert "Not waiting longer for GKE to remove what it made for Service default/web" in ended.said
    assert left(gke) == [kept]


@SLOW
def test_what_a_cluster_has_left_that_somebody_deleted_is_found(gke: Rehearsal) -> None:
    disks = [disk_of(gke, claim) for claim in ("scratch", "results")]
    where = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
    make_gateway(gke, gke.google("GET", where)["networkConfig"]["network"])
    gke.google("DELETE", where)
    ended = gke.run("Destroy")
    assert ended.code == 8, ended.said
    assert left_in_cloud(gke) == sorted(disks)


def make_gateway(rehearsal: Rehearsal, network: str) -> None:
    """Make what GKE makes for a Gateway; nothing of it goes with the cluster."""
    everywhere = "projects/my-project/global"
    service, gateway = "gkegw1-nv9e-default-web-80-t9htdxlbxe5i", "gkegw1-nv9e-default-gw-94oe6umb5"
    check, backend = (
        f"{everywhere}/healthChecks/{service}",
        f"{everywhere}/backendServices/{service}",
    )
    proxy, urls = f"{everywhere}/targetHttpProxies/{gateway}", f"{everywhere}/urlMaps/{gateway}"
    parts: dict[str, dict[str, Any]] = {
        "healthChecks": {"name": service, "type": "HTTP"},
        "backendServices": {"name": service, "healthChecks": [check]},
        "urlMaps": {"name": gateway, "defaultService": backend},
        "targetHttpProxies": {"name": gateway, "urlMap": urls},
        "forwardingRules": {"name": gateway, "target": proxy},
        "firewalls": {
            "name": "gkegw1-nv9e-l7-np-net-global",
            "network": network,
            "allowed": [{"IPProtocol": "tcp"}],
        },
    }
    for collection, body in parts.items():
        rehearsal.google("POST", f"{COMPUTE}{everywhere}/{collection}", body)
    zone = "projects/my-project/zones/us-central1-a"
    group = {"name": "k8s1-4cd82deb-default-web-80-d9441438", "network": network}
    rehearsal.google("POST", f"{COMPUTE}{zone}/networkEndpointGroups", group)


def test_without_a_state_what_a_cluster_has_left_is_named_and_goes_by_yes(gke: Rehearsal) -> None:
    where = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
    make_gateway(gke, gke.google("GET", where)["networkConfig"]["network"])
    disks = [disk_of(gke, claim) for claim in ("scratch", "results")]
    gke.google("DELETE", where)
    with state_file.client(gke) as client:
        for kept in client.list_blobs("aiinfra-terraform-my-project"):
            kept.delete()

    for action in ("Status", "Destroy"):
        told = gke.run(action)
        assert told.code == 5, told.said
        problems = told.document["problems"]
        (found,) = [it for it in problems if "what GKE made for the cluster np-gke" in it["what"]]
        assert "--yes" in found["fix"]
        for part in ("/forwardingRules/a", "/targetPools/a", "/urlMaps/gkegw1-nv9e-", "/k8s-fw-a"):
            assert part in found["why"]
        for disk in disks:
            command = f"gcloud compute disks delete {disk.rpartition('/')[2]} "
            assert any(command in it["fix"] for it in problems)

    destroyed = gke.run("Destroy", "--yes")
    assert destroyed.code == 0, destroyed.said
    assert left_in_cloud(gke) == sorted(disks)
    again = gke.run("Destroy")
    assert again.code == 0, again.said
    for ended in (destroyed, again):
        named = {note["what"].split()[2] for note in ended.document["notes"]}
        assert named >= {disk.rpartition("/")[2] for disk in disks}


def test_a_cluster_with_our_name_and_another_marker_is_not_cleared(gke: Rehearsal) -> None:
    state_file.forget(gke, lambda resource: resource["type"].startswith("google_container_"))
    where = "container/v1/projects/my-project/locations/us-central1/clusters/np-gke"
    found = gke.google("GET", where)
    labels = {"resourceLabels": {"aiinfra-cluster": "another"}}
    fingerprint = {"labelFingerprint": found["labelFingerprint"]}
    gke.google("POST", f"{where}:setResourceLabels", labels | fingerprint)

    def unmarked(text: str) -> str:
        return text.replace("aiinfra-cluster=", "other-cluster=") if '"np-gke"' in text else text

    gke.rewrite(unmarked)
    before = [line for line in left(gke) if "forwardingRules" in line or "disks" in line]
    ended = gke.run("Destroy")
    assert ended.code != 0
    cluster = kubectl(gke)
    assert cluster.find("v1", "Service", "web", "default") is not None
    assert cluster.find("v1", "PersistentVolumeClaim", "scratch", "default") is not None
    after = left(gke)
    assert [line for line in before if line not in after] == []


@SLOW
def test_another_clusters_things_are_not_touched(gke: Rehearsal) -> None:
    other = "a" + "0" * 31
    region = "projects/my-project/regions/us-central1"
    zone = "projects/my-project/zones/us-central1-a"
    gke.google("POST", f"{COMPUTE}{region}/targetPools", {"name": other})
    rule = {"name": f"k8s-fw-{other}", "allowed": [{"IPProtocol": "tcp"}]}
    gke.google("POST", f"{COMPUTE}projects/my-project/global/firewalls", rule)
    disk = {"name": "pvc-1", "sizeGb": "10", "labels": {"goog-k8s-cluster-name": "np-gke-2"}}
    gke.google("POST", f"{COMPUTE}{zone}/disks", disk)
    kept = disk_of(gke, "results")
    ended: Ended = gke.run("Destroy")
    assert ended.code == 0, ended.said
    expected = [
        kept,
        f"compute/disks {zone}/disks/pvc-1",
        f"compute/firewalls projects/my-project/global/firewalls/k8s-fw-{other}",
        f"compute/targetPools {region}/targetPools/{other}",
    ]
    assert sorted(left(gke)) == sorted(expected)
