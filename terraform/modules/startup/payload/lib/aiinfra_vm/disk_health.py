"""What is full, gone, or does not answer of what this VM keeps files on, as its agent tells it.

A full boot disk ends STARTUP_COMMAND, jobs, containers and logs, each with another message.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Iterator

from aiinfra_vm import localssd, looks

_FULL = 95
"""Percent from which on a disk, or its table of files, is said to be full."""


def watch(config: dict[str, Any]) -> list[looks.Look]:
    """A look at each disk and mount of this VM."""
    points = [str(localssd.MOUNT_POINT), *(it["local_mount"] for it in config.get("mounts") or ())]
    return [looks.Look(Place(it).look, it) for it in ("/", *points)]


class Place:
    """A place where files lie; what is not mounted yet, or never was, is nobody's trouble."""

    def __init__(self, point: str) -> None:
        self._point, self._was_there = point, False

    def look(self, _: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        """What is wrong with it now."""
        name = "the boot disk" if self._point == "/" else self._point
        try:
            Path(self._point).stat()
            is_there = os.path.ismount(self._point)
            room = os.statvfs(self._point) if is_there else None
        except FileNotFoundError:
            room = None
        except OSError as error:
            yield (f"{name}: {error.strerror}",)
            return
        if room is None:
            yield (f"{name} is not mounted any more",) if self._was_there else ()
            return
        self._was_there = True
        yield (_full(name, room),)


def percent(room: os.statvfs_result) -> int:
    """How full a disk is, as df counts: what is kept for root is no room for others."""
    used = room.f_blocks - room.f_bfree
    return used * 100 // max(1, used + room.f_bavail)


def _full(name: str, room: os.statvfs_result) -> str:
    if percent(room) >= _FULL:
        return f"{name} is {percent(room)} % full"
    files = (room.f_files - room.f_favail) * 100 // max(1, room.f_files)
    return f"{name} has room for few more files" if room.f_files and files >= _FULL else ""
