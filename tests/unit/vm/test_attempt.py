"""The end of a program of the user's: who is heard, and what is written before it."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from aiinfra_vm.attempt import Attempt

_LONG = ["/bin/bash", "-c", "sleep 10; exit 3"]


@pytest.fixture(autouse=True)
def deaf() -> Iterator[None]:
    """A process that hears no SIGTERM: for as long as it waits, a late one is none."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    yield
    signal.signal(signal.SIGTERM, before)


def _ran(attempt: Attempt, program: list[str], meanwhile: Callable[[], object]) -> int:
    def act() -> None:
        while attempt._ending is None:  # it has begun
            time.sleep(0.01)
        meanwhile()

    threading.Thread(target=act, daemon=True).start()
    return attempt.run(program, dict(os.environb), os.open(os.devnull, os.O_WRONLY))


def test_a_notice_ends_a_program_whether_or_not_a_signal_is_heard() -> None:
    said: list[str] = []
    attempt = Attempt(said.append, "usual")
    began = time.monotonic()
    code = _ran(attempt, _LONG, lambda: attempt.notice("another VM failed"))
    assert (code, said) == (143, ["SIGTERM: another VM failed"])
    assert time.monotonic() - began < 10


def test_what_is_killed_was_told_before_and_its_log_says_so() -> None:
    said: list[str] = []

    def mark(words: str) -> None:  # on a machine that has other things to do
        time.sleep(0.2)
        said.append(words)

    attempt = Attempt(mark, "usual")

    def end() -> None:
        attempt.notice("--time is over")
        attempt.kill()

    assert _ran(attempt, _LONG, end) in {137, 143}
    assert said == ["SIGTERM: --time is over"]


def test_what_comes_after_the_end_of_a_program_is_no_reason_for_it() -> None:
    attempt = Attempt(lambda _: None, "usual")
    assert _ran(attempt, ["/bin/true"], int) == 0
    attempt.notice("Google takes this VM back (preemption)")
    attempt.stop()
    assert not attempt.why
