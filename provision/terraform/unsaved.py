"""The state that a failed apply could not save: saved again, or kept where it can be had.

Terraform writes such a state to `errored.tfstate` in its working directory ("State Recovery" in
HashiCorp's documentation of backends), and this program's run folder is deleted at its end.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final

from provision.time import retries
from provision.time.retries import TransientError

if TYPE_CHECKING:
    from collections.abc import Callable

    from provision.terraform.child import Ended
    from provision.time.progress import Progress

FILE: Final = "errored.tfstate"


def push(start: Callable[[], Ended], progress: Progress) -> bool:
    """Push the state, again and again for a minute or two; returns whether it is saved now."""

    def attempt() -> None:
        done = start()
        if done.code != 0:
            said = done.output.decode("utf-8", "replace").split()
            raise TransientError(f"the state could not be saved: {' '.join(said)[:300]}")

    try:
        retries.policy(progress.clock, progress.tell)(attempt)
    except TransientError:
        return False
    progress.tell("The state is saved now")
    return True


def keep(file: Path) -> Path | None:
    """Copy the file out of the run folder; returns where it is, or None if nothing can be written.

    `file`: Terraform's; it has secrets, so only its owner may read the copy.
    """
    for place in (Path.cwd(), Path(tempfile.gettempdir())):
        with contextlib.suppress(OSError):
            descriptor, name = tempfile.mkstemp(suffix=f"-{FILE}", dir=place)
            with os.fdopen(descriptor, "wb") as copy, file.open("rb") as source:
                shutil.copyfileobj(source, copy)
            return Path(name)
    return None


def words(kept: Path | None) -> str:
    """What to tell of a state that is not saved."""
    where = f"it is in {kept}" if kept else "it is lost: nothing could be written here either"
    return (
        f"Terraform could not save its state; {where}."
        " The next Create or Destroy needs no file: it finds by name and marker what was made"
    )
