"""What the agents of VMs say and are asked, through the state folder.

    vms/group.json              how many VMs there are to be, as this program says
    vms/roster.json             who has which rank, as the VMs have agreed among themselves (ADR 29)
    vms/members/NAME.json       a VM's heartbeat, each minute
    vms/idle.json               when the last VM powered itself off
    vms/slurm/nodes.json        what Slurm says of the VMs, each minute at least
    vms/task.json               what is to be done, by whom, and within what time
    vms/results/ID/NAME.json    how far a VM is with it, and its answer

The names are those of the programs that VMs get (terraform/modules/startup/payload). Any program on
a VM may write there: what can't be read counts as not said. Each VM's agent looks for a task every
15 seconds. A task names a kind of a closed set and gives arguments; there is one at a time, and a
new one ends the one before it.
"""

from __future__ import annotations

import collections
import json
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Self

from provision import words
from provision.documents import json_object
from provision.documents.job import Job, JobState
from provision.documents.vm_status import SlurmNode, SlurmNow, StartupStep
from provision.kinds.status import seconds_of
from provision.kinds.vms import instances
from provision.kinds.vms.instances import arguments
from provision.state import objects
from provision.state.objects import Change, Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from provision.context import Cloud
    from provision.spec.cluster import VmSpec
    from provision.spec.pools import Group
    from provision.state.folder import StateFolder
    from provision.time.clock import Clock
    from provision.time.stages import OpenStage

STEP: Final = "agent"
"""The step of the start-up from which on a VM says how it is, and hears of tasks."""
FOLDER: Final = "vms/"
"""The part of the state folder into which VMs write."""
_TASK: Final = "vms/task.json"
_MOST: Final = 4
_LONGEST: Final = 160
"""Faults of a VM, and characters of one, as VMs write them."""
_LATE: Final = 300.0
"""Seconds of cloud time without a heartbeat, which comes each minute, that are too long."""
_KNOWN_BEFORE: Final = "image restart_on secrets"
"""What VMs know of a job that may ask for more, if they don't say what."""
_WRONG: Final = 120.0
"""Seconds that a VM's clock may differ: TLS, tokens and logs bear no more for long."""
_NUMBER: Final = re.compile(r"[0-9]{1,32}")
"""An account's, which goes into commands."""


def _size(content: bytes) -> int | None:
    return json_object.whole(objects.said(content).get("instance_count"))


def _members(content: bytes) -> list[dict[str, Any]]:
    return json_object.objects(objects.said(content).get("members"))


def _at(content: bytes) -> float | None:
    return json_object.number(objects.said(content).get("at"))


@dataclass(frozen=True)
class Queue:
    """What the head of Slurm said last."""

    at: float  # when it said so (Unix epoch)
    head: str
    nodes: Mapping[str, SlurmNode]  # the VMs by name

    def now(self, clock: Clock, others: Iterable[Job] = ()) -> SlurmNow:
        """It in numbers; `others`: the jobs that are none of Run's."""
        nodes, states = self.nodes.values(), [it.state for it in others]
        return SlurmNow(
            head=self.head,
            states=dict(collections.Counter(sorted(it.state for it in nodes))),
            gpus=sum(it.gpus for it in nodes),
            gpus_in_use=sum(it.gpus_in_use for it in nodes),
            silent_seconds=max(0, int(clock.since(self.at))),
            others_running=states.count(JobState.RUNNING),
            others_waiting=states.count(JobState.WAITING),
        )


def _queue(content: bytes) -> Queue | None:
    said, text, whole = objects.said(content), json_object.text, json_object.whole
    at, head = json_object.number(said.get("at")), text(said.get("head"))
    nodes = {
        text(it.get("name")): SlurmNode(
            state=text(it.get("state")).lower()[:_LONGEST],
            reason=text(it.get("reason"))[:_LONGEST],
            gpus=whole(it.get("gpus")) or 0,
            gpus_in_use=whole(it.get("gpus_in_use")) or 0,
        )
        for it in json_object.objects(said.get("nodes"))
    }
    return Queue(at, head[:_LONGEST], nodes) if at is not None and head else None


SIZE: Final = Stored("vms/group.json", Writer.MACHINES, _size)
_ROSTER: Final = Stored("vms/roster.json", Writer.MACHINES, _members, largest=2**24)
MEMBER: Final = Stored("vms/members/{}.json", Writer.MACHINES, objects.said)
IDLE: Final = Stored("vms/idle.json", Writer.MACHINES, _at)
QUEUE: Final = Stored("vms/slurm/nodes.json", Writer.MACHINES, _queue)


