"""Who may reach Ray where its operator knows no tokens."""

import dataclasses
import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from provision.catalogue import gcsfuse
from provision.codes import Code
from provision.errors import ClusterError, StateError
from provision.kinds.gke.kind import GKE_CLUSTER
from provision.kinds.gke.kubernetes import facts as cluster_facts
from provision.kinds.gke.kubernetes import kueue, manifests, stages
from provision.kinds.gke.kubernetes.client import Cluster, KubernetesError
from provision.kinds.gke.kubernetes.facts import ClusterFacts, NfsShare
from provision.kinds.gke.kubernetes.objects import Object, build
from provision.kinds.gke.kubernetes.stages import Stage
from provision.settings.model import Settings
from provision.settings.pairs import Secret
from provision.settings.storage import Mount
from provision.spec import cluster
from provision.spec.capacity import Mode
from provision.time import deadline
from provision.time.clock import Clock
from provision.time.deadline import TransientError
from provision.time.stages import Progress
from rehearsal import session
from tests.kubernetes import samples
from tests.unit.kinds.cases import having, problem_of


def test_machines_get_their_interfaces_and_buckets_as_asked_for() -> None:
    both = samples.facts(samples.ULTRA, samples.T4, networks=samples.RDMA)
    ultra, t4 = both.pools
    assert stages.network_annotations(t4) == {}
    interfaces = stages.network_annotations(ultra)["networking.gke.io/interfaces"]
    assert interfaces.count("interfaceName") == 10
    assert '"eth9", "network": "rdma-7"' in interfaces
    assert stages.storage(samples.TWO_QUEUED) == []
    plain = samples.FLEX_QUEUED_ULTRA
    cached = dataclasses.replace(plain, bucket_options=("uid=1000",), bucket_cache_gib=100)
    (volume,) = [it for it in stages.storage(cached) if "csi" in it.get("spec", {})]
    assert volume["spec"]["mountOptions"] == list(gcsfuse.in_pods(("uid=1000",), 100))
    for facts in (plain, cached):
        assert stages.pod_volumes(facts)[2] == {
            "gke-gcsfuse/volumes": "true",
            "gke-gcsfuse/cpu-limit": "0",
            "gke-gcsfuse/memory-limit": "0",
            "gke-gcsfuse/ephemeral-storage-limit": "0",
        }


SPACES = ("default", "team-a", "kube-system", "gke-managed-system", "gmp-system", "ray-system")


def _cluster(operator: str | None) -> Any:
    def found(version: str, kind: str, namespace: str = "", selector: str = "") -> list[Any]:
        assert (version, namespace) == ("v1", "")
        if kind == "Namespace":
            return [{"metadata": {"name": it}} for it in SPACES]
        assert (kind, selector) == ("Pod", "app.kubernetes.io/name=kuberay-operator")
        return [{"metadata": {"name": "o", "namespace": operator}}] if operator else []

    return having(all=found)


def _trusted(policy: dict[str, Any]) -> list[str]:
    peers = policy["spec"]["ingress"][0]["from"]
    (among,) = peers[1]["namespaceSelector"]["matchExpressions"]
    return cast("list[str]", among["values"])


def test_ray_is_closed_to_other_namespaces_on_all_ports_but_those_for_users() -> None:
    managed = ["gke-managed-system", "gmp-system", "kube-system"]
    assert _trusted(stages.ray_policy(_cluster(None))) == managed
    assert _trusted(stages.ray_policy(_cluster("ray-system"))) == [*managed, "ray-system"]
    spec = stages.ray_policy(_cluster(None))["spec"]
    (chosen,) = spec["podSelector"]["matchExpressions"]
    assert chosen == {"key": "ray.io/node-type", "operator": "Exists"}
    (for_all,) = [rule for rule in spec["ingress"] if "from" not in rule]
    assert not {it["port"] for it in for_all["ports"]} & {6379, 8265, 10001}


