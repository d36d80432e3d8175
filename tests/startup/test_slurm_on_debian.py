"""Real Slurm on three VMs with real systems: from the start-up step to a head that moves."""

from collections.abc import Iterator

import pytest

from tests.startup.slurm_group import NAMES, SlurmGroup

# The first of them makes a root with Slurm, which takes minutes where none is kept.
pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlurmGroup]:
    """Three VMs whose nodes are idle, and a person on each."""
    with SlurmGroup(tmp_path_factory.mktemp) as made:
        made.wait_for_nodes()
        for name in NAMES:
            made.run("useradd --uid 1500 --create-home --shell /bin/bash ana", on=name)
        yield made


def test_three_vms_are_idle_nodes(slurm: SlurmGroup) -> None:
    assert slurm.nodes(slurm.head()) == dict.fromkeys(NAMES, "idle")
