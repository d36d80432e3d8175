"""The real start-up script on simulated VMs, and real Ray on several of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.startup.metadata_server import MetadataServer
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
