"""The VM's Local SSDs as one file system at /mnt/localssd: RAID 0 over all of them.

They are made into one on a new VM, and after a stop or a host error, which leave them empty; a
reboot finds them again. Disks that hold anything else are never written to, nor is what may be an
array: its members are counted, and its size is compared with theirs. Array and file system
are as Google's Cluster Toolkit makes them (v1.95.0, startup-script/files/setup-raid.yml), but for
the label by which they are known again.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aiinfra_vm import configuration, counted

if TYPE_CHECKING:
    from collections.abc import Mapping

MOUNT_POINT = Path("/mnt/localssd")
_LINKS = Path("/dev/disk/by-id")
_LINK = re.compile(r"google-local-nvme-ssd-(\d+)")  # a partition's has more behind the number
_MOUNTS = Path("/proc/self/mounts")
_BLOCK = Path("/sys/class/block")
_ARRAY = Path("/dev/md/localssd")
_LABEL = "localssd"
_FILE_SYSTEM = "ext4"
_MEMBER = "linux_raid_member"
# The service of a later boot and the start-up script may come here at the same moment.
_LOCK = Path("/run/aiinfra-localssd.lock")
_EVERYBODY = 0o1777
_SECONDS = 300
# The links to 32 disks come one after the other at a boot.
_LATE = 120
_MOST_LOST = 0.9  # of the disks' bytes an array has at least; md keeps some of each for itself
_CACHE = "gcsfuse"  # as provision/catalogue/gcsfuse.py has it
# blkid(8): the device was read, and nothing known was found on it.
_NOTHING = 2


class UnusableError(Exception):
    """The Local SSDs can't be made into one file system, for a reason that people can read."""


def disks() -> list[Path]:
    """The Local SSDs, in order of their numbers."""
    found = {}
    for link in _LINKS.iterdir() if _LINKS.is_dir() else ():
        match = _LINK.fullmatch(link.name)
        if match:
            found[int(match.group(1))] = link
    return [found[number] for number in sorted(found)]


def is_ours(content: Mapping[str, str], kind: str) -> bool:
    """Whether a device holds what this program makes."""
    # The name of an array follows that of its host, which is "any".
    label = content.get("LABEL", "").rpartition(":")[2]
    return content.get("TYPE") == kind and label == _LABEL


def are_new(contents: Mapping[str, Mapping[str, str]], kind: str) -> bool:
    """Whether all devices are empty; otherwise all hold what this program makes.

    `contents`: device -> what blkid says of it, {} for an empty one. `kind`: what they would hold:
    a file system, or the parts of an array.

    Raises:
        UnusableError: One of them holds something else, or some are empty and some are not.
    """
    if not any(contents.values()):
        return True
    others = [name for name, content in contents.items() if not is_ours(content, kind)]
    if not others:
        return False
    told = ", ".join(f"{name} ({_in_words(contents[name])})" for name in others)
    raise UnusableError(
        f"the Local SSDs are left as they are, as some hold something else than {MOUNT_POINT}:"
        f" {told}; if nobody needs that, run `sudo wipefs --all` with their names, and reboot"
    )


def document() -> dict[str, Any]:
    """What there is: disks, expected disks, and the size in bytes, None where it isn't mounted."""
    mounted = _is_mounted()
    size = os.statvfs(str(MOUNT_POINT)) if mounted else None
    return {
        "disks": len(disks()),
        "expected": configuration.load().get("local_ssds") or 0,
        "mounted": mounted,
        "bytes": size.f_blocks * size.f_frsize if size else None,
        "free": size.f_bavail * size.f_frsize if size else None,
    }


def prepare() -> None:
    """Mount the Local SSDs, made into one if they are new; with none, or when it's done, nothing.

    Raises:
        UnusableError: They hold something else, or not all of an array is there.
        OSError, subprocess.SubprocessError: A program is missing, fails, or hangs.
    """
    wanted = configuration.load().get("local_ssds") or 0
    if _is_mounted() or not (wanted or disks()):
        return
    found = _awaited(wanted)
    if not found:
        return  # `check` says so
    if len(found) < wanted:
        raise UnusableError(
            f"the Local SSDs are left as they are: {len(found)} of {wanted} are there after {_LATE}"
            " seconds, and an array of them would hold less than this machine type has"
        )
    device, made = (found[0], True) if len(found) == 1 else _array(found)
    if not made:
        _compare(device, found)
    if are_new({str(device): _content(device)}, _FILE_SYSTEM):
        _run(f"mkfs.{_FILE_SYSTEM}", "-q", "-F", "-m", "0", "-L", _LABEL, str(device))
    MOUNT_POINT.mkdir(parents=True, exist_ok=True)
    options = ["-t", _FILE_SYSTEM, "-o", "discard"]
    _run("mount", *options, str(device), str(MOUNT_POINT))
    # Before everybody may put something there: gcsfuse keeps its cache in it as root.
    cache = MOUNT_POINT / _CACHE
    with contextlib.suppress(FileExistsError):
        cache.mkdir(mode=0o700)
    if not stat.S_ISDIR(cache.lstat().st_mode) or cache.lstat().st_uid:
        raise UnusableError(f"{cache} is not root's: remove it, and reboot")
    MOUNT_POINT.chmod(_EVERYBODY)


