"""The one program of a VM that looks at the folder which the cluster's VMs share.

It says that its VM lives, reads who has which rank and writes that to this VM's disk, and does the
tasks that it is asked for. On one VM, which leads, it also decides who has which rank.
"""

from __future__ import annotations

import argparse
import random
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, NamedTuple

from aiinfra_vm import (
    configuration,
    disk_health,
    gpu_health,
    idle,
    job,
    job_leader,
    job_node,
    job_room,
    jobs,
    looks,
    members,
    node_ssh,
    notices,
    peers,
    report,
    roster,
    storage,
    tasks,
)
from aiinfra_vm.leadership import Leadership
from aiinfra_vm.lease import Lease
from aiinfra_vm.task_runner import KEPT, Runner

if TYPE_CHECKING:
    from aiinfra_vm.members import Member
    from aiinfra_vm.slurm_ends import Ends

_AT_ONCE = 16  # members that the leader reads at the same time
_TICK = 0.5  # seconds between looks at what is due


class Pace(NamedTuple):
    """Seconds between what the agent does. Each VM has its own moments."""

    beat: float = 60.0  # Heartbeats. Each is one write of an object that only this VM writes.
    gone: float = 200.0  # without a heartbeat for so long, a VM is gone
    look: float = 5.0  # looks at roster and task, until all ranks have somebody who is there
    idle: float = 15.0  # looks from then on
    jobs: float = 5.0  # looks for a job, and for how far it is
    job: float = 1.0  # looks while one is under way, but does not run yet
    lead: float = 15.0  # what the leader does: one list, and saying that it leads
    lease: float = 30.0  # looks of all others at who leads
    expiry: float = 100.0  # without word for so long, the leader is gone

    def times(self, factor: float) -> Pace:
        """All of them, longer or shorter."""
        return Pace(*(seconds * factor for seconds in self))


class Leader:
    """Decides who has which rank, as long as this VM leads."""

    def __init__(self, folder: storage.Folder, member: Member, pace: Pace) -> None:
        self._folder = folder
        self._pace = pace
        self._leadership = Leadership(folder, member, pace.expiry)
        self._watch = members.Watch(pace.gone)
        self._known: dict[str, tuple[int, Member | None]] = {}
        self._size = storage.Watched(folder, roster.GROUP)

    @property
    def leads(self) -> bool:
        """Whether this VM leads, as far as it knows."""
        return self._leadership.held

    def stand(self) -> float:
        """Do the leader's part, or see whether there is a leader; seconds until the next time.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
            ValueError: The number of VMs can't be read.
        """
        led = self.leads
        # Whoever does not lead, or can't look, watches nobody: silence counts from the next look.
        watch, self._watch = self._watch, members.Watch(self._pace.gone)
        if not self._leadership.hold():
            return self._pace.lease
        if not led:
            _say("this VM gives out the ranks")
        self._size.look()
        listed = list(self._folder.list(members.FOLDER))
        self._watch = watch
        self._decide(listed)
        return self._pace.lead

    def resign(self) -> None:
        """Leave it to another VM.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
        """
        self._leadership.resign()

    def _decide(self, listed: list[storage.Version]) -> None:
        living, gone = self._watch.look(listed, time.monotonic())
        for version in gone:
            _say(f"{version.name} has not been heard of for {self._pace.gone:g} seconds")
            self._folder.remove(version)
        if self._size.text is None:
            return
        nnodes = roster.size(self._size.text)
        found = self._folder.read(roster.OBJECT)
        before = _parsed(found[0]) if found else None
        silent = report.now(ago=self._pace.gone)
        after = roster.seated(before, self._read(living), nnodes, silent)
        if after is not before:
            # Only over what was read: who has lost the lease meanwhile writes nothing.
            made = self._folder.write(
                roster.OBJECT, after.document(), over=found[1] if found else storage.NOTHING
            )
            there = sum(seat.present for seat in after.seats)
            late = "" if made else ", but another VM was faster"
            _say(f"roster {after.generation}: {there} of {nnodes} VMs{late}")

    def _read(self, living: list[storage.Version]) -> list[Member]:
        """What the members say, each read once."""
        unread = [it for it in living if self._known.get(it.name, (0,))[0] != it.generation]
        if unread:
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                read = list(pool.map(self._one, unread))
            self._known.update(zip((it.name for it in unread), read))
        self._known = {it.name: self._known[it.name] for it in living}
        return [member for _, member in self._known.values() if member is not None]

    def _one(self, version: storage.Version) -> tuple[int, Member | None]:
        found = self._folder.read(version.name)
        if found is None:
            return 0, None
        name = version.name[len(members.FOLDER) :]
        try:
            return version.generation, members.parse(found[0], name[: -len(".json")])
        except ValueError as error:
            _say(f"{version.name}: {error}")
            return version.generation, None


