"""Whether GKE's pods and ours have room on the system pool."""

import pytest

from provision.catalogue import machine_sizes
from provision.catalogue.machine_sizes import JOBSET, KUEUE, OF_GKE, RAY_HEAD, Pod

QUEUE = (*OF_GKE, KUEUE, JOBSET)


@pytest.mark.parametrize(
    ("machine_type", "nodes", "pods", "names"),
    [
        pytest.param("e2-standard-4", 1, QUEUE, [], id="the-default"),
        pytest.param("e2-standard-4", 1, (*QUEUE, RAY_HEAD), [], id="with-a-ray-head"),
        pytest.param("e2-standard-2", 3, QUEUE, [], id="several-small-ones"),
        pytest.param("e2-standard-2", 1, QUEUE, ["kube-dns"], id="one-small-one"),
        pytest.param("e2-small", 3, QUEUE, ["kube-dns"], id="three-shared-cores"),
        pytest.param("e2-medium", 9, (RAY_HEAD,), [RAY_HEAD.name], id="no-node-is-large-enough"),
        pytest.param("c4-standard-4", 0, QUEUE, [], id="unknown-machine"),
    ],
)
def test_pods_that_find_no_place_are_named(
    machine_type: str, nodes: int, pods: tuple[Pod, ...], names: list[str]
) -> None:
    missing = machine_sizes.left_out(machine_type, nodes, pods)
    assert sorted({it.name for it in missing} & {*names, KUEUE.name, JOBSET.name}) == names


def test_a_machine_gives_pods_what_googles_page_says() -> None:
    cpus, gib = machine_sizes.allocatable(4, 16)
    assert round(cpus, 3) == 3.92
    # 25% of 4 GiB, 20% of the next 4, 10% of the next 8, and 100 MiB for evictions.
    assert round(gib, 2) == round(16 - 1 - 0.8 - 0.8 - 100 / 1024, 2)
