"""The token that all of a Ray cluster's nodes and clients have, and nobody else.

It is an object that only the cluster's account can read. On a VM it is in memory, for everybody
there: any process could get the object itself, as the account whose credentials the metadata
server gives to all.
"""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import TYPE_CHECKING

from aiinfra_vm.storage import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiinfra_vm.storage import Folder

_NAME = "token"
_BYTES = 32


class Token:
    """The token.

    All methods raise OSError where Cloud Storage does not answer or refuses.
    """

    def __init__(
        self,
        folder: Folder,
        file: Path,
        random: Callable[[], str] = lambda: secrets.token_hex(_BYTES),
    ) -> None:
        self._folder = folder
        self._file = file
        self._random = random

    def make(self) -> None:
        """Put the token in its place; make it, if no head of this cluster has ever done so."""
        while not self.fetch():
            # Another VM may make it at the same moment: the next look has whichever counts.
            self._folder.write(_NAME, self._random().encode(), NOTHING)

    def fetch(self) -> bool:
        """Put the token in its place; whether there is one."""
        found = self._folder.read(_NAME)
        if found is None:
            return False
        part = self._file.with_suffix(".part")
        # Readable for everybody on the VM, whatever the umask.
        part.write_bytes(found[0])
        part.chmod(0o644)
        part.replace(self._file)
        return True


def file() -> Path:
    """Where the token is on this VM, as the environment tells Ray."""
    return Path(os.environ["RAY_AUTH_TOKEN_PATH"])
