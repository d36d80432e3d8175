"""Packing the folder that is copied to every VM into one archive, and unpacking what comes back.

The same folder gives the same archive, byte for byte, on any machine and at any time. Its name is
the checksum of its bytes, and another name would replace the VMs. So the entries are sorted, owners
and times are omitted, and the bytes are not compressed, because the output of a compressor depends
on its version. The archive still has the gzip format, so that `tar -xzf` can unpack it and detects
damage by the checksum.
"""

from __future__ import annotations

import hashlib
import io
import os
import shutil
import stat
import struct
import tarfile
import tempfile
import zlib
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, cast

from provision.codes import Code
from provision.errors import Problem, SettingsError
from provision.files import private
from provision.files.left_out import LeftOut

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from typing_extensions import Buffer

LARGEST_FILE: Final = 1 << 30
"""The maximum size of one file, in bytes."""

LARGEST_FOLDER: Final = 4 << 30
"""The maximum size of all files together, in bytes."""

# 1 January 1980: GNU tar warns of the epoch itself as "implausibly old".
_TIME: Final = 315_532_800
# Linux follows at most this many symlinks; a longer chain is a loop.
_LONGEST_CHAIN: Final = 40
_GIB: Final = 1 << 30
_BLOCK: Final = 1 << 20
_END: Final = bytes(2 * tarfile.BLOCKSIZE)
_DATA: Final = "data belongs in a bucket: GCS_MOUNT_LIST mounts it on every VM"

_NOT_A_FILE: Final = {
    stat.S_IFBLK: "a block device",
    stat.S_IFCHR: "a device",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
}


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A packed folder."""

    path: Path  # the file, named `<sha256>.tar.gz`
    sha256: str  # the SHA-256 of the file, in hexadecimal
    count: int  # the number of files and symlinks in it, without folders
    size: int  # the size of those files, in bytes
    # all that is in it: the path below the folder -> its type and permissions
    entries: Mapping[str, int] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class _Entry:
    """An entry of the folder: its relative path, its status, and for a link its target."""

    name: str
    status: os.stat_result
    target: str = ""

    @property
    def kind(self) -> int:
        return stat.S_IFMT(self.status.st_mode)


def pack(folder: Path, into: Path, left_out: LeftOut | None = None) -> Archive | None:
    """Pack a folder recursively: files, empty folders, permissions, symlinks that stay inside it.

    The setuid, setgid and sticky bits are dropped, because root owns the files on the VMs.
    `folder`: the folder; the archive contains its contents, not the folder itself. `left_out`: what
    is not copied; None for what the folder itself and the usual rules say. Returns the archive;
    None if the folder does not exist or nothing of it travels.
    """
    if not folder.exists():
        return None
    left_out = left_out or LeftOut.of(folder)
    entries, problems = _survey(folder, left_out)
    sizes: Counter[str] = Counter()
    for entry in entries:
        if entry.kind == stat.S_IFREG:
            sizes[entry.name.partition("/")[0]] += entry.status.st_size
    size = sizes.total()
    if size > LARGEST_FOLDER:
        limit = f"at most {LARGEST_FOLDER // _GIB} GiB can be copied to the VMs"
        ((largest, its),) = sizes.most_common(1)
        line = left_out.line(largest, is_folder=(folder / largest).is_dir())
        fix = f"{_DATA}; {largest} has {its} bytes of it: {line}"
        problems.append(_problem(folder, f"has {size} bytes", limit, fix))
    if problems:
        raise SettingsError.of(problems)
    if not entries:
        return None
    with private.writing():
        path, sha256 = _write(folder, entries, into, left_out)
    count = sum(entry.kind != stat.S_IFDIR for entry in entries)
    modes = {entry.name: entry.status.st_mode for entry in entries}
    return Archive(path=path, sha256=sha256, count=count, size=size, entries=modes)


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
            line = left_out.line(below.removesuffix("/"), is_folder=True) if below else ""
            problems.append(_unreadable(folder / below, error, line))
            continue
        for name in names:
            path = folder / below / name
            status = path.lstat()
            target = _target(path) if stat.S_ISLNK(status.st_mode) else ""
            entry = _Entry(f"{below}{name}", status, target)
            if left_out.takes(
                path,
                entry.name,
                entry.status.st_size if entry.kind == stat.S_IFREG else 0,
                is_folder=entry.kind == stat.S_IFDIR,
            ):
                continue
            if entry.kind == stat.S_IFLNK and _leaves(folder, entry):
                left_out.links.append(entry.name)
                continue
            entries.append(entry)
            problems.extend(_judge(folder, entry, left_out))
            if entry.kind == stat.S_IFDIR:
                pending.append(f"{entry.name}/")
    # One order for the whole tree, in which a folder comes before its contents.
    return sorted(entries, key=lambda entry: os.fsencode(entry.name)), problems


def _target(link: Path) -> str:
    return os.readlink(link)  # noqa: PTH115 - a Path would change how the target is written


def _judge(folder: Path, entry: _Entry, left_out: LeftOut) -> Iterator[Problem]:
    """The problems of an entry; those of a folder are found when it is read."""
    path, size = folder / entry.name, entry.status.st_size
    if entry.kind == stat.S_IFREG and size > LARGEST_FILE:
        limit = f"a file can have at most {LARGEST_FILE // _GIB} GiB"
        yield _problem(path, f"has {size} bytes", limit, f"{_DATA}; {left_out.line(entry.name)}")
    elif entry.kind == stat.S_IFREG:
        try:
            with path.open("rb"):
                pass
        except OSError as error:
            yield _unreadable(path, error, left_out.line(entry.name))
    elif entry.kind not in {stat.S_IFDIR, stat.S_IFLNK}:
        what = f"is {_NOT_A_FILE.get(entry.kind, 'of an unknown kind')}"
        limit = "only files, folders and links can be copied"
        yield _problem(path, what, limit, left_out.line(entry.name))


def _leaves(folder: Path, entry: _Entry) -> bool:
    """Whether the path to a link's target leaves the folder at any step.

    The path is resolved as the kernel does it, following links on the way: a `..` after a link to
    a folder goes up from the target of that link.
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
            return False  # a loop inside the folder
        ahead += target.split("/")[::-1]
    return False


