"""What Slurm does as root on a VM before a job's first process there: is the VM fit for it?

A VM whose GPUs are not well is drained, with the reason, and the job begins elsewhere. A job of Run
gets its folder.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import subprocess
import sys
from pathlib import Path

from aiinfra_vm import configuration, counted, gpu_check, gpu_health, slurm_conf, slurm_queue

HOME = Path("/var/lib/aiinfra-job")
"""Where the folders of Run's jobs are."""
_LONGEST = 160
_CHOWN = 60  # seconds


def complaint() -> str:
    """What is wrong with this VM's GPUs; "" for nothing."""
    wanted = configuration.load()["gpus"]
    if not wanted:
        return ""
    try:
        found = gpu_check.gpus()
    except (OSError, subprocess.SubprocessError) as error:
        return f"nvidia-smi: {error}"
    if len(found) != wanted["count"]:
        return f"{counted(len(found), 'GPU')} instead of {wanted['count']}"
    return "; ".join(gpu_health.logged())


def drain(node: str, why: str) -> None:
    """Have nothing new begin on a node."""
    with contextlib.suppress(OSError):  # Slurm drains it for its Prolog, if with fewer words
        slurm_queue.drain(node, f"{slurm_conf.OURS}{why[:_LONGEST]}")


def make_folder(comment: str, user: str) -> None:
    """Make the folder of a job of Run; of another job, nothing.

    What jobs before it have left that had the same user is closed to it.

    Raises:
        OSError: It can't be made.
    """
    match = slurm_queue.COMMENT.fullmatch(comment)
    if match is None or not slurm_queue.is_users(user):
        return
    HOME.mkdir(mode=0o755, parents=True, exist_ok=True)
    folder, own = HOME / match[1], pwd.getpwnam(user).pw_uid
    for other in HOME.iterdir():
        with contextlib.suppress(OSError):  # removed meanwhile, or as below
            if other != folder and other.lstat().st_uid == own:
                os.chown(other, 0, 0, follow_symlinks=False)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    try:
        is_its = folder.lstat().st_uid == own
    except OSError:  # a program of it has mounted something there by FUSE: that drains no VM
        is_its = True
    if not is_its:
        # An earlier attempt may have had another user, whose files are in it. What can't be had, as
        # it is mounted, fails its own job, and no VM.
        chown = ["chown", "--recursive", "--no-dereference", f"{user}:{user}", str(folder)]
        subprocess.run(chown, check=False, timeout=_CHOWN)  # noqa: S603 - names that were looked at


def main() -> int:
    """Look, and make; what Slurm says of the job is in the environment."""
    wrong = complaint()
    if wrong:
        sys.stderr.write(f"{wrong}\n")
        drain(os.environ["SLURMD_NODENAME"], wrong)
        return 1
    make_folder(os.environ.get("SLURM_JOB_COMMENT", ""), os.environ["SLURM_JOB_USER"])
    return 0


if __name__ == "__main__":
    sys.exit(main())
