"""What a plan keeps of a cluster that exists, and which pools it brings to its version."""

import dataclasses
import json
from typing import Any, cast

import pytest
from google.oauth2.credentials import Credentials

from provision.catalogue import fabrics, machines
from provision.codes import Code
from provision.errors import ClusterError, StateError
from provision.google.api import GoogleApi, GoogleApiError, Service
from provision.google.owner import Owner
from provision.kinds.gke import control_plane, release
from provision.kinds.gke.control_plane import State
from provision.kinds.gke.kubernetes.client import Cluster
from provision.kinds.gke.left_behind import Traces
from provision.lifecycle import ownership
from provision.settings.model import Settings
from provision.spec import cluster
from provision.spec.pools import Size
from provision.state import terraform_state
from provision.state.location import StateLocation
from provision.terraform.plan import Creation
from tests.kubernetes import samples
from tests.table import cases
from tests.unit.kinds.cases import having, unheard
from tests.unit.memory_folder import MemoryFolder
from tests.unit.state.test_record import WHOLE

NETWORKS = {
    kind.label: fabrics.beside_the_first(machines.lookup(name))
    for kind, name in (
        (machines.GpuNetwork.TCPX, "a3-highgpu-8g"),
        (machines.GpuNetwork.TCPXO, "a3-megagpu-8g"),
        (machines.GpuNetwork.RDMA, "a4-highgpu-8g"),
    )
}


def _state(first: str = "", *more: str, parts: int = 8) -> dict[str, dict[str, Any]]:
    """The networks of a state: those of the first kind, or a part of them, and of others."""
    at = "google_compute_network.gpu"
    places = {f'module.more_gpu_networks["{kind}"].{at}': NETWORKS[kind] for kind in more}
    if first:
        places[f"module.gpu_networks.{at}"] = NETWORKS[first][:parts]
    first_of_all = {"module.network.google_compute_network.new[0]": {"mtu": 8896}}
    return first_of_all | {
        f'{place}["{number}"]': {
            "mtu": one.mtu,
            "network_profile": f"projects/p/global/networkProfiles/z-{one.profile}"
            if one.profile
            else "",
        }
        for place, networks in places.items()
        for number, one in enumerate(networks, start=1)
    }


@cases("""
asked         | state       | parts | first
[tcpxo]       | -           | 8     | null   # nothing stands
[tcpxo, rdma] | tcpxo       | 8     | tcpxo  # one more kind
[rdma, tcpxo] | tcpxo       | 8     | tcpxo  # one more before it
[tcpx, tcpxo] | tcpxo       | 8     | tcpxo  # more of the same make
[tcpxo, tcpx] | tcpx        | 8     | tcpx   # fewer of the same make
[tcpxo, rdma] | rdma tcpxo  | 8     | rdma   # both stand
[rdma]        | tcpxo rdma  | 8     | -      # the first goes
[rdma, tcpx]  | tcpxo rdma  | 8     | tcpx   # the first is another
[rdma]        | tcpxo       | 8     | null   # the only one is another
[rdma, tcpxo] | tcpxo       | 3     | tcpxo  # a killed run
""")
def test_a_kind_that_exists_keeps_its_names(
    asked: list[str], state: str, parts: int, first: str | None
) -> None:
    there = _state(*state.split(), parts=parts)
    assert control_plane.first_kind({kind: NETWORKS[kind] for kind in asked}, there) == first


def test_machines_of_one_kind_of_network_have_the_same_networks() -> None:
    """So that a cluster has one set of networks for each kind."""
    found = {
        (machine.gpu_network, fabrics.beside_the_first(machine))
        for machine in machines.MACHINE_TYPES.values()
        if machine.gpu_network and not machine.family.arm
    }
    assert len(found) == len({kind for kind, _ in found})


OF_GKE = {
    "ultra": "name=ultra,vm_type=a3-ultragpu-8g,spot=yes",
    "a4": "name=a4,vm_type=a4-highgpu-8g,spot=yes",
    "flex": "name=flex,vm_type=a4-highgpu-8g,flex_start=yes,max=2",
    "queue": "name=queue,vm_type=a3-ultragpu-8g,flex_start=yes,queued=yes,max=2",
    "mega": "name=mega,vm_type=a3-megagpu-8g,spot=yes",
    "l4": "name=l4,vm_type=g2-standard-4",
}


