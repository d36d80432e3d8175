import copy
import dataclasses
import re
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from provision.kinds.gke.kubernetes import fabric_pods, facts, kueue, objects
from provision.kinds.gke.kubernetes.fabric_pods import Kind
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.gke.kubernetes.kueue import configured
from provision.kinds.gke.kubernetes.objects import Object, name_of
from provision.settings.gke import Queue
from provision.spec.capacity import Mode
from provision.spec.pools import Size
from tests.kubernetes import samples


@given(
    st.integers(min_value=0, max_value=10000),
    st.lists(st.integers(min_value=1, max_value=8000), min_size=1, max_size=50),
)
def test_the_flavors_quotas_are_the_queues_together(quota: int, wanted: list[int]) -> None:
    parts = kueue.shares(quota, wanted)
    assert sum(parts) == quota
    assert all(part >= 0 for part in parts)


def test_each_pool_has_its_own_gpus_and_teams_share_them() -> None:
    assert kueue.shares(33, [32, 1]) == [32, 1]
    assert kueue.shares(16, [16, 16]) == [8, 8]
    teams = (Queue(name="a", gpus=8), Queue(name="b", gpus=4))
    facts = samples.facts(samples.ULTRA, queues=teams)
    queues = _queues(facts)
    gpus = {it["metadata"]["name"]: _gpus(it)[samples.ULTRA.name] for it in queues}
    assert gpus == {"dws-cluster-queue": "20", "a": "8", "b": "4"}
    assert {it["spec"]["cohortName"] for it in queues} == {"aiinfra"}
    local = [it["metadata"]["name"] for it in _queues(facts, "LocalQueue")]
    assert local == ["dws-local-queue", "a", "b"]


def test_only_bound_nodes_that_are_there_are_chosen_by_where_they_stand() -> None:
    def placed(pool: GpuPool, size: Size) -> bool:
        return facts._is_placed(samples.as_spec(pool, size))

    fixed, scales = Size(count=2), Size(min=0, max=2)
    assert placed(samples.A4, fixed)
    assert not placed(samples.A4, scales)
    assert not placed(samples.pool_like(samples.A4, mode=Mode.FLEX_START), fixed)
    assert not placed(samples.pool_like(samples.A2, mode=Mode.RESERVATION_BOUND), fixed)


def test_a_flavor_with_a_topology_has_its_own_name_and_pods_that_ask_for_it() -> None:
    found = samples.facts(samples.PLACED, samples.MEGA)
    flavors = {it["metadata"]["name"]: it["spec"] for it in _queues(found, "ResourceFlavor")}
    assert flavors["demo-h200-bound-placed"]["topologyName"] == "gke-default"
    assert "topologyName" not in flavors["demo-mega"]
    (topology,) = _queues(found, "Topology")
    assert topology["spec"]["levels"][0] == {"nodeLabel": "cloud.google.com/gce-topology-block"}
    (queue,) = _queues(found)
    assert list(_gpus(queue)) == ["default-flavor", "demo-h200-bound-placed", "demo-mega"]
    for pool, asks in ((samples.PLACED, True), (samples.MEGA, False)):
        pod = fabric_pods.template(found, pool, {"name": "x", "command": ["x"]}, Kind.WHOLE)
        assert (kueue.PLACED.items() <= pod["metadata"]["annotations"].items()) is asks


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (8, "8"), (1000, "1k"), (8000, "8k"), (8008, "8008"), (2_000_000, "2M")],
)
def test_quotas_have_the_form_in_which_the_webhook_would_write_them(number: int, text: str) -> None:
    assert kueue.quantity(number) == text


def _queues(facts: ClusterFacts, kind: str = "ClusterQueue") -> list[Object]:
    return [thing for thing in kueue.objects(facts) if thing["kind"] == kind]


def _gpus(queue: Object) -> dict[str, str]:
    """The flavors of a queue -> their quota of GPUs."""
    (group,) = queue["spec"]["resourceGroups"]
    return {
        flavor["name"]: quota["nominalQuota"]
        for flavor in group["flavors"]
        for quota in flavor["resources"]
        if quota["name"] == kueue.GPU
    }


def test_a_queue_has_its_check_in_no_field_that_bypasses_it_and_flavors_by_their_cost() -> None:
    (queue,) = _queues(samples.TWO_QUEUED)
    assert "admissionChecks" not in queue["spec"]
    assert queue["spec"]["admissionChecksStrategy"] == {
        "admissionChecks": [{"name": "dws-prov", "onFlavors": ["demo-t4", "demo-a100"]}]
    }
    assert list(_gpus(queue).items()) == [
        ("default-flavor", "0"),
        ("demo-t4", "1"),
        ("demo-a100", "1"),
    ]
    mixed = samples.facts(samples.HIGH, samples.A100, samples.L4, samples.RESERVED)
    (queue,) = _queues(mixed)
    assert list(_gpus(queue)) == [
        "default-flavor",
        "demo-reserved",
        "demo-l4",
        "demo-a100",
        "demo-high",
    ]


