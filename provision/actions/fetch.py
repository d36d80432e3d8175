"""Fetch: copy what a job wrote to its folder to this machine.

It comes as an archive, through a shell where the job runs or has run, to a folder beside the
destination; from there a file goes to its place, once it is known what it would overwrite.
"""

from __future__ import annotations

import contextlib
import filecmp
import functools
import posixpath
import shlex
import shutil
import subprocess
import tempfile
import threading
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from provision.actions import jobs as jobs_action
from provision.codes import Code
from provision.documents.job import Fetched
from provision.documents.timeline import OnInterrupt, StageName
from provision.errors import ClusterError, Problem, SettingsError
from provision.files import archive, private
from provision.kinds import job_folder
from provision.lifecycle import consent
from provision.lifecycle.consent import Stake
from provision.words import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from provision.context import Context
    from provision.deployment.kind import WayIn
    from provision.documents.job import Job
    from provision.files.archive import Unpacked

_NO_FOLDER: Final = 64
_NO_PATH: Final = 65
_CHANGED: Final = 1  # with what GNU tar ends if a file changed while it was read ("Exit status")
# The job's user may have kept others from reading, or from its folder: who may become root reads
# it all.
_LINE: Final = f"""\
all() {{{{ if sudo -n true 2>/dev/null; then sudo -n "$@"; else "$@"; fi; }}}}
test -d {{folder}} || {{{{ cat {{folder}}.gone >&2 2>/dev/null; exit {_NO_FOLDER}; }}}}
at={{folder}}/{{path}}
all test -e "$at" || all test -L "$at" || {{{{ all ls -Aq {{folder}} >&2; exit {_NO_PATH}; }}}}
all tar -C {{folder}} -cf - {{path}}
"""
_LAST_WORDS: Final = 5.0  # seconds for which a program that has ended is still listened to
_SHOWN: Final = 10  # the number of files that are named where there are more


def fetch(context: Context) -> None:
    """Copy a part of a job's folder, or all of it, to a folder here."""
    if not context.job:
        raise SettingsError(
            "Fetch has no job",
            code=Code.INVALID_COMMAND_LINE,
            fix="write its name behind it, as Fetch train-1 outputs; Jobs lists them",
        )
    asked, where = (*context.others, "", "")[:2]
    jobs = jobs_action.opened(context)
    job = jobs_action.meant(context, jobs, context.job)
    rank = jobs_action.rank_of(context, job, "fetch_rank")
    way = jobs.way_in(job, rank)
    if way.lost:
        raise SettingsError(
            f"What {job.name} wrote is not where Fetch looks",
            code=Code.WITHOUT_EFFECT,
            why=way.lost,
            fix=job_folder.TO_A_MOUNT,
        )
    path = _path(asked, way, job)
    destination = Path(where or job.name)
    with private.writing():
        draft = _beside(destination)
        try:
            with context.progress.stage(StageName.JOB, OnInterrupt.NOTHING) as stage:
                what = f"{path[2:]} of {job.name}" if asked else f"the folder of {job.name}"
                of = "task" if job.tasks else "rank"
                stage.news(f"copying {what} from {way.where}, {of} {rank}")
                unpacked = functools.partial(
                    archive.unpack,
                    into=draft,
                    tell=lambda size: stage.counts(f"{size:,} bytes from {way.where} so far"),
                )
                came = _came(context, way, job, path, unpacked)
                stage.counts(f"{came.size:,} bytes came from {way.where}")
            same, others = _compared(draft, came, destination)
            _agree(context, destination, others)
            _place(draft, came, destination, same)
        finally:
            shutil.rmtree(draft, ignore_errors=True)
    _tell(context, came)
    new = len(came.files) - len(same)
    context.report.fetched = Fetched(
        job=job.name,
        rank=rank,
        machine=way.where,
        destination=str(destination),
        files=new,
        size=came.size,
        same=len(same),
        overwritten=tuple(others),
        left_out=came.left_out,
    )
    what = f"{counted(len(came.files), 'file')}, {came.size:,} bytes in all"
    before = f"; here already: {len(same):,} of them" if same else ""
    context.console.result(f"{what}, of {job.name} in {destination}{before}")


