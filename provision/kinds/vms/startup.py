"""The start-up of VMs: each VM reports the state of every step in a guest attribute.

Google answers for one VM at a time. So a VM that has started up says that with its heartbeats too,
which one list has, and only the others are asked. Their requests are spread over time: a project
has a quota of 1,500 reads per minute and region, which its owner needs for other work too.

After a reset, the last report is there until the next one is. `lastStartTimestamp` of a VM tells of
starts, not of resets: a VM that is reset goes on running for Compute Engine (API reference,
instances.reset; gotchas.md, "Believed"). The zone's operations tell of resets.
"""

from __future__ import annotations

import collections
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.catalogue import xids
from provision.codes import Code
from provision.documents import json_object
from provision.documents.timeline import StageName
from provision.documents.vm_status import GpuCheck, StartupStep
from provision.errors import ClusterError, Problem
from provision.kinds import happened
from provision.kinds.status import seconds_of
from provision.state import objects

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from provision.google.api import GoogleApi
    from provision.state.location import Place
    from provision.state.objects import Change
    from provision.time.clock import Clock
    from provision.time.stages import Progress

_NAMESPACE: Final = "aiinfra"
_KEY: Final = "startup"
_NO_MOMENT: Final = 86400.0
"""Before the second day of 1970 nothing was told: the VM did not know the time."""
COMMAND: Final = "command"
"""The step that runs the user's STARTUP_COMMAND, which may take as long as it likes."""
_SETTING: Final = "STARTUP_COMMAND"
_MORE: Final = {
    "failing": ", which failed and is begun again",
    "stopped": ", which was told to end with the VM",
}
"""State of a step -> the rest of the sentence."""

_LIVE: Final = 90.0
"""Seconds of cloud time in which a VM that lives has another heartbeat, which comes each minute.

What was told with an older one may be over: the VM may be on its way through another boot.
"""
_AT_ONCE: Final = 8
"""The number of concurrent requests."""
PER_SECOND: Final = 10.0
"""Requests per second of cloud time, which is 600 per minute."""
_POLL: Final = 15.0
AT_MOST: Final = 2700.0
"""The longest wait for all VMs together, in seconds of cloud time.

That is what a VM takes to boot and what its steps may take together (START_UP of startup.sh).
"""
_COMMAND_AT_MOST: Final = 300.0
"""The longest wait once only STARTUP_COMMAND is still running, in seconds of cloud time."""
_OFTEN: Final = 3
"""The failures of a command, one after the other, from which on it is said to fail."""
_AFTER_FAILURE: Final = 60.0
"""The wait for other failures after the first one, in seconds of cloud time."""
_IN_FULL: Final = 5
"""The number of VMs whose failure is reported with its last lines of output."""
_LINES: Final = 3