ASKED = """
project_id=my-project name_prefix=demo zone=us-central1-a orchestrator_type=gke
vm_type=a3-ultragpu-8g enable_flex_start=yes enable_queued_provisioning=yes gke_max_node_count=4
kueue_gpu_quota=16 max_run_duration=1h gcs_mount_list=data:/mnt/data
nfs_fileshare_list=/mnt/nfs:ZONAL:1024
"""
TEXTS = dict(it.split("=") for it in ASKED.split())
POOL = {"name": "demo-nodepool-1", "zone": "us-central1-a", "machine_type": "a3-ultragpu-8g"}
NETWORK = {"name": "eth1", "kind": "rdma", "kubernetes_name": "gvnic-1", "device_mode": "NetDevice"}
OUTPUTS: dict[str, Any] = {
    "cluster": {
        "name": "demo-gke",
        "location": "us-central1",
        "dns_endpoint": "gke-1.goog",
        "version": "1.35.7-gke.1222000",
    },
    "node_pools": {"demo-nodepool-1": {**POOL, "mode": "flex_start_queued", "max": 4}},
    "networks": [
        {
            **NETWORK,
            "network": "projects/my-project/global/networks/demo-gpu-net-1",
            "subnetwork": "demo-gpu-subnet-1",
        }
    ],
    "service_accounts": {"node": "n@x", "workload": "w@x"},
    "filestores": [{"path": "/mnt/nfs", "ip": "10.0.0.2", "share": "/share", "tier": "ZONAL"}],
}


def test_what_was_asked_for_is_joined_with_what_was_made() -> None:
    found = cluster_facts.read(cluster.gke(Settings(TEXTS)), OUTPUTS)
    (pool,) = found.pools
    assert (pool.accelerator, pool.gpus, pool.max_nodes) == ("nvidia-h200-141gb", 8, 4)
    assert (pool.interfaces, pool.max_run_seconds) == (10, 3600)
    assert pool.mode is Mode.FLEX_START_QUEUED
    assert pool.queued
    names = ("gvnic-1", "demo-gpu-net-1", "demo-gpu-subnet-1", "NetDevice")
    assert [dataclasses.astuple(it) for it in found.networks] == [names]
    assert found.buckets == (Mount(bucket="data", path="/mnt/data"),)
    share = NfsShare(path="/mnt/nfs", server="10.0.0.2", remote_path="/share", size_gb=1024)
    assert found.shares == (share,)
    assert (found.gpu_quota, found.workload_account) == (16, "w@x")


REHEARSED = {session.MANIFESTS_VARIABLE: str(session.MANIFESTS)}
TEXT = b"kind: Deployment\n---\nkind: CustomResourceDefinition\n---\n---\nkind: Namespace\n"


def _pinned(content: bytes) -> manifests.AddOn:
    return dataclasses.replace(manifests.JOBSET, sha256=hashlib.sha256(content).hexdigest())


def test_a_cluster_without_a_queue_needs_no_manifest_of_kueue(tmp_path: Path) -> None:
    assert tuple(map(int, manifests.JOBSET.version.split("."))) >= (0, 5, 2)
    settings = {
        "project_id": "my-project",
        "name_prefix": "demo",
        "orchestrator_type": "gke",
        "zone": "us-central1-a",
        "vm_type": "g2-standard-4",
    }
    (tmp_path / manifests.SUMS).write_text("")
    environ = {manifests.VARIABLE: str(tmp_path)}
    for text, names in (("yes", ["Kueue's", "JobSet's"]), ("no", ["JobSet's"])):
        spec = cluster.gke(Settings(settings | {"enable_kueue": text}))
        problems = GKE_CLUSTER.missing(spec, environ)
        assert [it.what.partition(" ")[0] for it in problems] == names


def test_another_manifest_than_the_pinned_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT)
    found = manifests.read(_pinned(TEXT), {manifests.VARIABLE: str(tmp_path)})
    kinds = [thing["kind"] for thing in found.definitions]
    assert kinds == ["CustomResourceDefinition", "Namespace"]
    assert [thing["kind"] for thing in found.rest] == ["Deployment"]
    assert found.note is None
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT + b"#")
    with pytest.raises(ClusterError, match=r"is not the manifest of JobSet 0\.12\.0"):
        manifests.read(_pinned(TEXT), {manifests.VARIABLE: str(tmp_path)})


