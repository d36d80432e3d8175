"""This VM's part in the Ray cluster: the head if it gets the lease, else a worker of the head.

A worker belongs to one life of a head; `heads` says which one counts.
"""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

from aiinfra_vm import heads, ray_process, ray_token, storage
from aiinfra_vm.heads import Identity, Pace, say, tell_systemd
from aiinfra_vm.lease import Lease
from aiinfra_vm.ray_dashboard import Relay
from aiinfra_vm.ray_others import Others
from aiinfra_vm.ray_process import Ray
from aiinfra_vm.ray_token import Token

if TYPE_CHECKING:
    from aiinfra_vm.lease import Head

_START_SECONDS = 180  # for Ray to start


class Node(heads.Node):
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
        super().__init__(identity, lease, ray_process.ports()["gcs"], pace)
        self._token = token
        self._relay = relay
        self._others = others

    def _lead(self, head: Head, held: heads.Held) -> None:
        ray = None
        try:
            self._token.make()
            ray = Ray(ray_process.of_head(head.claim.address), self._identity.address)
            keeper = threading.Thread(target=self._keep, args=(held, ray.alive), daemon=True)
            keeper.start()
            if ray.wait_ready(_START_SECONDS):
                self._relay.lead_to(head.claim.address)
                tell_systemd("READY=1\nSTATUS=Ray's head")
                told = (head.claim.address, ray)
                threading.Thread(target=self._tell_of_others, args=told, daemon=True).start()
                while ray.alive() and keeper.is_alive() and not self._stopping.is_set():
                    keeper.join(0.2)
        finally:
            if ray is not None:
                ray.stop()
                keeper.join(heads.LAST_RENEWAL)
            # Another VM need not wait for the lease to expire.
            held.release()

    def _tell_of_others(self, address: str, ray: Ray) -> None:
        self._others.forget()
        while ray.alive() and not self._stopping.wait(self._pace.renew):
            try:
                self._others.note(address)
            except OSError as error:
                say(f"what others run could not be told: {error}")

    def _follow(self, head: Head) -> None:
        if not (self._answers(head) and self._token.fetch()):
            say(f"waiting for the head {head.claim.vm} at {head.claim.address}")
            return
        say(f"this VM is a worker of {head.claim.vm}, lease {head.version.generation}")
        ray = Ray(ray_process.of_worker(head.claim.address), self._identity.address)
        try:
            if ray.wait_ready(_START_SECONDS):
                self._relay.lead_to(head.claim.address)
                tell_systemd(f"READY=1\nSTATUS=Ray's worker of {head.claim.vm}")
                while ray.alive() and self._is_head(head) and not self._stopping.is_set():
                    self._pause()
        finally:
            ray.stop()


def main() -> None:
    """Run this VM's node until a SIGTERM."""
    pace = heads.pace(__doc__)
    folder = storage.part("ray")
    relay = Relay(ray_process.ports()["dashboard"])
    try:
        relay.start()
    except OSError as error:
        say(f"no dashboard at this VM's localhost: {error}")
    node = Node(
        heads.identity(),
        Lease(folder),
        Token(folder, ray_token.file()),
        relay,
        others=Others(folder, ray_token.file()),
        pace=pace,
    )
    signal.signal(signal.SIGTERM, lambda *_: node.stop())
    try:
        node.run()
    finally:
        relay.stop()


if __name__ == "__main__":
    main()
