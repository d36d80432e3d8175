"""Asks programs of the system, and waits for none without a limit.

A program that hangs in the kernel (state D), as nvidia-smi does where the driver hangs, dies of no
signal, and `subprocess.run` waits for its end whatever the timeout.
"""

from __future__ import annotations

import subprocess

_hung: dict[str, subprocess.Popen[bytes]] = {}


def ask(command: list[str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """What a program says; one that hangs is left alone, and not begun a second time beside that.

    Raises:
        OSError: It can't be begun.
        subprocess.TimeoutExpired: It does not end in time, or did not so earlier and hangs still.
    """
    earlier = _hung.get(command[0])
    if earlier is not None and earlier.poll() is None:
        raise subprocess.TimeoutExpired(command, seconds)
    process = subprocess.Popen(  # noqa: S603 - constants of those who ask
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    try:
        said, complaint = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        for pipe in filter(None, (process.stdout, process.stderr)):
            pipe.close()
        _hung[command[0]] = process
        raise
    return subprocess.CompletedProcess(command, process.returncode, said, complaint)