def test_manifests_that_the_program_came_with_are_taken_if_no_others_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "in_tree", tmp_path.joinpath)
    assert [it.what for it in manifests.missing([_pinned(TEXT)], {})] == [
        "is not set: this machine has no manifest of JobSet"
    ]
    (tmp_path / "manifests").mkdir()
    (tmp_path / "manifests" / "jobset-v0.12.0.yaml").write_bytes(TEXT)
    assert manifests.missing([_pinned(TEXT)], {}) == []
    (other,) = manifests.missing([_pinned(TEXT)], {manifests.VARIABLE: str(tmp_path)})
    assert str(tmp_path / "jobset-v0.12.0.yaml") in other.why


def test_manifests_of_ones_own_are_taken_and_missing_ones_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manifests, "in_tree", tmp_path.joinpath)
    wanted = manifests.wanted(queue=True)
    (unset,) = manifests.missing(wanted, {})
    kueue_, job_set = manifests.missing(wanted, {manifests.VARIABLE: str(tmp_path)})
    assert (kueue_.what, job_set.what) == (
        "Kueue's manifest can't be read",
        "JobSet's manifest can't be read",
    )
    for add_on in wanted:
        assert f"{add_on.file} (SHA-256 {add_on.sha256})" in unset.fix
    with pytest.raises(ClusterError, match="is not set"):
        manifests.read(manifests.KUEUE, {})
    environ = {manifests.VARIABLE: str(tmp_path)}
    (tmp_path / "jobset-v0.12.0.yaml").write_bytes(TEXT)
    sums = tmp_path / manifests.SUMS
    digest = hashlib.sha256(TEXT).hexdigest()
    sums.write_text(f"{digest} *jobset-v0.12.0.yaml\n")
    found = manifests.read(manifests.JOBSET, environ)
    assert len(found.rest) == 1
    assert found.note is not None
    assert "not from its release" in found.note.what
    for line in (f"{digest} other.yaml\n", f"{'0' * 64} jobset-v0.12.0.yaml\n", digest):
        sums.write_text(line)
        (problem,) = manifests.missing([manifests.JOBSET], environ)
        assert "sha256sum jobset-v0.12.0.yaml >>SHA256SUMS" in problem.fix


def test_a_rehearsal_brings_the_kinds_that_are_used_and_without_a_queue_no_kueue() -> None:
    found, notes = stages.stages(samples.TWO_QUEUED, REHEARSED)
    assert [note.what.partition(" ")[0] for note in notes] == ["Kueue", "JobSet"]
    kinds = {
        thing["spec"]["names"]["kind"]
        for stage in found
        for thing in stage.objects
        if thing["kind"] == "CustomResourceDefinition"
    }
    needed = {thing["kind"] for thing in kueue.objects(samples.everything())}
    assert needed | {"JobSet", "Workload"} == kinds
    found, _ = stages.stages(samples.TWO_QUEUED, REHEARSED)
    (settings,) = (
        thing for stage in found for thing in stage.objects if thing["kind"] == "ConfigMap"
    )
    assert "waitForPodsReady" in settings["data"][kueue.CONFIG_KEY]
    facts = dataclasses.replace(samples.facts(samples.MEGA), kueue=False)
    found, notes = stages.stages(facts, REHEARSED)
    assert [stage.name for stage in found if "ueue" in stage.name] == []
    assert len(notes) == 1


def test_whatever_others_refer_to_is_applied_before_them() -> None:
    found, _ = stages.stages(samples.FLEX_QUEUED_ULTRA, REHEARSED)
    kinds = [thing["kind"] for stage in found for thing in stage.objects]
    for first, second in (
        ("GKENetworkParamSet", "Network"),
        ("CustomResourceDefinition", "ClusterQueue"),
        ("ProvisioningRequestConfig", "AdmissionCheck"),
        ("AdmissionCheck", "ClusterQueue"),
        ("ResourceFlavor", "ClusterQueue"),
        ("ClusterQueue", "LocalQueue"),
        ("StorageClass", "PersistentVolumeClaim"),
    ):
        assert kinds.index(first) < kinds.index(second)


AT_ONCE = Clock(0)
QUEUE = build("kueue.x-k8s.io/v1beta2", "LocalQueue", "queue", "default")
KIND = build("apiextensions.k8s.io/v1", "CustomResourceDefinition", "queues")


