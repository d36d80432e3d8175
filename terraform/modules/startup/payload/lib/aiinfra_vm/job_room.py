"""Makes room where jobs have their folders, before one more gets its own.

Nothing goes while the disk has room, and then only what has not been needed for a day. First the
environments of packages, which a job that needs one makes again; then the folders of jobs that are
over, the oldest first, and those of failed ones last: somebody may still look for the cause there.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Callable, Iterator

from aiinfra_vm import disk_health, jobs, storage

FULL = 80
"""Percent from which on the disk has no room for one more."""
PACKAGES = ".aiinfra-packages"
"""Where in the home of the jobs' user they are, by the program that installs them."""
_UNUSED = 86_400.0  # seconds
_EVERY = 600.0  # seconds


def keep(home: Path, shared: storage.Folder) -> None:
    """Make room for ever, by looks: where no program of root's begins a job, as with Slurm.

    There each job has its packages in its own folder.
    """
    while True:
        for words in make(home, home, shared, os.getpid):
            sys.stdout.write(f"aiinfra: {words}\n")
            sys.stdout.flush()
        time.sleep(_EVERY)


def make(home: Path, user: Path, shared: storage.Folder, become: Callable[[], object]) -> list[str]:
    """Delete as much as it takes, and can; what went, in words.

    `home`: where jobs have their folders. `user`: the home of the jobs' user, who that is by
    `become`: what lies there, that user could have led elsewhere, where root must delete nothing.
    """
    went: list[str] = []
    with contextlib.suppress(OSError):  # the first job makes the folder, and one without room fails
        for path, words in _old(home, user / PACKAGES, shared):
            percent = disk_health.percent(os.statvfs(home))
            if percent < FULL:
                break
            # What somebody has mounted there stays; first goes what says that one is made.
            remove = ["/bin/rm", "--recursive", "--force", "--one-file-system", "--"]
            remove += [str(path / "made"), str(path)]
            whose = None if path.parent == home else become
            subprocess.run(remove, preexec_fn=whose, check=False)  # noqa: S603 - made here
            try:
                path.lstat()
                continue  # it is another user's
            except FileNotFoundError:
                pass
            except OSError:  # somebody has mounted there what lets nobody look: others may go
                continue
            if path.parent == home:
                why = f"the VM removed the folder of {path.name}: its disk was {percent} % full\n"
                path.with_name(f"{path.name}.gone").write_text(why, "utf-8")
            went.append(f"removed, as the disk was {percent} % full: {words}")
    return went


def _old(home: Path, packages: Path, shared: storage.Folder) -> Iterator[tuple[Path, str]]:
    if disk_health.percent(os.statvfs(home)) < FULL:
        return
    now = time.time()
    used = b"".join(_environments())
    for made in sorted(packages.glob("*/made")):  # each use of it writes that file
        with contextlib.suppress(OSError):
            age, path = now - made.lstat().st_mtime, made.parent
            if age > _UNUSED and os.fsencode(path) not in used:
                yield path, f"an environment of packages that no job has used for {_days(age)}"
    found = []
    for path in home.iterdir():
        if os.fsencode(f"{path}/") in used:  # whatever is said of it; with Slurm, it is a home
            continue
        with contextlib.suppress(OSError, ValueError):
            told = shared.read(jobs.course_of(path.name)) if "." not in path.name else None
            course = jobs.course(told[0]) if told else None
            if course and course.state.is_over and now - course.since > _UNUSED:
                found.append((course.state is jobs.State.FAILED, course.since, path))
    for _, since, path in sorted(found):
        yield path, f"the folder of {path.name}, which ended {_days(now - since)} ago"


def _environments() -> Iterator[bytes]:
    """Those of all processes, as far as they are there for long enough."""
    for it in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            yield it.read_bytes()


def _days(seconds: float) -> str:
    return f"{seconds / 86_400:.1f} days"