def tell_size(cloud: Cloud, spec: VmSpec, *, is_new: bool) -> None:
    """Say how many VMs the group is to have: their NNODES; `is_new`: whether it is a new one."""
    count = spec.group.size.first
    # Where older versions are kept, each write of the same leaves one behind.
    if is_new or cloud.folder.read(SIZE) != count:
        text = json.dumps({"instance_count": count})
        cloud.folder.write(SIZE.name, text, "application/json")


@dataclass(frozen=True, kw_only=True)
class Seat:
    """What is known of a VM that has agreed with the others on its rank."""

    rank: int | None  # its rank; None while the others hear nothing of it
    faults: tuple[str, ...] = ()  # what its GPUs complain of, in its own words
    disks: tuple[
        str, ...
    ] = ()  # which of its disks and mounts is full or does not answer, likewise
    # when the others last heard of it (Unix epoch); None if they do now, or don't say
    since: float | None = None


@dataclass(frozen=True)
class Heard:
    """What is heard of VMs."""

    seats: Mapping[str, Seat]  # those that have agreed on their ranks, by name
    # the last heartbeat of each, with what it told: of a group whose VMs are all silent, nobody
    # writes that they are
    beats: Mapping[str, Change]
    # the number of each VM -> that of the account whose tokens it gets, as it said last
    accounts: Mapping[str, str]

    def silence(
        self, name: str, steps: Mapping[str, StartupStep], started: str | None, clock: Clock
    ) -> str:
        """That a VM which runs is not heard of, as the end of a sentence about it; "" if it is.

        Among the steps of their start-up, VMs of an earlier version have none of the agent.
        """
        agent = steps[STEP].state if STEP in steps else ""
        found, seat = self.beats.get(name), self.seats.get(name)
        beat = last = found.at if found else None
        if agent not in {"done", "failed"}:
            is_heard = True
        elif beat is not None:
            is_heard = clock.since(beat) < _LATE
        elif seat is not None:
            is_heard, last = seat.rank is not None, seat.since
        else:  # a step that failed has said why
            is_heard = agent == "failed" or clock.since(seconds_of(started) or 0.0) < _LATE
        if is_heard:
            return ""
        return f"has not been heard of{f' for {words.duration(clock.since(last))}' if last else ''}"

    def clock(self, name: str) -> tuple[str, ...]:
        """That a clock is wrong, by what it wrote with a heartbeat and when Google got that."""
        beat = self.beats.get(name)
        renewed = seconds_of(json_object.text(beat.notes.get("renewed"))) if beat else None
        if beat is None or renewed is None or abs(renewed - beat.at) < _WRONG:
            return ()
        ahead = "ahead of" if renewed > beat.at else "behind"
        return (f"its clock is {words.duration(abs(renewed - beat.at))} {ahead} Google's",)


def heard(cloud: Cloud, known: Mapping[str, Change] | None = None) -> Heard:
    """What is heard of the VMs of a group; `known`: their heartbeats, if they are known."""
    roster = cloud.folder.read(_ROSTER) or ()
    found = cloud.folder.changed(MEMBER) if known is None else known
    return Heard(_seats(roster), found, _accounts(roster))


def without(folder: StateFolder, clock: Clock, wanted: Collection[str]) -> Mapping[str, set[str]]:
    """The VMs that live and may be too old to know all `wanted` of `jobs/NAME.json`, and what."""
    found = {
        vm: {*wanted} - {*beat.notes.get("knows", _KNOWN_BEFORE).split()}
        for vm, beat in folder.changed(MEMBER).items()
        if clock.since(beat.at) < _LATE
    }
    return {vm: unknown for vm, unknown in sorted(found.items()) if unknown}


def accounts(folder: StateFolder) -> Mapping[str, str]:
    """The number of each VM -> that of the account whose tokens it gets, as it said last."""
    return _accounts(folder.read(_ROSTER) or ())


def named(folder: StateFolder, number: str) -> str:
    """The name of the VM of this number; "" if nobody has heard of it."""
    roster = folder.read(_ROSTER) or ()
    return next(
        (json_object.text(it.get("name")) for it in roster if it.get("instance_id") == number), ""
    )


def _seats(roster: Iterable[Mapping[str, Any]]) -> Mapping[str, Seat]:
    return {
        str(it.get("name")): Seat(
            rank=rank if it.get("present") is True else None,
            faults=_words(it.get("faults")),
            disks=_words(it.get("disks")),
            since=seconds_of(json_object.text(it.get("since"))),
        )
        for it in roster
        if (rank := json_object.whole(it.get("rank"))) is not None
    }


