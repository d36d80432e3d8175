"""What comes back of a job's folder is written to the folder that is meant, and nowhere else."""

import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from provision.errors import SettingsError
from provision.files import archive
from provision.files.archive import CutOff


def _entry(name: str, kind: bytes = tarfile.REGTYPE, **more: Any) -> tarfile.TarInfo:
    made = tarfile.TarInfo(name)
    made.type = kind
    for key, value in more.items():
        setattr(made, key, value)
    return made


def _packed(*entries: tarfile.TarInfo) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for it in entries:
            if it.isreg():
                it.size = len(it.name)
                made.addfile(it, io.BytesIO(it.name.encode()))
            else:
                made.addfile(it)
    return out.getvalue()


@pytest.fixture
def into(tmp_path: Path) -> Path:
    """A new folder."""
    made = tmp_path / "in" / "new"
    made.mkdir(parents=True)
    return made


def _unpack(
    into: Path, content: bytes, tell: Callable[[int], None] = lambda _: None
) -> archive.Unpacked:
    return archive.unpack(io.BytesIO(content), into, tell)


def test_files_folders_and_links_inside_come_as_the_callers_own(into: Path) -> None:
    told: list[int] = []
    content = _packed(
        _entry("./", tarfile.DIRTYPE, mode=0o700),
        _entry("./empty", tarfile.DIRTYPE, mode=0),
        _entry("./out/a.pt", mode=0o600, uid=4711, mtime=1_700_000_000),
        _entry("./out/run.sh", mode=0o4700),
        _entry("./out/same.pt", tarfile.LNKTYPE, linkname="./out/a.pt"),
        _entry("./latest", tarfile.SYMTYPE, linkname="out/a.pt"),
        _entry("./out/up", tarfile.SYMTYPE, linkname="../latest"),
    )
    came = _unpack(into, content, told.append)
    assert came.files == ("out/a.pt", "out/run.sh", "out/same.pt", "latest", "out/up")
    assert (came.folders, came.size, came.left_out) == (("empty",), 22, ())
    assert (into / "out/up").read_text() == (into / "out/same.pt").read_text() == "./out/a.pt"
    status = (into / "out/a.pt").stat()
    assert (status.st_uid, status.st_mtime) == (os.getuid(), 1_700_000_000)
    assert os.access(into / "empty", os.W_OK)
    assert (into / "out/run.sh").stat().st_mode & 0o7100 == 0o100
    assert told[-1] == len(content)


@pytest.mark.parametrize(
    "entries",
    [
        [_entry("/etc/cron.d/x")],
        [_entry("out/../../x")],
        [_entry("..", tarfile.DIRTYPE)],
        [_entry("a"), _entry("b", tarfile.LNKTYPE, linkname="../x")],
    ],
    ids=["absolute", "above", "folder", "hard_link"],
)
def test_no_path_leads_out_of_the_folder(into: Path, entries: list[tarfile.TarInfo]) -> None:
    with pytest.raises(SettingsError, match="came as a file's path"):
        _unpack(into, _packed(*entries))
    assert [it.name for it in into.parent.iterdir()] == ["new"]


def test_nothing_is_written_through_a_link_and_none_leads_out(into: Path) -> None:
    outside = into.parent / "outside"
    outside.mkdir()
    names = {"a": "../outside", "b": str(outside), "c": "a/..", "d/e": "../../outside/x"}
    links = (_entry(name, tarfile.SYMTYPE, linkname=to) for name, to in names.items())
    devices = [_entry("pipe", tarfile.FIFOTYPE), _entry("null", tarfile.CHRTYPE)]
    came = _unpack(into, _packed(*links, _entry("f"), *devices))
    assert set(came.left_out) == {"a", "b", "c", "d/e", "pipe", "null"}
    assert came.files == ("f",)
    with pytest.raises(SettingsError, match="can't be written"):
        # A file below what came as a link: in the draft there is none yet, so it is a folder.
        _unpack(into, _packed(_entry("a", tarfile.SYMTYPE, linkname="."), _entry("a/x")))
    assert not list(outside.iterdir())


@pytest.mark.parametrize("cut", [0, 700, 512 + 512 + 512, 10_240])
def test_what_ends_early_is_never_taken_for_all(into: Path, cut: int) -> None:
    whole = _packed(_entry("a"), *(_entry(f"b{it}") for it in range(10)))
    with pytest.raises(CutOff):
        _unpack(into, whole[:cut])


def test_what_comes_twice_is_said(into: Path) -> None:
    with pytest.raises(SettingsError, match="can't be written"):
        _unpack(into, _packed(_entry("a"), _entry("./a")))
