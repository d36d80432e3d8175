"""The real start-up script on simulated VMs, and real Ray on several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.debian import NoDebianError
from tests.startup import internet as internets
from tests.startup import roots
from tests.startup.debian_vm import DebianVM, metadata_server
from tests.startup.metadata_server import MetadataServer
from tests.startup.namespaces import Space
from tests.startup.sandbox import VM

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def vm(tmp_path: Path) -> Iterator[VM]:
    """A VM that has not booted yet, on which nothing is set up but the GPU check."""
    with MetadataServer({}) as server:
        machine = VM(tmp_path / "disk", server)
        machine.configure()
        yield machine
        machine.end()


@pytest.fixture(scope="session")
def space() -> Iterator[Space]:
    """Namespaces for VMs with a real system."""
    made = Space()
    yield made
    made.close()


@pytest.fixture(scope="session", params=list(roots.Release), ids=lambda it: it.name.lower())
def root(request: pytest.FixtureRequest) -> roots.Root:
    """The root file system of each release of Debian that is tested."""
    try:
        return roots.root(request.param)
    except NoDebianError as error:
        pytest.fail(f"VMs with a real system can't be tested here: {error}", pytrace=False)


@pytest.fixture(scope="session")
def internet(
    root: roots.Root, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[internets.Internet]:
    """What VMs with a real system reach."""
    folder = tmp_path_factory.mktemp("internet")
    sites = internets.sites(folder, root.sources, root.release.number)
    made = internets.Internet(sites, folder / "tls", root.layers[0])
    yield made
    made.close()


@pytest.fixture
def debian(
    tmp_path: Path, space: Space, root: roots.Root, internet: internets.Internet
) -> Iterator[DebianVM]:
    """A VM with a real system, otherwise as `vm`."""
    network = space.network()
    with network.entered():
        server = metadata_server()
        server.__enter__()
    try:
        machine = DebianVM(tmp_path / "vm/disk", server, root=root, network=network)
        machine.reach(internet)
        machine.configure()
        yield machine
        machine.kill()
    finally:
        server.__exit__()
