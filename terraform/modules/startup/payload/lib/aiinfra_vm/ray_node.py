"""This VM's part in the Ray cluster: the head if it gets the lease, else a worker of the head.

A worker belongs to one generation of the lease. Whatever makes another one (the head's VM is gone,
its Ray ended), all workers leave the old cluster and join the new one. Whether a head lives is told
by the lease alone: a holder that has not renewed it while this VM watched is gone. Clocks of
different VMs are never compared.
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
from typing import TYPE_CHECKING, NamedTuple

from aiinfra_vm import configuration, metadata
from aiinfra_vm.lease import Lease
from aiinfra_vm.ray_process import Ray

if TYPE_CHECKING:
    from aiinfra_vm.lease import Head

PORT = 6379
_START_SECONDS = 180  # for Ray to start
_CONNECT_SECONDS = 3


class Pace(NamedTuple):
    """Seconds between looks at the lease, and after which an unrenewed one is nobody's.

    A head that cannot renew gives up after two thirds of the expiry, before another takes over.
    """

    renew: float
    expiry: float


class Identity(NamedTuple):
    """Who this VM is."""

    vm: str
    address: str
    instance_id: str


class Node:
    """One VM of the Ray cluster, until it is stopped.

    Args:
        identity: This VM.
        lease: The object that names the head.
        pace: How often it is looked at.
    """

    def __init__(self, identity: Identity, lease: Lease, pace: Pace) -> None:
        self._identity = identity
        self._lease = lease
        self._pace = pace
        self._stopping = threading.Event()
        self._seen: tuple[int, int] | None = None
        self._since = time.monotonic()

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
        own_past = head is not None and head.instance_id == self._identity.instance_id
        if head is None or own_past or self._is_stale(head):
            return self._lease.take(*self._identity, over=head), True
        return head, False

    def _is_stale(self, head: Head) -> bool:
        """Whether nobody renewed the lease for as long as it lasts, under this VM's eyes."""
        seen = (head.generation, head.metageneration)
        if seen != self._seen:
            self._seen, self._since = seen, time.monotonic()
        return time.monotonic() - self._since > self._pace.expiry

    def _lead(self, head: Head) -> None:
        """Be the head until Ray ends, the lease is lost, or this is stopped."""
        _say(f"this VM is the head, lease {head.generation}")
        ray = Ray(["--head", f"--port={PORT}"], self._identity.address)
        keeper = threading.Thread(target=self._keep, args=(head, ray), daemon=True)
        keeper.start()
        try:
            if ray.wait_ready(_START_SECONDS):
                _tell_systemd("READY=1\nSTATUS=Ray's head")
                while ray.alive() and keeper.is_alive() and not self._stopping.is_set():
                    keeper.join(0.2)
        finally:
            ray.stop()
            keeper.join()
            # Another VM need not wait for the lease to expire.
            self._lease.release(head)

    def _keep(self, head: Head, ray: Ray) -> None:
        """Renew the lease while Ray lives; returns when that has ended, or the lease is lost."""
        renewed = time.monotonic()
        while ray.alive() and not self._stopping.wait(self._pace.renew):
            try:
                if self._lease.renew(head) is None:
                    _say("the lease is another's")
                    return
                renewed = time.monotonic()
            except OSError as error:
                _say(f"the lease could not be renewed: {error}")
                if time.monotonic() - renewed > self._pace.expiry * 2 / 3:
                    return

    def _follow(self, head: Head) -> None:
        """Be a worker of this head until the head is another, Ray ends, or this is stopped."""
        if not self._answers(head):
            _say(f"waiting for the head {head.vm} at {head.address}")
            return
        _say(f"this VM is a worker of {head.vm}, lease {head.generation}")
        ray = Ray([f"--address={head.address}:{PORT}"], self._identity.address)
        try:
            if ray.wait_ready(_START_SECONDS):
                _tell_systemd(f"READY=1\nSTATUS=Ray's worker of {head.vm}")
                while ray.alive() and self._still(head) and not self._stopping.is_set():
                    self._pause()
        finally:
            ray.stop()

    def _still(self, head: Head) -> bool:
        """Whether this is the head as far as can be known."""
        try:
            current = self._lease.read()
        except OSError as error:
            _say(f"the lease could not be read: {error}")
            return True
        if current is None or current.generation != head.generation:
            return False
        return not self._is_stale(current)

    def _answers(self, head: Head) -> bool:
        try:
            with socket.create_connection((head.address, PORT), _CONNECT_SECONDS):
                return True
        except OSError:
            return False

    def _pause(self) -> None:
        # Not all VMs at the same moments.
        self._stopping.wait(self._pace.renew * random.uniform(0.7, 1.3))  # noqa: S311 - no secret


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
    lease = Lease(state["bucket"], f"{state['folder']}/ray/head.json")
    node = Node(_identity(), lease, Pace(options.renew, options.expiry))
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    node.run()


if __name__ == "__main__":
    main()