def _write(folder: Path, entries: list[_Entry], into: Path, left_out: LeftOut) -> tuple[Path, str]:
    """Write the archive with its final name; returns its path and its SHA-256."""
    with tempfile.NamedTemporaryFile(dir=into, prefix=".files-", delete=False) as file:
        unnamed = Path(file.name)
        try:
            with (
                StoredGzip(file) as packed,
                # The GNU format allows any name and any size; GNU tar is what unpacks it.
                tarfile.open(
                    fileobj=packed,
                    mode="w|",
                    format=tarfile.GNU_FORMAT,
                    encoding="utf-8",
                    errors="surrogateescape",
                ) as archive,
            ):
                for entry in entries:
                    _add(archive, folder, entry, left_out)
        except BaseException:
            unnamed.unlink()
            raise
    sha256 = packed.sha256
    path = into / f"{sha256}.tar.gz"
    unnamed.replace(path)
    return path, sha256


def _add(archive: tarfile.TarFile, folder: Path, entry: _Entry, left_out: LeftOut) -> None:
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
                if error.errno in private.FULL:
                    raise  # this is about the archive, not about the packed file
                line = left_out.line(entry.name)
                raise SettingsError.of([_unreadable(path, error, line)]) from error


def _unreadable(path: Path, error: OSError, line: str) -> Problem:
    fix = "give the user who runs this permission to read it"
    if line:
        fix = f"{fix}; or {line}" if isinstance(error, PermissionError) else line
    return _problem(path, "can't be read", error.strerror or str(error), fix)


def _problem(path: Path, what: str, why: str, fix: str) -> Problem:
    return Problem(code=Code.INVALID_FOLDER, what=f"{_shown(path)} {what}", why=why, fix=fix)


def _shown(name: Path | str) -> str:
    text = os.fsencode(name).decode("utf-8", "backslashreplace")
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


class CutOff(ValueError):  # noqa: N818 - a state of the world
    """A stream has ended before its archive, or is none."""


@dataclass(frozen=True, kw_only=True)
class Unpacked:
    """What has come of a folder; names are relative to it."""

    folders: tuple[str, ...]
    files: tuple[str, ...]  # and symlinks
    size: int  # of the files, in bytes
    left_out: tuple[str, ...]  # links that lead out of the folder, and what is no file


def unpack(stream: IO[bytes], into: Path, tell: Callable[[int], None]) -> Unpacked:
    """Unpack the archive of a stream, which others have made, into a new folder.

    Nothing is written outside of it, whatever the archive says: no path leads out, and links are
    made last, so that no file is written through one. Files are the caller's, by his umask.
    `tell`: gets the bytes that have come so far.

    Raises:
        CutOff: The stream ends early.
        SettingsError: The archive has a path that leads out of the folder, or can't be written.
    """
    source = _Stream(stream, tell)
    unpacking = _Unpacking(into)
    file = cast("IO[bytes]", source)
    try:
        with tarfile.open(fileobj=file, mode="r|", errors="surrogateescape") as packed:
            for member in packed:
                unpacking.take(packed, member, _safe(member.name))
        if not source.ends():
            raise CutOff("it has no end")
        return unpacking.done()
    except tarfile.TarError as error:
        raise CutOff(str(error)) from error
    except OSError as error:
        if error.errno in private.FULL:
            raise  # this is about the disk, not about the file
        why = error.strerror or str(error)
        fix = "fetch it by its PATH to another folder, on a disk that takes such names"
        where = Path(error.filename or into)
        raise SettingsError.of([_problem(where, "can't be written", why, fix)]) from error