class Answers:
    """A cluster that gives prepared answers, one per request."""

    def __init__(self, *answers: Exception | Object | None) -> None:
        self._answers: Iterator[Exception | Object | None] = iter(answers)
        self.asked: list[str] = []

    def apply(self, thing: Object) -> Object | None:
        return self._next(f"apply {thing['kind']}")

    def find(self, api_version: str, kind: str, name: str, namespace: str) -> Object | None:
        del api_version, name, namespace
        return self._next(f"find {kind}")

    def _next(self, asked: str) -> Object | None:
        self.asked.append(asked)
        answer = next(self._answers)
        if isinstance(answer, Exception):
            raise answer
        return answer


def _apply(cluster: Answers, *things: Object) -> list[str]:
    told: list[str] = []
    changed = stages.apply(
        cast("Cluster", cluster),
        [Stage("nothing"), Stage("the queue", list(things))],
        progress=Progress(AT_ONCE, told.append),
    )
    assert bool(changed) == bool(told)
    return told


def _in_version(thing: Object, version: str) -> Object:
    return {**thing, "metadata": {**thing["metadata"], "resourceVersion": version}}


def test_what_may_go_by_is_tried_again_and_only_what_is_changed_is_told() -> None:
    cluster = Answers(None, TransientError("500 failed calling webhook"), None, QUEUE)
    assert _apply(cluster, QUEUE) == [
        "Kubernetes: the queue (1 of 1 objects changed)",
        "1 object",
    ]
    assert cluster.asked == 2 * ["find LocalQueue", "apply LocalQueue"]
    before = _in_version(QUEUE, "7")
    assert _apply(Answers(before, before), QUEUE) == []
    assert len(_apply(Answers(before, _in_version(QUEUE, "8")), QUEUE)) == 2
    cluster = Answers(None, KubernetesError(404, "no kind", "apply"), None, QUEUE)
    _apply(cluster, QUEUE)
    assert len(cluster.asked) == 4


@pytest.mark.parametrize("code", [400, 403, 409, 422, 500])
def test_a_refusal_is_final_at_its_first_time(code: int) -> None:
    refusal = KubernetesError(code, "field not declared in schema", "apply")
    cluster = Answers(None, refusal, QUEUE)
    with pytest.raises(KubernetesError, match=f"apply \\({code}\\)"):
        _apply(cluster, QUEUE)
    assert len(cluster.asked) == 2


def test_a_stage_waits_until_its_kinds_are_established() -> None:
    def established(holds: str) -> Object:
        return {"status": {"conditions": [{"type": "Established", "status": holds}]}}

    cluster = Answers(None, KIND, {}, established("False"), established("True"))
    _apply(cluster, KIND)
    looks = 3 * ["find CustomResourceDefinition"]
    assert cluster.asked[1:] == ["apply CustomResourceDefinition", *looks]


def test_the_last_hindrance_is_told_when_the_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.0)
    cluster = Answers(TransientError("503 try again"), QUEUE)
    problem = problem_of(ClusterError, lambda: _apply(cluster, QUEUE))
    assert problem.what == "Could not apply LocalQueue queue in time"
    assert problem.why == "503 try again"


FACTS = samples.facts(samples.ULTRA)


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadline, "_SHORTEST", 0.1)


def _at(ready: int, nodes: int = 2, *, updated: int = 2, observed: int = 1) -> dict[str, Any]:
    status = {
        "observedGeneration": observed,
        "desiredNumberScheduled": nodes,
        "numberReady": ready,
        "updatedNumberScheduled": updated,
    }
    return {"metadata": {"generation": 1}, "status": status}


class Looks:
    """A cluster whose DaemonSet gets on from look to look, and stays at the last."""

    def __init__(self, *looks: Any, pods: Iterable[Any] = ()) -> None:
        self._looks = list(looks)
        self._pods = list(pods)
        self.asked = 0

    def find(self, api_version: str, kind: str, name: str, namespace: str) -> Any:
        assert (api_version, kind, namespace) == ("apps/v1", "DaemonSet", "kube-system")
        assert name == "nccl-rdma-installer"
        self.asked += 1
        found = self._looks.pop(0) if len(self._looks) > 1 else self._looks[0]
        if isinstance(found, Exception):
            raise found
        return found

    def all(self, api_version: str, kind: str, namespace: str, selector: str) -> list[Any]:
        assert (kind, namespace, api_version) == ("Pod", "kube-system", "v1")
        assert selector == "k8s-app=nccl-rdma-installer"
        return self._pods


