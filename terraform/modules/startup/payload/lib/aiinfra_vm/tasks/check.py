"""What this VM finds about itself: GPUs, their memory, DCGM's short test, interfaces, local SSDs.

It only tells; the tool, which knows what the machine type promises, judges.
"""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from pathlib import Path
from typing import Any, Dict, Iterator

from aiinfra_vm import configuration, fabric, localssd, programs

Result = Dict[str, Any]

SYSTEM = Path("/")
"""Where this VM's file system begins."""

# All drivers of the last years know these fields; nvidia-smi refuses a query with one that it
# does not know.
_FIELDS = (
    "uuid,name,driver_version,ecc.errors.uncorrected.volatile.total"
    ",ecc.errors.uncorrected.aggregate.total,retired_pages.pending"
)
_ROWS = "gpu_uuid,remapped_rows.pending,remapped_rows.failure"
_APPS = "pid,process_name"
_SECONDS = 120  # a GPU that fell off its bus can make nvidia-smi hang
_DIAGNOSTIC_SECONDS = 420
_LINES = 5  # of what a program says about its failure


def run(arguments: Result) -> Result:
    """Look at everything; what can't be looked at says why.

    Raises:
        ValueError: There are arguments.
    """
    if arguments:
        raise ValueError("it takes no arguments")
    busy = users()
    return {
        **gpus(),
        "users": busy,
        # It would take the GPUs from who has them, or fail for them.
        "diagnostic": _diagnostic() if not busy else _not_run("its GPUs are in use"),
        "interfaces": list(interfaces()),
        "local_ssd": localssd.document(),
        "fabric": _fabric(),
        "login": _login(),
    }


def gpus() -> Result:
    """Each GPU, and why there are none or fewer: `error` is empty where nvidia-smi was content."""
    try:
        lines, error = _table(f"--query-gpu={_FIELDS}"), ""
    except _FailedError as failed:
        lines, error = [], str(failed)
    try:
        rows = {uuid: rest for uuid, *rest in _table(f"--query-remapped-rows={_ROWS}")}
    except _FailedError:
        # Older GPUs retire pages, and have no rows to remap.
        rows = {}
    return {"error": error, "gpus": [_gpu(fields, rows) for fields in lines if len(fields) == 6]}  # noqa: PLR2004 - the fields above


def users() -> list[str]:
    """The programs of others that have GPUs in use, each "NAME (PID)"; none where it can't be seen.

    TCPXO's daemon, which has all of them in use all the time, is none of these.
    """
    try:
        found = _table(f"--query-compute-apps={_APPS}")
    except _FailedError:
        return []
    own: list[str] = []
    if found:
        with contextlib.suppress(_FailedError):
            own = _said(["docker", "top", "aiinfra-rxdm", "-eo", "pid"], _SECONDS).split()
    return sorted({f"{', '.join(name)} ({pid})" for pid, *name in found if pid not in own})


def _gpu(fields: list[str], rows: dict[str, list[str]]) -> Result:
    uuid, name, driver, volatile, aggregate, retired = fields
    pending, failure = (rows.get(uuid) or ["", ""])[:2]
    return {
        "uuid": uuid,
        "name": name,
        "driver": driver,
        "ecc_volatile": _number(volatile),
        "ecc_aggregate": _number(aggregate),
        "repair_pending": _is_yes(retired) or _is_yes(pending),
        "repair_failed": _is_yes(failure),
    }


def _number(text: str) -> int | None:
    """A count; None for GPUs that don't count that ("[N/A]")."""
    return int(text) if text.isdigit() else None


def _is_yes(text: str) -> bool:
    """Whether a driver says yes, which the one kind of query has as a word, the other as 1."""
    return text.strip().lower() in {"yes", "1"}


def _table(query: str) -> list[list[str]]:
    """The lines of a query of nvidia-smi.

    Raises:
        _FailedError: It is not there, fails, or hangs.
    """
    text = _said(["nvidia-smi", query, "--format=csv,noheader,nounits"], _SECONDS)
    return [[it.strip() for it in line.split(",")] for line in text.splitlines() if line.strip()]


class _FailedError(Exception):
    """A program did not do what it was asked to; its text says how."""


