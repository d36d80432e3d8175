"""Every agent's part in jobs: begin this VM's share of an attempt, at most once."""

from __future__ import annotations

import json
import subprocess
import time
from typing import TYPE_CHECKING

from aiinfra_vm import job, jobs, storage
from aiinfra_vm.jobs import Course, Phase, Report, State
from aiinfra_vm.peers import put

if TYPE_CHECKING:
    from pathlib import Path

    from aiinfra_vm.members import Member

UNIT = "aiinfra-job.service"


class Unit:
    """The unit that runs a job; another stands in for it where there is no systemd."""

    def __init__(self, asked: Path = job.ASKED) -> None:
        self.asked = asked

    def start(self, course: Course, member: Member) -> None:
        """Run this VM's part of an attempt."""
        about = {"name": member.name, "instance_id": member.instance_id}
        put(self.asked, json.dumps({**about, "course": course.document()}), 0o600)
        if _systemctl("start", "--no-block", UNIT)[0]:
            raise OSError(f"{UNIT} can't be started")

    def is_active(self) -> bool:
        """Whether it runs, or is about to.

        Raises:
            OSError: systemd does not answer, as while it is upgraded: it says nothing then.
        """
        state = _systemctl("is-active", UNIT)[1]
        if not state:
            raise OSError("systemd does not answer")
        return state in {"active", "activating", "deactivating"}


def _systemctl(*what: str) -> tuple[int, str]:
    done = subprocess.run(  # noqa: S603 - constants
        ["systemctl", *what],  # noqa: S607 - the system's own
        stdout=subprocess.PIPE,
        check=False,
    )
    return done.returncode, done.stdout.decode().strip()


class JobNode:
    """This VM's share of jobs."""

    def __init__(self, shared: storage.Folder, member: Member, unit: Unit, disk: Path) -> None:
        self._shared = shared
        self._member = member
        self._unit = unit
        self._disk = disk
        self._order = storage.Watched(shared, jobs.ORDER)

    def tend(self) -> bool:
        """Do what is due; whether a job is under way, so that there is soon more.

        Raises:
            OSError: Cloud Storage or systemd refuses, or does not answer.
            ValueError: The order can't be read.
        """
        self._order.look()
        if self._order.text is None:
            return False
        course = jobs.course(self._order.text)
        if course.node(self._member.name, self._member.instance_id) is not None:
            self._follow(course)
        return not course.state.is_over

    def _follow(self, course: Course) -> None:
        mark = job.begun(self._disk, course.name, course.attempt)
        if mark.exists():
            if not course.state.is_over and not self._unit.is_active():
                self._tell_if_cut_off(course)
            return
        if course.state is State.PREPARING and not self._unit.is_active():
            mark.parent.mkdir(parents=True, exist_ok=True)
            # From here on it has been begun, whatever happens.
            mark.touch()
            self._unit.start(course, self._member)
        elif course.state is State.STOPPING:
            self._tell_if_cut_off(course, "it was called off before it began here")

    def _tell_if_cut_off(self, course: Course, called_off: str = "") -> None:
        """Say of a part that a reboot, or a kill of its runner, ended that it did."""
        name = jobs.report_of(course.name, self._member.name)
        found = self._shared.read(name)
        told = jobs.report(found[0]) if found else None
        if told and told.attempt == course.attempt and told.is_over:
            return
        cut_off = Report(
            course.attempt,
            self._member.instance_id,
            Phase.ENDED,
            why=called_off or "the VM, or what runs the job on it, was restarted meanwhile",
            told=bool(called_off),
            at=time.time(),
        )
        self._shared.write(name, cut_off.document())
