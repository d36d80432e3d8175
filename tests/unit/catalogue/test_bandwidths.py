"""The published bandwidths: each of a machine that there is, with its source, and found by it."""

import pytest

from provision.catalogue import bandwidths, machines
from provision.catalogue.bandwidths import Collective
from provision.catalogue.machines import GpuNetwork


@pytest.mark.parametrize("one", bandwidths.REFERENCES, ids=lambda it: f"{it.machine_type}")
def test_each_reference_is_of_a_machine_and_network_that_go_together(
    one: bandwidths.Reference,
) -> None:
    machine = machines.lookup(one.machine_type)
    assert machine is not None
    assert one.network in {machine.gpu_network, None}
    assert bandwidths.find(one.machine_type, one.network) is one
    assert one.source
    assert 0.5 < one.tolerance < 1
    assert (one.average is None) == (one.averaged is None)
    assert one.average is None or one.average < one.peak


def test_the_published_peaks() -> None:
    """Read off the sources once more, on 2026-11-23."""
    peaks = {
        (it.machine_type, it.network): (it.size, it.out_of_place, it.in_place)
        for it in bandwidths.REFERENCES
    }
    assert peaks == {
        ("a3-highgpu-8g", GpuNetwork.TCPX): (2**29, 70.90, 71.35),
        ("a3-highgpu-8g", None): (2**31, 23.7, None),
        ("a3-megagpu-8g", GpuNetwork.TCPXO): (2**33, 188.73, 188.90),
        ("a3-ultragpu-8g", GpuNetwork.RDMA): (2**33, 328.85, 335.67),
        ("a4-highgpu-8g", GpuNetwork.RDMA): (2**33, 375.72, 375.95),
    }


def test_the_machine_without_local_ssds_has_the_same_network() -> None:
    assert bandwidths.of_machine("a3-ultragpu-8g-nolssd") is bandwidths.of_machine("a3-ultragpu-8g")
    assert bandwidths.of_machine("a2-highgpu-8g") is None


@pytest.mark.parametrize(
    ("collective", "ranks", "factor"),
    [(Collective.ALL_GATHER, 16, 15 / 16), (Collective.ALL_REDUCE, 16, 30 / 16)],
)
def test_bus_bandwidth_is_what_each_gpu_sends(
    collective: Collective, ranks: int, factor: float
) -> None:
    assert collective.factor(ranks) == factor
