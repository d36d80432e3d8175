"""Ray on this VM: one `ray start`, in the foreground, and all that it starts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

# `ray` stands beside the Python that runs this.
_RAY = str(Path(sys.executable).with_name("ray"))
_STARTED = "Ray runtime started"
_STOP_SECONDS = 20


class Ray:
    """A Ray node that has been started.

    Args:
        arguments: Those of `ray start` that say which kind of node it is.
        address: This VM's address, which the other nodes reach it by.
    """

    def __init__(self, arguments: Sequence[str], address: str) -> None:
        self._ready = threading.Event()
        options = ("--block", "--disable-usage-stats", f"--node-ip-address={address}")
        self._process = subprocess.Popen(  # noqa: S603 - Ray's own command
            [_RAY, "start", *options, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # so that all of it can be ended
            text=True,
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_ready(self, seconds: float) -> bool:
        """Wait until this node is part of its cluster; False if it ended, or took too long."""
        return self._ready.wait(seconds) and self.alive()

    def alive(self) -> bool:
        """Whether Ray runs on this VM."""
        return self._process.poll() is None

    def stop(self) -> None:
        """End Ray on this VM, also what has come loose from the process that started it."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        subprocess.run(  # noqa: S603 - Ray's own command
            [_RAY, "stop", "--force"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=_STOP_SECONDS * 3,
            check=False,  # there is nothing left to stop: the usual case
        )
        self._reader.join(1)

    def _read(self) -> None:
        output = self._process.stdout
        if output is None:  # pragma: no cover - it was asked for
            raise AssertionError("Ray was started without its output")
        for line in output:
            sys.stdout.write(line)
            sys.stdout.flush()
            if _STARTED in line:
                self._ready.set()
        self._ready.set()  # it has ended: nobody need wait any longer
