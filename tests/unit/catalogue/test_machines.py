import datetime as dt

import pytest

from provision.catalogue import machines
from provision.catalogue.machines import Consumption, GpuNetwork


@pytest.mark.parametrize(
    ("name", "accelerator", "gpus", "vcpus", "nics"),
    [
        ("a2-highgpu-2g", "nvidia-tesla-a100", 2, 24, 1),
        ("a2-megagpu-16g", "nvidia-tesla-a100", 16, 96, 1),
        ("a2-ultragpu-8g", "nvidia-a100-80gb", 8, 96, 1),
        ("a3-highgpu-8g", "nvidia-h100-80gb", 8, 208, 5),
        ("a3-megagpu-8g", "nvidia-h100-mega-80gb", 8, 208, 9),
        ("a3-ultragpu-8g", "nvidia-h200-141gb", 8, 224, 10),
        ("a4x-highgpu-4g", "nvidia-gb200", 4, 140, 6),
        ("g2-standard-24", "nvidia-l4", 2, 24, 1),
        ("n1-standard-96", None, None, 96, 1),
    ],
)
def test_a_machine_type_has_its_gpus_processors_and_interfaces(
    name: str, accelerator: str | None, gpus: int | None, vcpus: int, nics: int
) -> None:
    machine = machines.lookup(name)

    assert machine is not None
    assert (machine.accelerator, machine.gpus, machine.vcpus, machine.nics) == (
        accelerator, gpus, vcpus, nics,
    )  # fmt: skip


def test_the_interfaces_are_those_of_the_gpu_network_and_the_first_ones() -> None:
    for machine in machines.MACHINE_TYPES.values():
        network = machine.gpu_network
        if network is None:
            assert machine.nics == 1
        elif not machine.family.arm:  # half the GPUs, half the interfaces
            first = 2 if network.second_gvnic else 1
            assert machine.nics == first + network.vpcs * network.subnets


def test_a_part_of_an_a3_high_machine_is_sold_as_spot_or_flex_start_and_has_no_gpu_network() -> (
    None
):
    part, whole = machines.MACHINE_TYPES["a3-highgpu-4g"], machines.MACHINE_TYPES["a3-highgpu-8g"]

    assert part.gpu_network is None
    assert part.consumption == {Consumption.SPOT, Consumption.FLEX_START}
    assert whole.gpu_network is GpuNetwork.TCPX
    assert Consumption.ON_DEMAND in whole.consumption


def test_only_the_families_on_hyperdisk_take_no_persistent_disk() -> None:
    without = {
        name
        for name, family in machines.FAMILIES.items()
        if not any(disk.startswith("pd-") for disk in family.boot_disks)
    }

    assert without == {"a3-ultragpu", "a4-highgpu", "a4x-highgpu", "a4x-maxgpu", "g4-standard"}


def test_the_most_interfaces_follow_from_the_processors_or_from_the_gpu_network() -> None:
    most = {"n1-standard-1": 2, "n1-standard-4": 4, "g2-standard-96": 8, "a3-megagpu-8g": 9}
    assert {name: machines.MACHINE_TYPES[name].max_nics for name in most} == most


def test_an_accelerator_knows_the_machines_that_carry_it() -> None:
    h200 = ("a3-ultragpu-8g", "a3-ultragpu-8g-nolssd")
    assert machines.carrying("nvidia-h200-141gb") == h200
    assert machines.carrying("nvidia-tesla-t4") == ()


def test_processors_are_counted_by_the_quota_of_their_series_or_not_beside_gpus() -> None:
    quotas = {"a2-highgpu-1g": "", "a3-edgegpu-8g": "", "n1-custom-4-8192": "CPUS"}
    quotas |= {"e2-standard-4": "CPUS", "c3-standard-4": "C3_CPUS"}
    quotas |= dict.fromkeys(("c4-standard-48", "q9-standard-8"), "CPUS_PER_VM_FAMILY")
    assert {name: machines.cpu_quota(name) for name in quotas} == quotas


def test_gpus_are_attached_to_a_whole_series() -> None:
    takes = {"n1-standard-8": True, "n1-custom-4-8192": True, "a2-highgpu-1g": False, "q9": False}
    assert {name: machines.takes_gpus(name) for name in takes} == takes


def test_a_gpus_support_is_over_from_the_day_of_its_end_on() -> None:
    t4 = machines.GPUS["nvidia-tesla-t4"]
    end = dt.date.fromisoformat(t4.supported_until)

    assert not t4.is_over(end - dt.timedelta(days=1))
    assert t4.is_over(end)
    assert not machines.GPUS["nvidia-l4"].is_over(end)
