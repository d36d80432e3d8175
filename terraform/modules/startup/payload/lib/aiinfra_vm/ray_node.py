"""This VM's part in the Ray cluster: the head if it gets the lease, else a worker of the head.

A worker belongs to one life of a head. The lease says which one counts; that it can't be renewed or
read says nothing. So a head ends when it sees that another one has the lease, and a worker leaves
its head when the lease names another one. A VM takes the lease over if nobody renewed it, nor its
holder answered, for as long as a lease lasts, both under this VM's eyes. Clocks of different VMs
are never compared.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import socket
import sys
import threading
import time
import uuid
from typing import TYPE_CHECKING, NamedTuple

from aiinfra_vm import configuration, metadata, ray_process, ray_token
from aiinfra_vm.lease import Claim, Lease
from aiinfra_vm.ray_dashboard import Relay
from aiinfra_vm.ray_others import Others
from aiinfra_vm.ray_process import Ray
from aiinfra_vm.ray_token import Token
from aiinfra_vm.storage import Folder

if TYPE_CHECKING:
    from aiinfra_vm.lease import Head
    from aiinfra_vm.storage import Version

_START_SECONDS = 180  # for Ray to start
_CONNECT_SECONDS = 3
_LAST_RENEWAL = 5  # seconds that a renewal may still take when Ray has ended


class Pace(NamedTuple):
    """Seconds between looks at the lease, and after which a silent holder has lost it."""

    renew: float
    expiry: float


class Identity(NamedTuple):
    """Who this VM is."""

    vm: str
    address: str
    instance_id: str


class Node:
    """One VM of the Ray cluster, until it is stopped."""

    def __init__(  # noqa: PLR0913 - each is one of its neighbours
        self,
        identity: Identity,
        lease: Lease,
        token: Token,
        relay: Relay,
        *,
        others: Others,
        pace: Pace,
    ) -> None:
        self._identity = identity
        self._lease = lease
        self._token = token
        self._relay = relay
        self._others = others
        self._pace = pace
        self._stopping = threading.Event()
        self._seen: Version | None = None
        self._sign = time.monotonic()

    def stop(self) -> None:
        """End `run`, soon."""
        self._stopping.set()

    def run(self) -> None:
        """Be the head or a worker, over and over, until stopped."""
        while not self._stopping.is_set():
            try:
                head, ours = self._find_head()
                if head is None:
                    pass  # another VM is taking the lease at this moment
                elif ours:
                    self._lead(head)
                else:
                    self._follow(head)
            except OSError as error:
                _say(f"Cloud Storage or the metadata server: {error}")
            self._pause()

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

        A renewal is one. So is an answer of its Ray: a holder that cannot renew, as it does not
        reach Cloud Storage, is none the less the head that all others are connected to.
        """
        if head.version != self._seen:
            self._seen, self._sign = head.version, time.monotonic()
        elif self._answers(head):
            self._sign = time.monotonic()
        return time.monotonic() - self._sign > self._pace.expiry

    def _lead(self, head: Head) -> None:
        """Be the head until Ray ends, another has the lease, or this is stopped."""
        _say(f"this VM is the head, lease {head.version.generation}")
        held = _Held(self._lease, head)
        ray = None
        try:
            self._token.make()
            ray = Ray(ray_process.of_head(head.claim.address), self._identity.address)
            keeper = threading.Thread(target=self._keep, args=(held, ray), daemon=True)
            keeper.start()
            if ray.wait_ready(_START_SECONDS):
                self._relay.lead_to(head.claim.address)
                _tell_systemd("READY=1\nSTATUS=Ray's head")
                told = (head.claim.address, ray)
                threading.Thread(target=self._tell_of_others, args=told, daemon=True).start()
                while ray.alive() and keeper.is_alive() and not self._stopping.is_set():
                    keeper.join(0.2)
        finally:
            if ray is not None:
                ray.stop()
                keeper.join(_LAST_RENEWAL)
            # Another VM need not wait for the lease to expire.
            held.release()

    def _keep(self, held: _Held, ray: Ray) -> None:
        """Renew the lease as long as Ray lives and no other VM has it."""
        while ray.alive() and not self._stopping.wait(self._pace.renew):
            try:
                if not held.renew():
                    _say("another VM has the lease: this one is the head no longer")
                    return
            except OSError as error:
                # Nobody else wants it as far as is known, and those that work here need their head.
                _say(f"the lease could not be renewed, and is kept: {error}")

    def _tell_of_others(self, address: str, ray: Ray) -> None:
        self._others.forget()
        while ray.alive() and not self._stopping.wait(self._pace.renew):
            try:
                self._others.note(address)
            except OSError as error:
                _say(f"what others run could not be told: {error}")

    def _follow(self, head: Head) -> None:
        """Be a worker of this head until the head is another, Ray ends, or this is stopped."""
        if not (self._answers(head) and self._token.fetch()):
            _say(f"waiting for the head {head.claim.vm} at {head.claim.address}")
            return
        _say(f"this VM is a worker of {head.claim.vm}, lease {head.version.generation}")
        ray = Ray(ray_process.of_worker(head.claim.address), self._identity.address)
        try:
            if ray.wait_ready(_START_SECONDS):
                self._relay.lead_to(head.claim.address)
                _tell_systemd(f"READY=1\nSTATUS=Ray's worker of {head.claim.vm}")
                while ray.alive() and self._is_head(head) and not self._stopping.is_set():
                    self._pause()
        finally:
            ray.stop()

    def _is_head(self, head: Head) -> bool:
        """Whether this is the head as far as can be known."""
        try:
            current = self._lease.read()
        except OSError as error:
            _say(f"the lease could not be read: {error}")
            return True
        if current is None:
            # Its head has given it up; or somebody deleted it, and its head takes it again.
            return self._answers(head)
        return current.claim == head.claim and not self._is_silent(current)

    def _answers(self, head: Head) -> bool:
        address = (head.claim.address, ray_process.ports()["gcs"])
        try:
            with socket.create_connection(address, _CONNECT_SECONDS):
                return True
        except OSError:
            return False

    def _pause(self) -> None:
        # Not all VMs at the same moments.
        self._stopping.wait(self._pace.renew * random.uniform(0.7, 1.3))  # noqa: S311 - no secret


class _Held:
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


def _say(what: str) -> None:
    sys.stdout.write(f"aiinfra: {what}\n")
    sys.stdout.flush()


def _tell_systemd(state: str) -> None:
    """Send a state to whoever started this, by the protocol of sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
            # A leading @ stands for the abstract namespace's zero byte.
            channel.sendto(state.encode(), address.replace("@", "\0", 1))


def _identity() -> Identity:
    return Identity(
        metadata.get("instance/name"),
        metadata.get("instance/network-interfaces/0/ip"),
        metadata.get("instance/id"),
    )


def main() -> None:
    """Run this VM's node until a SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--renew", type=float, default=10, help="seconds between renewals")
    parser.add_argument("--expiry", type=float, default=45, help="seconds that a lease lasts")
    options = parser.parse_args()
    state = configuration.load()["state"]
    folder = Folder(state["bucket"], f"{state['folder']}/ray")
    relay = Relay(ray_process.ports()["dashboard"])
    try:
        relay.start()
    except OSError as error:
        _say(f"no dashboard at this VM's localhost: {error}")
    node = Node(
        _identity(),
        Lease(folder),
        Token(folder, ray_token.file()),
        relay,
        others=Others(folder, ray_token.file()),
        pace=Pace(options.renew, options.expiry),
    )
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    try:
        node.run()
    finally:
        relay.stop()


if __name__ == "__main__":
    main()
