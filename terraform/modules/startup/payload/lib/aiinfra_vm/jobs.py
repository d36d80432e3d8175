"""The jobs of a cluster, as data: what the tool asks for, and how far the VMs are with it.

What is to be done stands in the folder `jobs/`, which VMs can read and not write: `index.json` has
the jobs that are not over, in their order, and `NAME.json` a job. How far it is stands in `vms/`,
which any program on a VM can write: so it says who, when and how far, and never what. A job runs
as a user of its own, who is nobody's administrator.
"""

from __future__ import annotations

import enum
import re
from types import MappingProxyType
from typing import Any, Mapping, NamedTuple

from aiinfra_vm import members, roster, storage

INDEX = "index.json"
"""In the folder `jobs/`: `{"jobs": [{"name": "train-1", "cancelled": false}]}`."""
ORDER = "job.json"
"""In the folder `vms/`: the course of the one job that is under way; with Slurm there is none."""

USER = "aiinfra-job"
"""Who a job runs as; the step `agent` makes it."""

_NAME = re.compile(r"[a-z](?:[-a-z0-9]{0,26}[a-z0-9])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
# No option of docker's: it begins with a letter or a digit.
_IMAGE = re.compile(r"[A-Za-z0-9][-A-Za-z0-9._:/@]{0,511}")
_SECRET = re.compile(r"projects/[^/\s]+/secrets/[A-Za-z0-9_-]+/versions/(?:latest|[0-9]+)")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BUCKET = re.compile(r"[a-z0-9][-a-z0-9_.]{1,220}[a-z0-9]")
# Nothing of the system is there, and nobody but root makes folders or links there.
_PATH = re.compile(r"/mnt/(?!localssd$)[A-Za-z0-9_][-A-Za-z0-9_.]{0,99}")
_MOST_SECONDS = 10**8
_MOST_TASKS = 1000
_LAST_TASK = 1_000_000


def course_of(name: str) -> str:
    """Where in `vms/` the course of a job that is over stands; with Slurm, that of each."""
    return f"jobs/{name}/course.json"


def report_of(name: str, vm: str) -> str:
    """Where in `vms/` a VM says how far it is."""
    return f"{reports_of(name)}{vm}.json"


def reports_of(name: str) -> str:
    """Where in `vms/` the VMs of a job say that."""
    return f"jobs/{name}/nodes/"


def task(index: int) -> str:
    """What stands for the name of a VM where a task of an array says how far it is."""
    return f"task-{index}"


def log_of(name: str, attempt: int, rank: int) -> str:
    """Where in `vms/` the pieces of a log stand, each named by where in the log it begins."""
    return f"jobs/{name}/logs/{attempt}/{rank}/"


class Mount(NamedTuple):
    """A bucket that is mounted for a job."""

    bucket: str
    path: str
    read_only: bool


class Array(NamedTuple):
    """The tasks of a job that is many: each has a number, from the first to the last."""

    first: int
    last: int
    most: int | None = None  # how many run at once; None for as many as there is room for

    @property
    def indices(self) -> range:
        """The numbers of the tasks."""
        return range(self.first, self.last + 1)


class Spec(NamedTuple):
    """What the tool asks for."""

    name: str  # no other job of this cluster has it
    command: tuple[str, ...]  # the program and its arguments; no shell reads them
    nodes: int | None  # how many VMs; None for all
    restarts: int  # how often it is begun again after a failure
    # how long an attempt may last together with those before; None for no limit
    seconds: int | None
    env: dict[str, str]  # more of its environment
    files: str  # the SHA-256 of its folder's archive; "" for none
    image: str = ""  # the container image that it runs in; "" for none
    # after which failures of its own: "lost" for none, "any" for all, "" after a long run
    restart_on: str = ""
    secrets: Mapping[str, str] = MappingProxyType({})  # variable -> the path of a version
    mounts: tuple[Mount, ...] = ()
    gpus: int | None = None  # how many of each VM; None for all: whole VMs
    array: Array | None = None


class State(enum.Enum):
    """How far a job is."""

    WAITING = "waiting"
    PREPARING = "preparing"
    RUNNING = "running"
    STOPPING = "stopping"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def is_over(self) -> bool:
        """Whether nothing follows."""
        return self in (State.SUCCEEDED, State.FAILED, State.CANCELLED)


class Node(NamedTuple):
    """A VM of an attempt; its rank is that in this job."""

    rank: int
    name: str
    instance_id: str
    address: str


class Failure(NamedTuple):
    """What made an attempt fail."""

    vm: str  # the VM that failed first
    rank: int
    # the program's exit code, as a shell has it; None where it was ended from outside
    code: int | None
    cause: str  # what is known of the reason, in words; "" for nothing
    tail: str  # the last that it said
    final: bool  # whether no other attempt follows
    # how many seconds a program had run that failed without others; None where a machine was lost
    ran: float | None = None


class Course(NamedTuple):
    """How far a job is. The VM that leads writes it, and the others act by it."""

    name: str  # the job's
    state: State = State.WAITING  # how far it is
    # what it waits for, what looks wrong while it runs, or why it was ended; "" for nothing
    why: str = ""
    attempt: int = 0  # the number of the attempt; 0 before the first
    failures: int = 0  # how many attempts have failed
    nodes: tuple[Node, ...] = ()  # the VMs of the attempt, by rank
    since: float = 0.0  # when it came to this state (Unix epoch)
    began: float | None = None  # when its program first began; None if it has not
    ends: float | None = None  # when its time is over; None for never
    failure: Failure | None = None  # what made the last attempt fail; None for nothing
    events: tuple[str, ...] = ()  # what has happened to it, a line each
    # of an array, how many are waiting, running, succeeded, failed, cancelled; None for no array
    tasks: Mapping[str, int] | None = None
    # how busy its GPUs were within the last ten minutes, in percent; None if not known
    gpu_use: int | None = None

    def node(self, name: str, instance_id: str) -> Node | None:
        """A VM's part; None for a VM that has none."""
        found = (it for it in self.nodes if (it.name, it.instance_id) == (name, instance_id))
        return next(found, None)

    def document(self) -> dict[str, Any]:
        """It as JSON has it."""
        return {
            **self._asdict(),
            "state": self.state.value,
            "nodes": [node._asdict() for node in self.nodes],
            "failure": self.failure and self.failure._asdict(),
        }


class Phase(enum.Enum):
    """How far one VM is with its part of an attempt."""

    READY = "ready"
    REFUSED = "refused"  # it can't begin, and no other attempt could
    RUNNING = "running"
    ENDED = "ended"


_AT_END = (Phase.ENDED, Phase.REFUSED)


class Doubt(enum.Enum):
    """What one VM sees of an attempt that looks like a waste of its machines."""

    ALONE = "alone"  # no process of it has met one on another VM
    NO_GPU = "no-gpu"  # none computes on a GPU
    SOCKETS = "sockets"  # NCCL does not use the network of the GPUs


class Report(NamedTuple):
    """What one VM says of its part."""

    attempt: int
    instance_id: str  # the VM's number
    phase: Phase  # how far it is
    code: int | None = None  # the program's exit code; None if it has none
    why: str = ""  # what ended or kept it, if that was not the program itself
    told: bool = False  # whether the leader had it ended
    final: bool = False  # whether no other attempt may follow
    cause: str = ""  # what is known of the reason, in words
    tail: str = ""  # the last that it said
    at: float = 0.0  # when it said so, and so when its program ended (Unix epoch)
    size: int = 0  # how many bytes the program has said in all
    # how many seconds the program has run; None if it has not, or if a GPU broke meanwhile
    ran: float | None = None
    doubts: tuple[Doubt, ...] = ()
    gpu_use: int | None = None  # how busy this VM's GPUs were, as a course has it
    # its rank, where Slurm gives them out: in an order that squeue does not show
    rank: int | None = None

    @property
    def is_over(self) -> bool:
        """Whether nothing of this part runs, or will."""
        return self.phase in _AT_END

    @property
    def is_good(self) -> bool:
        """Whether the program has ended as it should."""
        return self.phase is Phase.ENDED and self.code == 0 and not self.why

    def document(self) -> dict[str, Any]:
        """It as JSON has it."""
        doubts = [it.value for it in self.doubts]
        return {**self._asdict(), "phase": self.phase.value, "doubts": doubts}


def index(text: bytes) -> list[tuple[str, bool]]:
    """The jobs that are not over, as far as the tool knows: name, and whether it is cancelled.

    Raises:
        ValueError: It is no index.
    """
    jobs = _object(text).get("jobs")
    if not isinstance(jobs, list) or not all(isinstance(job, dict) for job in jobs):
        raise ValueError("an index has jobs")
    return [(members.matched(_NAME, job.get("name")), job.get("cancelled") is True) for job in jobs]


def spec(text: bytes, name: str) -> Spec:
    """The job that an object of this name holds.

    Raises:
        ValueError: It is none.
    """
    found = _object(text)
    if found.get("name") != name:
        raise ValueError(f"the object of {name} speaks of another job")
    command, env = found.get("command"), found.get("env", {})
    if not isinstance(command, list) or not command or not isinstance(env, dict):
        raise ValueError("a job has a command, and an environment")
    nodes, seconds = found.get("nodes"), found.get("seconds")
    return Spec(
        members.matched(_NAME, name),
        tuple(_word(word) for word in command),
        None if nodes is None else roster.whole(nodes, 1, 10_000),
        roster.whole(found.get("restarts", 0), 0, 10_000),
        None if seconds is None else roster.whole(seconds, 1, _MOST_SECONDS),
        {members.matched(_VARIABLE, key): _word(value) for key, value in env.items()},
        members.matched(_SHA256, found["files"]) if found.get("files") else "",
        members.matched(_IMAGE, found["image"]) if found.get("image") else "",
        _word(found.get("restart_on", "")),
        _secrets(found.get("secrets") or {}),
        tuple(_mount(it) for it in found.get("mounts") or ()),
        None if found.get("gpus") is None else roster.whole(found["gpus"], 1, 1000),
        None if found.get("array") is None else _array(found["array"]),
    )


def course(text: bytes) -> Course:
    """The course that an object holds.

    Raises:
        ValueError: It is none.
    """
    found = _object(text)
    failure = found.get("failure")
    return Course(
        members.matched(_NAME, found.get("name")),
        State(found.get("state")),
        str(found.get("why", "")),
        roster.whole(found.get("attempt", 0), 0, 10**6),
        roster.whole(found.get("failures", 0), 0, 10**6),
        tuple(_node(node) for node in _listed(found.get("nodes"))),
        _moment(found.get("since")) or 0.0,
        _moment(found.get("began")),
        _moment(found.get("ends")),
        None if failure is None else _failure(failure),
        tuple(str(event) for event in _listed(found.get("events"))),
        None if found.get("tasks") is None else _tasks(found["tasks"]),
        _percent(found),
    )


def report(text: bytes) -> Report:
    """The report that an object holds.

    Raises:
        ValueError: It is none.
    """
    found = _object(text)
    code = found.get("code")
    return Report(
        roster.whole(found.get("attempt"), 1, 10**6),
        str(found.get("instance_id")),
        Phase(found.get("phase")),
        None if code is None else roster.whole(code, 0, 255),
        str(found.get("why", "")),
        found.get("told") is True,
        found.get("final") is True,
        str(found.get("cause", "")),
        str(found.get("tail", "")),
        _moment(found.get("at")) or 0.0,
        roster.whole(found.get("size", 0), 0, 2**53),
        _moment(found.get("ran")),
        tuple(it for it in Doubt if it.value in _listed(found.get("doubts"))),
        _percent(found),
        rank=None if found.get("rank") is None else roster.whole(found["rank"], 0, 10_000),
    )


def _percent(found: Mapping[str, Any]) -> int | None:
    use = found.get("gpu_use")
    return None if use is None else roster.whole(use, 0, 100)


def _object(text: bytes) -> dict[str, Any]:
    found = storage.decoded(text)
    if not isinstance(found, dict):
        raise ValueError("it is no object")  # noqa: TRY004 - one error for all that is wrong
    return found


def _listed(value: Any) -> list[Any]:
    if not isinstance(value or [], list):
        raise ValueError("not a list")  # noqa: TRY004 - one error for all that is wrong
    return value or []


def _word(value: object) -> str:
    if not isinstance(value, str) or "\0" in value:
        raise ValueError("not a text without zero bytes")
    return value


def _secrets(found: object) -> dict[str, str]:
    if not isinstance(found, dict):
        raise ValueError("secrets are an object")  # noqa: TRY004 - one error for all that is wrong
    return {
        members.matched(_VARIABLE, key): members.matched(_SECRET, value)
        for key, value in found.items()
    }


def _mount(found: Any) -> Mount:
    if not isinstance(found, dict):
        raise ValueError("a mount is an object")  # noqa: TRY004 - one error for all that is wrong
    bucket = members.matched(_BUCKET, found.get("bucket"))
    path = members.matched(_PATH, found.get("path"))
    return Mount(bucket, path, found.get("read_only") is True)


def _array(found: Any) -> Array:
    if not isinstance(found, dict):
        raise ValueError("an array is an object")  # noqa: TRY004 - one error for all that is wrong
    first = roster.whole(found.get("first"), 0, _LAST_TASK)
    last = roster.whole(found.get("last"), first, min(first + _MOST_TASKS - 1, _LAST_TASK))
    most = found.get("most")
    return Array(first, last, None if most is None else roster.whole(most, 1, _MOST_TASKS))


def _tasks(found: Any) -> dict[str, int]:
    if not isinstance(found, dict):
        raise ValueError("tasks are an object")  # noqa: TRY004 - one error for all that is wrong
    return {str(state): roster.whole(number, 0, _MOST_TASKS) for state, number in found.items()}


def _moment(value: object) -> float | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("a moment is a number")  # noqa: TRY004 - one error for all
    if not abs(value) < 2**53:  # nor is JSON's NaN one
        raise ValueError("no moment is so far away")
    return float(value)


def _node(found: Any) -> Node:
    member = members.Member.of({**found, "boot": ""} if isinstance(found, dict) else None)
    rank = roster.whole(found.get("rank"), 0, 10_000)
    return Node(rank, member.name, member.instance_id, member.address)


def _failure(found: Any) -> Failure:
    if not isinstance(found, dict):
        raise ValueError("a failure is an object")  # noqa: TRY004 - one error for all that is wrong
    code = found.get("code")
    return Failure(
        str(found.get("vm", "")),
        roster.whole(found.get("rank", 0), 0, _LAST_TASK),
        None if code is None else roster.whole(code, 0, 255),
        str(found.get("cause", "")),
        str(found.get("tail", "")),
        found.get("final") is True,
        _moment(found.get("ran")),
    )
