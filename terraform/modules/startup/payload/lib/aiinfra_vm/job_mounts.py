"""Buckets that are mounted for one job, by root, from before its program begins until it has ended.

They are below /mnt alone, one folder deep: whoever may submit a job is nobody's administrator, and
nothing that root rests on is there. Without arguments this unmounts what is left: the unit does so
after each job.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING, Sequence

from aiinfra_vm import metadata, report

if TYPE_CHECKING:
    from aiinfra_vm.jobs import Mount

MADE = Path("/run/aiinfra/job-mounts.json")
"""The paths that are mounted, so that what a runner that was killed has left is found."""
# As the cluster's own buckets (gcs-mounts; provision/catalogue/gcsfuse.py).
_OPTIONS = "allow_other,implicit-dirs,dir-mode=777,file-mode=777,metadata-cache-ttl-secs=60"
_SECONDS = 300.0  # a role that was just granted takes minutes to be known everywhere
_ONCE = 60.0
_PAUSE = 5.0


class Unmountable(Exception):  # noqa: N818 - a state of the world, in words for its reader
    """A bucket can't be mounted for a job."""


def make(wanted: Sequence[Mount], pace: float) -> None:
    """Mount what a job wants.

    Raises:
        Unmountable: A path is in use, gcsfuse is missing, or the VM's account may not.
    """
    clear()
    if wanted and shutil.which("gcsfuse") is None:
        raise Unmountable(
            "this VM has no gcsfuse, with which --mount works: GCS_MOUNT_LIST with any bucket and"
            " Create --replace-vms bring it, or an image that has it"
        )
    for mount in wanted:
        point = Path(mount.path)
        if point.is_symlink() or os.path.ismount(point) or os.path.ismount(point.parent):
            raise Unmountable(f"{point} is in use on this VM: --mount with another path")
        if point.exists() and (not point.is_dir() or any(point.iterdir())):
            raise Unmountable(f"{point} has files on this VM: --mount with another path")
        point.mkdir(parents=True, exist_ok=True)
        MADE.write_text(json.dumps([*_made(), mount.path]), "utf-8")
        _mount(mount, pace)


def _mount(mount: Mount, pace: float) -> None:
    options = _OPTIONS + (",ro" if mount.read_only else "")
    command = ["mount", "-t", "gcsfuse", "-o", options, mount.bucket, mount.path]
    deadline = time.monotonic() + _SECONDS * pace
    while True:
        done = _run(command)
        if done is not None and done.returncode == 0:
            return
        if time.monotonic() > deadline:
            said = report.tail(done.stdout).strip() if done else f"no answer within {_ONCE:.0f} s"
            role = "objectViewer" if mount.read_only else "objectUser"
            account = "<the account of the VM>"
            with contextlib.suppress(OSError):
                account = metadata.get("instance/service-accounts/default/email")
            raise Unmountable(
                f"gs://{mount.bucket} can't be mounted: {said}; if its owner has not granted it:"
                f" gcloud storage buckets add-iam-policy-binding gs://{mount.bucket} --member"
                f" serviceAccount:{account} --role roles/storage.{role}"
            )
        time.sleep(_PAUSE * pace)


def clear() -> None:
    """Unmount what was mounted, also where it is in use: its last user keeps it."""
    for path in _made():
        _run(["umount", "--lazy", path])
        with contextlib.suppress(OSError):
            Path(path).rmdir()
    with contextlib.suppress(FileNotFoundError):
        MADE.unlink()


def _made() -> list[str]:
    try:
        return [str(it) for it in json.loads(MADE.read_text("utf-8"))]
    except (OSError, ValueError):
        return []


def _run(command: list[str]) -> subprocess.CompletedProcess[bytes] | None:
    """What a program of the system says; None where it hangs, or is not there."""
    try:
        return subprocess.run(  # noqa: S603 - constants, and names that were looked at
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            check=False, timeout=_ONCE,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None


if __name__ == "__main__":
    clear()