def test_pools_that_are_not_queued_have_a_queue_without_a_check_or_none() -> None:
    assert kueue.objects(dataclasses.replace(samples.facts(samples.MEGA), kueue=False)) == []
    things = kueue.objects(samples.facts(samples.MEGA))
    kinds = [thing["kind"] for thing in things]
    assert {"AdmissionCheck", "ProvisioningRequestConfig"}.isdisjoint(kinds)
    assert "admissionChecksStrategy" not in things[kinds.index("ClusterQueue")]["spec"]


CONFIG = yaml.safe_dump({"kind": "Configuration", "clientConnection": {"qps": 50}})
MANAGER = {"spec": {"containers": [{"name": "manager", "image": "kueue"}]}}
UPSTREAM: list[dict[str, Any]] = [
    {
        "kind": "ConfigMap",
        "metadata": {"name": "kueue-manager-config", "namespace": "kueue-system"},
        "data": {"controller_manager_config.yaml": CONFIG},
    },
    {
        "kind": "Deployment",
        "metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"},
        "spec": {"template": MANAGER},
    },
    {"kind": "Service", "metadata": {"name": "kueue-webhook-service"}},
]


def _settings_of(things: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(things[0]["data"]["controller_manager_config.yaml"])
    return found


def _template_of(things: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = things[1]["spec"]["template"]
    return found


def test_other_settings_start_another_manager(monkeypatch: pytest.MonkeyPatch) -> None:
    found = _settings_of(configured(UPSTREAM, 4))
    assert found["waitForPodsReady"]["recoveryTimeout"] == "10m"
    # And not for ever: each time the nodes that do come are billed.
    assert found["waitForPodsReady"]["requeuingStrategy"]["backoffLimitCount"] == 20
    assert found["clientConnection"] == {"qps": 50}
    kept = copy.deepcopy(UPSTREAM)
    configured(UPSTREAM, 4)
    assert kept == UPSTREAM
    before = _template_of(configured(UPSTREAM, 4))["metadata"]["annotations"]
    assert before == _template_of(configured(UPSTREAM, 4))["metadata"]["annotations"]
    monkeypatch.setitem(kueue.WAIT_FOR_PODS_READY, "timeout", "1h")
    assert before != _template_of(configured(UPSTREAM, 4))["metadata"]["annotations"]


def test_a_queue_of_pods_that_claim_counts_their_gpus_alone() -> None:
    assert "featureGates" not in _settings_of(configured(UPSTREAM, 4))
    gates = _settings_of(configured(UPSTREAM, 4, claims=True))["featureGates"]
    # With one of them on, 0.19 does not start; with the second on, no such job ever does.
    assert set(gates) == {
        "KueueDRAIntegration",
        "KueueDRARejectWorkloadsWhenDRADisabled",
        "KueueDRAIntegrationExtendedResource",
        "KueueDRAIntegrationPartitionableDevices",
    }
    assert not any(gates.values())


@pytest.mark.parametrize(
    ("nodes", "memory", "processors"),
    [(4, "4096Mi", "2000m"), (128, "4096Mi", "2000m"), (1000, "32000Mi", "4000m")],
)
def test_the_manager_grows_with_the_cluster(nodes: int, memory: str, processors: str) -> None:
    (container,) = _template_of(configured(UPSTREAM, nodes))["spec"]["containers"]
    assert container["resources"]["limits"] == {"cpu": processors, "memory": memory}
    assert container["image"] == "kueue"


@given(st.text(max_size=100))
def test_every_text_gives_a_name_that_kubernetes_takes(text: str) -> None:
    name = name_of(text)
    assert len(name) <= 63
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", name)


def test_paths_have_names_of_their_own_and_scripts_are_blocks_that_people_can_read() -> None:
    paths = ["/mnt/data", "/mnt-data", "/mnt/Data", "/mnt/data_", "/mnt/data.", "/mnt_data"]
    assert len({name_of(path) for path in paths}) == len(paths)
    assert name_of("/mnt/data") == "mnt-data"
    assert objects.to_yaml([{"script": "one\ntwo\n"}]) == "script: |\n  one\n  two\n"


def test_a_quota_is_divided_in_proportion_and_among_pools_of_no_gpus_too() -> None:
    assert kueue.shares(10, [16, 8]) == [7, 3]
    assert kueue.shares(1, [0]) == [1], "facts that somebody has changed"