@dataclass(frozen=True, kw_only=True)
class Startup:
    """The start-up of one VM, as far as the VM has reported it."""

    state: str = ""  # "running", "done" or "failed"; "" if it has not reported anything yet
    step: str = ""  # the current step, or the one that failed; "" for none
    # name of a step -> what is known of it
    steps: Mapping[str, StartupStep] = field(default_factory=dict)
    gpu_check: GpuCheck | None = None  # what it found about its GPUs; None if nothing yet
    at: float | None = None  # when it told that, as Unix epoch; None if it does not say

    @classmethod
    def of(cls, attributes: Mapping[str, str]) -> Self:
        """Make it from a VM's guest attributes; what can't be parsed counts as not reported."""
        whole = objects.said(attributes.get(_KEY) or "{}")
        steps = json_object.inner(whole.get("steps"))
        found, fabric = (json_object.inner(whole.get(it)) for it in ("gpu_check", "fabric"))
        at = seconds_of(json_object.text(whole.get("at")))
        return cls(
            state=json_object.text(whole.get("state")),
            step=json_object.text(whole.get("step")),
            steps={
                name: StartupStep(
                    state=json_object.text(it.get("state")),
                    detail=json_object.text(it.get("detail")),
                    attempt=json_object.whole(it.get("attempt")),
                    failures=json_object.whole(it.get("failures")),
                    code=json_object.whole(it.get("code")),
                )
                for name, it in steps.items()
                if isinstance(it, dict)
            },
            gpu_check=GpuCheck(
                gpus=json_object.whole(found.get("gpus")),
                names=tuple(json_object.texts(found.get("names"))),
                driver=json_object.text(found.get("driver")) or None,
                ecc_errors=json_object.whole(found.get("ecc_errors")),
                interfaces=json_object.whole(found.get("interfaces")),
                fabric=json_object.text(fabric.get("kind")) or None,
            )
            if found
            else None,
            at=at if at and at > _NO_MOMENT else None,
        )

    @property
    def is_over(self) -> bool:
        """Whether the start-up has ended."""
        return self.state in ("done", "failed")

    @property
    def has_notebook(self) -> bool:
        """Whether a notebook was set up, or may be."""
        step = self.steps.get("notebook")
        return step is None or step.state not in ("skipped", "failed")

    @property
    def words(self) -> str:
        """Its state, as the end of a sentence about the VM."""
        if not self.state:
            return "has not begun its start-up"
        if self.state == "done":
            return "has started up"
        if self.state == "failed":
            return f"failed in the step {self.step}"
        now = self.steps.get(self.step)
        return f"is at the step {self.step}{_MORE.get(now.state, '') if now else ''}"

    @property
    def fails_often(self) -> bool:
        """Whether its command fails again and again."""
        step = self.steps.get(COMMAND)
        return bool(step and step.is_failing and (step.failures or 0) >= _OFTEN)

    @property
    def detail(self) -> str:
        """The last lines of output of its current step."""
        step = self.steps.get(self.step)
        return step.detail if step else ""


@dataclass
class Reader:
    """Reads start-ups, those of VMs that are asked concurrently, at a limited rate."""

    api: GoogleApi
    place: Place
    clock: Clock
    started: Mapping[str, str | None] = field(default_factory=dict)  # when Google says VMs were
    look: Callable[[], Mapping[str, Change]] = dict  # at their heartbeats
    # those of the zone that tell what happened, if they are known
    operations: Iterable[Mapping[str, Any]] | None = None
    # the heartbeats, as they were looked at last; None before a read
    beats: Mapping[str, Change] | None = None
    # whether it took more than one look at the heartbeats, so that time has passed
    has_waited: bool = False
    _next: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self, names: Iterable[str]) -> dict[str, Startup]:
        """The start-ups of VMs, by name; what was told before the last start counts for nothing."""
        wanted = list(names)
        self.has_waited = self.beats is not None
        self.beats = self.look()
        found = self._heard(wanted, self.beats)
        asked = [name for name in wanted if name not in found]
        self.has_waited |= bool(asked)
        pool = ThreadPoolExecutor(_AT_ONCE)
        try:
            found |= zip(asked, pool.map(self._one, asked), strict=True)
        finally:
            # After an interrupt, requests that have not started are dropped.
            pool.shutdown(cancel_futures=True)
        if not any(it.is_over for it in found.values()):
            return found
        begun = self._begun()
        return {
            name: Startup() if it.at and it.at < begun.get(name, it.at) else it
            for name, it in found.items()
        }

    def _heard(self, names: Collection[str], beats: Mapping[str, Change]) -> dict[str, Startup]:
        """The VMs that live and have said that they have started up."""
        live = {
            name: Startup.of(beat.notes)
            for name in names
            if (beat := beats.get(name)) and self.clock.since(beat.at) < _LIVE
        }
        return {name: it for name, it in live.items() if it.state == "done"}

    def slow(self, names: Iterable[str]) -> list[str]:
        """Those of some VMs that have to be asked, each for itself."""
        wanted = list(names)
        found = self._heard(wanted, self.look())
        return [name for name in wanted if name not in found]

    def _one(self, name: str) -> Startup:
        with self._lock:
            turn = max(self._next, time.monotonic())
            self._next = turn + self.clock.wall(1 / PER_SECOND)
        time.sleep(max(0.0, turn - time.monotonic()))
        path = f"projects/{self.place.project_id}/zones/{self.place.zone}/instances/{name}"
        return Startup.of(self.api.guest_attributes(path, _NAMESPACE))

    def _begun(self) -> dict[str, float]:
        """When VMs were last started, or reset from outside (Unix epoch), as far as is known."""
        operations = self.operations
        if operations is None:
            operations = happened.operations(self.api, self.place)
        resets = (
            (one["targetLink"].rpartition("/")[2], one["insertTime"])
            for one in operations
            if one["operationType"] == happened.RESET
        )
        latest: dict[str, float] = {}
        for vm, text in (*self.started.items(), *resets):
            at = seconds_of(text)
            if at is not None:
                latest[vm] = max(at, latest.get(vm, at))
        return latest