def _wait(cluster: Looks, facts: ClusterFacts = FACTS, timeout: float = 60) -> tuple[Any, Any]:
    told: list[str] = []
    progress = Progress(Clock(0), told.append)
    return stages.wait(cast("Cluster", cluster), facts, progress=progress, timeout=timeout), told


@pytest.mark.parametrize("done", [_at(2), _at(0, 0)])
def test_what_is_there_already_takes_one_look_and_no_words(done: Any) -> None:
    cluster = Looks(done)
    assert _wait(cluster) == ([], [])
    assert cluster.asked == 1


def test_it_is_waited_for_where_kubernetes_is_silent(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Looks(None, TransientError("busy"), _at(2, observed=0), _at(2, updated=1), _at(2))
    monkeypatch.setattr(deadline, "_SHORTEST", 5.0)
    notes, told = _wait(cluster)
    assert notes == []
    assert cluster.asked == 5
    assert "NCCL is installed on the GPU nodes" in told[-1]


def test_a_cluster_without_gpu_networks_is_asked_for_nothing_and_what_is_slow_is_a_note() -> None:
    cluster = Looks(_at(0))
    assert _wait(cluster, dataclasses.replace(FACTS, pools=())) == ([], [])
    assert cluster.asked == 0
    arm = samples.pool_like(samples.ULTRA, name="grace", machine_type="a4x-highgpu-4g")
    cluster = Looks(_at(0))
    (note,), _ = _wait(cluster, dataclasses.replace(FACTS, pools=(arm,)))
    assert note.what.endswith("the nodes of grace (a4x-highgpu-4g)")
    assert cluster.asked == 0
    slow = {"status": {"initContainerStatuses": [{"name": "i", "state": {"running": {}}}]}}
    (note,), _ = _wait(Looks(_at(1), pods=[slow]), timeout=0)
    assert note.code is Code.STILL_RUNNING
    assert "nccl-rdma-installer is ready on 1 of 2 GPU nodes" in note.what
    assert "kubectl --namespace kube-system describe pods" in note.fix


def test_what_goes_wrong_fails_with_its_reason() -> None:
    waiting = {"reason": "ImagePullBackOff", "message": "not found"}
    pod = {
        "spec": {"nodeName": "node-1"},
        "status": {"initContainerStatuses": [{"name": "i", "state": {"waiting": waiting}}]},
    }
    problem = problem_of(ClusterError, lambda: _wait(Looks(_at(1), pods=[pod]), timeout=0))
    assert problem.code is Code.KUBERNETES_FAILED
    assert "1 of 2 GPU nodes" in problem.what
    assert problem.why == "i on node-1: ImagePullBackOff: not found"
    assert "Create again" in problem.fix


TOKEN = Secret(name="HF_TOKEN", project="my-project", secret="hf-token")  # noqa: S106 - its name
PLAIN = dataclasses.replace(samples.TWO_QUEUED, image_mirrors=(), secrets=())
FETCHES = dataclasses.replace(PLAIN, image_mirrors=("mirror.example.com",), secrets=(TOKEN,))


@pytest.mark.parametrize(
    ("made", "kept", "named"),
    [
        (PLAIN, PLAIN, None),
        (FETCHES, FETCHES, None),
        (PLAIN, dataclasses.replace(PLAIN, image_mirrors=("evil.example.com",)), "evil"),
        (FETCHES, dataclasses.replace(FETCHES, image_mirrors=("evil.example.com",)), "evil"),
        (PLAIN, dataclasses.replace(PLAIN, secrets=(TOKEN,)), "HF_TOKEN"),
        (FETCHES, PLAIN, "IMAGE_MIRROR is empty there, and SECRETS has nothing"),
        (None, FETCHES, "mirror.example.com"),
        (None, PLAIN, None),
    ],
)
def test_pods_fetch_from_where_the_cluster_was_told_and_not_from_where_the_bucket_says(
    made: ClusterFacts | None, kept: ClusterFacts, named: str | None
) -> None:
    account = stages.account(made) if made else None
    cluster = cast("Any", having(find=lambda *_: account))

    if named is None:
        stages.require_sources(cluster, kept)
        return
    problem = problem_of(StateError, stages.require_sources, cluster, kept)
    assert problem.code is Code.STATE_FOREIGN
    assert named in problem.why
