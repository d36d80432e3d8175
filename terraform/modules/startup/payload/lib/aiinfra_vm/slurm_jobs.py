"""The head's part in the jobs of Run: each is put into Slurm's queue, and followed there.

A job is in the queue as `aiinfra:NAME:ATTEMPT`, so a head that knows nothing finds it; one that is
not there and not over is put there, at least once: what runs beside it is ended. Each runs as a
user whom no other in the queue has, so that none reads another's files or environment.
"""

from __future__ import annotations

import math
import sys
import time
import zlib
from typing import TYPE_CHECKING, Iterable

from aiinfra_vm import configuration, jobs, roster, slurm_course, slurm_queue, storage
from aiinfra_vm.job_leader import Reports, asked_for, parsed
from aiinfra_vm.jobs import Course, Spec, State
from aiinfra_vm.slurm_course import Turn, World
from aiinfra_vm.slurm_queue import Entry, Request

if TYPE_CHECKING:
    from types import ModuleType

    from aiinfra_vm.jobs import Report

_FULL = f"Slurm has {slurm_queue.USERS} jobs of Run already, and each has a user of its own"
_AGAIN = 30.0  # seconds until Slurm is asked again for a job that it has refused
_LOOK = 5.0  # seconds between looks at what the VMs say of a job that runs
_MORE = 5
"""Minutes that Slurm gives a job beyond its --time, which its runner keeps to the second: to
unpack its folder before, and to save and to tell of its end after."""
ENVIRONMENT = {
    "PATH": "/opt/conda/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/snap/bin",
    "PYTHONPATH": "/opt/aiinfra/lib",
}
"""What the program of a job begins with, beside Slurm's own variables."""


