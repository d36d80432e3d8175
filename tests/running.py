"""Programs that tests run to their end, whatever that is."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any


def ran(command: Sequence[str | Path], **options: Any) -> subprocess.CompletedProcess[str]:
    """How it ended, with what it said as text; the options are those of `subprocess.run`."""
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
