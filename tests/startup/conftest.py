"""The real start-up script on simulated VMs, and real Ray on several of them."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.debian import NoDebianError
from tests.startup import roots
from tests.startup.debian_vm import DebianVM
from tests.startup.group import Group, Site
from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD, VM

sys.path.append(str(PAYLOAD / "lib"))  # for those that import what VMs run


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what may take longest, which xdist hands out in this order.

    What begins last is waited for with idle processors.
    """
    limits = {it: it.get_closest_marker("timeout") for it in items}
    items.sort(key=lambda it: -limit.args[0] if (limit := limits[it]) else 0)


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[VM]:
    """A VM that has not booted yet, on which nothing is set up but the GPU check."""
    with MetadataServer({}) as server:
        machine = VM(tmp_path / "disk", server)
        machine.configure()
        yield machine
        machine.end()


_RELEASES = [
    # CI has the newer one: half an hour of processors goes into both.
    pytest.param(
        it, id=it.name.lower(), marks=[pytest.mark.every] if it is roots.Release.DEBIAN_12 else []
    )
    for it in roots.Release
]


@pytest.fixture(scope="session", params=_RELEASES)
def root(request: pytest.FixtureRequest) -> roots.Root:
    """The root file system of each release of Debian that is tested."""
    try:
        return roots.root(request.param)
    except NoDebianError as error:
        pytest.fail(f"VMs with a real system can't be tested here: {error}", pytrace=False)


@pytest.fixture(scope="session")
def site(root: roots.Root, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """Where VMs with a real system are."""
    with Site(tmp_path_factory.mktemp("site"), root) as made:
        yield made


@pytest.fixture
def debian(tmp_path: Path, site: Site, root: roots.Root) -> Iterator[DebianVM]:
    """A VM with a real system, the only one of its group, otherwise as `vm`."""
    with Group(site, tmp_path, root) as group:
        group.set_size(1)
        machine = group.vm("train-vm-1")
        machine.configure()
        yield machine
