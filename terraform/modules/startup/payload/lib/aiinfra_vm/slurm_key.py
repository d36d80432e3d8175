"""The key of a Slurm cluster: who reads it is root on all its VMs, so root alone may have it.

It is no object of the bucket and no metadata, which every program on a VM may read. One VM's root
asks another's: both ends are at ports below 1024, which the kernel gives to root alone, and at
addresses of VMs of the group in its subnet, which nobody in a VPC can pretend to have. The port
that answers lies below those which a mount of NFS (665 on), or another program that wants one of
root's (600 on), takes as its own: one that is taken would keep this VM out of the cluster.

Only who holds the lease makes a key, and only if no VM of the group that is there has one: so two
that boot at once don't make two. The head's counts: whoever has another takes that. And whoever
follows believes a VM only that itself says to be the head: a lease, each job can write.
"""

from __future__ import annotations

import ipaddress
import os
import random
import secrets
import shutil
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterable, Iterator

from aiinfra_vm import metadata, peers, slurm_conf

FILE = Path("/", slurm_conf.FOLDER, "slurm.key")
_BYTES = 1024
_PRIVILEGED = range(512, 1024)
_SECONDS = 5  # for one question
_AT_ONCE = 32
_TRIES = 40  # ports that others on this VM may have
_HEADS, _OTHERS = b"\1", b"\0"
"""What is before the key of the head, and before that of a VM that is not."""


class Keys:
    """This VM's copy of the key, and the way to those of the others.

    `mine`: this VM's address. `members`: the addresses of the group's VMs at present. `leads`:
    whether this VM is the head, with slurmctld at its port.
    """

    def __init__(  # noqa: PLR0913 - all that it stands on
        self,
        mine: str,
        *,
        members: Callable[[], Iterable[str]],
        mask: str,
        port: int,
        file: Path = FILE,
        owner: str | None = "slurm",
    ) -> None:
        self._mine = mine
        self._members = members
        self._subnet = ipaddress.IPv4Network(f"{mine}/{mask}", strict=False)
        self._port = port
        self._file = file
        self._owner = owner
        self.leads: Callable[[], bool] = lambda: False

    def own(self) -> bytes:
        """This VM's copy; b"" for none."""
        try:
            return self._file.read_bytes()
        except FileNotFoundError:
            return b""

    def settle(self, opens: Callable[[bytes], bool]) -> bytes:
        """As the head: the key that counts, which is this VM's from now on.

        That which opens the copy of the state, as its last head had it; else one that a living VM
        has; else this VM's; else a new one.
        """
        own = self.own()
        if own and opens(own):
            return own
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            answers = pool.map(self.ask, sorted(set(self._members()) - {self._mine}))
        found = [*filter(None, (key for _, key in answers)), *([own] if own else [])]
        key = next(filter(opens, found), None) or next(iter(found), None)
        return self._keep(key or secrets.token_bytes(_BYTES))

    def follow(self, head: str) -> bytes:
        """As one that follows: the head's key, which is this VM's from now on; b"" for none yet."""
        leads, key = self.ask(head)
        return self._keep(key) if leads and key else b""

    def ask(self, address: str) -> tuple[bool, bytes]:
        """Whether a VM of the group is the head, and its key; b"" if it has or says none."""
        if not self._is_known(address):
            return False, b""
        try:
            with _privileged(self._mine) as asking:
                asking.connect((address, self._port))
                said = b"".join(iter(lambda: asking.recv(_BYTES), b""))[: 2 * _BYTES]
        except OSError:
            return False, b""
        return said[:1] == _HEADS, said[1:]

    def serve(self) -> socket.socket:
        """Answer those who may ask, until the socket is closed.

        Raises:
            OSError: Another program has the port.
        """
        listener = socket.create_server((self._mine, self._port))
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()
        return listener

    def _serve(self, listener: socket.socket) -> None:
        while True:
            try:
                asking, (address, port) = listener.accept()
            except OSError:
                if listener.fileno() < 0:
                    return
                time.sleep(1)  # for lack of something, such as files that may be open
                continue
            with asking:
                if port in _PRIVILEGED and self._is_known(address):
                    try:
                        asking.settimeout(_SECONDS)
                        asking.sendall((_HEADS if self.leads() else _OTHERS) + self.own())
                    except OSError:
                        continue  # it asks again

    def _is_known(self, address: str) -> bool:
        try:
            is_near = ipaddress.IPv4Address(address) in self._subnet
        except ValueError:
            return False
        return is_near and address in set(self._members())

    def _keep(self, key: bytes) -> bytes:
        if key != self.own():
            draft = self._file.with_name(f"{self._file.name}.new")
            draft.touch(0o400)
            draft.chmod(0o400)
            draft.write_bytes(key)
            if self._owner is not None:
                shutil.chown(draft, self._owner, self._owner)
            draft.replace(self._file)
        return key


def members() -> Iterator[str]:
    """The addresses of the group's VMs that are there, as this VM's agent has them."""
    found: dict[str, Any] = peers.read() or {"members": []}
    return (it["address"] for it in found["members"] if it["present"])


def of(mine: str) -> Keys:
    """This VM's.

    Raises:
        OSError: The metadata server does not answer.
    """
    mask = metadata.get("instance/network-interfaces/0/subnetmask")
    return Keys(mine, members=members, mask=mask, port=slurm_conf.ports()["key"])


def _privileged(mine: str) -> socket.socket:
    """A socket at a port that only root may have.

    Raises:
        OSError: None is free, or this is not root.
    """
    for port in random.sample(_PRIVILEGED, _TRIES):
        asking = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        asking.settimeout(_SECONDS)
        # What is closed a moment ago still has its port.
        asking.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            asking.bind((mine, port))
        except OSError:
            asking.close()
        else:
            return asking
    raise OSError(f"no port below 1024 for user {os.getuid()}")