def _path(asked: str, way: WayIn, job: Job) -> str:
    """A path below the job's folder, as its programs may have said it."""
    path = posixpath.normpath(posixpath.join(way.folder, asked or "."))
    if path != way.folder and not path.startswith(f"{way.folder}/"):
        raise SettingsError(
            f"{asked} is not in the folder of {job.name}",
            code=Code.INVALID_COMMAND_LINE,
            why=f"Fetch copies from {way.folder} alone",
            fix="a path relative to that; what is in a mounted bucket: gcloud storage cp",
        )
    # So that none is taken for an option.
    return f"./{path.removeprefix(way.folder).lstrip('/')}"


def _beside(destination: Path) -> Path:
    """A new folder on the disk of a destination, which may not be there yet."""
    try:
        if destination.exists() and not destination.is_dir():
            raise NotADirectoryError(0, "it is no folder")
        destination.parent.mkdir(parents=True, exist_ok=True)
        place = destination if destination.exists() else destination.parent
        return Path(tempfile.mkdtemp(dir=place, prefix=".aiinfra-fetch-"))
    except OSError as error:
        if error.errno in private.FULL:
            raise
        raise SettingsError(
            f"Nothing can be copied to {destination}",
            code=Code.INVALID_COMMAND_LINE,
            why=error.strerror or str(error),
            fix="name another folder as the destination: Fetch JOB PATH TO",
        ) from error


def _came(
    context: Context,
    way: WayIn,
    job: Job,
    path: str,
    unpacked: Callable[[IO[bytes]], Unpacked],
) -> Unpacked:
    name = way.tells[0]
    program = shutil.which(name, path=context.environ.get("PATH", ""))
    line = _LINE.format(folder=shlex.quote(way.folder), path=shlex.quote(path))
    if program is None:
        raise SettingsError(
            f"Fetch wants {name}, which is not on the PATH here",
            code=Code.INVALID_COMMAND_LINE,
            why="the way to where the job runs is that of Ssh",
            fix=f"run it where {name} is: in Cloud Shell, or on your own machine"
            + (", where gcloud components install kubectl brings it" * (name == "kubectl")),
        )
    came: Unpacked | None = None
    why = ""
    with (
        way.access() as more,
        subprocess.Popen(  # noqa: S603 - made here
            [program, *way.tells[1:], line],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**context.environ, **more},
        ) as sender,
        _passing_on(context, cast("IO[bytes]", sender.stderr)),
    ):
        try:
            came = unpacked(cast("IO[bytes]", sender.stdout))
        except archive.CutOff as error:
            why = str(error)
        except BaseException:
            sender.kill()
            raise
    return _judged(context, way, job, path, (sender.returncode, came, why))


@contextlib.contextmanager
def _passing_on(context: Context, said: IO[bytes]) -> Iterator[None]:
    """Show what the sender says beside, as all else is shown: some of it may be a machine's."""

    def show() -> None:
        for line in said:
            if text := line.decode("utf-8", "replace").strip():
                context.console.progress(text)

    showing = threading.Thread(target=show, daemon=True)
    showing.start()
    try:
        yield
    finally:
        # What it has begun itself may live on, and hold this open.
        showing.join(_LAST_WORDS)


