"""Sixteen VMs in eight zones of which seven have none: a list of zones against a user's loop."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Final

from bench.measuring import ENTRYPOINT, Program, worked
from rehearsal import session
from rehearsal.cloud.compute import stock
from rehearsal.cloud.server import Cloud
from rehearsal.cloud.store import Database

if TYPE_CHECKING:
    from collections.abc import Callable

_ZONES: Final = (
    *(f"us-central1-{letter}" for letter in "abcf"),
    *("us-east1-b", "us-west1-b", "europe-west4-a", "europe-west4-b"),
)
_RATE: Final = "0.2"  # five seconds of Google Cloud in one of ours
_NONE: Final = 7
"""The exit code of a Create that Google gives no machines."""
_SETTINGS: Final = {"INSTANCE_COUNT": "16", "ENABLE_NOTEBOOK": "no", "CAPACITY_TIMEOUT": "6h"}


def measure(environ: dict[str, str]) -> list[str]:
    """Make them both ways; the rows of a table."""
    ours, loop = (_measured(environ, way) for way in (_list, _loop))
    names = (
        "seconds of cloud time until Create has ended with 0",
        "seconds of processor time in it",
        "looks at the group; one a zone, and those while 16 VMs boot, are needed",
        "requests that change something",
    )
    return [
        "| 16 VMs, seven of eight zones have none | a list in ZONE | Create and Destroy in turn |",
        "| --- | --- | --- |",
        *(f"| {name} | {a:.0f} | {b:.0f} |" for name, a, b in zip(names, ours, loop, strict=True)),
    ]


def _measured(
    environ: dict[str, str], way: Callable[[Program], None]
) -> tuple[float, float, int, int]:
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        moved = environ | {"CLOUD_CLOCK_RATE": _RATE}
        log = folder / "requests.jsonl"
        with Cloud(database=folder / session.DATABASE, environ=moved, log=log) as cloud:
            with closing(Database(folder / session.DATABASE)) as kept, kept.transaction() as store:
                stock.put(store, [{"zones": zone, "machines": 0} for zone in _ZONES[:-1]])
            program = Program(folder, cloud.base_url, moved)
            seconds, processor = worked(lambda: way(program))
        requests = [json.loads(line) for line in log.read_text("utf-8").splitlines()]
    looks = sum(it["path"].endswith("/listManagedInstances") for it in requests)
    reads = ("/listManagedInstances", ":testIamPermissions", ":getIamPolicy")
    writes = sum(
        it["method"] not in {"GET", "HEAD"} and not it["path"].endswith(reads) for it in requests
    )
    return seconds / float(_RATE), processor, looks, writes


def _list(program: Program) -> None:
    program.run("Create", **_SETTINGS, ZONE=",".join(_ZONES))


def _loop(program: Program) -> None:
    """What a script of a user's does."""
    for zone in _ZONES:
        values = program.environ | program.values("np", **_SETTINGS, ZONE=zone)
        made = subprocess.run(
            [sys.executable, str(ENTRYPOINT), "Create"],
            env=values,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
        )
        if made.returncode == 0:
            return
        if made.returncode != _NONE:
            raise SystemExit(made.stderr.decode())
        program.run("Destroy", **_SETTINGS, ZONE=zone)
    raise SystemExit("no zone had them")
