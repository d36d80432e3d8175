"""The wheel, installed with what it needs from a package index, as `uv tool install` does it.

Here, and not in tests/runs, because it fetches: nothing of this environment is lent to it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.image.conftest import TREE
from tests.running import ran


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the installed programs are."""
    folder = tmp_path_factory.mktemp("tool")
    uv = Path(sys.executable).with_name("uv")
    own = {"UV_TOOL_DIR": str(folder / "tools"), "UV_TOOL_BIN_DIR": str(folder / "bin")}
    done = ran(
        [uv, "tool", "install", "--no-config", f"--python={sys.executable}", TREE],
        cwd=folder,
        env=os.environ | own,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr
    return folder / "bin"


def _run(programs: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environ = {"HOME": str(folder), "PATH": "/usr/bin:/bin", "CLOUD_CLOCK_RATE": "0"}
    return ran(
        [programs / arguments[0], *arguments[1:]],
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        timeout=600,
    )


def test_an_installed_program_needs_nothing_else(programs: Path, tmp_path: Path) -> None:
    help_ = _run(programs, tmp_path, "aiinfra", "--help")
    assert help_.returncode == 0
    assert "Turn an env.list into a GPU cluster" in help_.stdout

    (tmp_path / "env.list").write_bytes((TREE / "examples/env.list").read_bytes())
    checked = _run(programs, tmp_path, "aiinfra", "Validate", "--offline")
    assert checked.returncode == 0, checked.stderr
    assert "The settings are valid." in checked.stdout
    assert "Settings are from ./env.list" in checked.stderr


def test_an_installed_program_rehearses_a_cluster(programs: Path, tmp_path: Path) -> None:
    (tmp_path / "env.list").write_bytes((TREE / "examples/env.list").read_bytes())
    files = _files(programs)
    made = _run(programs, tmp_path, "aiinfra", "Create", "--rehearse", "--yes")
    assert made.returncode == 0, made.stderr
    assert "(to forget it: aiinfra-rehearsal forget)" in made.stderr
    assert "instanceGroupManagers" in _run(programs, tmp_path, "aiinfra-rehearsal", "show").stdout
    gone = _run(programs, tmp_path, "aiinfra", "Destroy", "--rehearse", "--yes")
    assert gone.returncode == 0, gone.stderr
    assert _files(programs) == files


def _files(programs: Path) -> set[Path]:
    """All that was installed, but for the bytecode that Python keeps beside it."""
    folder = programs.parent / "tools"
    return {it for it in folder.rglob("*") if not re.search(r"__pycache__", str(it))}
