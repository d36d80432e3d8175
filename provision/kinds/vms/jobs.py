"""Jobs on the VMs of a group, through the state folder.

    jobs/index.json                     the jobs that are not over, in their order
    jobs/NAME.json                      a job, written once
    jobs/files/SHA256.tar.gz            a folder, written once
    vms/job.json                        how far the job is that is under way
    vms/jobs/NAME/course.json           how far one came that is over
    vms/jobs/NAME/logs/ATTEMPT/RANK/    what it said, in pieces named by where they begin

VMs can read `jobs/` and not write it; what is in `vms/` any program on them may have written
(ADR 54).
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from provision.documents import json_object
from provision.documents.events import stamp
from provision.documents.job import Job, JobFailure, JobState
from provision.errors import SettingsError
from provision.kinds.vms import roster
from provision.spec import job

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from provision.files.archive import Archive
    from provision.spec.job import JobSpec
    from provision.state.folder import StateFolder

_JOBS: Final = "jobs/"
_INDEX: Final = "jobs/index.json"
_ORDER: Final = "vms/job.json"
_JSON: Final = "application/json"
_UNHEARD: Final = (
    "the VMs have not taken note of it yet; those that have powered themselves off (IDLE_TIMEOUT)"
    " are started by Create; those that an earlier version made know of no jobs: Create"
    " --replace-vms"
)


class VmJobs:
    """The jobs of a group of VMs; see `deployment.jobs.Jobs` for what each method does.

    Args:
        folder: The state folder.
    """

    def __init__(self, folder: StateFolder) -> None:
        self._folder = folder

    def submit(self, spec: JobSpec, archive: Archive | None) -> str:
        """Write the folder, the job and its place in the order."""
        self._require_room(spec)
        if archive is not None:
            name = f"{_JOBS}files/{archive.sha256}.tar.gz"
            self._folder.write_once(name, archive.path, "application/gzip")
        while True:
            named = job.numbered(spec.name, self.names())
            text = json.dumps(_document(spec, named, archive))
            if self._folder.write_once(f"{_JOBS}{named}.json", text, _JSON):
                break
        self._change_index(lambda known: [*known, {"name": named, "cancelled": False}])
        return named

    def names(self) -> Sequence[str]:
        """The names of all jobs, the newest last."""
        found = self._folder.created(_JOBS)
        ours = sorted(found, key=lambda name: found[name])
        names = (it.removeprefix(_JOBS) for it in ours if it != _INDEX)
        return [it.removesuffix(".json") for it in names if "/" not in it]

    def find(self, name: str) -> Job | None:
        """How far a job is, by what the VMs say of it."""
        text = self._folder.text(f"{_JOBS}{name}.json")
        if text is None:
            return None
        asked, course = _read(text), self._course(name)
        if course:
            return _job(name, asked, course)
        before = self._before(name)
        why = f"{before[0]} is before it" if before else _UNHEARD
        return _job(name, asked, {"why": why}, place=len(before))

    def unfinished(self) -> Sequence[str]:
        """The names of those that are not over, in their order."""
        return [it for it in self._order() if not self._is_over(it) and not self._ends_cluster(it)]

    def log(self, job: Job, attempt: int, after: int) -> Iterator[tuple[int, bytes]]:
        """The pieces, in their order."""
        prefix = f"vms/jobs/{job.name}/logs/{attempt}/0/"
        for name in self._folder.names(prefix, first=f"{prefix}{after:015d}"):
            begins = name.removeprefix(prefix)
            piece = self._folder.data(name) if begins.isdigit() else None
            if piece is not None:  # what is too old goes
                yield int(begins), piece

    def cancel(self, job: Job) -> None:
        """Mark it in the order of jobs."""

        def marked(known: list[dict[str, Any]]) -> list[dict[str, Any]]:
            return [it | {"cancelled": it["cancelled"] or it["name"] == job.name} for it in known]

        self._change_index(marked)

    def _require_room(self, spec: JobSpec) -> None:
        most = roster.size(self._folder)
        if most is not None and (spec.nodes or 0) > most:
            raise SettingsError(
                f"The job wants {spec.nodes} VMs, and the group has {most}",
                why="all VMs of a job begin together, so it would wait for ever",
                fix=f"JOB_NODES={most}, or a greater INSTANCE_COUNT and Create",
                setting="JOB_NODES",
            )

    def _change_index(self, change: Callable[[list[dict[str, Any]]], list[dict[str, Any]]]) -> None:
        """Change the order of jobs, and take those out that are over."""

        def changed(text: str | None) -> str:
            known = json_object.objects(_read(text or "{}").get("jobs"))
            left = [it for it in known if not self._is_over(json_object.text(it.get("name")))]
            return json.dumps({"jobs": change(left)})

        self._folder.change(_INDEX, changed, _JSON)

    def _is_over(self, name: str) -> bool:
        return self._folder.text(_course_of(name)) is not None

    def _ends_cluster(self, name: str) -> bool:
        return bool(_read(self._folder.text(f"{_JOBS}{name}.json") or "{}").get("ends_cluster"))

    def _before(self, name: str) -> list[str]:
        """The jobs before one that are not over, in their order."""
        names = self._order()
        earlier = names[: names.index(name)] if name in names else []
        return [it for it in earlier if not self._is_over(it)]

    def _order(self) -> list[str]:
        index = _read(self._folder.text(_INDEX) or "{}")
        return [json_object.text(it.get("name")) for it in json_object.objects(index.get("jobs"))]

    def _course(self, name: str) -> dict[str, Any]:
        text = self._folder.text(_course_of(name))
        found = _read(text or self._folder.text(_ORDER) or "{}")
        return found if found.get("name") == name else {}


def _course_of(name: str) -> str:
    return f"vms/jobs/{name}/course.json"


def _document(spec: JobSpec, name: str, archive: Archive | None) -> dict[str, Any]:
    """A job as VMs read it."""
    return {
        "name": name,
        "command": list(spec.command),
        "nodes": spec.nodes,
        "restarts": spec.restarts,
        "seconds": spec.seconds,
        "env": dict(spec.env),
        "image": spec.image or "",
        "files": archive.sha256 if archive else "",
        "ends_cluster": spec.ends_cluster,
        "submitted": stamp(time.time()),
    }


def _read(text: str) -> dict[str, Any]:
    """A document; empty if somebody has spoiled it."""
    try:
        return json_object.read(text)
    except ValueError:
        return {}


def _job(name: str, asked: Mapping[str, Any], course: Mapping[str, Any], place: int = 0) -> Job:
    states = {str(state): state for state in JobState}
    state = states.get(json_object.text(course.get("state")), JobState.WAITING)
    nodes = json_object.objects(course.get("nodes"))
    return Job(
        name=name,
        state=state,
        why=json_object.text(course.get("why")),
        place=place,
        nodes=json_object.whole(asked.get("nodes")),
        machines=tuple(json_object.text(it.get("name")) for it in nodes),
        attempt=json_object.whole(course.get("attempt")) or 0,
        restarts=json_object.whole(asked.get("restarts")) or 0,
        submitted=json_object.text(asked.get("submitted")),
        began=_moment(course.get("began")),
        ended=_moment(course.get("since")) if state.is_over else None,
        ends=_moment(course.get("ends")),
        failure=_failure(json_object.inner(course.get("failure"))),
        events=tuple(json_object.texts(course.get("events"))),
    )


def _failure(found: Mapping[str, Any]) -> JobFailure | None:
    if not found:
        return None
    return JobFailure(
        machine=json_object.text(found.get("vm")),
        rank=json_object.whole(found.get("rank")) or 0,
        exit_code=json_object.whole(found.get("code")),
        cause=json_object.text(found.get("cause")),
        tail=json_object.text(found.get("tail")),
    )


def _moment(value: object) -> str | None:
    moment = json_object.number(value)
    try:
        return stamp(moment) if moment else None
    except (OverflowError, ValueError, OSError):  # a year that no calendar has
        return None
