"""The stand-in provider, served by the process that tests, for every Terraform that asks.

To start the provider takes longer than all that it then does in a test. Terraform can be told by
`TF_REATTACH_PROVIDERS` of one that runs already; it then looks at no package, lock file or
checksum of it, so some tests of each kind let Terraform start the provider itself. So do those
whose resources name files by relative paths: the provider works in the folder of its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import threading
from collections.abc import Iterator, Mapping
from concurrent import futures
from pathlib import Path
from typing import Any, Final

import grpc

from provision import terraform
from rehearsal.provider import mirror, plugin
from rehearsal.provider.__main__ import implementations
from rehearsal.provider.server import Provider

_VARIABLE: Final = "TF_REATTACH_PROVIDERS"
NOT_ATTACHED: Final = {_VARIABLE: ""}
"""The environment of a Terraform that is to start the provider after all."""


class Providers(grpc.GenericRpcHandler):
    """A provider for each connection.

    A connection is what a process is elsewhere: Terraform makes one whenever it would start the
    provider, configures it once, and interrupts it alone. It says nothing when it is done; whoever
    gets the port of one that is gone configures its provider anew. `environ`: the environment of
    all of them, as it is when they are configured.
    """

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._guard = threading.Lock()
        self._made: dict[str, tuple[Provider, grpc.GenericRpcHandler]] = {}
        self._calls = Provider(implementations).handler()

    def service(self, details: grpc.HandlerCallDetails) -> grpc.RpcMethodHandler[Any, Any] | None:
        """The call by its name; whose provider answers it is known when it comes."""
        if details.method == "/plugin.GRPCController/Shutdown":
            return grpc.unary_unary_rpc_method_handler(self._forget)
        usual = self._calls.service(details)
        if usual is None:
            return None

        def call(request: Any, context: grpc.ServicerContext) -> Any:
            handler = self._made_for(context.peer())[1].service(details)
            assert handler is not None
            assert handler.unary_unary is not None
            return handler.unary_unary(request, context)

        return grpc.unary_unary_rpc_method_handler(
            call,
            request_deserializer=usual.request_deserializer,
            response_serializer=usual.response_serializer,
        )

    def of(self, peer: str) -> Provider:
        """The provider of a connection."""
        return self._made_for(peer)[0]

    def _made_for(self, peer: str) -> tuple[Provider, grpc.GenericRpcHandler]:
        with self._guard:
            if peer not in self._made:
                provider = Provider(implementations, self._environ)
                self._made[peer] = provider, provider.handler()
            return self._made[peer]

    def close(self) -> None:
        """Close what Terraforms that were killed have left."""
        with self._guard:
            for provider, _ in self._made.values():
                provider.close()
            self._made.clear()

    def _forget(self, _request: bytes, context: grpc.ServicerContext) -> bytes:
        with self._guard:
            made = self._made.pop(context.peer(), None)
        if made is not None:
            made[0].close()
        return b""


@contextlib.contextmanager
def served(environ: Mapping[str, str]) -> Iterator[dict[str, str]]:
    """Serve the provider in an environment, which may change meanwhile.

    Returns what Terraform's environment needs on top to find it, and to be quick.
    """
    server = grpc.server(futures.ThreadPoolExecutor(plugin.THREADS), options=plugin.LIMITS)
    providers = Providers(environ)
    server.add_generic_rpc_handlers((providers,))
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    try:
        address = {
            "Protocol": "grpc",
            "ProtocolVersion": plugin.PROTOCOL,
            "Pid": os.getpid(),
            "Test": True,  # Terraform then leaves the process alone when it is done
            "Addr": {"Network": "tcp", "String": f"127.0.0.1:{port}"},
        }
        # Terraform ends before Go's collector pays, which takes a sixth of its processor time.
        yield {_VARIABLE: json.dumps({mirror.ADDRESS: address}), "GOGC": "off"}
    finally:
        server.stop(grace=None).wait()
        providers.close()


@contextlib.contextmanager
def on_path(folder: Path, environ: dict[str, str]) -> Iterator[None]:
    """Put a Terraform on the environment's PATH that uses the provider of this process.

    The program hands no `TF_REATTACH_PROVIDERS` of its caller on, rightly so.
    """
    with served(environ) as reattach:
        argv = terraform.find(environ).argv
        folder.mkdir(exist_ok=True)
        exported = " ".join(f"{name}={shlex.quote(value)}" for name, value in reattach.items())
        script = folder / "terraform"
        script.write_text(f'#!/bin/sh\nexport {exported}\nexec {shlex.join(argv)} "$@"\n')
        script.chmod(0o755)
        environ["PATH"] = f"{folder}{os.pathsep}{environ.get('PATH', '')}"
        yield