@cases("""
pools         | version                | ours | stands                 | managed
[ultra]       | "1.36.4-gke.1082000"   | -    | -                      | true
[a4, l4]      | "1.37.1-gke.1000000"   | -    | -                      | true
[flex]        | "1.36.4-gke.1082000"   | -    | -                      | true
[ultra]       | "1.35.7-gke.1222000"   | -    | -                      | false  # too old
[a4, queue]   | "1.36.4-gke.1082000"   | -    | -                      | false  # a queue
[ultra, mega] | "1.36.4-gke.1082000"   | -    | -                      | false  # not RDMA
[l4]          | "1.36.4-gke.1082000"   | -    | -                      | false  # no network at all
[ultra]       | "1.36.4-gke.1082000"   | rdma | "1.36.4-gke.1082000"   | false  # ours stand
[ultra]       | "1.36.4-gke.1082000"   | -    | "1.35.7-gke.1222000"   | false  # not yet
[ultra]       | "1.35.7-gke.1222000"   | -    | "1.36.4-gke.1082000"   | true   # one that has been
""")
def test_gke_manages_rdma_where_nothing_of_ours_stands(
    pools: list[str], version: str, ours: str, stands: str, *, managed: bool
) -> None:
    given = {
        "project_id": "my-project",
        "name_prefix": "np",
        "zone": "us-central1-b",
        "orchestrator_type": "gke",
        "gke_node_pools": ";".join(OF_GKE[it] for it in pools),
    }
    spec = cluster.gke(Settings(given))
    decided = dataclasses.replace(spec, managed=spec.managed_by(version))
    there = {"module.gke_cluster.c": {"master_version": stands}} if stands else {}
    assert control_plane.is_managed(decided, _state(ours), there) == managed
    made = dataclasses.replace(spec, managed=managed)
    assert (made.network_kinds == {}) == (managed or pools == ["l4"])


OLD, MASTER, NEWER = "1.34.9-gke.1655001", "1.35.7-gke.1222000", "1.36.4-gke.1082000"
GROUPS = "projects/p/zones/z/instanceGroupManagers/"
SCALES, FIXED = Size(min=0, max=4), Size(count=2)


@pytest.mark.parametrize(
    ("asked", "size", "version", "nodes", "given"),
    [
        pytest.param(None, SCALES, OLD, 0, MASTER, id="empty"),
        pytest.param(NEWER, SCALES, OLD, 0, NEWER, id="with_its_control_plane"),
        pytest.param(OLD, SCALES, OLD, 0, MASTER, id="google_has_upgraded_it"),
        pytest.param(None, SCALES, OLD, 1, None, id="has_a_node"),
        pytest.param(None, SCALES, OLD, None, None, id="nobody_says"),
        pytest.param(None, SCALES, MASTER, 0, None, id="is_there_already"),
        pytest.param(None, FIXED, OLD, 0, None, id="waits_for_nodes"),
    ],
)
def test_a_pool_without_nodes_gets_the_version_of_its_control_plane(
    asked: str | None, size: Size, version: str, nodes: int | None, given: str | None
) -> None:
    def find(service: Service, path: str) -> dict[str, Any]:
        assert (service, path) == (Service.COMPUTE, f"{GROUPS}g")
        if nodes is None:
            raise GoogleApiError(403, "forbidden", path)
        return {"targetSize": nodes}

    pool = {
        "name": "np-nodepool-1",
        "version": version,
        "instanceGroupUrls": [f"https://www.googleapis.com/compute/v1/{GROUPS}g"],
    }
    system = {**pool, "name": "np-system", "version": OLD}
    spec = having(version=asked, gpu_pools=[having(name="np-nodepool-1", size=size)])
    cloud = having(api=having(find=find))
    cluster = {"currentMasterVersion": MASTER, "nodePools": [pool, system]}
    found = control_plane.behind(cloud, spec, cluster)
    assert found == ({"np-nodepool-1": given} if given else {})


