from __future__ import annotations

import importlib
import warnings
from typing import TYPE_CHECKING

import pytest

from rehearsal.cloud.server import Cloud

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

with warnings.catch_warnings():
    # google-api-core warns, once, that grpcio-status is missing, which only gRPC's errors need.
    warnings.simplefilter("ignore", ImportWarning)
    importlib.import_module("google.api_core.exceptions")


@pytest.fixture
def cloud(tmp_path: Path) -> Iterator[Cloud]:
    with Cloud(database=tmp_path / "cloud.sqlite", environ={"CLOUD_CLOCK_RATE": "0"}) as running:
        yield running
