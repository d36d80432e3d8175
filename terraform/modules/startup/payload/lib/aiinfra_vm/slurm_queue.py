"""All that is asked of Slurm, and what its lines mean.

Its JSON has another shape in each release; `--Format` has been as it is here since 21.08, whose
fields are whole where they have no width. Moments are asked for as seconds of the Unix epoch.
"""

from __future__ import annotations

import functools
import os
import re
import secrets
import subprocess
import time
from typing import Callable, Iterable, Iterator, NamedTuple, Sequence

from aiinfra_vm import programs, slurm_conf

USERS = 64
"""How many users there are for the jobs of Run: no two that are in the queue have the same one."""
COMMENT = re.compile(r"aiinfra:([a-z][-a-z0-9]{0,62}):([1-9][0-9]{0,6})")
"""What Slurm is told of a job of Run: its name, and the attempt. No other has such a comment.

The attempt may be one above all that any program on a VM can claim (`jobs.course`): one that is in
the queue and not found there is sent again and again.
"""
_FIELDS = (
    "JobID", "ArrayJobID", "ArrayTaskID", "UserName", "State", "NodeList", "NumNodes",
    "tres-per-node", "tres-per-job", "TimeLimit", "StartTime", "SubmitTime", "PriorityLong",
    "Reason", "Comment", "Name",
)  # fmt: skip
_NODE_FIELDS = ("NodeHost", "StateLong", "Gres", "GresUsed", "Reason")
_SECONDS = 60.0  # that Slurm may take to answer
_ABSENT = re.compile("contact|timed out|Timeout|connect|Zero Bytes|Socket", re.IGNORECASE)
_PENDING = frozenset({"PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT"})
_OVER = frozenset({
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY",
    "PREEMPTED", "REVOKED", "TIMEOUT",
})  # fmt: skip
# Slurm keeps what it has refused for a while, as if it had failed.
_REFUSED = frozenset({"BadConstraints", "PartitionConfig", "PartitionNodeLimit"})
_NEVER = ("JobHeldUser", "JobHeldAdmin", "DependencyNeverSatisfied", *sorted(_REFUSED))
SIGNALLED = "Slurm has ended it (scancel, or its --time), or the VM goes down"
"""Why a program ended that Slurm has signalled, and the head has said nothing of."""
SHORTEST = 30
"""Minutes that VMs have to have left for a job without a limit, where they end some day."""


