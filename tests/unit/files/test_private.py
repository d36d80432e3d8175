"""The folders of a run on a disk that is full."""

import errno
import os
import shutil
import tempfile
from typing import Never

import pytest

from provision.codes import Code
from provision.errors import CheckError
from provision.files import private

FULL = [
    OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "/mnt/x"),
    OSError(errno.EDQUOT, os.strerror(errno.EDQUOT)),
    shutil.Error([("a", "b", str(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))))]),
]


@pytest.mark.parametrize("error", FULL, ids=["disk", "quota", "tree"])
def test_a_full_disk_is_said_with_what_mends_it(error: OSError) -> None:
    with pytest.raises(CheckError) as raised, private.writing():
        raise error

    (problem,) = raised.value.problems
    assert problem.code is Code.DISK_FULL
    assert "TMPDIR" in problem.fix
    assert problem.what.endswith("/mnt/x" if error.filename else tempfile.gettempdir())


def test_a_folder_that_finds_no_room_is_said_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**_: object) -> Never:
        raise FULL[0]

    monkeypatch.setattr(tempfile, "TemporaryDirectory", full)

    with pytest.raises(CheckError), private.folder():
        raise AssertionError("there is no folder")


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(PermissionError), private.writing():
        raise PermissionError(errno.EACCES, "no")