def _words(said: object) -> tuple[str, ...]:
    return tuple(it[:_LONGEST] for it in json_object.texts(said)[:_MOST])


def _accounts(roster: Iterable[Mapping[str, Any]]) -> Mapping[str, str]:
    said = (
        (json_object.text(it.get("instance_id")), json_object.text(it.get("account")))
        for it in roster
    )
    return {vm: account for vm, account in said if _NUMBER.fullmatch(account)}


WHY_SILENT: Final = (
    "its agent writes into the state's bucket each minute: the VM hangs, its disk is full, or it"
    " has no way, or no right, to the bucket any more"
)


def another_start(vm: str, group: Group) -> str:
    """What to do about a VM that is not heard of; an account that was deleted takes the latter."""
    recreate = instances.another_host([vm], arguments(group), bound=False)
    return (
        f"see `journalctl -u aiinfra-agent` on {vm}, or its serial port 1; when nobody needs what"
        f" runs there, restart it:\ngcloud compute instances reset {vm} --zone {group.zone}"
        f" --project {group.project}\nif that does not help, {recreate}"
    )


# ------------------------------------------------------------------ tasks

_POLL: Final = 10.0
_BEGIN: Final = 120.0
"""Seconds of cloud time within which a VM that has an agent says that it has begun."""
_WRITING: Final = 60.0
"""Seconds of cloud time that all may take beyond the task itself, to be heard of and to answer."""
_SILENT: Final = "silent"
"""The state of a VM that has not said anything."""
_FAILURES: Final = {
    "done": "",
    _SILENT: "does not answer",
    "running": "has not finished in time",
    "late": "has not finished in time",
    "stopped": "was asked for something else meanwhile: another Test runs",
    "cut-off": "was restarted meanwhile",
    "refused": "does not know what it was asked for",
}
"""State of a task that was waited for -> why it was not done."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How far a VM is with a task."""

    # "running", "done", or how it ended otherwise: "failed", "refused", "late", "stopped",
    # "cut-off"; "silent" if it has not said anything
    state: str = _SILENT
    detail: str = ""  # the last that the task said, or why it was not done; "" for nothing
    answer: Mapping[str, Any]  # what came of it; empty if it was not done

    @classmethod
    def of(cls, content: bytes) -> Self:
        """Make it from a VM's object, which a program on the VM may have spoiled."""
        document = objects.said(content)
        if not isinstance(document.get("state"), str):
            return cls(state="failed", detail="its answer can't be read", answer={})
        return cls(
            state=document["state"],
            detail=json_object.text(document.get("detail")),
            answer=json_object.inner(document.get("answer")),
        )

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.state not in {"running", _SILENT}

    @property
    def failure(self) -> str:
        """Why it was not done, as the end of a sentence about the VM; "" if it was."""
        why = _FAILURES.get(self.state, "failed")
        return ": ".join(filter(None, [why, self.detail])) if why else ""


_RESULT: Final = Stored("vms/results/{}/{}.json", Writer.MACHINES, Answer.of)


def ask(  # noqa: PLR0913 - a task, and how it is waited for
    folder: StateFolder,
    stage: OpenStage,
    kind: str,
    arguments: Mapping[str, Any],
    *,
    vms: Mapping[str, str],
    seconds: int,
) -> dict[str, Answer]:
    """Have VMs (name -> instance ID) do something; what comes of it, of each that was asked."""
    number = f"{kind}-{secrets.token_hex(8)}"
    task = {"id": number, "kind": kind, "arguments": arguments, "vms": dict(vms)}
    answers = {name: Answer(answer={}) for name in vms}
    before = stage.words
    try:
        folder.write(_TASK, json.dumps(task | {"seconds": seconds}), "application/json")
        deadline = stage.deadline(seconds + _WRITING, _POLL)
        while True:
            waiting = (vm for vm in folder.names(_RESULT, number) if vm in answers)
            for vm in [it for it in waiting if not answers[it].is_over]:
                answers[vm] = folder.read(_RESULT, number, vm) or answers[vm]
            over = sum(it.is_over for it in answers.values())
            said = f"{over} of {len(answers)} VMs have answered"
            stage.news(f"{before}: {said}" if before else said)
            silent = sum(it.state == _SILENT for it in answers.values())
            given_up = silent if deadline.passed > _BEGIN else 0
            if over + given_up == len(answers) or deadline.is_over:
                return answers
            deadline.pause()
    finally:
        folder.remove(_TASK)
        for vm in folder.names(_RESULT, number):
            folder.remove(_RESULT.at(number, vm))
