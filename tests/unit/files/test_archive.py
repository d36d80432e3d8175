"""The folder that travels to every VM, as one archive."""

import errno
import hashlib
import os
import shutil
import stat
import subprocess
import tarfile
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from provision.codes import Code, ExitCode
from provision.errors import CheckError, Problem, SettingsError
from provision.files import archive as files
from provision.files.archive import StoredGzip
from provision.files.left_out import LeftOut
from tests.unit import table


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder to be packed."""
    path = tmp_path / "copy"
    path.mkdir()
    return path


@pytest.fixture
def into(tmp_path: Path) -> Path:
    """Where archives are made."""
    path = tmp_path / "run"
    path.mkdir()
    return path


def packed(folder: Path, into: Path) -> files.Archive:
    """The archive of a folder that has something in it."""
    archive = files.pack(folder, into)
    assert archive is not None
    return archive


def problems(folder: Path, into: Path) -> dict[str, Problem]:
    """What keeps a folder from travelling: first word of the message -> problem."""
    with pytest.raises(SettingsError) as caught:
        files.pack(folder, into)
    assert caught.value.exit_code is ExitCode.USAGE
    assert not list(into.iterdir())
    assert all(problem.why and problem.fix for problem in caught.value.problems)
    return {problem.what.split()[0]: problem for problem in caught.value.problems}


def test_a_folder_that_is_absent_or_empty_makes_no_archive(folder: Path, into: Path) -> None:
    assert files.pack(folder, into) is None
    assert files.pack(folder / "absent", into) is None
    assert not list(into.iterdir())


def test_the_archive_is_named_by_the_sum_of_its_bytes(folder: Path, into: Path) -> None:
    (folder / "a").write_text("one")
    (folder / "empty").mkdir()
    (folder / "b").symlink_to("a")

    archive = packed(folder, into)

    assert archive.sha256 == hashlib.sha256(archive.path.read_bytes()).hexdigest()
    assert archive.path == into / f"{archive.sha256}.tar.gz"
    assert (archive.count, archive.size) == (2, 3)
    assert list(into.iterdir()) == [archive.path]


def test_entries_are_sorted_with_a_folder_before_what_it_holds(folder: Path, into: Path) -> None:
    for name in ("b", "a", "a/z", "a/é", "a-b"):
        (folder / name).mkdir()

    with tarfile.open(packed(folder, into).path) as archive:
        assert archive.getnames() == ["a", "a-b", "a/z", "a/é", "b"]


def test_times_and_owners_make_no_difference(folder: Path, into: Path) -> None:
    (folder / "sub").mkdir()
    for name in ("b", "a", "sub/c"):
        (folder / name).write_text(name)
    before = packed(folder, into)
    again = folder.with_name("again")
    shutil.copytree(folder, again)
    for path in (again / "a", again / "sub", again):
        os.utime(path, (1, 1))

    assert packed(again, into).sha256 == before.sha256


def test_the_bytes_depend_on_no_library_version(folder: Path, into: Path) -> None:
    (folder / "train.py").write_text("print('hello')\n" * 5000)
    (folder / "train.py").chmod(0o644)

    # A new value here means that every cluster with a copied folder gets new VMs.
    assert packed(folder, into).sha256 == SUM


SUM = "5d73e91d7458a47a1dbd84a9626ff2d5a1cac8fc8a6f8ec4d5d08ba9cd3c7877"


def test_what_the_vms_would_see_makes_a_difference(folder: Path, into: Path) -> None:
    changes: list[Callable[[], object]] = [
        lambda: (folder / "a").write_text("two"),
        lambda: (folder / "a").chmod(0o755),
        lambda: (folder / "a").rename(folder / "b"),
        (folder / "c").mkdir,
    ]
    (folder / "a").write_text("one")
    (folder / "a").chmod(0o644)
    sums = {packed(folder, into).sha256}
    for number, change in enumerate(changes, 2):
        change()
        sums.add(packed(folder, into).sha256)
        assert len(sums) == number


def test_the_tar_of_the_vms_unpacks_it_without_a_word(folder: Path, into: Path) -> None:
    long = "x" * 120
    (folder / long).mkdir()
    (folder / long / long).write_bytes(os.urandom(200_000))
    (folder / "run.sh").write_text("#!/bin/sh\n")
    (folder / "run.sh").chmod(0o4755)
    (folder / "link").symlink_to(f"{long}/{long}")
    (folder / os.fsdecode(b"not-utf8-\xff")).write_text("y")
    out = folder.with_name("out")
    out.mkdir()

    archive = packed(folder, into)
    tar = shutil.which("tar")
    assert tar
    done = subprocess.run(
        [tar, "-xzpf", archive.path, "-C", out], check=True, capture_output=True, text=True
    )

    assert done.stderr == ""
    assert (out / "link").read_bytes() == (folder / long / long).read_bytes()
    assert stat.S_IMODE((out / "run.sh").stat().st_mode) == 0o755
    assert {path.name for path in out.iterdir()} == {path.name for path in folder.iterdir()}


def test_everything_that_cannot_travel_is_said_at_once(folder: Path, into: Path) -> None:
    (folder / "fine").write_text("x")
    os.mkfifo(folder / "fifo")
    os.mknod(folder / "socket", stat.S_IFSOCK | 0o600)
    with (folder / "huge").open("wb") as sparse:
        sparse.truncate(files.LARGEST_FILE + 1)

    said = {Path(name).name: problem.what for name, problem in problems(folder, into).items()}

    assert set(said) == {"fifo", "socket", "huge"}
    assert "named pipe" in said["fifo"]
    assert "a socket" in said["socket"]
    assert str(files.LARGEST_FILE + 1) in said["huge"]


@pytest.mark.parametrize("ignore", [".gitignore", ".aiinfraignore"])
def test_a_refusal_ends_with_the_line_that_leaves_the_file_out(
    folder: Path, into: Path, ignore: str
) -> None:
    (folder / ignore).write_text("*.ckpt\n")
    odd = ["fifo", "#a !", "a*[1]?\\ ", "new\nline", os.fsdecode(b"\xff")]
    for name in odd:
        (folder / "sub" / name).mkdir(parents=True)
        os.mkfifo(folder / "sub" / name / name)
        (folder / "sub" / name / "fine").write_text("x")
    with pytest.raises(SettingsError) as caught:
        files.pack(folder, into)

    fixes = [problem.fix for problem in caught.value.problems]
    assert len(fixes) == len(odd)
    assert all(f"by this line in {ignore}" in fix for fix in fixes)
    lines = [fix.partition(": ")[2] for fix in fixes]
    (folder / ignore).write_text("\n".join(["*.ckpt", *lines]))

    with tarfile.open(packed(folder, into).path) as archive:
        assert sorted(it for it in archive.getnames() if it.startswith("sub/")) == sorted(
            [f"sub/{it}" for it in odd] + [f"sub/{it}/fine" for it in odd]
        )


def test_all_files_together_have_a_greatest_size(folder: Path, into: Path) -> None:
    for name in ("a", "data/b", "data/c", "d", "e"):
        (folder / name).parent.mkdir(exist_ok=True)
        with (folder / name).open("wb") as sparse:
            sparse.truncate(files.LARGEST_FILE)

    (problem,) = problems(folder, into).values()

    assert str(folder) in problem.what
    assert "4 GiB" in problem.why
    assert "GCS_MOUNT_LIST" in problem.fix
    assert "data has 2147483648 bytes of it" in problem.fix
    assert problem.fix.endswith("in .aiinfraignore: /data/")


def test_a_file_in_place_of_the_folder_is_said(folder: Path, into: Path) -> None:
    (folder / "a").write_text("x")

    (problem,) = problems(folder / "a", into).values()

    assert "can't be read" in problem.what
    assert problem.why == "Not a directory"


@contextmanager
def as_somebody() -> Iterator[Path]:
    """A folder of somebody's who is not root, to whom everything is readable."""
    nobody = 65534
    with tempfile.TemporaryDirectory() as top:
        root = os.geteuid() == 0
        if root:
            os.chown(top, nobody, nobody)
            os.seteuid(nobody)
        try:
            yield Path(top)
        finally:
            if root:
                os.seteuid(0)


