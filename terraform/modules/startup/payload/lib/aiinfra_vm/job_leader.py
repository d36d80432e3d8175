"""The leader's part in jobs: which one is next, and how far it is."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from aiinfra_vm import job_course, jobs, storage
from aiinfra_vm.jobs import Course, Report, Spec, State

if TYPE_CHECKING:
    from aiinfra_vm.lease import Lease
    from aiinfra_vm.roster import Roster

_AT_ONCE = 16  # reports that are read at the same time


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
        self._reports = Reports(shared)

    def tend(self, known: Roster) -> bool:
        """Do what is due; whether a job is under way, so that there is soon more.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
            ValueError: A document can't be read.
        """
        self._index.look()
        wanted = [] if self._index.text is None else jobs.index(self._index.text)
        found = self._shared.read(jobs.ORDER)
        course = parsed(found[0]) if found else None
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
            self._reports.forget(after.name)
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
            found = asked_for(self._wanted, course)
            if isinstance(found, Course):
                return found
            self._spec = found
        reports = self._reports.of(course.name) if course.nodes else {}
        waits = course.state is State.WAITING
        host = self._host(self._head) if self._head and waits else None
        return job_course.follow(
            course, self._spec, known, reports, time.time(), cancelled=cancelled, host=host
        )

    def _host(self, lease: Lease) -> str:
        head = lease.read()
        return head.claim.instance_id if head else ""

    def _last_attempt(self, name: str) -> int:
        return max((report.attempt for report in self._reports.of(name).values()), default=0)


class Reports:
    """What VMs say of jobs; each object is read once."""

    def __init__(self, shared: storage.Folder) -> None:
        self._shared = shared
        self._known: dict[str, dict[str, tuple[int, Report | None]]] = {}

    def of(self, name: str, *, again: bool = True) -> dict[str, Report]:
        """Those of a job, by VM or by task; as they were (not `again`), if that is known."""
        if again or name not in self._known:
            self._look(name)
        return {own: it for own, (_, it) in self._known[name].items() if it is not None}

    def _look(self, name: str) -> None:
        prefix = jobs.reports_of(name)
        known = self._known.get(name, {})
        listed = {it.name[len(prefix) : -len(".json")]: it for it in self._shared.list(prefix)}
        same = {
            own for own, it in listed.items() if own in known and known[own][0] == it.generation
        }
        unread = [own for own in listed if own not in same]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            read = dict(zip(unread, pool.map(lambda own: self._read(listed[own]), unread)))
        self._known[name] = {own: known[own] if own in same else read[own] for own in listed}

    def forget(self, name: str) -> None:
        """Keep nothing of a job that is over."""
        self._known.pop(name, None)

    def _read(self, version: storage.Version) -> tuple[int, Report | None]:
        found = self._shared.read(version.name)
        try:
            return version.generation, jobs.report(found[0]) if found else None
        except ValueError:  # somebody has spoiled it
            return version.generation, None


def parsed(text: bytes) -> Course | None:
    """The course that an object holds; None where somebody has spoiled it: it is begun again."""
    try:
        return jobs.course(text)
    except ValueError:
        return None


def asked_for(wanted: storage.Folder, course: Course) -> Spec | Course:
    """What was asked for; the course that follows where nobody has, or it can't be read."""
    found = wanted.read(f"{course.name}.json")
    if found is None:  # not one of the tool's
        return course._replace(state=State.CANCELLED, why="nobody asked for this job")
    try:
        return jobs.spec(found[0], course.name)
    except ValueError as error:  # spoiled, or of a newer version: others wait behind it
        why = f"what was asked for can't be read: {error}"
        return course._replace(state=State.FAILED, why=why, since=time.time())
