"""A machine family that stands in its row alone, and all that follows it."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from provision import intake
from provision.catalogue import machines
from provision.catalogue.machines import Consumption, Family, Gpu, GpuNetwork, GpuQuota, Shape
from provision.deployment.deployment import RunInputs
from provision.deployment.kind import deploy
from provision.documents.vm_status import GpuCheck
from provision.files.archive import Archive
from provision.kinds import registry
from provision.kinds.gke.kubernetes import nccl
from provision.kinds.gke.kubernetes.facts import ClusterFacts, GpuPool
from provision.kinds.vms import instances
from provision.kinds.vms.instances import Vm
from provision.spec.capacity import Mode
from provision.state.location import locate
from tests.unit.preflight.conftest import google
from tests.unit.preflight.stand_in import ZONE, Google

__all__ = ["google"]  # a fixture

NAME = "z9-megagpu-4g"
ROW = Family(
    name="z9-megagpu",
    title="Z9 Mega",
    gpu=Gpu(name="nvidia-z900", model="Z900", quota_word="Z900", quota=GpuQuota.OWN),
    boot_disks=("hyperdisk-balanced",),
    gpu_network=GpuNetwork.TCPXO,
    consumption=frozenset({Consumption.SPOT, Consumption.FLEX_START}),
    shapes=(Shape(suffix="4g", gpus=4, vcpus=100, nics=9),),
)
MANDATORY = {"ACTION": "Plan", "PROJECT_ID": "my-project", "NAME_PREFIX": "np"}
SPOT = {"VM_TYPE": NAME, "ZONE": "us-central1-a", "ENABLE_SPOT": "yes"}


@pytest.fixture(autouse=True)
def _in_the_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    tables = machines.Tables.of((*machines.ROWS, ROW))
    for name in ("families", "machine_types", "gpus", "attachments"):
        monkeypatch.setattr(machines, name.upper(), getattr(tables, name))


def _problems(**env: str) -> list[str]:
    """What Validate says of an env.list; notes included."""
    loaded = intake.load({**MANDATORY, **SPOT, **env})
    return [f"{it.setting} {it.what}: {it.why}" for it in (*loaded.problems, *loaded.notes)]


def test_validate_knows_its_gpus_its_disks_and_the_ways_to_get_it() -> None:
    multi_nic = {"NETWORK_CONFIG": "multi_nic_network"}
    assert _problems(**multi_nic) == []
    for env, said in (
        ({"GPU_COUNT": "8"}, "GPU_COUNT"),
        ({"ACCELERATOR_TYPE": "nvidia-b200"}, "z9-megagpu-4g has exactly 4 x nvidia-z900"),
        ({"DISK_TYPE": "pd-ssd"}, "z9-megagpu machines boot from hyperdisk-balanced"),
        ({"ENABLE_SPOT": "no"}, "is available as: spot or flex start"),
        ({"VM_TYPE": "z9-megagpu-5g"}, "VM_TYPE"),
        ({"NETWORK_CONFIG": "new_network", "INSTANCE_COUNT": "2"}, "GPUDirect-TCPXO"),
    ):
        (problem,) = _problems(**{**multi_nic, **env})
        assert said in problem


def test_its_quota_is_checked(google: Google) -> None:
    metric = "PREEMPTIBLE_NVIDIA_Z900_GPUS"
    google.documents[f"{ZONE}/machineTypes/{NAME}"] = {"guestCpus": 100}
    wanted = {"vm_type": NAME, "enable_spot": "yes", "instance_count": "2"}
    google.limit(metric, 8)
    assert google.check(wanted).problems == []
    google.limit(metric, 7)

    (problem,) = google.check(wanted).problems

    too_small = f"the quota {metric} in us-central1 is too small: this deployment needs 8"
    assert too_small in problem.what


def test_test_takes_no_other_gpu_for_its_own() -> None:
    vm = Vm(
        name="np-vm-1",
        status="RUNNING",
        machine_type=NAME,
        interfaces=9,
        attached={},
        remaining=None,
        notebook=None,
    )

    def faults(*names: str) -> tuple[str, ...]:
        found = GpuCheck(gpus=4, names=names, driver="570", interfaces=9)
        return instances.reported(vm, found).faults

    assert faults("NVIDIA Z900 80GB") == ()
    assert faults("NVIDIA Z900 80GB", "NVIDIA GeForce") == ("NVIDIA GeForce instead of Z900",)


def _variables(**env: str) -> dict[str, Any]:
    loaded = intake.load({**MANDATORY, **SPOT, **env})
    assert loaded.settings is not None, loaded.problems
    files = Archive(path=Path("files.tar.gz"), sha256="0a1b", count=1, size=1)
    kind = registry.of(loaded.settings)
    spec = kind.spec(loaded.settings)
    return dict(deploy(kind, spec, locate(loaded.settings), RunInputs(files=files)).variables)


def test_a_group_of_vms_gets_its_networks_and_its_boot_disk() -> None:
    made = _variables(NETWORK_CONFIG="multi_nic_network")

    assert [(one["nic_type"], one["mtu"]) for one in made["gpu_networks"]] == 8 * [("GVNIC", 8244)]
    assert made["startup"]["gpus"] == {"count": 4, "accelerator": "nvidia-z900"}
    assert made["boot_disk"]["type"] == "hyperdisk-balanced"


@pytest.mark.parametrize("network", GpuNetwork)
def test_every_kind_of_network_has_its_installer_its_pods_and_its_test(network: GpuNetwork) -> None:
    assert network in nccl.FABRICS


def test_a_gke_cluster_gets_its_networks_a_pool_of_it_and_their_installer() -> None:
    made = _variables(ORCHESTRATOR_TYPE="gke")
    (wanted,) = made["node_pools"].values()
    assert len(made["gpu_networks"]) == 8
    assert (wanted["gpu"]["type"], wanted["gpu"]["count"]) == ("nvidia-z900", 4)

    of_pool: dict[str, Any] = {
        "name": "np-pool",
        "machine_type": NAME,
        "accelerator": "nvidia-z900",
    }
    pool = GpuPool(**of_pool, gpus=4, max_nodes=2, mode=Mode.SPOT)
    of_cluster: dict[str, Any] = {
        "project": "p",
        "name": "c",
        "location": "r",
        "workload_account": "a",
    }
    facts = ClusterFacts(**of_cluster, version="1.35.7-gke.1222000", pools=(pool,))
    objects = nccl.objects(facts)
    names = [it["metadata"]["name"] for it in objects]
    assert names == ["nccl-tcpxo-installer", "device-injector"]
    for it in objects:
        assert "nvidia-z900" in str(it["spec"]["template"]["spec"]["affinity"])
    assert pool.interfaces == 9


FACTS = [
    *((ROW, it) for it in ("name", "title", "gpu", "boot_disks", "gpu_network")),
    *((ROW, it) for it in ("consumption", "shapes")),
    *((ROW.gpu, it) for it in ("name", "model", "quota_word", "quota")),
]


@pytest.mark.parametrize(("row", "fact"), FACTS)
def test_no_row_can_be_made_without_a_fact(row: Any, fact: str) -> None:
    known = {it.name: getattr(row, it.name) for it in dataclasses.fields(row) if it.name != fact}

    with pytest.raises(TypeError, match=fact):
        type(row)(**known)