class SlurmJobs:
    """Takes all jobs through their courses, as long as this VM is the head.

    `queue`: what speaks to Slurm.
    """

    def __init__(
        self, wanted: storage.Folder, shared: storage.Folder, queue: ModuleType = slurm_queue
    ) -> None:
        self._wanted = wanted
        self._shared = shared
        self._queue = queue
        self._index = storage.Watched(wanted, jobs.INDEX)
        self._roster = storage.Watched(shared, roster.OBJECT)
        self._specs: dict[str, Spec] = {}
        self._reports = Reports(shared)
        self._written: dict[str, tuple[bytes, storage.Version]] = {}
        self._courses: dict[str, Course] = {}
        self._looked: dict[str, float] = {}
        self._refused: dict[str, tuple[float, str]] = {}

    def tend(self) -> None:
        """Do what is due.

        Raises:
            OSError: Cloud Storage or Slurm refuses, or does not answer.
            ValueError: A document can't be read.
        """
        # In this order: what has left the queue has told of its end before.
        queue = self._queue.jobs()
        self._index.look()
        self._roster.look()
        if self._index.text is None or self._roster.text is None:
            return
        wanted = dict(jobs.index(self._index.text))
        ours = {it.job for it in queue if it.job and not it.is_over}
        self._cancel(it for it in queue if it.job in ours - set(wanted) and not it.is_over)
        # What a job has sent itself ends with it, else its user would be nobody's next.
        users = {it.user for it in queue if it.job and not it.is_over}
        left = (it for it in queue if slurm_queue.is_users(it.user) and it.user not in users)
        self._cancel(it for it in left if not it.is_over)
        if not wanted:
            return
        known = roster.parse(self._roster.text)
        world = World(queue, known, 0, time.time())
        if any(not self._course(name).state.is_over for name in wanted):
            world = world._replace(joined=len(self._queue.nodes()))
        troubles = []
        for name, is_cancelled in wanted.items():
            try:
                self._tend(name, world, cancelled=is_cancelled)
            except (OSError, ValueError) as error:  # the others are not to wait for it
                troubles.append(f"{name}: {error}")
        if troubles:
            raise OSError("; ".join(troubles))

    def _tend(self, name: str, world: World, *, cancelled: bool) -> None:
        course = self._course(name)
        spec = self._spec(course)
        if isinstance(spec, Course):
            self._write(spec)
            return
        reports = {} if course.state.is_over else self._told(course, world)
        turn = slurm_course.follow(course, spec, reports, world, cancelled=cancelled)
        if turn.submit:
            turn = turn._replace(course=self._submitted(turn, spec, world))
        # Who runs it reads there why it ends.
        self._write(turn.course)
        self._queue.cancel(turn.cancel)
        for number in turn.lengthen:
            self._queue.lengthen(number)

    def _told(self, course: Course, world: World) -> dict[str, Report]:
        """What the VMs say of a job: each look is a list that is paid for."""
        own = [it for it in world.queue if it.job == course.name]
        later = [it for it in own if it.attempt > course.attempt]
        waits = course.state is State.WAITING and later and all(it.is_pending for it in later)
        runs = course.state is State.RUNNING and any(
            it.attempt == course.attempt and not it.is_over for it in own
        )
        is_due = world.now >= self._looked.get(course.name, 0.0) + _LOOK
        # Not late where Slurm says that it is over: who has told of no end by then was lost.
        again = not waits and (is_due or not runs)
        if again:
            self._looked[course.name] = world.now
        return self._reports.of(course.name, again=again)

    def _cancel(self, entries: Iterable[Entry]) -> None:
        self._queue.cancel(it.number for it in entries)

    def _course(self, name: str) -> Course:
        """How far a job is, by what this head has written, or else one before it."""
        if name not in self._courses:
            found = self._shared.read(jobs.course_of(name))
            course = parsed(found[0]) if found else None
            if course is not None and course.name != name:  # somebody has spoiled it
                course = None
            self._written[name] = found or (b"", storage.NOTHING)
            self._courses[name] = course or Course(name, since=time.time())
        return self._courses[name]

    def _write(self, course: Course) -> None:
        text = storage.encoded(course.document())
        before, over = self._written[course.name]
        if text != before:
            # Only over what was read: who is the head no longer writes nothing.
            made = self._shared.write(jobs.course_of(course.name), text, over=over)
            if made is None:
                del self._courses[course.name], self._written[course.name]
                return
            self._written[course.name] = text, made
        self._courses[course.name] = course
        if course.state.is_over:
            self._specs.pop(course.name, None)
            self._reports.forget(course.name)

    def _spec(self, course: Course) -> Spec | Course:
        if course.state.is_over:  # its command is of no use any longer
            return self._specs.get(course.name) or Spec(course.name, ("",), None, 0, None, {}, "")
        if course.name not in self._specs:
            found = asked_for(self._wanted, course)
            if isinstance(found, Course):
                return found
            self._specs[course.name] = found
        return self._specs[course.name]

    def _submitted(self, turn: Turn, spec: Spec, world: World) -> Course:
        """The course of a job that Slurm was asked for."""
        course = turn.course
        moment, words = self._refused.get(course.name, (float("-inf"), ""))
        if world.now < moment + _AGAIN:
            return course._replace(why=words)
        user = user_of(course.name, world.queue)
        if not user:
            return course._replace(why=_FULL)
        request = Request(
            course.name,
            course.attempt + 1,
            user,
            1 if spec.array else spec.nodes or world.known.nnodes,
            spec.gpus,
            _gpus(),
            _minutes(course, spec, world.now),
            _range(turn, spec),
        )
        try:
            self._queue.submit(request, ENVIRONMENT)
        except slurm_queue.Refused as error:
            words = f"Slurm refuses it: {error}"
            self._refused[course.name] = world.now, words
            return course._replace(why=words)
        sys.stdout.write(f"aiinfra: {course.name} is in Slurm's queue, attempt {request.attempt}\n")
        sys.stdout.flush()
        # Two in one turn are not to have one user.
        self._refused.pop(course.name, None)
        taken = Entry(
            "", request.user, course.name, "PENDING", job=course.name, attempt=request.attempt
        )
        world.queue.append(taken)
        return course._replace(why=slurm_course.NEW)


def _gpus() -> int:
    """How many GPUs each VM has."""
    gpus = configuration.value("gpus")
    return int(gpus["count"]) if gpus else 0


def user_of(name: str, queue: Iterable[Entry]) -> str:
    """Who runs a job: the same for each attempt, and nobody whom another job in the queue has.

    "" where all users have one.
    """
    taken = {it.user for it in queue if not it.is_over and it.job != name}
    first = zlib.crc32(name.encode()) % slurm_queue.USERS
    numbers = (number % slurm_queue.USERS for number in range(first, first + slurm_queue.USERS))
    users = [f"aiinfra-job-{number:02}" for number in numbers]
    return next((it for it in users if it not in taken), "")


def _minutes(course: Course, spec: Spec, now: float) -> int | None:
    """How long Slurm lets it run, which counts in whole minutes; None for no limit."""
    if spec.seconds is None:
        return None
    rest = spec.seconds if course.ends is None else max(course.ends - now, 1.0)
    return math.ceil(rest / 60) + _MORE


def _range(turn: Turn, spec: Spec) -> str:
    """The tasks of an array as sbatch wants them; "" for no array."""
    if spec.array is None:
        return ""
    is_all = turn.tasks == tuple(spec.array.indices)
    listed = ",".join(map(str, turn.tasks))
    found = f"{spec.array.first}-{spec.array.last}" if is_all else listed
    return f"{found}%{spec.array.most}" if spec.array.most else found