def test_a_pool_whose_nodes_no_upgrade_ends_gets_it_with_nodes_too() -> None:
    pool = {"name": "np-a", "version": OLD, "upgradeSettings": {"strategy": "SHORT_LIVED"}}
    spec = having(version=None, gpu_pools=[having(name="np-a", size=SCALES)])
    cluster = {"currentMasterVersion": MASTER, "nodePools": [pool]}
    assert control_plane.behind(having(), spec, cluster) == {"np-a": MASTER}


TAINTED = Creation(
    address="module.pools.one",
    type="google_container_node_pool",
    values={"project": "p", "location": "us-central1", "cluster": "np-gke", "name": "np-one"},
)


@pytest.mark.parametrize(
    "status", ["RUNNING", "RUNNING_WITH_ERROR", "RECONCILING", "ERROR", "STOPPING", None]
)
def test_a_tainted_pool_is_kept_while_google_goes_on_with_it(status: str | None) -> None:
    def find(_service: object, path: str) -> dict[str, Any] | None:
        assert path == "projects/p/locations/us-central1/clusters/np-gke"
        return {"nodePools": [{"name": "np-one", "status": status}]} if status else None

    cloud = having(api=having(find=find))
    is_kept = status in {"RUNNING", "RUNNING_WITH_ERROR", "RECONCILING"}
    assert control_plane.to_untaint(cloud, [TAINTED]) == ([TAINTED.address] if is_kept else [])


@cases("""
index               | address
{}                  | module.pools.google_container_node_pool.gpu
{index_key: 0}      | module.pools.google_container_node_pool.gpu[0]
{index_key: np-one} | module.pools.google_container_node_pool.gpu["np-one"]
""")
def test_a_plan_knows_no_pool_that_was_given_up(index: dict[str, Any], address: str) -> None:
    kind = "google_container_node_pool"
    kept = {**index, "status": "tainted", "attributes": {"name": "np-one"}}
    other = {"status": "tainted", "attributes": {}}
    one = {"mode": "managed", "type": kind, "name": "gpu"}
    state = {
        "serial": 7,
        "resources": [
            {"module": "module.pools", **one, "instances": [kept]},
            {**one, "instances": [other]},
        ],
    }
    found = terraform_state.untainted(state, [address])
    assert [it["instances"][0].get("status") for it in found["resources"]] == [None, "tainted"]
    assert kept["status"] == "tainted"


SECRET = {"name": "HF", "project": "my-project", "secret": "hf-token", "version": "latest"}
RECORD = dataclasses.replace(
    WHOLE,
    settings={
        "IMAGE_MIRROR": ["us-docker.pkg.dev/my-project/mirror"],
        "GCS_MOUNT_LIST": [{"bucket": "data", "path": "/mnt/data"}],
        "SECRETS": [SECRET],
    },
)
KEPT = json.loads(samples.FLEX_QUEUED_ULTRA.document())


def _folder(**changes: Any) -> Any:
    return MemoryFolder({"cluster.json": json.dumps(KEPT | changes)})


@pytest.mark.parametrize(
    "endpoint",
    ["evil.example.com", "127.0.0.1:19443/x", "x@evil.example.com", "evil.example.com\\.gke.goog"],
)
def test_no_control_plane_but_googles_gets_the_token(endpoint: str) -> None:
    api = GoogleApi(Credentials("token"), {}, unheard())
    document = {"controlPlaneEndpointsConfig": {"dnsEndpointConfig": {"endpoint": endpoint}}}
    with pytest.raises(ClusterError, match=r"would get the access token") as caught:
        control_plane.reach(document, api, {}).all("v1", "Node")
    assert caught.value.problems[0].code is Code.UNSAFE_ENDPOINT