def test_what_cannot_be_read_is_said() -> None:
    with as_somebody() as top:
        folder, into = top / "copy", top / "run"
        folder.mkdir()
        into.mkdir()
        (folder / "secret").write_text("x")
        (folder / "secret").chmod(0)
        (folder / "closed").mkdir(mode=0)

        said = problems(folder, into)
        (folder / "closed").chmod(0o700)

    assert {Path(name).name for name in said} == {"secret", "closed"}
    assert {problem.why for problem in said.values()} == {"Permission denied"}


def test_a_file_that_shrinks_meanwhile_is_said_and_leaves_nothing(
    folder: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "log").write_text("x" * 100)
    whole = files._survey

    def survey(path: Path, left_out: LeftOut) -> object:
        found = whole(path, left_out)
        (folder / "log").write_text("x")
        return found

    monkeypatch.setattr(files, "_survey", survey)

    assert "unexpected end of data" in problems(folder, into)[str(folder / "log")].why


def test_a_full_disk_is_no_fault_of_the_files_and_leaves_nothing(
    folder: Path, into: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a").write_text("x" * 20_000)

    def write(_archive: StoredGzip, _data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(StoredGzip, "write", write)

    with pytest.raises(CheckError) as raised:
        files.pack(folder, into)
    assert raised.value.problems[0].code is Code.DISK_FULL
    assert not list(into.iterdir())


# A link and its target; "out:" where its way leads out of the folder.
LINKS = """
a b
a sub/c
a ./sub/./c
sub/a ../b
a missing
a a
# Up from where the link `deep` leads, not from where it stands.
a deep/../c
a deep/../../b
out: a /usr/aiinfra/copy/b
out: a ..
out: a ../copy/b
out: sub/a ../../copy/b
out: a shallow/../b
out: a absolute/x
"""


@pytest.mark.parametrize("row", table.lines(LINKS))
def test_a_link_travels_where_its_whole_way_is_inside_and_stays_elsewhere(
    folder: Path, into: Path, row: str
) -> None:
    name, target = row.removeprefix("out: ").split()
    (folder / "sub" / "deeper").mkdir(parents=True)
    (folder / "sub" / "c").write_text("c")
    (folder / "b").write_text("b")
    (folder / "deep").symlink_to("sub/deeper")
    (folder / "shallow").symlink_to(".")
    (folder / name).symlink_to(target)
    if target.startswith("absolute"):
        (folder / "absolute").symlink_to("/")
    left_out = LeftOut.of(folder)
    archive = files.pack(folder, into, left_out)
    assert archive is not None
    with tarfile.open(archive.path) as found:
        if row.startswith("out: "):
            assert name in left_out.links
            assert name not in found.getnames()
        else:
            assert found.getmember(name).linkname == target


# Names of secrets and of lists of patterns stay behind (left_out.py); so nothing with a dot here.
NAMES = st.text(
    st.characters(exclude_characters="/\0.", exclude_categories=["Cs"]), min_size=1, max_size=20
).filter(lambda name: not name.startswith("id_"))
MODES = st.integers(0, 0o777)
LEAVES = st.tuples(st.binary(max_size=200_000), MODES)
TREES = st.recursive(
    st.dictionaries(NAMES, LEAVES, max_size=3),
    lambda trees: st.dictionaries(NAMES, LEAVES | trees, max_size=3),
    max_leaves=6,
)


def make(tree: Mapping[str, object], folder: Path) -> None:
    """Write a tree of names to (content, mode) or to more of it."""
    for name, inside in tree.items():
        path = folder / name
        if isinstance(inside, tuple):
            path.write_bytes(inside[0])
            path.chmod(inside[1] | 0o400)
        else:
            assert isinstance(inside, dict)
            path.mkdir()
            make(inside, path)


def seen(folder: Path) -> dict[str, tuple[int, bytes | None]]:
    """A tree as a user of the VM sees it."""
    return {
        str(path.relative_to(folder)): (
            stat.S_IMODE(path.lstat().st_mode),
            path.read_bytes() if path.is_file() else None,
        )
        for path in folder.rglob("*")
    }


@given(TREES)
@settings(max_examples=40, deadline=None)
def test_any_tree_comes_out_as_it_went_in(tree: dict[str, object]) -> None:
    with tempfile.TemporaryDirectory() as top:
        folder, into, out = (Path(top) / name for name in ("copy", "run", "out"))
        for path in (folder, into, out):
            path.mkdir()
        make({name: inside for name, inside in tree.items() if len(name.encode()) < 200}, folder)

        archive = files.pack(folder, into)

        if archive is None:
            assert not any(folder.iterdir())
            return
        with tarfile.open(archive.path) as packed_tree:
            packed_tree.extractall(  # noqa: S202 - it was made a moment ago
                out, filter="fully_trusted"
            )
        assert seen(out) == seen(folder)
        assert archive.size == sum(len(it) for _, it in seen(folder).values() if it is not None)