class Refused(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """Slurm takes no such job."""


class Entry(NamedTuple):
    """A job in Slurm's queue, or one task of an array; those that were over a while ago, too."""

    number: str  # as its user names it: 1234, or 1234_7
    user: str
    name: str
    state: str  # Slurm's word for it
    task: int | None = None  # its number in its array; None for no array
    job: str = ""  # the name that it has for Run; "" for a job of others
    attempt: int = 0  # the attempt that Run has it for
    reason: str = ""  # why it waits, in Slurm's words
    nodes: tuple[str, ...] = ()  # the VMs that it has, not by rank
    wants: int = 1  # how many it wants
    gpus: int = 0  # how many GPUs it asks for, of all of its VMs
    limit: str = ""  # how long it may run, as Slurm writes it
    since: float = 0.0  # when it began, or else when it was sent (Unix epoch)
    priority: int = 0  # of those that wait, the highest is next

    @property
    def turn(self) -> tuple[int, int]:
        """What orders those that wait, the next one first."""
        return -self.priority, int(self.number.partition("_")[0])

    @property
    def is_pending(self) -> bool:
        """Whether it has not begun."""
        return self.state in _PENDING

    @property
    def is_over(self) -> bool:
        """Whether nothing of it runs, or will."""
        return self.state in _OVER

    @property
    def is_hopeless(self) -> bool:
        """Whether it waits for what does not come without somebody's doing."""
        return self.is_pending and self.reason.startswith(_NEVER)


class Node(NamedTuple):
    """A VM as Slurm sees it."""

    name: str
    state: str  # in lower case: idle, mixed, allocated, draining, drained, down ...
    reason: str  # why it is drained or down; "" for nothing
    gpus: int
    gpus_in_use: int


class Request(NamedTuple):
    """A job of Run as Slurm is asked for it."""

    name: str
    attempt: int
    user: str
    nodes: int
    gpus: int | None  # of each VM; None for whole VMs
    all_gpus: int  # that a VM has
    minutes: int | None  # None for no limit
    array: str = ""  # the numbers of its tasks, and how many at once: 0-63%8


def jobs() -> list[Entry]:
    """What is in the queue, and what was until lately.

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    said = functools.partial(_said, "squeue", "--noheader", "--array", "--states=all")
    return list(entries(*_asked(said, _FIELDS)))


def entries(text: str, end: str) -> Iterator[Entry]:
    """The jobs of squeue's lines, without those that were never taken."""
    for it in _rows(text, end, _FIELDS):
        if it["State"] == "FAILED" and it["Reason"] in _REFUSED:
            continue
        is_task = it["ArrayTaskID"].isdigit()
        ours = COMMENT.fullmatch(it["Comment"]) if is_users(it["UserName"]) else None
        wants = int(it["NumNodes"]) if it["NumNodes"].isdigit() else 1
        began, sent = _moment(it["StartTime"]), _moment(it["SubmitTime"])
        yield Entry(
            f"{it['ArrayJobID']}_{it['ArrayTaskID']}" if is_task else it["JobID"],
            it["UserName"],
            it["Name"],
            it["State"],
            int(it["ArrayTaskID"]) if is_task else None,
            ours[1] if ours else "",
            int(ours[2]) if ours else 0,
            "" if it["Reason"] == "None" else it["Reason"],
            tuple(hosts(it["NodeList"])),
            wants,
            _gpus(it["tres-per-node"]) * wants or _gpus(it["tres-per-job"]),
            it["TimeLimit"],
            # Of one that waits, that is when it might begin.
            sent if it["State"] in _PENDING else began or sent,
            int(it["PriorityLong"]) if it["PriorityLong"].isdigit() else 0,
        )


def nodes() -> list[Node]:
    """All VMs that Slurm knows.

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    said = functools.partial(_said, "sinfo", "--noheader", "--Node")
    return node_rows(*_asked(said, _NODE_FIELDS))


def node_rows(text: str, end: str) -> list[Node]:
    """The VMs of sinfo's lines, which has each once for each partition."""
    found = {}
    for it in _rows(text, end, _NODE_FIELDS):
        state = it["StateLong"].lower()
        reason = "" if it["Reason"] == "none" else it["Reason"]
        if state.endswith("*"):
            reason = f"it does not answer{reason and f'; {reason}'}"
        total, used = _gpus(it["Gres"]), _gpus(it["GresUsed"])
        found[it["NodeHost"]] = Node(it["NodeHost"], state.rstrip("*~#!%$@^-"), reason, total, used)
    return [found[name] for name in sorted(found)]


def is_users(user: str) -> bool:
    """Whether this user is one of those of Run's jobs."""
    return re.fullmatch(r"aiinfra-job-[0-9]{2}", user) is not None


def submit(request: Request, environment: dict[str, str]) -> None:
    """Have a job begun, as a user of its own.

    Raises:
        OSError: Slurm does not answer.
        Refused: It takes no such job.
    """
    command = ["sbatch", *options(request)]
    try:
        done = subprocess.run(  # noqa: S603 - numbers, and names that were looked at
            command, input=script(request).encode(), capture_output=True,
            env=environment, check=False, timeout=_SECONDS,
        )  # fmt: skip
    except subprocess.SubprocessError as error:
        raise OSError(f"sbatch: {error}") from error
    if done.returncode:
        words = done.stderr.decode("utf-8", "replace").strip().rpartition("failed: ")[2]
        raise OSError(f"sbatch: {words}") if _ABSENT.search(words) else Refused(words)


def options(request: Request) -> list[str]:
    """The options of sbatch for a job of Run."""
    gpus = request.all_gpus if request.gpus is None else request.gpus
    is_whole = request.gpus is None or request.gpus >= request.all_gpus
    # Slurm may shorten one without a limit so that it fits before its VMs end; see `lengthen`.
    limit = f"--time-min={SHORTEST}" if request.minutes is None else f"--time={request.minutes}"
    return [
        "--parsable", "--no-requeue", "--output=/dev/null", "--chdir=/", limit,
        f"--uid={request.user}",
        f"--gid={request.user}",  # else it has that of who asks, which is root
        f"--job-name={request.name}",
        f"--comment=aiinfra:{request.name}:{request.attempt}",
        f"--nodes={request.nodes}",
        *([f"--gpus-per-node={gpus}"] if gpus else []),
        *(["--exclusive", "--mem=0"] if is_whole else []),
        *([f"--array={request.array}"] if request.array else []),
    ]  # fmt: skip


def script(request: Request) -> str:
    """What Slurm runs on the first VM: the same program on each.

    It waits for all, as the head says when one that failed ends the others. Its processes have all
    processors that the job has.
    """
    program = f"/usr/bin/python3 -S -m aiinfra_vm.slurm_step {request.name} {request.attempt}"
    asked = "--ntasks-per-node=1 --kill-on-bad-exit=0 --wait=0 --cpu-bind=none"
    return f"#!/bin/sh\nexec srun {asked} {program}\n"


def cancel(numbers: Iterable[str]) -> None:
    """End jobs, or tasks of arrays; what is over already is no error.

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    wanted = list(numbers)
    if wanted:
        _said("scancel", "--quiet", *wanted)


def lengthen(number: str) -> None:
    """Give one that Slurm has begun with the shortest limit none, as it was asked for.

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    _said("scontrol", "update", f"jobid={number}", "timelimit=UNLIMITED")


def drain(node: str, why: str) -> None:
    """Have nothing new begin on a VM; of one that is drained already, another's reason stays.

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    # Where it were ours, the VM would be back when it joins again, against a person's word.
    asked = ("sinfo", "--noheader", f"--nodes={node}", "--format=%T|%E")
    state, _, reason = _said(*asked).partition("|")
    if "drain" not in state or reason.startswith(slurm_conf.OURS):
        _said("scontrol", "update", f"nodename={node}", "state=drain", f"reason={why}")


def reserve(node: str, begins: float) -> None:
    """Have nothing begin on a VM that would not be over at a moment (Unix epoch).

    Raises:
        OSError: Slurm does not answer, or refuses.
    """
    name = f"reservation=ends-{node}"
    start = f"StartTime={begins:.0f} "
    if start in _said("scontrol", "--oneliner", "show", name, lacking="not found"):
        return
    _said("scontrol", "delete", name, lacking="Requested reservation is invalid")
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(begins))
    _said(
        "scontrol", "create", name, f"nodes={node}", f"starttime={moment}",
        "duration=365-00:00:00", "users=root", "flags=maint,ignore_jobs",
    )  # fmt: skip


def hosts(text: str) -> Iterator[str]:
    """The names that a list of Slurm's stands for, in its order: train-vm-[3,1-2],other-1."""
    for match in re.finditer(r"([^,\[]+)(?:\[([^\]]*)\])?([^,\[]*)", text):
        first, ranges, rest = match.groups()
        if ranges is None:
            yield first + rest
            continue
        for part in ranges.split(","):
            begin, _, end = part.partition("-")
            for number in range(int(begin), int(end or begin) + 1):
                yield f"{first}{number:0{len(begin)}}{rest}"


def _asked(said: Callable[[str], str], fields: Sequence[str]) -> tuple[str, str]:
    """Lines with these fields, and how each of them ends.

    No user can have known that, who may have lines in what they ask for: 24.11 takes `--gres` with
    a newline in the name of the GPU (tried, 2026-11-29), were it not for job_submit.lua.
    """
    end = f"\x1f{secrets.token_hex(8)}"
    return said(f"--Format={','.join(f'{it}:{end}' for it in fields)}"), end


def _rows(text: str, end: str, fields: Sequence[str]) -> Iterator[dict[str, str]]:
    for line in text.split("\n"):
        found = line.split(end)
        # A line is one of ours if it is whole: what users ask for may have anything in it.
        if len(found) == len(fields) + 1:
            # A field without a width is whole, and not padded: a blank in it is its own.
            yield dict(zip(fields, found))


def _gpus(text: str) -> int:
    """How many GPUs a text of Slurm's speaks of: gres/gpu:h100:8, gpu:2(IDX:0-1), N/A."""
    parts = text.split(",") if "(" not in text else re.findall(r"[^,(]+(?:\([^)]*\))?", text)
    found = (
        re.fullmatch(r"(?:gres[/:])?gpu(?:[:=][^:(]*)*?[:=]([0-9]+)(?:\(.*)?", it) for it in parts
    )
    return sum(int(it[1]) for it in found if it)


def _moment(text: str) -> float:
    return float(text) if text.isdigit() else 0.0


def _said(*command: str, lacking: str | None = None) -> str:
    """What a program of Slurm's prints; "" where it says that there is none (`lacking`)."""
    # Moments in one zone, as seconds where it prints them.
    about = {**os.environ, "TZ": "UTC", "SLURM_TIME_FORMAT": "%s"}
    variables = [f"{name}={about[name]}" for name in ("TZ", "SLURM_TIME_FORMAT")]
    try:
        done = programs.ask(["/usr/bin/env", *variables, *command], _SECONDS)
    except subprocess.SubprocessError as error:
        raise OSError(f"{command[0]}: {error}") from error
    words = done.stderr.decode("utf-8", "replace").strip()
    if done.returncode and lacking is not None and lacking in words + done.stdout.decode():
        return ""
    if done.returncode:
        raise OSError(f"{command[0]}: {words or done.returncode}")
    return done.stdout.decode("utf-8", "replace")
