"""Signals on their way to a child."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

from provision.terraform import child

if TYPE_CHECKING:
    from pathlib import Path

_PATIENT = "trap 'exit 3' INT; echo ready; while :; do sleep 0.02; done"


def test_an_interrupt_that_cuts_into_a_write_is_passed_on_and_said(tmp_path: Path) -> None:
    said = []

    def tell(text: str) -> None:
        # From within the handler this would be refused: the write below is still under way.
        said.append((text.partition(":")[0], threading.current_thread().name == "MainThread"))

    def write(_chunk: bytes) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    command = child.Command(argv=["/bin/sh", "-c", _PATIENT], folder=tmp_path, environ={})
    ended = child.run(command, tell, write)

    assert (ended.code, ended.interrupted_by) == (3, signal.SIGINT)
    assert said == [("Stopping", False)]