class _Unpacking:
    def __init__(self, into: Path) -> None:
        self._into = into
        self._folders: dict[str, None] = {}
        self._files: dict[str, int] = {}
        self._links: dict[str, str] = {}
        self._left_out: list[str] = []

    def take(self, packed: tarfile.TarFile, member: tarfile.TarInfo, name: str) -> None:
        """Write an entry; a symlink later."""
        path = self._into / name
        if member.isdir():
            path.mkdir(parents=True, exist_ok=True)
            self._folders |= {name: None} if name else {}
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        content = packed.extractfile(member) if member.isreg() else None
        if content is not None:
            _save(content, path, member)
            self._files[name] = member.size
        elif member.islnk() and (first := _safe(member.linkname)) in self._files:
            os.link(self._into / first, path)
            self._files[name] = 0
        elif member.issym():
            self._links[name] = member.linkname
        else:
            self._left_out.append(name)

    def done(self) -> Unpacked:
        """Make the symlinks that stay inside; what has come."""
        for name, target in self._links.items():
            (self._into / name).symlink_to(target)
        made = (_Entry(it, (self._into / it).lstat(), to) for it, to in self._links.items())
        # One that leads out makes those lead out that go through it.
        out = {it.name for it in made if _leaves(self._into, it)}
        for name in out:
            (self._into / name).unlink()
        self._left_out += out
        self._files |= {it: 0 for it in self._links if it not in out}
        return Unpacked(
            folders=tuple(self._folders),
            files=tuple(self._files),
            size=sum(self._files.values()),
            left_out=tuple(sorted(self._left_out)),
        )


def _safe(name: str) -> str:
    """A path below the folder, without what changes nothing; "" for the folder itself."""
    parts = [it for it in name.split("/") if it not in {"", "."}]
    if name.startswith("/") or ".." in parts:
        why = "no folder of a job has such a path: what sent it is not to be trusted"
        fix = "look at that machine; nothing was written"
        raise SettingsError.of([_problem(Path(name), "came as a file's path", why, fix)])
    return "/".join(parts)


def _save(content: IO[bytes], path: Path, about: tarfile.TarInfo) -> None:
    with path.open("xb") as file:
        shutil.copyfileobj(content, file, _BLOCK)
    if about.mode & stat.S_IXUSR:
        mode = path.stat().st_mode
        path.chmod(mode | (mode & 0o444) >> 2)
    os.utime(path, (about.mtime, about.mtime))


class _Stream:
    """A stream that counts, and knows whether it has ended as an archive does: with zeros."""

    def __init__(self, file: IO[bytes], tell: Callable[[int], None]) -> None:
        self._file, self._tell = file, tell
        self._last, self._size = b"", 0

    def read(self, size: int) -> bytes:
        found = self._file.read(size)
        self._size += len(found)
        self._last = (self._last + found)[-len(_END) :]
        self._tell(self._size)
        return found

    def ends(self) -> bool:
        while self.read(_BLOCK):
            pass
        return self._last == _END


_LARGEST_BLOCK: Final = 0xFFFF


class StoredGzip(io.RawIOBase):
    """A gzip stream with stored (uncompressed) blocks (RFC 1951 3.2.4, RFC 1952).

    `sha256`: The SHA-256 of the stream, in hexadecimal; set when the stream is closed.
    """

    def __init__(self, file: IO[bytes]) -> None:
        super().__init__()
        self._file = file
        self._sum = hashlib.sha256()
        self._crc = 0
        self._size = 0
        self._waiting = bytearray()
        self.sha256 = ""
        # No flags, no time, no extra flags, "unknown" as the operating system.
        self._put(b"\x1f\x8b\x08\x00" + bytes(4) + b"\x00\xff")

    def write(self, data: Buffer) -> int:
        """Buffer bytes and write only full blocks, so that blocks do not depend on the calls."""
        taken = bytes(data)
        self._crc = zlib.crc32(taken, self._crc)
        self._size += len(taken)
        self._waiting += taken
        while len(self._waiting) > _LARGEST_BLOCK:
            self._block(bytes(self._waiting[:_LARGEST_BLOCK]), last=False)
            del self._waiting[:_LARGEST_BLOCK]
        return len(taken)

    def close(self) -> None:
        """Write the last block, the CRC and the size."""
        try:
            if not self.closed:
                self._block(bytes(self._waiting), last=True)
                self._put(struct.pack("<LL", self._crc, self._size & 0xFFFFFFFF))
                self.sha256 = self._sum.hexdigest()
        finally:
            super().close()

    def _block(self, data: bytes, *, last: bool) -> None:
        self._put(struct.pack("<BHH", last, len(data), len(data) ^ 0xFFFF) + data)

    def _put(self, data: bytes) -> None:
        self._sum.update(data)
        self._file.write(data)