def test_who_the_cluster_is_and_what_its_pods_fetch_is_what_the_record_says() -> None:
    changed = _folder(
        project="other-project",
        name="other",
        location="europe-west4",
        workload_account="other@my-project.iam.gserviceaccount.com",
        image_mirrors=["evil.example.com/x"],
        secrets=[{"name": "LD_PRELOAD", "project": "evil-project", "secret": "x"}],
        buckets=[{"bucket": "evil", "path": "/usr/lib"}],
        endpoint="evil.example.com",
    )
    found = control_plane.kept(changed, RECORD)
    assert found is not None
    assert (found.project, found.name, found.location) == ("my-project", "np-gke", "us-central1")
    assert found.workload_account == "np-workload@my-project.iam.gserviceaccount.com"
    assert found.image_mirrors == ("us-docker.pkg.dev/my-project/mirror",)
    (secret,), (bucket,) = found.secrets, found.buckets
    assert (secret.name, secret.path) == ("HF", "projects/my-project/secrets/hf-token")
    assert (bucket.bucket, bucket.path) == ("data", "/mnt/data")
    assert found.pools == samples.FLEX_QUEUED_ULTRA.pools


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pools", [{**KEPT["pools"][0], "name": "x\n  image: evil"}]),
        ("pools", [{**KEPT["pools"][0], "mode": "free"}]),
        ("shares", [{**KEPT["shares"][0], "server": "evil.example.com"}]),
        ("networks", [{**KEPT["networks"][0], "kubernetes_name": '"}]'}]),
        ("ray_version", "2.60.0@sha256:0"),
        ("version", "1.33; rm"),
        ("queues", [{"name": "a b", "gpus": 1}]),
        ("gpu_quota", -1),
    ],
)
def test_what_breaks_the_rule_of_its_setting_is_refused(name: str, value: object) -> None:
    with pytest.raises(StateError, match=r"cluster\.json can't be read") as caught:
        control_plane.kept(_folder(**{name: value}), RECORD)
    (problem,) = caught.value.problems
    assert problem.code is Code.STATE_UNREADABLE
    assert problem.fix == "run Create again: it rewrites that file"


def test_without_the_settings_no_pod_is_made_and_a_cluster_that_is_gone_is_told() -> None:
    control_plane.require_settings(_folder(), RECORD)
    with pytest.raises(StateError, match="not known where pods get their images"):
        control_plane.require_settings(_folder(), dataclasses.replace(RECORD, settings={}))
    asked: list[str] = []
    api = having(find=lambda _, path: asked.append(path))
    assert control_plane.find(api, RECORD) is None
    with pytest.raises(ClusterError, match="The cluster does not exist"):
        control_plane.reach(None, api, {})
    assert asked == ["projects/my-project/locations/us-central1/clusters/np-gke"]


# ------------------------------------------------------------------ the states of its parts


def _cluster(status: str = "RUNNING", **pools: str) -> dict[str, object]:
    return {
        "status": status,
        "nodePools": [{"name": name, "status": pool} for name, pool in pools.items()],
    }


def test_what_runs_is_worth_no_word_and_pools_that_are_gone_or_failed_are_told_together() -> None:
    assert control_plane.require(_cluster(one="RUNNING", two="RUNNING"), ["one", "two"]) == []
    assert State.of({"status": "A_STATE_OF_NEXT_YEAR"}) is State.UNSPECIFIED
    cluster = _cluster(one="RUNNING")
    cluster["nodePools"] = [{"name": "two", "status": "ERROR", "statusMessage": "no subnetwork"}]
    with pytest.raises(ClusterError) as caught:
        control_plane.require(cluster, ["one", "two"])
    gone, failed = caught.value.problems
    assert gone.what == "The node pool one does not exist"
    assert failed.why == "its state is ERROR: no subnetwork"


@cases("""
cluster                           | what
{status: STOPPING, nodePools: []} | The cluster is not in order
{status: ERROR, nodePools: []}    | The cluster is not in order
{}                                | The cluster does not exist
""")
def test_a_cluster_that_goes_or_failed_is_not_done(cluster: dict[str, object], what: str) -> None:
    with pytest.raises(ClusterError, match=what):
        control_plane.require(cluster, [])


