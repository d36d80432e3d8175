"""The plugin process: how Terraform finds, talks to and ends a provider (HashiCorp's go-plugin).

Terraform starts the program, reads one line from its stdout, and then speaks gRPC over the unix
socket that the line names, with TLS and the certificate that the line carries.
"""

import contextlib
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent import futures
from typing import Final

import grpc

from rehearsal.provider import certificate
from rehearsal.provider.server import Implementations, Provider

COOKIE: Final = (
    "TF_PLUGIN_MAGIC_COOKIE",
    "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2",
)
CORE_PROTOCOL: Final = 1
PROTOCOL: Final = 6
THREADS: Final = 128
"""More than Terraform ever has calls under way, so that StopProvider finds one free."""

LIMITS: Final = (
    ("grpc.max_receive_message_length", 256 << 20),
    ("grpc.max_send_message_length", 256 << 20),
)
"""Bytes of a message, as Terraform has them."""
_PARENT_CHECK: Final = 1.0  # seconds between looks at whether Terraform is still there


def serve(load: Callable[[], Implementations]) -> None:
    """Be a plugin until Terraform ends it or is gone; SystemExit if Terraform did not start it."""
    name, value = COOKIE
    if os.environ.get(name) != value:
        sys.exit("This is a provider plugin of Terraform; Terraform starts it, nobody by hand.")
    done = threading.Event()
    # A Ctrl-C reaches the whole process group; what it means, Terraform says by StopProvider.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda _signum, _frame: done.set())
    parent = os.getppid()
    with _socket_folder() as folder:
        server = grpc.server(futures.ThreadPoolExecutor(THREADS), options=LIMITS)
        server.add_generic_rpc_handlers((Provider(load).handler(), *_plumbing(done)))
        socket = os.path.join(folder, "plugin")  # noqa: PTH118 - pathlib costs start-up time
        _listen(server, socket)
        # Terraform killed with SIGKILL says nothing: its plugin is then somebody else's child.
        while not done.wait(_PARENT_CHECK) and os.getppid() == parent:
            pass
        server.stop(grace=0.1).wait(0.5)
    # Threads still at work for a Terraform that is gone would hold a normal exit.
    sys.stdout.flush()
    os._exit(0)


def _listen(server: grpc.Server, socket: str) -> None:
    """Start, and tell Terraform where; the first thing ever written to stdout."""
    pem = certificate.ready(os.environ)
    server.add_secure_port(f"unix://{socket}", grpc.ssl_server_credentials([(pem, pem)]))
    server.start()
    shown = certificate.handshake(pem)
    sys.stdout.write(f"{CORE_PROTOCOL}|{PROTOCOL}|unix|{socket}|grpc|{shown}\n")
    sys.stdout.flush()


@contextlib.contextmanager
def _socket_folder() -> Iterator[str]:
    """A folder of our own, removed in the end; go-plugin's host may say where."""
    folder = tempfile.mkdtemp(prefix="provider-", dir=os.environ.get("PLUGIN_UNIX_SOCKET_DIR"))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _plumbing(done: threading.Event) -> tuple[grpc.GenericRpcHandler, grpc.GenericRpcHandler]:
    """go-plugin's own two services; their messages are empty, so bytes are all they need."""

    def shut_down(_request: bytes, _context: grpc.ServicerContext) -> bytes:
        done.set()
        return b""

    def stream(_request: bytes, _context: grpc.ServicerContext) -> Iterator[bytes]:
        # stderr goes its own way; a stream kept open would hold a thread for good.
        return iter(())

    return (
        grpc.method_handlers_generic_handler(
            "plugin.GRPCController",
            {"Shutdown": grpc.unary_unary_rpc_method_handler(shut_down)},
        ),
        grpc.method_handlers_generic_handler(
            "plugin.GRPCStdio",
            {"StreamStdio": grpc.unary_stream_rpc_method_handler(stream)},
        ),
    )
