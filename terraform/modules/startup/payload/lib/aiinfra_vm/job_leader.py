"""The leader's part in jobs: which one is next, and how far it is."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiinfra_vm import job_course, jobs, storage
from aiinfra_vm.jobs import Course, Report, Spec, State

if TYPE_CHECKING:
    from aiinfra_vm.lease import Lease
    from aiinfra_vm.roster import Roster


class JobLeader:
    """Takes one job after the other through its course, as long as this VM leads.

    `head`: who is Ray's head, on which jobs run then; None where there is no Ray.
    """

    def __init__(
        self, wanted: storage.Folder, shared: storage.Folder, head: Lease | None = None
    ) -> None:
        self._wanted = wanted
        self._shared = shared
        self._head = head
        self._index = storage.Watched(wanted, jobs.INDEX)
        self._over: set[str] = set()
        self._spec: Spec | None = None
        self._reports: dict[str, tuple[int, Report | None]] = {}

    def tend(self, known: Roster) -> bool:
        """Do what is due; whether a job is under way, so that there is soon more.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
            ValueError: A document can't be read.
        """
        self._index.look()
        wanted = [] if self._index.text is None else jobs.index(self._index.text)
        found = self._shared.read(jobs.ORDER)
        course = _parsed(found[0]) if found else None
        over = found[1] if found else storage.NOTHING
        now = course.name if course is not None and not course.state.is_over else ""
        self._drop([name for name, off in wanted if off and name != now])
        if course is None or course.state.is_over:
            name = self._next(wanted)
            if name is None:
                return False
            # More than there ever was: VMs begin each attempt once.
            course = Course(name, attempt=self._last_attempt(name), since=time.time())
        after = self._followed(course, known, cancelled=dict(wanted).get(course.name, True))
        if after.state.is_over:
            # First, as this is what outlives the next job.
            self._shared.write(jobs.course_of(after.name), after.document())
            self._over.add(after.name)
        text = storage.encoded(after.document())
        if found is None or found[0] != text:
            # Only over what was read: who has lost the lease meanwhile writes nothing.
            self._shared.write(jobs.ORDER, text, over=over)
        return True

    def _drop(self, cancelled: list[str]) -> None:
        """Those that were cancelled before their turn are over."""
        for name in cancelled:
            if name not in self._over and self._shared.read(jobs.course_of(name)) is None:
                gone = Course(name, State.CANCELLED, "it was cancelled", since=time.time())
                self._shared.write(jobs.course_of(name), gone.document())
            self._over.add(name)

    def _next(self, wanted: list[tuple[str, bool]]) -> str | None:
        for name, _ in wanted:
            if name not in self._over and self._shared.read(jobs.course_of(name)) is None:
                return name
            self._over.add(name)
        return None

    def _followed(self, course: Course, known: Roster, *, cancelled: bool) -> Course:
        if self._spec is None or self._spec.name != course.name:
            found = self._wanted.read(f"{course.name}.json")
            self._reports = {}
            if found is None:  # not one of the tool's
                return course._replace(state=State.CANCELLED, why="nobody asked for this job")
            try:
                self._spec = jobs.spec(found[0], course.name)
            except ValueError as error:  # spoiled, or of a newer version: others wait behind it
                why = f"what was asked for can't be read: {error}"
                return course._replace(state=State.FAILED, why=why, since=time.time())
        reports = self._told(course.name) if course.nodes else {}
        waits = course.state is State.WAITING
        host = self._host(self._head) if self._head and waits else None
        return job_course.follow(
            course, self._spec, known, reports, time.time(), cancelled=cancelled, host=host
        )

    def _host(self, lease: Lease) -> str:
        head = lease.read()
        return head.claim.instance_id if head else ""

    def _last_attempt(self, name: str) -> int:
        return max((report.attempt for report in self._told(name).values()), default=0)

    def _told(self, name: str) -> dict[str, Report]:
        """What VMs say of a job; each object is read once."""
        prefix = jobs.reports_of(name)
        known, self._reports = self._reports, {}
        for version in self._shared.list(prefix):
            vm = version.name[len(prefix) : -len(".json")]
            before = known.get(vm)
            is_known = before is not None and before[0] == version.generation
            self._reports[vm] = before if before and is_known else self._read(version)
        return {vm: found for vm, (_, found) in self._reports.items() if found is not None}

    def _read(self, version: storage.Version) -> tuple[int, Report | None]:
        found = self._shared.read(version.name)
        try:
            return version.generation, jobs.report(found[0]) if found else None
        except ValueError:  # somebody has spoiled it
            return version.generation, None


def _parsed(text: bytes) -> Course | None:
    try:
        return jobs.course(text)
    except ValueError:
        return None  # somebody has spoiled it, and it is begun again