@cases("""
state                | what
RUNNING_WITH_ERROR   | The node pool one is not in order
RECONCILING          | The node pool one is being changed by GKE
A_STATE_OF_NEXT_YEAR | The node pool one is not in order
""")
def test_what_runs_but_not_in_order_is_a_note(state: str, what: str) -> None:
    (note,) = control_plane.require(_cluster(one=state), ["one"])
    assert note.what == what
    assert state in note.why


KNOWN = Traces(project="p", location="us-central1", cluster="np-gke", networks=frozenset())
UID = "9f2b1c3d-4e5f-6071-8293-a4b5c6d7e8f9"
EVERYWHERE = "/projects/123/global"
# As GKE writes it into a Gateway of today.
GATEWAY = {
    "networking.gke.io/backend-services": ", ".join(
        f"{EVERYWHERE}/backendServices/gkegw1-nv9e-{name}"
        for name in ("default-web-80-t9htdxlbxe5i", "gw-serve404-80-7cq0brelgzex")
    ),
    "networking.gke.io/firewalls": f"{EVERYWHERE}/firewalls/gkegw1-nv9e-l7-np-net-global",
    "networking.gke.io/last-reconcile-time": "2025-12-04T03:00:56Z",
    "networking.gke.io/ssl-certificates": "",
}


class FakeCluster:
    """A cluster with a Service and a Gateway."""

    def __init__(self) -> None:
        self.deleted: list[str] = []

    def all(self, _: str, kind: str) -> list[dict[str, Any]]:
        metadata: dict[str, Any] = {"name": "web", "namespace": "default", "uid": UID}
        about = {"apiVersion": "v1", "kind": kind}
        match kind:
            case "Service":
                return [{**about, "metadata": metadata, "spec": {"type": "LoadBalancer"}}]
            case "Gateway":
                return [{**about, "metadata": metadata | {"annotations": GATEWAY}}]
            case _:
                return []

    def delete(self, _: str, kind: str, name: str, namespace: str) -> None:
        self.deleted.append(f"{kind} {namespace}/{name}")


def test_gateways_are_deleted_like_services_and_tell_what_belongs_to_them() -> None:
    cluster = FakeCluster()
    assert release.step(cast("Cluster", cluster)) == ["Service default/web", "Gateway default/web"]
    assert cluster.deleted == ["Service default/web", "Gateway default/web"]
    told = release._told(cast("Cluster", FakeCluster()), KNOWN)
    assert told.stems == {f"a{UID.replace('-', '')}"[:32], "gkegw1-nv9e"}


def test_a_cluster_is_touched_only_in_the_records_place_and_unreadable_facts_keep_nothing() -> None:
    asked: list[str] = []
    api = having(find=lambda _, path: asked.append(path), marked=lambda *_: [])
    victim = {"project": "my-project", "location": "us-east4", "name": "victim"}
    location = having(url="gs://b/np-deployment")
    folder = having(of_type=lambda _: {"a": victim}, location=location)
    cloud = having(api=api, folder=folder)
    assert release._own(cloud, WHOLE) is None
    assert asked == ["projects/my-project/locations/us-central1/clusters/np-gke"]
    said: list[str] = []
    folder = MemoryFolder({"cluster.json": "{"})
    context = having(console=having(progress=said.append))
    release._cancel(context, having(folder=folder), cast("Cluster", FakeCluster()), WHOLE)
    (told,) = said
    assert told.endswith("gs://b/np-deployment/cluster.json can't be read")


@pytest.mark.parametrize("is_ours", [True, False])
def test_a_cluster_with_our_name_is_touched_if_it_carries_our_marker(*, is_ours: bool) -> None:
    place = StateLocation("state", "np-deployment", is_default=False)
    owner = ownership.ours(WHOLE, place) if is_ours else Owner("other")
    document = {"name": "np-gke", "resourceLabels": {"aiinfra-cluster": owner.id}}
    api = having(find=lambda *_: document, marked=lambda *_: [])
    cloud = having(api=api, folder=having(location=place))
    found = release._own(cloud, WHOLE)
    assert found == (document if is_ours else None)
