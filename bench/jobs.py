"""From `Run` to the first line of the program on a warm cluster, and again after a changed line."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from bench.measuring import ENTRYPOINT, Program
from rehearsal import session
from rehearsal.cloud.server import Cloud

if TYPE_CHECKING:
    from collections.abc import Mapping

_RATE: Final = "0.2"  # five seconds of Google Cloud in one of ours
_KINDS: Final = {
    "two VMs": {"INSTANCE_COUNT": "2", "ENABLE_NOTEBOOK": "no"},
    "two nodes of GKE": {
        "ORCHESTRATOR_TYPE": "gke",
        "VM_TYPE": "g2-standard-24",
        "INSTANCE_COUNT": "2",
    },
}
_DATA: Final = 2**20
"""Bytes beside the program, which stay as they are."""


def measure(environ: dict[str, str]) -> list[str]:
    """Run a program, change a line of it, and run it again; the rows of a table."""
    rows = [
        "| seconds of cloud time from Run to the program's first line | first | a line changed |",
        "| --- | --- | --- |",
    ]
    for name, settings in _KINDS.items():
        first, second = _measured(environ, settings)
        rows.append(f"| {name} | {first:.0f} | {second:.0f} |")
    return rows


def _measured(environ: dict[str, str], settings: Mapping[str, str]) -> tuple[float, float]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder, code = Path(name), Path(name, "code")
        code.mkdir()
        (code / "data").write_bytes(bytes(_DATA))
        moved = environ | {"CLOUD_CLOCK_RATE": _RATE}
        with Cloud(database=folder / session.DATABASE, environ=moved) as cloud:
            program = Program(folder, cloud.base_url, moved)
            program.run("Create", **settings)
            first, second = (
                _first_line(program, code, words, settings) for words in ("epoch 1", "epoch one")
            )
    return first, second


def _first_line(program: Program, code: Path, words: str, settings: Mapping[str, str]) -> float:
    (code / "train.py").write_text(f'print("{words}")\n', "utf-8")
    begin, seconds = time.perf_counter(), 0.0
    with subprocess.Popen(
        [sys.executable, str(ENTRYPOINT), "Run", "--", "python3", "train.py"],
        env=program.environ | program.values("np", **settings),
        cwd=code,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        for line in cast("IO[bytes]", process.stdout):
            if words.encode() in line and not seconds:
                seconds = time.perf_counter() - begin
    if process.returncode or not seconds:
        raise SystemExit(f"Run ended with {process.returncode}")
    return seconds / float(_RATE)
