"""Who is the head, of Ray or of Slurm: an object in Cloud Storage that one VM at a time holds.

Its generation says who holds it, as of several VMs that take it one succeeds; its metageneration
says that the holder lives.
"""

from __future__ import annotations

import ipaddress
import re
import urllib.error
from typing import Any, NamedTuple

from aiinfra_vm.report import now
from aiinfra_vm.storage import NOTHING, Folder, Version, decoded

_NAME = "head.json"
_FORBIDDEN = 403
_VM = re.compile("[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_WORD = re.compile("[-a-z0-9]{0,64}")


class Claim(NamedTuple):
    """One life of a head: a VM, and the time from one start of its program to its end."""

    vm: str
    address: str
    instance_id: str
    life: str


NOBODY = Claim("", "", "", "")
"""What a lease claims that is spoiled: it is taken over when it has expired."""


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
        """Who holds the lease; None if nobody does, `NOBODY` if no head can have written it."""
        found = self._folder.read(_NAME)
        return None if found is None else Head(_claim(found[0]), found[1])

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


def _claim(text: bytes) -> Claim:
    """What a lease says: each program on a VM may write it, and files of root's are made of it."""
    try:
        said = decoded(text)
        vm, address = _matched(_VM, said["vm"]), str(ipaddress.IPv4Address(said["address"]))
        # A head of an earlier version of this program says no life of its own.
        words = (_matched(_WORD, it) for it in (said["instance_id"], said.get("life", "")))
        return Claim(vm, address, *words)
    except (ValueError, KeyError, TypeError, AttributeError):
        return NOBODY


def _matched(wanted: re.Pattern[str], said: Any) -> str:
    if wanted.fullmatch(said) is None:
        raise ValueError(said)
    return str(said)
