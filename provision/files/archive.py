"""The folder that travels to every VM, as one archive.

The same folder gives the same archive, byte for byte, on any machine and at any time: its name
is the sum of its bytes, and another name would mean other VMs. So entries are sorted, owners and
times left out, and the bytes are not compressed, since what a compressor makes of them depends on
its version. The archive still has gzip's frame, so that `tar -xzf` unpacks it and its checksum
tells a damaged one.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.errors import Problem, SettingsError
from provision.files.gzip import StoredGzip
from provision.files.left_out import LeftOut

if TYPE_CHECKING:
    from collections.abc import Iterator

COPY_FOLDER: Final = Path("/usr/aiinfra/copy")
"""Where `docker run -v` mounts the folder in the container."""

LARGEST_FILE: Final = 1 << 30
"""The most bytes of one file."""

LARGEST_FOLDER: Final = 4 << 30
"""The most bytes of all files together."""

# 1 January 1980: GNU tar warns of the epoch itself as "implausibly old".
_TIME: Final = 315_532_800
# A symlink's chain is no longer than this on Linux; a longer one goes round in circles.
_LONGEST_CHAIN: Final = 40
_DISK_FULL: Final = {errno.ENOSPC, errno.EDQUOT}
_GIB: Final = 1 << 30
_DATA: Final = "data belongs in a bucket: GCS_MOUNT_LIST mounts it on every VM"

_NOT_A_FILE: Final = {
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A packed folder.

    Attributes:
        path: The file, named `<sha256>.tar.gz`.
        sha256: Of the file's bytes, in hexadecimal.
        count: Files and symlinks in it; folders are not counted.
        size: Bytes of those files.
    """

    path: Path
    sha256: str
    count: int
    size: int


@dataclass(frozen=True)
class _Entry:
    """Something in the folder: its path below it, what the file system says, a link's target."""

    name: str
    status: os.stat_result
    target: str = ""

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.status.st_mode)


def pack(folder: Path, into: Path, left_out: LeftOut | None = None) -> Archive | None:
    """Pack a folder's tree: files, empty folders too, permissions, symlinks that stay inside.

    The set-user-id, set-group-id and sticky bits are left out, as root owns the files on the VMs.

    Args:
        folder: The folder; the archive has its contents, not itself.
        into: The existing folder in which the archive is made.
        left_out: What stays behind; None for what the folder itself and the usual rules say.

    Returns:
        The archive; None when there is no such folder, or nothing in it that travels.

    Raises:
        SettingsError: Something in the folder can't travel; all of it is said at once.
        OSError: The archive can't be written.
    """
    if not folder.exists():
        return None
    entries, problems = _survey(folder, left_out or LeftOut.of(folder))
    size = sum(entry.status.st_size for entry in entries if entry.kind == stat.S_IFREG)
    if size > LARGEST_FOLDER:
        limit = f"at most {LARGEST_FOLDER // _GIB} GiB travel with a cluster"
        problems.append(_problem(folder, f"holds {size} bytes", limit, _DATA))
    if problems:
        raise SettingsError.of(problems)
    if not entries:
        return None
    path, sha256 = _write(folder, entries, into)
    count = sum(entry.kind != stat.S_IFDIR for entry in entries)
    return Archive(path=path, sha256=sha256, count=count, size=size)


def _survey(folder: Path, left_out: LeftOut) -> tuple[list[_Entry], list[Problem]]:
    """All entries below the folder that travel, and what is wrong with them."""
    entries: list[_Entry] = []
    problems: list[Problem] = []
    pending = [""]
    while pending:
        below = pending.pop()
        try:
            with os.scandir(folder / below) as found:
                names = sorted((item.name for item in found), key=os.fsencode)
        except OSError as error:
            problems.append(_unreadable(folder / below, error))
            continue
        for name in names:
            entry = _entry(folder, f"{below}{name}")
            if left_out.takes(
                folder / entry.name,
                entry.name,
                entry.status.st_size if entry.kind == stat.S_IFREG else 0,
                is_folder=entry.kind == stat.S_IFDIR,
            ):
                continue
            entries.append(entry)
            problems.extend(_judge(folder, entry))
            if entry.kind == stat.S_IFDIR:
                pending.append(f"{entry.name}/")
    # One order for the whole tree, in which a folder stands before what it holds.
    return sorted(entries, key=lambda entry: os.fsencode(entry.name)), problems


def _entry(folder: Path, name: str) -> _Entry:
    path = folder / name
    status = path.lstat()
    target = _target(path) if stat.S_ISLNK(status.st_mode) else ""
    return _Entry(name, status, target)


