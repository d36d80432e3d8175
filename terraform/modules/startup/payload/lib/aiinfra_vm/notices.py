"""Google's notices that this VM is about to end: what is to be done before, is done now."""

from __future__ import annotations

import json
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, Callable

from aiinfra_vm import configuration, metadata

BEFORE_THE_END = 120.0
"""Seconds between the notice and a maintenance that is known beforehand, and the end of a run where
its notice is not given."""

_PREEMPTED = "instance/preempted"
_MAINTENANCE = "instance/upcoming-maintenance?alt=json"
_STAY = 60  # seconds that the server holds a question whose answer does not change
_PAUSE = 15.0  # seconds between questions that are not held, and after an answer of no use
_UPTIME = Path("/proc/uptime")
_RUN_ENDS = Path("/var/lib/aiinfra/run-ends")


def watch(tell: Callable[[str], None], run_ends: float | None) -> None:
    """Watch in threads, as long as this process lives.

    `tell`: is given the reason, once, by one of them; more than one may tell. `run_ends`: when
    Google ends this VM (Unix epoch); None for never.
    """
    for look in (_preempted, _maintained, _ending):
        threading.Thread(target=look, args=(tell, run_ends), daemon=True).start()


def _preempted(tell: Callable[[str], None], _: float | None) -> None:
    etag = "0"
    while True:
        try:
            value, etag = metadata.changed(_PREEMPTED, etag, _STAY)
        except OSError:
            time.sleep(_PAUSE)
            continue
        if value.strip() == "TRUE":
            tell("Google takes this VM back (preemption)")
            return
        time.sleep(1)  # should a server not hold the question


def _maintained(tell: Callable[[str], None], _: float | None) -> None:
    while True:
        try:
            text = metadata.get(_MAINTENANCE)
        except OSError:
            text = ""  # 404 and 503 are the answers where none is known
        if is_near(text, time.time()):
            tell("Google stops this VM to maintain its host")
            return
        time.sleep(_PAUSE)


def _ending(tell: Callable[[str], None], run_ends: float | None) -> None:
    if run_ends is None:
        return
    due = run_ends - (configuration.value("stop_notice") or BEFORE_THE_END)
    while time.time() < due:
        time.sleep(min(_PAUSE, max(0.1, due - time.time())))
    tell("its MAX_RUN_DURATION is over")


def is_near(text: str, now: float) -> bool:
    """Whether a maintenance begins within `BEFORE_THE_END`, or is under way.

    `text`: the metadata server's answer: {}, "NONE", an error, or a document. Its keys are written
    as window_start_time in Google's guide, and as windowStartTime by some VMs.
    """
    try:
        found: Any = json.loads(text)
    except ValueError:
        return False
    if not isinstance(found, dict):
        return False
    told = {key.replace("_", "").lower(): value for key, value in found.items()}
    if told.get("maintenancestatus") == "ONGOING":
        return True
    begins = _moment(told.get("windowstarttime"))
    return begins is not None and begins - now < BEFORE_THE_END


def _moment(text: Any) -> float | None:
    try:
        moment = datetime.strptime(str(text), "%Y-%m-%dT%H:%M:%SZ")  # noqa: DTZ007 - UTC by its Z
    except ValueError:
        return None
    return moment.replace(tzinfo=timezone.utc).timestamp()


def run_ends() -> float | None:
    """When Google ends this VM (Unix epoch); None for never."""
    return end_of_run(_RUN_ENDS, configuration.value("max_run_seconds"))


def end_of_run(kept: Path, seconds: int | None) -> float | None:
    """When Google ends this VM (Unix epoch), which only its API says; None for never.

    Google counts from when the VM runs, which is its first boot, also over reboots. A VM that was
    stopped and started has a new run: one that outlives its end is counted again. `seconds`: how
    long the VM may run; None for no limit.
    """
    if seconds is None:
        return None
    now = time.time()
    booted = now - float(_UPTIME.read_text().split()[0])
    try:
        ends = float(kept.read_text("utf-8"))
    except (FileNotFoundError, ValueError):
        ends = 0.0
    if ends <= booted:
        ends = booted + seconds
        kept.write_text(str(ends), "utf-8")
    return ends
