from __future__ import annotations

import dataclasses
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from provision.catalogue import gcsfuse
from provision.kinds.gke.kubernetes import kueue, networks, objects, storage
from provision.kinds.gke.kubernetes.objects import name_of
from provision.settings.queues import Queue
from tests.kubernetes import samples


@given(st.text(max_size=100))
def test_every_text_gives_a_name_that_kubernetes_takes(text: str) -> None:
    name = name_of(text)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)


def test_paths_that_differ_in_what_a_name_can_not_hold_have_different_names() -> None:
    paths = ["/mnt/data", "/mnt-data", "/mnt/Data", "/mnt/data_", "/mnt/data.", "/mnt_data"]
    assert len({name_of(path) for path in paths}) == len(paths)
    assert name_of("/mnt/data") == "mnt-data"


@given(
    st.integers(min_value=0, max_value=10000),
    st.lists(st.integers(min_value=1, max_value=8000), min_size=1, max_size=50),
)
def test_the_flavors_quotas_are_the_queues_together(quota: int, wanted: list[int]) -> None:
    parts = kueue.shares(quota, wanted)
    assert sum(parts) == quota
    assert all(part >= 0 for part in parts)


def test_a_quota_of_all_gpus_gives_each_pool_its_own() -> None:
    assert kueue.shares(33, [32, 1]) == [32, 1]
    assert kueue.shares(16, [16, 16]) == [8, 8]


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (8, "8"), (1000, "1k"), (8000, "8k"), (8008, "8008"), (2_000_000, "2M")],
)
def test_quotas_have_the_form_in_which_the_webhook_would_write_them(number: int, text: str) -> None:
    assert kueue.quantity(number) == text


def test_the_check_is_never_in_the_field_that_bypasses_it() -> None:
    (queue,) = [
        thing for thing in kueue.objects(samples.TWO_QUEUED) if thing["kind"] == "ClusterQueue"
    ]
    assert "admissionChecks" not in queue["spec"]
    assert queue["spec"]["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": "dws-prov", "onFlavors": ["demo-t4", "demo-a100"]}]
    }


def test_pods_without_gpus_come_first_and_get_none() -> None:
    (queue,) = [
        thing for thing in kueue.objects(samples.TWO_QUEUED) if thing["kind"] == "ClusterQueue"
    ]
    (group,) = queue["spec"]["resourceGroups"]
    gpus = {
        flavor["name"]: quota["nominalQuota"]
        for flavor in group["flavors"]
        for quota in flavor["resources"]
        if quota["name"] == "nvidia.com/gpu"
    }
    assert list(gpus.items()) == [("default-flavor", "0"), ("demo-t4", "1"), ("demo-a100", "1")]


def test_a_cluster_that_wants_no_queue_has_none() -> None:
    assert kueue.objects(dataclasses.replace(samples.facts(samples.MEGA), kueue=False)) == []


def test_pools_that_are_not_queued_have_a_queue_without_a_check() -> None:
    things = kueue.objects(samples.facts(samples.MEGA))
    kinds = [thing["kind"] for thing in things]
    assert {"AdmissionCheck", "ProvisioningRequestConfig"}.isdisjoint(kinds)
    assert "admissionChecksStrategy" not in things[kinds.index("ClusterQueue")]["spec"]


def test_flavors_go_from_what_is_paid_for_to_what_can_be_taken_away() -> None:
    mixed = samples.facts(samples.HIGH, samples.A100, samples.L4, samples.RESERVED)
    (queue,) = [thing for thing in kueue.objects(mixed) if thing["kind"] == "ClusterQueue"]
    (group,) = queue["spec"]["resourceGroups"]
    names = [flavor["name"] for flavor in group["flavors"]]
    assert names == ["default-flavor", "demo-reserved", "demo-l4", "demo-a100", "demo-high"]


def test_teams_share_the_gpus_and_the_rest_is_for_all() -> None:
    teams = (Queue(name="a", gpus=8), Queue(name="b", gpus=4))
    things = kueue.objects(samples.facts(samples.ULTRA, queues=teams))
    queues = {it["metadata"]["name"]: it["spec"] for it in things if it["kind"] == "ClusterQueue"}
    gpus = {
        name: resource["nominalQuota"]
        for name, spec in queues.items()
        for flavor in spec["resourceGroups"][0]["flavors"]
        for resource in flavor["resources"]
        if flavor["name"] == samples.ULTRA.name and resource["name"] == kueue.GPU
    }
    assert gpus == {"dws-cluster-queue": "20", "a": "8", "b": "4"}
    assert {spec["cohortName"] for spec in queues.values()} == {"aiinfra"}
    local = [it["metadata"]["name"] for it in things if it["kind"] == "LocalQueue"]
    assert local == ["dws-local-queue", "a", "b"]


def test_only_machines_with_a_gpu_network_get_its_interfaces() -> None:
    both = samples.facts(samples.ULTRA, samples.T4, networks=samples.RDMA)
    ultra, t4 = both.pools
    assert networks.pod_annotations(t4) == {}
    interfaces = networks.pod_annotations(ultra)["networking.gke.io/interfaces"]
    assert interfaces.count("interfaceName") == 10
    assert '"eth9", "network": "rdma-7"' in interfaces


def test_a_cluster_without_mounts_has_no_storage_class() -> None:
    assert storage.objects(samples.TWO_QUEUED) == []


def test_buckets_are_mounted_with_what_was_asked_for_and_take_files_of_any_size() -> None:
    plain = samples.FLEX_QUEUED_ULTRA
    cached = dataclasses.replace(plain, bucket_options=("uid=1000",), bucket_cache_gib=100)

    (volume,) = [it for it in storage.objects(cached) if "csi" in it.get("spec", {})]
    assert volume["spec"]["mountOptions"] == list(gcsfuse.in_pods(("uid=1000",), 100))
    for facts in (plain, cached):
        assert storage.pod_volumes(facts)[2] == {
            "gke-gcsfuse/volumes": "true",
            "gke-gcsfuse/cpu-limit": "0",
            "gke-gcsfuse/memory-limit": "0",
            "gke-gcsfuse/ephemeral-storage-limit": "0",
        }


def test_scripts_are_written_as_blocks_that_people_can_read() -> None:
    assert objects.to_yaml([{"script": "one\ntwo\n"}]) == "script: |\n  one\n  two\n"
