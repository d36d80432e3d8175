"""Work beside other work: its end reaches whoever waits, and nobody else has to."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from provision import background

ROOT = Path(__file__).parents[2]


def test_it_goes_on_while_something_else_is_done() -> None:
    meanwhile = threading.Event()
    begun = background.begin(lambda: meanwhile.wait(600))
    assert not begun.done()
    meanwhile.set()
    assert begun.result(600)


def test_its_error_is_that_of_whoever_waits() -> None:
    def fail() -> None:
        raise ValueError("the work's")

    with pytest.raises(ValueError, match="the work's"):
        background.begin(fail).result(600)


def test_the_program_ends_without_it() -> None:
    code = (
        "import time; from provision import background; background.begin(lambda: time.sleep(3600))"
    )
    environ = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", code], env=environ, check=False, timeout=600)
    assert done.returncode == 0
