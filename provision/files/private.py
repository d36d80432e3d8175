"""Temporary folders of one run, with values that nobody else should read.

A run that is killed can't delete its folder, so the next one on this machine does.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.codes import Code
from provision.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterator

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""The errors of a disk without room, or without room for this user."""
_PREFIX: Final = "aiinfra-"
_IN_USE: Final = "in-use"
ALIVE: Final = "alive"
"""The file in a run folder that Terraform holds open too; the folder is in use as long as that."""


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A temporary folder of this run, deleted afterwards; what dead runs left is deleted first."""
    _sweep()
    with contextlib.ExitStack() as stack:
        with writing():
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX)))
            stack.enter_context(_locked(path / _IN_USE))
        yield path


@contextlib.contextmanager
def writing() -> Iterator[None]:
    """Say of a full disk what fixes it."""
    try:
        yield
    except OSError as error:
        # Of a whole tree, shutil tells the reasons as texts alone.
        told = str(error) if isinstance(error, shutil.Error) else ""
        if error.errno not in FULL and not any(os.strerror(it) in told for it in FULL):
            raise
        place = tempfile.gettempdir()
        raise CheckError(
            f"The disk of this machine is full: {error.filename or place}",
            code=Code.DISK_FULL,
            why=error.strerror or os.strerror(errno.ENOSPC),
            fix=f"free space there, or set TMPDIR to a folder with more of it than {place}; then"
            " run the same action again",
        ) from error


def _sweep() -> None:
    for path in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            if path.is_dir() and path.stat().st_uid == os.getuid() and _is_left(path):
                shutil.rmtree(path)


def _is_left(path: Path) -> bool:
    """Whether no process holds a folder; one without the file is only being made, or not ours."""
    marks = [path / _IN_USE, *path.glob(f"**/{ALIVE}")]
    return marks[0].exists() and all(map(_is_free, marks))


def _is_free(file: Path) -> bool:
    with file.open("rb") as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True


@contextlib.contextmanager
def _locked(file: Path) -> Iterator[None]:
    made = file.with_name(f"{file.name}.new")
    with made.open("xb") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        # Only now by its name: without the lock another run would take the folder for left.
        made.rename(file)
        yield