def _judged(
    context: Context, way: WayIn, job: Job, path: str, ended: tuple[int, Unpacked | None, str]
) -> Unpacked:
    code, came, why = ended
    if code == _NO_FOLDER:
        raise ClusterError(
            f"{way.where} has no folder of {job.name} any more",
            code=Code.MACHINES_GONE,
            why="if the VM removed it for lack of room, it says so above; else the disk is another"
            " one, or somebody has removed it",
            fix=job_folder.TO_A_MOUNT,
        )
    if code == _NO_PATH:
        raise SettingsError(
            f"There is no {path.removeprefix('./')} in the folder of {job.name} on {way.where}",
            code=Code.INVALID_COMMAND_LINE,
            why="what is there stands above",
            fix=f"Fetch {job.name} with one of those, or without a path for all of it",
        )
    if came is None or code not in {0, _CHANGED}:
        raise ClusterError(
            f"Not all of it came from {way.where}, and nothing was copied",
            code=Code.UNREACHABLE,
            why=f"what {way.tells[0]} and tar say stands above" + (f"; {why}" if why else ""),
            fix="Status shows whether it runs; VMs without an external address also want"
            " roles/iap.tunnelResourceAccessor, and pods roles/container.developer",
        )
    if code == _CHANGED:
        note = Problem(
            code=Code.NOTE,
            what=f"{job.name} wrote to some of these files while they were read",
            why="what came of them may be neither what they were nor what they are",
            fix="run the same Fetch again, once the job has written them",
        )
        context.note([note])
    return came


def _compared(draft: Path, came: Unpacked, destination: Path) -> tuple[set[str], list[str]]:
    """The files that are here as they came, and those that are here and differ."""
    same: set[str] = set()
    others: list[str] = []
    in_the_way = [it for it in came.folders if _is_there(destination / it, folder=False)]
    for name in came.files:
        mine, there = draft / name, destination / name
        above = (destination / it for it in _above(name))
        if _is_there(there, folder=True) or any(_is_there(it, folder=False) for it in above):
            in_the_way.append(name)
        elif _is_there(there, folder=False):
            is_same = _is_same(mine, there)
            same |= {name} if is_same else set()
            others += [] if is_same else [name]
    if in_the_way:
        raise SettingsError(
            f"{destination / in_the_way[0]} is in the way: one is a folder, and one is none",
            code=Code.INVALID_COMMAND_LINE,
            why="nothing was copied",
            fix="name another folder as the destination: Fetch JOB PATH TO",
        )
    return same, others


def _above(name: str) -> Sequence[str]:
    parts = name.split("/")
    return ["/".join(parts[:it]) for it in range(1, len(parts))]


def _is_there(path: Path, *, folder: bool) -> bool:
    """Whether something is there that is a folder, or that is none."""
    return path.is_dir() if folder else (path.exists() or path.is_symlink()) and not path.is_dir()


def _is_same(mine: Path, there: Path) -> bool:
    if mine.is_symlink() or there.is_symlink():
        both = mine.is_symlink() and there.is_symlink()
        return both and mine.readlink() == there.readlink()
    return there.is_file() and filecmp.cmp(mine, there, shallow=False)


def _agree(context: Context, destination: Path, others: Sequence[str]) -> None:
    if not others:
        return
    more = len(others) - _SHOWN
    named = ", ".join(others[:_SHOWN]) + (f" and {more} more" if more > 0 else "")
    does = f"overwrite {counted(len(others), 'file')} in {destination}: {named}"
    other = "; or with another destination"
    stake, undone = Stake.OVERWRITTEN, "nothing was copied"
    consent.require(context, stake, does, "Overwrite them?", undone, other)


def _place(draft: Path, came: Unpacked, destination: Path, same: set[str]) -> None:
    try:
        for name in ("", *came.folders):
            (destination / name).mkdir(parents=True, exist_ok=True)
        for name in came.files:
            if name not in same:
                (destination / name).parent.mkdir(parents=True, exist_ok=True)
                # A part of the destination may be a link to another disk.
                shutil.move(draft / name, destination / name)
    except OSError as error:
        if error.errno in private.FULL:
            raise
        raise SettingsError(
            f"{error.filename or destination} can't be written",
            code=Code.INVALID_COMMAND_LINE,
            why=f"{error.strerror or error}; what came before it is there",
            fix="make it yours to write, or name another folder as the destination",
        ) from error


def _tell(context: Context, came: Unpacked) -> None:
    if came.left_out:
        named = ", ".join(came.left_out[:_SHOWN])
        note = Problem(
            code=Code.NOTE,
            what=f"{counted(len(came.left_out), 'entry')} not copied: {named}",
            why="links out of the job's folder, pipes, sockets and devices mean nothing here",
        )
        context.note([note])
