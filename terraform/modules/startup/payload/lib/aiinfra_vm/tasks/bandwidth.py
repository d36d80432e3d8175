"""The bandwidth between the GPUs of a group of VMs, as NCCL's collectives reach it.

Each VM of a group starts one process for each of its GPUs, with the environment that the jobs of
this VM have; the first process of the first VM measures. What NCCL says of the network that it
uses is kept: a plugin that does not load leaves it at plain sockets, silently.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Dict

from aiinfra_vm import fabric, metadata
from aiinfra_vm.tasks import check, meeting, nccl

Result = Dict[str, Any]

_LIBRARIES = Path(__file__).parents[2]
_NETWORK = re.compile(r"Using network (\S+)")
_LINES = 12  # of what a process that failed said
_PAUSE = 0.2  # seconds between two looks at the processes
_ENDING = 3.0  # seconds for the processes of this VM to end after one has failed


def run(arguments: Result) -> Result:
    """Take part in the measurement of the group that this VM is in.

    `arguments`: `groups`, each a list of VMs with `name` and `address`; `port` where the first of a
    group listens; `word` by which its members know each other; `gpus` of each VM; `collective`;
    `sizes` in bytes. `measured`: whether it could be tried, and else `why` not (`users` has the
    programs that use its GPUs); of the first VM `rows` with the seconds of a round by size;
    `networks` that NCCL used; the `library` that jobs load, whose version is `nccl`, and the one
    that came with the `plugin`, whose version is `plugin_nccl`.

    Raises:
        OSError: A process failed; the text has the last that it said.
    """
    own = metadata.get("instance/name")
    group = next((it for it in arguments["groups"] if own in [vm["name"] for vm in it]), None)
    if group is None:
        raise ValueError(f"{own} is in none of the groups")
    busy = check.users()
    if busy:  # since it was asked what it has: a measurement would take gigabytes of each GPU
        return {"measured": False, "users": busy, "why": "its GPUs are in use"}
    environment = _environment()
    file, plugin, version = _library(environment)
    if not file:
        return {"measured": False, "why": f"there is no {nccl.NAME} on this VM"}
    place = [vm["name"] for vm in group].index(own)
    with tempfile.TemporaryDirectory(prefix="aiinfra-bandwidth-") as folder:
        plan = {
            "library": file,
            "address": group[0]["address"],
            "port": arguments["port"],
            "word": arguments["word"],
            "ranks": len(group) * arguments["gpus"],
            "collective": arguments["collective"],
            "sizes": arguments["sizes"],
            "result": f"{folder}/result.json",
        }
        (Path(folder) / "plan.json").write_text(json.dumps(plan), "utf-8")
        said = _together(Path(folder), environment, place * arguments["gpus"], arguments["gpus"])
        found = json.loads((Path(folder) / "result.json").read_text("utf-8")) if not place else {}
    networks = list(dict.fromkeys(_NETWORK.findall(said)))
    return {
        "measured": True, "networks": networks, "library": file, **found,
        "plugin": plugin, "plugin_nccl": version,
    }  # fmt: skip


def _environment() -> dict[str, str]:
    """The environment of the jobs on this VM, and what NCCL is to tell."""
    try:
        variables = fabric.read(fabric.ENVIRONMENT.read_text("utf-8"))
    except FileNotFoundError:
        variables = {}
    given = {name: os.environ[name] for name in os.environ if name not in variables}
    return {**given, **variables, "PYTHONPATH": str(_LIBRARIES), "NCCL_DEBUG": "INFO"}


def _library(environment: dict[str, str]) -> tuple[str, str, str]:
    """NCCL's file as jobs with that environment load it; the plugin's own, and its version."""
    answer = subprocess.run(
        [sys.executable, "-S", "-m", "aiinfra_vm.tasks.nccl"],
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        check=True,
    )
    file, plugin, version = answer.stdout.decode().split("\n")[:3]
    return file, plugin, version


def _together(folder: Path, environment: dict[str, str], first: int, gpus: int) -> str:
    """Run this VM's processes to their end; returns what all have said.

    Raises:
        OSError: One failed.
    """
    files = [folder / f"{number}.log" for number in range(gpus)]
    running = []
    for number, file in enumerate(files):
        with file.open("wb") as output:
            running.append(
                subprocess.Popen(  # noqa: S603 - numbers, and a file of our own
                    [
                        sys.executable,
                        "-S",
                        "-m",
                        "aiinfra_vm.tasks.rank",
                        str(number),
                        str(first + number),
                        str(folder / "plan.json"),
                    ],
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                )
            )
    failed = _await(running)
    said = [file.read_text("utf-8", "replace") for file in files]
    if failed is not None:
        lines = [line for line in said[failed].splitlines() if line.strip()]
        code = running[failed].returncode
        raise OSError("\n".join([f"process {first + failed}: exit code {code}", *lines[-_LINES:]]))
    return "".join(said)


def _await(running: list[subprocess.Popen[bytes]]) -> int | None:
    """Wait for all; once one fails, the others of this VM get a moment, and are ended.

    Which one failed of itself; one that ended because another did, if that is of another VM; None
    if none failed.
    """
    while not any(process.poll() for process in running):
        if all(process.poll() == 0 for process in running):
            return None
        time.sleep(_PAUSE)
    until = time.monotonic() + _ENDING
    killed = set()
    for number, process in enumerate(running):
        try:
            process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            killed.add(number)
            process.kill()
            process.wait()
    failed = [n for n, it in enumerate(running) if it.returncode and n not in killed]
    of_itself = [number for number in failed if running[number].returncode != meeting.BROKEN]
    return next(iter(of_itself or failed))
