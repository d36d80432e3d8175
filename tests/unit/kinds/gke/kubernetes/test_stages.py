"""What pods mount, fetch and may reach."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from provision.catalogue import gcsfuse
from provision.codes import Code
from provision.errors import StateError
from provision.kinds.gke.kubernetes import stages
from provision.settings.pairs import Secret
from tests.kubernetes import samples

if TYPE_CHECKING:
    from provision.kinds.gke.kubernetes.facts import ClusterFacts


def test_only_machines_with_a_gpu_network_get_its_interfaces() -> None:
    both = samples.facts(samples.ULTRA, samples.T4, networks=samples.RDMA)
    ultra, t4 = both.pools
    assert stages.network_annotations(t4) == {}
    interfaces = stages.network_annotations(ultra)["networking.gke.io/interfaces"]
    assert interfaces.count("interfaceName") == 10
    assert '"eth9", "network": "rdma-7"' in interfaces


def test_a_cluster_without_mounts_has_no_storage_class() -> None:
    assert stages.storage(samples.TWO_QUEUED) == []


def test_buckets_are_mounted_with_what_was_asked_for_and_take_files_of_any_size() -> None:
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

    return cast("Any", SimpleNamespace(all=found))


def _trusted(policy: dict[str, Any]) -> list[str]:
    peers = policy["spec"]["ingress"][0]["from"]
    (among,) = peers[1]["namespaceSelector"]["matchExpressions"]
    return cast("list[str]", among["values"])


def test_gkes_programs_and_the_operator_reach_ray_and_other_namespaces_do_not() -> None:
    managed = ["gke-managed-system", "gmp-system", "kube-system"]
    assert _trusted(stages.ray_policy(_cluster(None))) == managed
    assert _trusted(stages.ray_policy(_cluster("ray-system"))) == [*managed, "ray-system"]


def test_heads_and_workers_are_closed_on_all_ports_but_those_for_users() -> None:
    spec = stages.ray_policy(_cluster(None))["spec"]
    (chosen,) = spec["podSelector"]["matchExpressions"]
    assert chosen == {"key": "ray.io/node-type", "operator": "Exists"}
    (for_all,) = [rule for rule in spec["ingress"] if "from" not in rule]
    assert not {it["port"] for it in for_all["ports"]} & {6379, 8265, 10001}


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
    cluster = cast("Any", SimpleNamespace(find=lambda *_: account))

    if named is None:
        stages.require_sources(cluster, kept)
        return
    with pytest.raises(StateError) as caught:
        stages.require_sources(cluster, kept)
    (problem,) = caught.value.problems
    assert problem.code is Code.STATE_FOREIGN
    assert named in problem.why