def wait(
    reader: Reader,
    names: Collection[str],
    *,
    progress: Progress,
    stay: Callable[[], bool] = lambda: True,
) -> dict[str, Startup]:
    """Wait until the start-up of all VMs has ended, or not all of them run any more (`stay`).

    Those that are done are not polled again. A long STARTUP_COMMAND may still be running.
    """
    with progress.stage(StageName.STARTUP) as stage:
        deadline = stage.deadline(AT_MOST, _POLL)
        found: dict[str, Startup] = dict.fromkeys(names, Startup())
        is_shorter: set[str] = set()
        over: int | None = None
        while True:
            found |= reader.read(name for name, it in found.items() if not it.is_over)
            waiting = [it for it in found.values() if not it.is_over]
            # Each VM takes some ten steps: what is news is one more that has ended.
            is_news = bool(waiting) and len(waiting) != over
            over = len(waiting)
            (stage.news if is_news else stage.counts)(_progress(found.values()))
            if any(it.state != "done" for it in found.values()) and not stay():
                return found
            if not waiting or deadline.is_over:
                break
            if any(it.state == "failed" for it in found.values()) and "failed" not in is_shorter:
                deadline.shorten(_AFTER_FAILURE)
                is_shorter.add("failed")
            if all(it.step == COMMAND for it in waiting) and COMMAND not in is_shorter:
                deadline.shorten(_COMMAND_AT_MOST)
                is_shorter.add(COMMAND)
            deadline.pause()
        place = f"--zone {reader.place.zone} --project {reader.place.project_id}"
        _judge(found, deadline.passed, place)
        return found


def notes(found: Mapping[str, Startup]) -> Iterator[Problem]:
    """Notes on start-ups that did not fail: optional steps that failed, commands still running."""
    failed: dict[str, list[str]] = collections.defaultdict(list)
    for name, it in found.items():
        for step in (step for step, one in it.steps.items() if one.state == "failed"):
            failed[step].append(name)
    for step, vms in sorted(failed.items()):
        if not all(found[name].state == "failed" for name in vms):
            yield Problem(
                code=Code.STARTUP_FAILED,
                what=f"the step {step} failed on {words.listed(vms)};"
                " the rest of the start-up continued",
                why="\n".join(last_lines(found[vms[0]].steps[step].detail)),
                fix=output_of(step, "the VM"),
            )
    at_command = {n: it for n, it in found.items() if not it.is_over and it.step == COMMAND}
    failing = [n for n, it in at_command.items() if it.steps[COMMAND].is_failing]
    if failing:
        yield Problem(
            code=Code.STARTUP_FAILED,
            setting=_SETTING,
            what=f"the command failed on {words.listed(failing)}, and is begun again",
            why="\n".join(last_lines(at_command[failing[0]].detail)),
            fix=f"run Status to see whether it fails again; {output_of(COMMAND, 'the VM')}",
        )
    running = [name for name in at_command if name not in failing]
    if running:
        yield Problem(
            code=Code.STILL_RUNNING,
            setting=_SETTING,
            what=f"the command is still running on {words.listed(running)}",
            why="Create waits for it only for a while, because it may take as long as it likes",
            fix="run Status to see whether it has ended, and how",
        )


