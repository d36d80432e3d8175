"""What `make bench` says of the image."""

import subprocess
import sys
from collections.abc import Mapping

from tests.image.conftest import TREE, Image
from tests.running import ran


def _bench(environ: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    return ran(
        [sys.executable, "-m", "bench", "--only", "image", "--runs", "1"], cwd=TREE, env=environ
    )


def test_size_and_start_are_measured_where_there_is_an_engine(image: Image) -> None:
    done = _bench(image.engine.environ | {"DOCKER": image.engine.client, "IMAGE": image.name})

    assert done.returncode == 0, done.stderr
    for part in ("| all |", "COPY /opt/venv", "`IMAGE --version`", "`IMAGE Validate --offline`"):
        assert part in done.stdout


def test_where_there_is_no_engine_it_is_said_loudly() -> None:
    done = _bench({"PATH": ""})

    assert done.returncode == 0, done.stderr
    assert "Not measured: there is no docker on PATH." in done.stdout
    assert done.stderr.startswith("SKIPPED: the image.")
