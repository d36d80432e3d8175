import os
import threading
from pathlib import Path
from typing import Any

import pytest
from aiinfra_vm import disk_health, looks

from tests import waiting


def _room(used: int, files: int = 10) -> os.statvfs_result:
    # block size, fragment size, blocks, free, available, files, free, available, flags, longest
    return os.statvfs_result((4096, 4096, 100, 100 - used, 100 - used, 100, 0, 100 - files, 0, 255))


def _say(place: disk_health.Place) -> tuple[str, ...]:
    (found,) = place.look(())
    return looks.few(found)


@pytest.mark.parametrize(
    ("room", "said"),
    [
        (_room(94), ()),
        (_room(97), ("the boot disk is 97 % full",)),
        (_room(100), ("the boot disk is 100 % full",)),
        (_room(50, files=96), ("the boot disk has room for few more files",)),
    ],
)
def test_a_disk_without_room_is_told_before_it_is_full(
    monkeypatch: pytest.MonkeyPatch, room: os.statvfs_result, said: tuple[str, ...]
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    assert _say(disk_health.Place("/")) == said


def test_what_was_mounted_and_is_gone_is_told_and_what_never_was_is_not(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    place, mounted = disk_health.Place(str(tmp_path)), [False]
    monkeypatch.setattr(os.path, "ismount", lambda _: mounted[0])
    monkeypatch.setattr(os, "statvfs", lambda _: _room(1))
    assert _say(place) == ()
    assert _say(disk_health.Place(f"{tmp_path}/none")) == ()

    mounted[0] = True
    assert _say(place) == ()
    mounted[0] = False
    assert _say(place) == (f"{tmp_path} is not mounted any more",)

    def dead(*_: object, **__: object) -> None:
        raise OSError(107, "Transport endpoint is not connected")

    monkeypatch.setattr(Path, "stat", dead)
    assert _say(place) == (f"{tmp_path}: Transport endpoint is not connected",)


def test_a_share_that_does_not_answer_is_told_while_the_others_are_looked_at(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    asked, goes_on, usual = threading.Event(), threading.Event(), os.path.ismount

    def hang(point: Any) -> bool:
        if str(point) != str(tmp_path):
            return usual(point)
        asked.set()
        goes_on.wait(waiting.SECONDS)
        return True

    monkeypatch.setattr(os.path, "ismount", hang)
    monkeypatch.setattr(os, "statvfs", lambda _: _room(97))
    share = disk_health.watch({"mounts": [{"local_mount": str(tmp_path)}]})[-1]
    try:
        assert asked.wait(waiting.SECONDS)
        before = share.found
        assert before == ()
        monkeypatch.setattr(looks, "_STUCK", 0.0)
        assert share.found[0].startswith(f"{tmp_path} does not answer since 20")
    finally:
        goes_on.set()
