"""A token endpoint and a metadata server on loopback, which answer what a test tells them to."""

import contextlib
import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

ACCOUNT = "/computeMetadata/v1/instance/service-accounts/default/"
"""Where the metadata server tells whose account it has."""


@dataclass
class Google:
    """What is answered."""

    host: str = ""  # name and port
    # status and body by path; unknown paths are 404
    answers: dict[str, tuple[int, Any]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)  # the paths, in order
    flavor: str = "Google"  # what it calls itself

    @property
    def token_uri(self) -> str:
        return f"http://{self.host}/token"

    def is_a_machine(self, email: str, scopes: list[str]) -> dict[str, str]:
        """The environment of a VM with that account, or of Cloud Shell."""
        self.answers[ACCOUNT] = (200, {"email": email, "scopes": scopes, "aliases": ["default"]})
        token = {"access_token": "ya29.machine", "expires_in": 3600, "token_type": "Bearer"}
        self.answers[f"{ACCOUNT}token"] = (200, token)
        self.answers[ACCOUNT.replace("default", email) + "token"] = (200, token)
        self.answers["/computeMetadata/v1/universe/universe-domain"] = (200, "googleapis.com")
        return {"GCE_METADATA_HOST": self.host}


@contextlib.contextmanager
def serving() -> Iterator[Google]:
    """One that serves until the end of the `with`."""
    found = Google()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0]
            found.asked.append(path)
            status, body = found.answers.get(path, (404, "Not Found"))
            content = body if isinstance(body, str) else json.dumps(body)
            kind = "text/plain" if content is body else "application/json"
            kind = "text/html" if content.startswith("<") else kind
            self.send_response(status)
            self.send_header("Metadata-Flavor", found.flavor)
            self.send_header("Content-Type", kind)
            self.end_headers()
            self.wfile.write(content.encode())

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        found.host = f"127.0.0.1:{server.server_port}"
        try:
            yield found
        finally:
            server.shutdown()
            thread.join()


def key(token_uri: str) -> str:
    """The file of a service account's key, whose tokens come from there."""
    made = rsa.generate_private_key(public_exponent=65537, key_size=2048).private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return json.dumps(
        {
            "type": "service_account",
            "client_email": "builder@my-project.iam.gserviceaccount.com",
            "private_key": made.decode(),
            "private_key_id": "1",
            "token_uri": token_uri,
        }
    )


def federation(token_url: str, subject: str) -> str:
    """The file of workload identity federation: that file's token, exchanged there."""
    return json.dumps(
        {
            "type": "external_account",
            "audience": "//iam.googleapis.com/projects/1/locations/global"
            "/workloadIdentityPools/p/providers/q",
            "subject_token_type": "urn:ietf:params:oauth:token-type:jwt",
            "token_url": token_url,
            "credential_source": {"file": subject},
        }
    )