def _said(command: list[str], seconds: float) -> str:
    """What a program prints.

    Raises:
        _FailedError: It is not there, ends with a failure, or takes too long.
    """
    try:
        ended = programs.ask(command, seconds)
    except FileNotFoundError:
        raise _FailedError(f"there is no {command[0]}") from None
    except subprocess.TimeoutExpired:
        raise _FailedError(f"{command[0]} did not end within {seconds:.0f} s") from None
    said = ended.stdout.decode("utf-8", "replace")
    if ended.returncode:
        # nvidia-smi complains on stdout.
        text = ended.stderr.decode("utf-8", "replace") + said
        last = " ".join(line.strip() for line in text.splitlines()[-_LINES:] if line.strip())
        raise _FailedError(f"{command[0]}: exit code {ended.returncode}: {last}")
    return said


def _diagnostic() -> Result:
    """DCGM's short test (level 1): whether it ran, why not, and what it found wrong."""
    try:
        found = json.loads(_said(["dcgmi", "diag", "-r", "1", "-j"], _DIAGNOSTIC_SECONDS))
    except _FailedError as failed:
        return _not_run(str(failed))
    except ValueError:
        return _not_run("dcgmi did not answer in JSON")
    failures = list(_failures(found))
    return {"ran": True, "error": "", "failures": failures}


def dcgm_health() -> str:
    """What DCGM's own watches complain of, "" for nothing; they take no GPU from anybody."""
    try:
        _said(["dcgmi", "health", "-s", "a"], _SECONDS)
        said = _said(["dcgmi", "health", "-c"], _SECONDS)
    except _FailedError:
        return ""
    lines = [re.sub(r"[|\s]+", " ", line).strip() for line in said.splitlines()]
    wrong = [it for it in lines if re.search(r"\b(Warning|Failure)\b", it)]
    return f"DCGM: {'; '.join(wrong)}" if wrong else ""


def _not_run(why: str) -> Result:
    return {"ran": False, "error": why, "failures": []}


def _failures(found: Any) -> Iterator[str]:
    """What failed, by the names of the tests.

    DCGM 3 and 4 call the whole differently ("DCGM GPU Diagnostic", "DCGM Diagnostic") and so do
    they the states ("FAIL", "Fail"); tests with results are lists in both.
    """
    if isinstance(found, list):
        for one in found:
            yield from _failures(one)
    elif isinstance(found, dict):
        results = found.get("results")
        if isinstance(results, list) and "name" in found:
            yield from (
                f"{found['name']}{_where(one)}{_why(one)}"
                for one in results
                if isinstance(one, dict) and str(one.get("status", "")).lower().startswith("fail")
            )
        else:
            for one in found.values():
                yield from _failures(one)


def _where(result: Result) -> str:
    number = result.get("entity_id", result.get("gpu_ids"))
    return "" if number is None else f" of GPU {number}"


def _why(result: Result) -> str:
    """What DCGM says of a failure: a text, or a list of texts or of objects with texts."""
    told = result.get("warnings") or result.get("info") or ""
    for _ in range(2):
        if isinstance(told, list):
            told = told[0] if told else ""
        if isinstance(told, dict):
            told = told.get("warning") or told.get("error") or ""
    return f": {told}" if told else ""


def interfaces() -> Iterator[Result]:
    """The network interfaces that have a device: all but loopback, bridges and the like."""
    folder = SYSTEM / "sys/class/net"
    for interface in sorted(folder.iterdir()):
        if (interface / "device").exists():
            yield {
                "name": interface.name,
                "mtu": int(_text(interface / "mtu") or 0),
                # RoCE's interfaces may say "unknown" while they carry.
                "up": _text(interface / "carrier") == "1",
            }


def _text(file: Path) -> str:
    try:
        return file.read_text("utf-8").strip()
    except OSError:
        # The carrier of an interface that is down can't be read.
        return ""


def _fabric() -> Result:
    """The fabric that NCCL is to use here, "" for none, and what is wrong with it."""
    wanted = configuration.value("fabric")
    if not wanted:
        return {"kind": "", "faults": []}
    try:
        variables = fabric.read(fabric.ENVIRONMENT.read_text("utf-8"))
    except FileNotFoundError:
        return {"kind": wanted["kind"], "faults": [f"{fabric.ENVIRONMENT} is missing"]}
    try:
        return {"kind": wanted["kind"], "faults": fabric.faults(wanted, variables)}
    except (OSError, subprocess.SubprocessError) as error:
        return {"kind": wanted["kind"], "faults": [f"it can't be looked at: {error}"]}


def _login() -> list[str]:
    """What a login shell on this VM has otherwise than NCCL's settings are."""
    if not configuration.value("gpus"):
        return []
    known = fabric.ENVIRONMENT
    try:
        return fabric.login_faults(fabric.read(known.read_text("utf-8")) if known.exists() else {})
    except (OSError, subprocess.SubprocessError) as error:
        return [f"nothing, as it can't be opened: {error}"]
