"""Who is the head, of Ray or of Slurm: an object in Cloud Storage that one VM at a time holds.

Its generation says who holds it, as of several VMs that take it one succeeds; its metageneration
says that the holder lives.
"""

from __future__ import annotations

import json
import urllib.error
from typing import NamedTuple

from aiinfra_vm.report import now
from aiinfra_vm.storage import NOTHING, Folder, Version

_NAME = "head.json"
_FORBIDDEN = 403


class Claim(NamedTuple):
    """One life of a head: a VM, and the time from one start of its program to its end."""

    vm: str
    address: str
    instance_id: str
    life: str


class Head(NamedTuple):
    """The life of a head that holds the lease, and the lease as it was seen."""

    claim: Claim
    version: Version


class Lease:
    """The object that names the head.

    All methods raise OSError where Cloud Storage does not answer or refuses.
    """

    def __init__(self, folder: Folder) -> None:
        self._folder = folder

    def read(self) -> Head | None:
        """Who holds the lease; None if nobody does."""
        found = self._folder.read(_NAME)
        if found is None:
            return None
        document = json.loads(found[0])
        # A head of an earlier version of this program says no life of its own.
        claim = Claim(*(str(document.get(field, "")) for field in Claim._fields))
        return Head(claim, found[1])

    def take(self, claim: Claim, over: Head | None) -> Head | None:
        """Take the lease, from nobody or from the holder that was seen.

        The head with the lease; None if another was faster, or the holder renewed it meanwhile.
        """
        document = {**claim._asdict(), "at": now()}
        made = self._folder.write(_NAME, document, over.version if over else NOTHING)
        return None if made is None else Head(claim, made)

    def hold(self, head: Head) -> Head | None:
        """Renew the lease, and take it again if it was deleted; None if another head has it."""
        try:
            renewed = self._folder.touch(head.version)
        except urllib.error.HTTPError as error:
            # Whoever may not list a bucket is not told either that an object isn't there.
            if error.code != _FORBIDDEN:
                raise
            renewed = None
        if renewed is not None:
            return Head(head.claim, renewed)
        current = self.read()
        if current is None:
            # Of two that take it now, the other one shows at the next turn.
            return self.take(head.claim, over=None) or head
        # The answer to a request that took it may have been lost.
        return current if current.claim == head.claim else None

    def release(self, head: Head) -> None:
        """Give the lease up, if it is still as this head left it."""
        self._folder.remove(head.version)
