"""A VM that is the head of its group or follows the head, by a lease: of Ray, or of Slurm.

The lease says who counts; that it can't be renewed or read says nothing. So a head ends when it
sees that another one has the lease, and who follows leaves its head when the lease names another
one. A VM takes the lease over if nobody renewed it, nor its holder answered, for as long as a lease
lasts, both under this VM's eyes. Clocks of different VMs are never compared.
"""

from __future__ import annotations

import argparse
import os
import random
import socket
import sys
import threading
import time
import uuid
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Callable, NamedTuple

from aiinfra_vm import metadata
from aiinfra_vm.lease import Claim

if TYPE_CHECKING:
    from aiinfra_vm.lease import Head, Lease
    from aiinfra_vm.storage import Version

_CONNECT_SECONDS = 3
LAST_RENEWAL = 5
"""Seconds that a renewal may still take when what the head runs has ended."""


class Pace(NamedTuple):
    """Seconds between looks at the lease, and after which a silent holder has lost it."""

    renew: float
    expiry: float


class Identity(NamedTuple):
    """Who this VM is."""

    vm: str
    address: str
    instance_id: str


class Node(ABC):
    """One VM of the group, until it is stopped.

    `port`: where a head answers.
    """

    def __init__(self, identity: Identity, lease: Lease, port: int, pace: Pace) -> None:
        self._identity = identity
        self._lease = lease
        self._port = port
        self._pace = pace
        self._stopping = threading.Event()
        self._seen: Version | None = None
        self._sign = time.monotonic()

    def stop(self) -> None:
        """End `run`, soon."""
        self._stopping.set()

    def run(self) -> None:
        """Be the head or follow it, over and over, until stopped."""
        while not self._stopping.is_set():
            try:
                head, ours = self._find_head()
                if head is None:
                    pass  # another VM is taking the lease at this moment
                elif ours:
                    say(f"this VM is the head, lease {head.version.generation}")
                    self._lead(head, Held(self._lease, head))
                elif head.claim.vm:
                    self._follow(head)
                else:
                    say("the lease is spoiled: a VM takes it when it has expired")
            except OSError as error:
                say(f"Cloud Storage or the metadata server: {error}")
            self._pause()

    @abstractmethod
    def _lead(self, head: Head, held: Held) -> None:
        """Be the head until its program ends, another has the lease, or this is stopped."""

    @abstractmethod
    def _follow(self, head: Head) -> None:
        """Belong to this head until the head is another, or this is stopped."""

    def _find_head(self) -> tuple[Head | None, bool]:
        """The head, and whether it is this VM, just now by taking the lease."""
        head = self._lease.read()
        own_past = head is not None and head.claim.instance_id == self._identity.instance_id
        if head is None or own_past or self._is_silent(head):
            claim = Claim(*self._identity, life=uuid.uuid4().hex)
            return self._lease.take(claim, over=head), True
        return head, False

    def _is_silent(self, head: Head) -> bool:
        """Whether the holder gave no sign of life for as long as the lease lasts.

        A renewal is one. So is an answer of its program: a holder that cannot renew, as it does not
        reach Cloud Storage, is none the less the head that all others are connected to.
        """
        if head.version != self._seen:
            self._seen, self._sign = head.version, time.monotonic()
        elif self._answers(head):
            self._sign = time.monotonic()
        return time.monotonic() - self._sign > self._pace.expiry

    def _keep(self, held: Held, alive: Callable[[], bool]) -> None:
        """Renew the lease as long as the head lives and no other VM has it."""
        while alive() and not self._stopping.wait(self._pace.renew):
            try:
                if not held.renew():
                    say("another VM has the lease: this one is the head no longer")
                    return
            except OSError as error:
                # Nobody else wants it as far as is known, and those that work here need their head.
                say(f"the lease could not be renewed, and is kept: {error}")

    def _is_head(self, head: Head) -> bool:
        """Whether this is the head as far as can be known."""
        try:
            current = self._lease.read()
        except OSError as error:
            say(f"the lease could not be read: {error}")
            return True
        if current is None:
            # Its head has given it up; or somebody deleted it, and its head takes it again.
            return self._answers(head)
        return current.claim == head.claim and not self._is_silent(current)

    def _answers(self, head: Head) -> bool:
        if not head.claim.address:  # which would be this VM
            return False
        try:
            with socket.create_connection((head.claim.address, self._port), _CONNECT_SECONDS):
                return True
        except OSError:
            return False

    def _pause(self) -> None:
        # Not all VMs at the same moments.
        self._stopping.wait(self._pace.renew * random.uniform(0.7, 1.3))  # noqa: S311 - no secret


class Held:
    """The lease as this VM holds it: its version changes with each renewal."""

    def __init__(self, lease: Lease, head: Head) -> None:
        self._lease = lease
        self._head = head

    def renew(self) -> bool:
        """Renew it; False if another has it."""
        head = self._lease.hold(self._head)
        if head is None:
            return False
        self._head = head
        return True

    def release(self) -> None:
        """Give it up, if another has not got it."""
        self._lease.release(self._head)


def say(what: str) -> None:
    """Say something in the unit's journal."""
    sys.stdout.write(f"aiinfra: {what}\n")
    sys.stdout.flush()


def tell_systemd(state: str) -> None:
    """Send a state to whoever started this, by the protocol of sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            # A leading @ stands for the abstract namespace's zero byte.
            channel.sendto(state.encode(), address.replace("@", "\0", 1))


def identity() -> Identity:
    """This VM, as its metadata server knows it.

    Raises:
        OSError: It does not answer.
    """
    return Identity(
        metadata.get("instance/name"),
        metadata.get("instance/network-interfaces/0/ip"),
        metadata.get("instance/id"),
    )


def pace(what: str | None) -> Pace:
    """The pace that a node's command line says; `what` it is, for who asks."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--renew", type=float, default=10, help="seconds between renewals")
    parser.add_argument("--expiry", type=float, default=45, help="seconds that a lease lasts")
    options = parser.parse_args()
    return Pace(options.renew, options.expiry)
