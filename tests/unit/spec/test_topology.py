from pathlib import Path

import pytest

from provision.documents.topology import NetworkRole, Reach, StoreKind, Topology
from provision.intake import load
from provision.kinds import registry
from provision.settings.model import Settings
from provision.spec import cluster, topology

EXAMPLES = Path(__file__).parents[3] / "examples"
NAMES = sorted(
    path.name.removesuffix("env.list").rstrip(".") for path in EXAMPLES.glob("*env.list")
)


def of_example(name: str, **environ: str) -> Topology:
    file = EXAMPLES / ".".join(filter(None, [name, "env.list"]))
    settings = load({"ACTION": "Plan", **environ}, file).settings
    assert settings is not None
    return topology.of(registry.of(settings).spec(settings))


@pytest.mark.parametrize("name", NAMES)
def test_machines_have_an_interface_in_every_network_that_is_theirs(name: str) -> None:
    found = of_example(name)
    for pool in found.machines:
        own = sum(it.interfaces for it in found.networks if pool.name in it.pools)
        assert pool.interfaces == own
        assert (own == 1) == (len(found.networks) == 1 or pool.is_system or not pool.gpus)
        assert 0 <= pool.first <= pool.most


def test_equal_networks_are_one_entry_and_the_gpus_networks_are_told_apart() -> None:
    assert [
        (it.role, it.count, it.subnets, it.nic_type) for it in of_example("a3-mega").networks
    ] == [(NetworkRole.FIRST, 1, 1, None), (NetworkRole.GPUS, 8, 1, "GVNIC")]
    found = of_example("gke-a3-ultra-flex").networks
    assert [(it.role, it.count, it.subnets, it.nic_type) for it in found] == [
        (NetworkRole.FIRST, 1, 1, None),
        (NetworkRole.MORE, 1, 1, "GVNIC"),
        (NetworkRole.GPUS, 1, 8, "MRDMA"),
    ]


def test_each_pool_is_in_the_networks_of_its_own_kind() -> None:
    settings = {
        "project_id": "my-project",
        "name_prefix": "np",
        "zone": "us-central1-b",
        "orchestrator_type": "gke",
        "gke_node_pools": "name=mega,vm_type=a3-megagpu-8g;name=l4,vm_type=g2-standard-4;"
        "name=ultra,vm_type=a3-ultragpu-8g;name=high,vm_type=a3-highgpu-8g",
    }
    found = topology.of(cluster.gke(Settings(settings)))
    (_, *more) = found.networks
    assert [(it.role, it.count, it.subnets, it.pools[0].rpartition("-")[2]) for it in more] == [
        (NetworkRole.GPUS, 8, 1, "mega"),
        (NetworkRole.MORE, 1, 1, "ultra"),
        (NetworkRole.GPUS, 1, 8, "ultra"),
        (NetworkRole.GPUS, 4, 1, "high"),
    ]
    assert [pool.interfaces for pool in found.machines] == [9, 1, 10, 5, 1]


def test_what_is_public_is_the_first_door() -> None:
    first = of_example("").doors[0]
    assert (first.reach, first.name) == (Reach.INTERNET, "public addresses")
    assert "the default network's firewall rules decide" in first.words


@pytest.mark.parametrize("name", ["new-network", "a3-mega", "gke-plain"])
def test_what_has_a_network_of_its_own_lets_nobody_in_but_by_identity(name: str) -> None:
    found = of_example(name)
    assert [door.reach for door in found.doors] == [Reach.IDENTITY, Reach.OUTGOING]
    assert not any(pool.has_public_address for pool in found.machines)


def test_vms_of_the_default_network_without_addresses_need_the_projects_own_nat() -> None:
    found = of_example("", ENABLE_EXTERNAL_IP="no")
    assert [door.reach for door in found.doors] == [Reach.IDENTITY, Reach.OUTGOING]
    assert "has to have" in found.doors[1].words
    assert not found.networks[0].has_nat


def test_vms_of_a_host_project_are_in_its_network_which_lets_in_and_out() -> None:
    found = of_example("shared-vpc")
    (network,) = found.networks
    assert (network.name, network.is_made, network.has_nat) == ("my-vpc of my-host", False, False)
    assert [door.reach for door in found.doors] == [Reach.IDENTITY, Reach.OUTGOING]
    assert all("the network my-vpc" in door.words for door in found.doors)


def test_ranges_are_told_where_settings_ask_for_them() -> None:
    assert of_example("a3-mega").ranges == ()
    assert [(it.use, it.range, it.fits) for it in of_example("own-ranges").ranges] == [
        ("VMs", "10.64.0.0/27", 28),
        ("GPU networks", "10.64.0.0/23", 28),
    ]
    own = {"GKE_PODS_RANGE": "10.64.8.0/21", "GKE_MAX_PODS_PER_NODE": "32"}
    found = of_example("gke-plain", NETWORK_RANGE="10.64.0.0/27", **own).ranges
    assert [(it.use, it.range, it.fits) for it in found] == [
        ("nodes", "10.64.0.0/27", 26),
        ("pods", "10.64.8.0/21", 31),
        ("Services", "10.32.0.0/20", None),
    ]


def test_address_ranges_that_may_reach_the_control_plane_are_a_door() -> None:
    found = of_example("gke-plain", AUTHORIZED_CIDR="203.0.113.0/24")
    ranges = [door.words for door in found.doors if door.reach is Reach.RANGES]
    assert ranges == ["from 203.0.113.0/24 alone"]


def test_a_range_of_all_addresses_is_called_that() -> None:
    found = of_example("gke-plain", AUTHORIZED_CIDR="203.0.113.0/24,0.0.0.0/0")
    ranges = [door.words for door in found.doors if door.reach is Reach.RANGES]
    assert ranges == ["from every address (203.0.113.0/24, 0.0.0.0/0)"]


def test_a_bucket_stays_and_a_share_ends_with_the_cluster() -> None:
    stores = of_example("ray-gcs-filestore").stores
    ends = {it.kind: it.ends_with_cluster for it in stores}
    assert ends == {StoreKind.FILESTORE: True, StoreKind.BUCKET: False}


@pytest.mark.parametrize(
    ("accelerator", "words"),
    [
        ("nvidia-h100-mega-80gb", "H100 80 GB"),
        ("nvidia-h200-141gb", "H200 141 GB"),
        ("nvidia-tesla-t4", "T4"),
        ("nvidia-l4", "L4"),
        ("nvidia-rtx-pro-6000", "RTX PRO 6000"),
    ],
)
def test_a_kind_of_gpu_in_words(accelerator: str, words: str) -> None:
    assert topology.gpu_words(accelerator) == words