class Agent:
    """All that the agent of one VM does, until it is stopped."""

    def __init__(  # noqa: PLR0913, PLR0917 - all that it stands on
        self,
        folder: storage.Folder,
        wanted: storage.Folder,
        member: Member,
        config: dict[str, Any],
        pace: Pace,
        disk: Path = Path("/"),
        unit: job_node.Unit | None = None,
        health: Callable[[], members.Health] = members.Health,
        startup: Callable[[], str | None] = lambda: None,
    ) -> None:
        self._disk = disk
        self._member = member
        self._slots = peers.Slots.of(config)
        self._pace = pace
        # A job that asks for what an older version can't read would begin there without it.
        knows = {"knows": " ".join(jobs.Spec._fields)}
        self._heart = members.Heartbeat(folder, member, knows)
        self._health = health
        self._startup = startup
        self._leader = Leader(folder, member, pace)
        self._roster = storage.Watched(folder, roster.OBJECT)
        self._written = 0  # the generation of the roster that is on the disk
        self._complete = False
        self._task = storage.Watched(folder, tasks.OBJECT)
        self._begun = True  # whatever task there is has been begun, or is no task
        self._runner = Runner(folder, member.name, member.instance_id, disk / KEPT)
        state = config.get("ray") and config["state"]
        head = Lease(storage.Folder(state["bucket"], f"{state['folder']}/ray")) if state else None
        self._jobs = job_leader.JobLeader(wanted, folder, head)
        self._job = job_node.JobNode(folder, member, unit or job_node.Unit(), disk)
        self._known: roster.Roster | None = None
        self._stopping = threading.Event()
        self._node_ssh = bool(config.get("node_ssh"))
        self._has_job = False
        # With Slurm its head leads the jobs, and Slurm begins this VM's share.
        self._ends: Ends | None = None
        if config.get("slurm"):
            from aiinfra_vm import slurm_ends  # noqa: PLC0415 - only VMs with Slurm have it

            self._ends = slurm_ends.Ends(member.name, notices.run_ends())
        self._folder = folder
        self._index = storage.Watched(wanted, jobs.INDEX)
        self._idle = idle.of(folder, member.name, config)

    def stop(self) -> None:
        """End `run`, soon."""
        self._stopping.set()

    def run(self) -> None:
        """Do what is due, over and over, until stopped."""
        duties: list[Callable[[], float]] = [
            self._beat, self._leader.stand, self._read_roster, self._read_task, self._tend,
            self._look_idle,
        ]  # fmt: skip
        if self._ends is None:
            duties += [self._lead_jobs, self._follow_job]
        else:
            self._ends.watch()
            home = self._disk / job.HOME.relative_to("/")
            room = threading.Thread(target=job_room.keep, args=(home, self._folder), daemon=True)
            room.start()
            duties.append(self._tell_end)
        due = [0.0] * len(duties)
        while not self._stopping.is_set():
            for number, duty in enumerate(duties):
                if time.monotonic() < due[number]:
                    continue
                seconds = self._tried(duty)
                # Not all VMs at the same moments.
                due[number] = time.monotonic() + seconds * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
            self._stopping.wait(min(_TICK, self._pace.look))
        self._runner.stop()
        self._tried(self._resigned)

    def _tried(self, duty: Callable[[], float]) -> float:
        try:
            return duty()
        except (OSError, ValueError) as error:
            _say(f"{duty.__name__.strip('_')}: {error}")
            return self._pace.idle

    def _resigned(self) -> float:
        self._leader.resign()
        return 0.0

    def _beat(self) -> float:
        self._heart.beat(self._health(), self._startup())
        return self._pace.beat

    def _read_roster(self) -> float:
        self._roster.look()
        if self._roster.text is not None and self._roster.generation != self._written:
            found = roster.parse(self._roster.text)
            self._complete, self._known = found.complete, found
            if self._node_ssh:
                node_ssh.admit(found, self._disk / node_ssh.CONFIGURATION.lstrip("/"))
            # Last, as whoever waits for the others looks at this.
            peers.write(found, self._member.name, self._slots, self._disk / peers.FOLDER)
            self._written = self._roster.generation
        return self._pace.idle if self._complete else self._pace.look

    def _read_task(self) -> float:
        if self._task.look():
            self._begun = self._task.text is None
        if not self._begun and self._task.text is not None:
            try:
                task = tasks.parse(self._task.text)
            except ValueError:
                self._begun = True
                raise
            self._runner.begin(task)
            self._begun = True
            if self._leader.leads:
                self._runner.clean(task.id)
        return self._pace.idle if self._complete else self._pace.look

    def _tend(self) -> float:
        self._runner.tend()
        return _TICK

    def _lead_jobs(self) -> float:
        leads = self._leader.leads and self._known is not None
        is_active = leads and self._known is not None and self._jobs.tend(self._known)
        self._has_job = bool(is_active) or self._has_job
        return self._pace.job if is_active else self._pace.jobs

    def _follow_job(self) -> float:
        is_active = self._job.tend()
        self._has_job = is_active or self._has_job
        return self._pace.job if is_active else self._pace.jobs

    def _tell_end(self) -> float:
        if self._ends is not None:
            self._ends.tend()
        return self._pace.jobs

    def _is_job_wanted(self) -> bool:
        """Whether a job of Run is not over: with Slurm, of each its course is told."""
        self._index.look()
        found = jobs.index(self._index.text) if self._index.text is not None else []
        courses = (self._folder.read(jobs.course_of(name)) for name, _ in found)
        parsed = (job_leader.parsed(it[0]) if it else None for it in courses)
        return any(course is None or not course.state.is_over for course in parsed)

    def _look_idle(self) -> float:
        if self._idle is None:
            return self._pace.gone
        self._has_job = self._has_job or (self._ends is not None and self._is_job_wanted())
        # What was seen since the last look counts, and what is seen now does next time.
        has_job, self._has_job = self._has_job, False
        return self._idle.look(has_job=has_job)


def _parsed(text: bytes) -> roster.Roster | None:
    try:
        return roster.parse(text)
    except ValueError as error:
        _say(f"the roster can't be read, and is recreated: {error}")
        return None


def _all(found: list[looks.Look]) -> tuple[str, ...]:
    return looks.few(words for look in found for words in look.found)


def _say(what: str) -> None:
    sys.stdout.write(f"aiinfra: {what}\n")
    sys.stdout.flush()


def main() -> None:
    """Run this VM's agent until a SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pace", type=float, default=1.0, help="a factor on all times")
    options = parser.parse_args()
    config = configuration.load()
    keys = node_ssh.published() if config.get("node_ssh") else ("", ())
    member = members.myself(*keys)
    gpus, disks = gpu_health.watch(config), disk_health.watch(config)
    folders, pace = (storage.shared(), storage.wanted()), Pace().times(options.pace)
    agent = Agent(
        *folders,
        member,
        config,
        pace,
        health=lambda: members.Health(_all(gpus), _all(disks)),
        startup=report.done,
    )
    signal.signal(signal.SIGTERM, lambda *_: agent.stop())
    agent.run()


if __name__ == "__main__":
    main()