def _target(link: Path) -> str:
    return os.readlink(link)  # noqa: PTH115 - a Path would change how the target is written


def _judge(folder: Path, entry: _Entry) -> Iterator[Problem]:
    """What keeps an entry from travelling; a folder is judged when it is read."""
    path = folder / entry.name
    if entry.kind == stat.S_IFREG:
        yield from _judge_file(path, entry.status.st_size)
    elif entry.kind == stat.S_IFLNK:
        if _leaves(folder, entry):
            yield _problem(
                path,
                f"is a link to {_shown(entry.target)}, which is not in the folder",
                "on the VMs there is nothing at the other end",
                "a relative link to something inside, or a copy of the file",
            )
    elif entry.kind != stat.S_IFDIR:
        yield _problem(
            path,
            f"is {_NOT_A_FILE.get(entry.kind, 'of an unknown kind')}",
            "only files, folders and links travel",
            f"take {_shown(path)} out of the folder",
        )


def _judge_file(path: Path, size: int) -> Iterator[Problem]:
    if size > LARGEST_FILE:
        limit = f"a file has at most {LARGEST_FILE // _GIB} GiB"
        yield _problem(path, f"has {size} bytes", limit, _DATA)
        return
    try:
        with path.open("rb"):
            pass
    except OSError as error:
        yield _unreadable(path, error)


def _leaves(folder: Path, entry: _Entry) -> bool:
    """Whether the way to a link's target leads out of the folder at any of its steps.

    The way is walked as the kernel walks it, through the links on it: a `..` behind a link to a
    folder goes up from where that link leads.
    """
    here = entry.name.split("/")[:-1]
    ahead = entry.target.split("/")[::-1]
    if entry.target.startswith("/"):
        return True
    links = 0
    while ahead:
        part = ahead.pop()
        if part == "..":
            if not here:
                return True
            here.pop()
            continue
        if part in {"", "."}:
            continue
        step = folder.joinpath(*here, part)
        if not step.is_symlink():
            here.append(part)
            continue
        links += 1
        target = _target(step)
        if target.startswith("/"):
            return True
        if links > _LONGEST_CHAIN:
            return False  # it goes round inside of the folder
        ahead += target.split("/")[::-1]
    return False


def _write(folder: Path, entries: list[_Entry], into: Path) -> tuple[Path, str]:
    """Write the archive under its final name; gives that and the sum of its bytes."""
    with tempfile.NamedTemporaryFile(dir=into, prefix=".files-", delete=False) as file:
        unnamed = Path(file.name)
        try:
            with (
                StoredGzip(file) as packed,
                # GNU's form has any name as it is and any size; GNU tar is what unpacks it.
                tarfile.open(
                    fileobj=packed,
                    mode="w|",
                    format=tarfile.GNU_FORMAT,
                    encoding="utf-8",
                    errors="surrogateescape",
                ) as archive,
            ):
                for entry in entries:
                    _add(archive, folder, entry)
        except BaseException:
            unnamed.unlink()
            raise
    sha256 = packed.sha256
    path = into / f"{sha256}.tar.gz"
    unnamed.replace(path)
    return path, sha256


def _add(archive: tarfile.TarFile, folder: Path, entry: _Entry) -> None:
    about = tarfile.TarInfo(entry.name)
    about.mode = stat.S_IMODE(entry.status.st_mode) & 0o777
    about.mtime = _TIME
    match entry.kind:
        case stat.S_IFDIR:
            about.type = tarfile.DIRTYPE
            archive.addfile(about)
        case stat.S_IFLNK:
            about.type = tarfile.SYMTYPE
            about.linkname = entry.target
            archive.addfile(about)
        case _:
            about.size = entry.status.st_size
            path = folder / entry.name
            try:
                with path.open("rb") as content:
                    archive.addfile(about, content)
            except OSError as error:
                if error.errno in _DISK_FULL:
                    raise  # of the archive, not of what goes into it
                raise SettingsError.of([_unreadable(path, error)]) from error


def _unreadable(path: Path, error: OSError) -> Problem:
    return _problem(
        path,
        "can't be read",
        error.strerror or str(error),
        "let the user who runs this read it, or take it out of the folder",
    )


def _problem(path: Path, what: str, why: str, fix: str) -> Problem:
    return Problem(what=f"{_shown(path)} {what}", why=why, fix=fix)


def _shown(name: Path | str) -> str:
    """A name for a message: what can't be printed is escaped."""
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)