def _awaited(wanted: int) -> list[Path]:
    """The disks, once as many as there should be have their links, or after a while."""
    deadline = time.monotonic() + _LATE
    while len(disks()) < wanted and time.monotonic() < deadline:
        time.sleep(1)
    return disks()


def _is_mounted() -> bool:
    # Not by the numbers of devices, which a bind mount of the image's own may share with it.
    mounts = _MOUNTS.read_text("utf-8", "replace").splitlines()
    return any(line.split()[1] == str(MOUNT_POINT) for line in mounts)


def _array(found: list[Path]) -> tuple[Path, bool]:
    """The array of several disks, made if they are new; and whether it was."""
    names = [str(disk) for disk in found]
    if are_new({name: _content(Path(name)) for name in names}, _MEMBER):
        wanted = [f"--name={_LABEL}", "--homehost=any", "--level=0", f"--raid-devices={len(names)}"]
        _run("mdadm", "--create", str(_ARRAY), *wanted, *names)
        return _ARRAY, True
    # The image may have put it together at the boot, under another name.
    holders = _BLOCK / found[0].resolve().name / "holders"
    for holder in holders.iterdir() if holders.is_dir() else ():
        device = Path("/dev") / holder.name
        if not _bytes(device):
            # udev adds the members one by one, and may not have come to the last.
            _run("mdadm", "--stop", str(device))
            break
        return device, False
    _run("mdadm", "--assemble", str(_ARRAY), *names)
    return _ARRAY, False


def _compare(array: Path, members: list[Path]) -> None:
    """Look whether an array that was found is one of all these disks, and runs.

    An array that is not started reads as empty, and would be formatted.

    Raises:
        UnusableError: It is not.
    """
    size, all_ = _bytes(array), sum(map(_bytes, members))
    if not _MOST_LOST * all_ <= size <= all_:
        raise UnusableError(
            f"the Local SSDs are left as they are: the array {array} has {size} bytes, its"
            f" {len(members)} disks have {all_}; `sudo mdadm --detail {array}` says which it lacks"
        )


def _bytes(device: Path) -> int:
    """A device's size; 0 for an array that does not run."""
    try:
        with device.open("rb") as file:
            return file.seek(0, os.SEEK_END)
    except OSError:
        return 0


def _content(device: Path) -> dict[str, str]:
    """What is on a device, as blkid reads it from the device itself; {} where it is empty."""
    command = ["blkid", "--probe", "--output", "export", str(device)]
    answer = subprocess.run(  # noqa: S603 - a path below /dev
        command, check=False, stdout=subprocess.PIPE, timeout=_SECONDS
    )
    if answer.returncode == _NOTHING:
        return {}
    lines = (line.partition("=") for line in answer.stdout.decode().splitlines())
    # What blkid can't make sense of is not empty.
    return {"TYPE": "unknown", **{key: value for key, _, value in lines}}


def _in_words(content: Mapping[str, str]) -> str:
    if not content:
        return "empty"
    if content["TYPE"] == "unknown" and "PTTYPE" in content:
        return "partitions"
    label = content.get("LABEL")
    return f"{content['TYPE']} {label}" if label else content["TYPE"]


def _run(*command: str) -> None:
    subprocess.run(  # noqa: S603 - constants, and paths below /dev
        command, stdin=subprocess.DEVNULL, check=True, timeout=_SECONDS
    )


def main() -> int:
    """`prepare` mounts them; `check` prints the document, and what is wrong."""
    if sys.argv[1] == "prepare":
        try:
            with _LOCK.open("w") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                prepare()
        except (UnusableError, OSError, subprocess.SubprocessError) as error:
            sys.stderr.write(f"{error}\n")
            return 1
        return 0
    found = document()
    sys.stderr.write(f"{json.dumps(found)}\n")
    if found["disks"] < found["expected"]:
        sys.stderr.write(
            f"this VM has {counted(found['disks'], 'Local SSD')}, not {found['expected']}: their"
            " host may have lost one, and a VM that is recreated gets another host\n"
        )
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