def last_lines(output: str) -> tuple[str, ...]:
    """The end of what a step said, which is shown."""
    return tuple(output.splitlines()[-_LINES:])


def _progress(startups: Collection[Startup]) -> str:
    """The progress of all VMs, such as "1 of 4 VMs have started up; 3 at the step ray"."""
    others = collections.Counter(
        it.words.removeprefix("is ") if it.state else "not begun"
        for it in startups
        if it.state != "done"
    )
    done = len(startups) - others.total()
    rest = "".join(f"; {count} {stage}" for stage, count in sorted(others.items()))
    have = "has" if len(startups) == 1 else "have"
    return f"{done} of {words.counted(len(startups), 'VM')} {have} started up{rest}"


def _judge(found: Mapping[str, Startup], passed: float, place: str) -> None:
    """Raise if a VM failed or is late; being late with STARTUP_COMMAND is no error."""
    in_order = sorted(found.items())
    failed = {name: it for name, it in in_order if it.state == "failed" or it.fails_often}
    starting = {name: it for name, it in in_order if not it.is_over and it.step != COMMAND}
    # After a failure nobody waits for the others, so that those are not late.
    bad = list((failed or starting).items())
    problems = [_problem(name, it, place) for name, it in bad[:_IN_FULL]]
    rest: dict[str, list[str]] = collections.defaultdict(list)
    for name, it in bad[_IN_FULL:]:
        rest[it.words].append(name)
    if rest:
        more = (f"{len(vms)} more: {words.listed(vms)} {how}" for how, vms in rest.items())
        fix = "run Status to see the step of every VM"
        problems.append(Problem(code=Code.STARTUP_FAILED, what="; ".join(more), fix=fix))
    others = sorted(starting.keys() - failed.keys()) if failed else []
    if others:
        number = f"{len(others)} VM{' was' if len(others) == 1 else 's were'}"
        problems.append(
            Problem(
                code=Code.STILL_RUNNING,
                what=f"{number} still starting up after {words.duration(passed)}, when Create"
                " ended because of the failure",
                why="; ".join(f"{name} {starting[name].words}" for name in others[:_IN_FULL]),
            )
        )
    if problems:
        raise ClusterError.of(problems)


def output_of(step: str, vm: str) -> str:
    """Where the output of a step is, as a part of a sentence."""
    if not step:
        return f"see serial port 1 of {vm}"
    log = "command" if step == COMMAND else f"step-{step}"
    return (
        f"see the end of its output in serial port 1 of {vm}, and all of it in"
        f" /var/log/aiinfra/{log}.log there"
    )


COMMAND_AGAIN: Final = (
    "fix the cause, and begin it again on the VM with `sudo systemctl restart aiinfra-command`; a"
    " new STARTUP_COMMAND comes to VMs with Create --replace-vms"
)
"""How a command that failed is begun again, as a part of a sentence."""


def _problem(name: str, it: Startup, place: str) -> Problem:
    is_command = it.step == COMMAND
    what = f"{name} {it.words}"
    if it.fails_often:
        times = it.steps[COMMAND].failures
        what = f"{_SETTING} failed on {name} {times} times in a row, and is begun again"
    elif it.state != "failed":
        what = f"After {AT_MOST / 60:g} minutes, {what}"
    silent = (
        "it has not reported anything: its image may lack Google's guest agent, or its network may"
        " have no access to Google's APIs"
    )
    reset = f"gcloud compute instances reset {name} {place}"
    again = f"fix the cause, restart the VM with `{reset}`, and run Create again"
    if xids.need_another_host(last_lines(it.detail)):
        again = "a restart is not enough: Status has the command that gives it another host"
    return Problem(
        code=Code.STARTUP_FAILED,
        setting=_SETTING if is_command else "",
        what=what,
        why=it.detail or ("" if it.state else silent),
        fix=f"the VM is kept: {output_of(it.step, name)}; {COMMAND_AGAIN if is_command else again};"
        " or run Destroy to remove everything",
    )
