"""What grows with the number of VMs and files, and what does not."""

from __future__ import annotations

import functools
import json
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from bench.measuring import Program, compared, timed
from rehearsal import session
from rehearsal.cloud.server import Cloud

_VMS: Final = 1000
_FILES: Final = 1000
_RATE: Final = "0.1"  # ten seconds of Google Cloud in one of ours: the tool's polls stay apart


def start_up(environ: dict[str, str]) -> list[str]:
    """Create a thousand VMs and count what it asked for while they came up."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        moved = environ | {"CLOUD_CLOCK_RATE": _RATE}
        log = folder / "requests.jsonl"
        with Cloud(database=folder / session.DATABASE, environ=moved, log=log) as cloud:
            program = Program(folder, cloud.base_url, moved)
            seconds = timed(functools.partial(program.run, "Create", INSTANCE_COUNT=str(_VMS)))
        with log.open(encoding="utf-8") as lines:
            requests = [json.loads(line) for line in lines]
    rate = float(_RATE)
    reads = [one for one in requests if one["path"].endswith("/getGuestAttributes")]
    minutes = Counter(int(one["time"] / rate // 60) for one in reads)
    return [
        "| | |",
        "| --- | --- |",
        f"| VMs | {_VMS} |",
        f"| the whole Create, in seconds of cloud time | {seconds / rate:.0f} |",
        f"| requests for the VMs' start-up | {len(reads)} |",
        f"| most of them in a minute of cloud time | {max(minutes.values(), default=0)} |",
    ]


def plans(environ: dict[str, str], runs: int) -> list[str]:
    """Plan what exists, with 1 and with 1,000 VMs."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        with Cloud(database=folder / session.DATABASE, environ=environ) as cloud:
            program = Program(folder, cloud.base_url, environ)
            both = {"one": "1", "many": str(_VMS)}
            for prefix, count in both.items():
                program.run("Create", prefix=prefix, INSTANCE_COUNT=count)
            calls = [
                functools.partial(program.run, "Plan", prefix=prefix, INSTANCE_COUNT=count)
                for prefix, count in both.items()
            ]
            return compared(
                ("`Plan` of 1 VM that exists", f"`Plan` of {_VMS} VMs that exist"),
                (calls[0], calls[1]),
                runs,
            )


def copies(environ: dict[str, str], runs: int) -> list[str]:
    """Plan with and without a folder of small files; count the objects that it adds."""
    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        source = folder / "files"
        source.mkdir()
        for number in range(_FILES):
            (source / f"{number}.txt").write_text(f"file {number}\n" * 20)
        log = folder / "requests.jsonl"
        with Cloud(database=folder / session.DATABASE, environ=environ, log=log) as cloud:
            program = Program(folder, cloud.base_url, environ)
            lines = compared(
                ("`Plan`", f"`Plan --copy` of {_FILES} small files"),
                (
                    functools.partial(program.run, "Plan"),
                    functools.partial(program.run, "Plan", "--copy", str(source)),
                ),
                runs,
            )
            program.run("Create", "--copy", str(source))
        with log.open(encoding="utf-8") as entries:
            paths = {_uploaded(json.loads(entry)) for entry in entries} - {""}
    added = [path for path in paths if "/files/" in path]
    return [*lines, "", f"Objects that the folder adds: {len(added)}."]


def _uploaded(request: dict[str, Any]) -> str:
    """The name of the object that a request has made; "" for every other request."""
    is_upload = request["method"] in ("POST", "PUT") and "/upload/storage/" in request["path"]
    response = request["response"]
    return str(response.get("name", "")) if is_upload and isinstance(response, dict) else ""
