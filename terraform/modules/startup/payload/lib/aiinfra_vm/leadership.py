"""Which VM decides for all: the one that holds an object of the shared folder.

The object's generation says who holds it, as of several that take it one succeeds; its
metageneration says that the holder lives. A holder that has not renewed it while this VM watched
is gone: clocks of different VMs are never compared. To have lost it is no harm, as whatever is
decided is written only over what was read.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from aiinfra_vm import storage
from aiinfra_vm.report import now

if TYPE_CHECKING:
    from aiinfra_vm.members import Member

OBJECT = "leader.json"


class Leadership:
    """This VM's part in it.

    `expiry`: seconds without a renewal after which the object is nobody's.
    """

    def __init__(self, folder: storage.Folder, member: Member, expiry: float) -> None:
        self._folder = folder
        self._member = member
        self._expiry = expiry
        self._mine: storage.Version | None = None
        self._seen: storage.Version | None = None
        self._since = 0.0

    @property
    def held(self) -> bool:
        """Whether this VM leads, as far as it knows."""
        return self._mine is not None

    def hold(self) -> bool:
        """Renew what this VM holds, or take what nobody holds; whether it leads.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
        """
        if self._mine is not None:
            self._mine = self._folder.touch(self._mine)
        if self._mine is None:
            seen = self._look()
            if seen is not None:
                document = {**self._about(), "at": now()}
                self._mine = self._folder.write(OBJECT, document, over=seen)
        return self.held

    def resign(self) -> None:
        """Give it up, so that others need not wait for its end.

        Raises:
            OSError: Cloud Storage refuses, or does not answer.
        """
        if self._mine is not None:
            self._folder.remove(self._mine)
            self._mine = None

    def _look(self) -> storage.Version | None:
        """What this VM may take: nothing, or what its holder has left to itself; else None."""
        before, self._seen = self._seen, None  # while nobody can look, nobody is silent
        found = self._folder.read(OBJECT)
        seen = self._seen = found[1] if found else storage.NOTHING
        if seen != before:
            self._since = time.monotonic()
        is_left = time.monotonic() - self._since > self._expiry
        # Its own is that of an earlier boot.
        is_own = found is not None and self._about() == _about(found[0])
        return seen if seen == storage.NOTHING or is_left or is_own else None

    def _about(self) -> dict[str, str]:
        return {"vm": self._member.name, "instance_id": self._member.instance_id}


def _about(text: bytes) -> dict[str, str]:
    try:
        document = storage.decoded(text)
        return {key: document[key] for key in ("vm", "instance_id")}
    except (ValueError, KeyError, TypeError):
        return {}
