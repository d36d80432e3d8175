"""Ray's dashboard at this VM's own localhost, whichever VM is the head.

So the command that opens a tunnel to it stays the same when the head is another one, and leads
through any VM. Who asks it for anything needs the token, here as there.
"""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading

_SECONDS = 5  # for the head to answer
_CHUNK = 65536


class Relay:
    """Passes connections to a port of localhost on to the same port of another VM."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._address: str | None = None
        self._server: socketserver.BaseServer | None = None

    def lead_to(self, address: str) -> None:
        """From now on, pass new connections on to this VM."""
        self._address = address

    def start(self) -> None:
        """Listen, until stopped.

        Raises:
            OSError: Another program listens there.
        """
        relay = self

        class Connection(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                relay.pass_on(self.request)

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True

        self._server = Server(("127.0.0.1", self._port), Connection)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        """Listen no longer."""
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()

    def pass_on(self, caller: socket.socket) -> None:
        """Connect a caller with the head, until one of them ends; without a head, end at once."""
        if self._address is None:
            return
        try:
            called = socket.create_connection((self._address, self._port), _SECONDS)
        except OSError:
            return
        called.settimeout(None)
        with called:
            back = threading.Thread(target=_copy, args=(called, caller), daemon=True)
            back.start()
            _copy(caller, called)
            back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while True:
            received = source.recv(_CHUNK)
            if not received:
                break
            target.sendall(received)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)
