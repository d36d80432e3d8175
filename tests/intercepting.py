"""A proxy that reads TLS, as companies have them: it answers for every host with its own name.

What it hands on goes to servers of the tests alone, by the host and the path that were asked for.
"""

import contextlib
import datetime as dt
import http.client
import socketserver
import ssl
import threading
from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_DAY = dt.timedelta(days=1)
_PEM = serialization.Encoding.PEM


class Company:
    """Who signs for every host: a certificate authority that nobody else knows."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "The proxy of a company")])
        self._made = self._sign(self._name, self._key, x509.BasicConstraints(True, None), [])
        self.certificate = self._made.public_bytes(_PEM).decode()
        self._contexts: dict[str, ssl.SSLContext] = {}
        self._guard = threading.Lock()

    def answering_for(self, host: str) -> ssl.SSLContext:
        """What speaks TLS in the name of a host."""
        with self._guard:
            if host not in self._contexts:
                self._contexts[host] = self._context(host)
            return self._contexts[host]

    def _context(self, host: str) -> ssl.SSLContext:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "A host")])
        made = self._sign(name, key, x509.BasicConstraints(False, None), [x509.DNSName(host)])
        private = key.private_bytes(
            _PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file = self._folder / f"{host}.pem"
        file.write_bytes(private + made.public_bytes(_PEM))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context

    def _sign(
        self,
        subject: x509.Name,
        key: ec.EllipticCurvePrivateKey,
        basic: x509.BasicConstraints,
        hosts: list[x509.GeneralName],
    ) -> x509.Certificate:
        now = dt.datetime.now(tz=dt.UTC)
        identifier = x509.SubjectKeyIdentifier.from_public_key
        # Python 3.13 and Go want to see what a key is for, and who signed.
        usage = x509.KeyUsage(
            digital_signature=True, key_cert_sign=basic.ca, crl_sign=basic.ca,
            content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, encipher_only=False, decipher_only=False,
        )  # fmt: skip
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - _DAY)
            .not_valid_after(now + _DAY)
            .add_extension(basic, critical=True)
            .add_extension(usage, critical=True)
            .add_extension(identifier(key.public_key()), critical=False)
            .add_extension(
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()),
                critical=False,
            )
        )
        if hosts:
            server = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])
            builder = builder.add_extension(x509.SubjectAlternativeName(hosts), critical=False)
            builder = builder.add_extension(server, critical=False)
        return builder.sign(self._key, hashes.SHA256())


class Proxy(socketserver.ThreadingTCPServer):
    """The proxy; it is there for as long as the block.

    `bearers`: Host -> the access tokens with which it was asked.
    """

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        company: Company,
        sites: Mapping[str, Path | str],
        address: tuple[str, int] = ("127.0.0.1", 0),
    ) -> None:
        super().__init__(address, _Tunnel)
        self.company, self.sites = company, sites
        self.asked: set[str] = set()
        self.bearers: defaultdict[str, set[str]] = defaultdict(set)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self.serve_forever, args=(0.05,))
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: whoever asks may hang up."""

    @property
    def url(self) -> str:
        """The value of HTTPS_PROXY."""
        return "http://{}:{}".format(*self.server_address[:2])


class _Tunnel(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Proxy

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_CONNECT(self) -> None:
        host, _, port = self.path.rpartition(":")
        self.server.asked.add(host)
        self.close_connection = True
        if host not in self.server.sites or port != "443":
            self.send_error(403, "Nobody answers for that")
            return
        self.send_response(200)
        self.end_headers()
        context = self.server.company.answering_for(host)
        with (
            contextlib.suppress(OSError),
            context.wrap_socket(self.connection, server_side=True) as inside,
        ):
            Answers(self.server.sites, inside, self.client_address, self.server)


class Answers(SimpleHTTPRequestHandler):
    """What answers for sites: with a folder of files, or by a server on this machine's loopback.

    `sites`: host name -> the folder, or the server's URL, below which its paths are.
    """

    protocol_version = "HTTP/1.1"

    def __init__(self, sites: Mapping[str, Path | str], *arguments: object) -> None:
        self._sites = sites
        super().__init__(*arguments)  # type: ignore[arg-type]  # as http.server hands them over

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def translate_path(self, path: str) -> str:
        """The file, below the folder of the site that is asked."""
        self.directory = str(self._site)
        return super().translate_path(path)

    def do_GET(self) -> None:
        if isinstance(self._site, Path):
            super().do_GET()
        else:
            self._pass_on()

    def do_POST(self) -> None:
        self._pass_on()

    do_DELETE = do_HEAD = do_PATCH = do_PUT = do_POST  # noqa: N815 - http.server calls them so

    @property
    def _site(self) -> Path | str:
        return self._sites[self.headers["Host"].partition(":")[0]]

    def _pass_on(self) -> None:
        body = b""
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = b"".join(iter(self._chunk, b""))
        body += self.rfile.read(int(self.headers.get("Content-Length", "0")))
        site = urlsplit(str(self._site))
        if isinstance(self.server, Proxy) and "Authorization" in self.headers:
            host = self.headers["Host"].partition(":")[0]
            self.server.bearers[host].add(self.headers["Authorization"].partition(" ")[2])
        skipped = {"connection", "content-length", "transfer-encoding"}
        headers = {k: v for k, v in self.headers.items() if k.lower() not in skipped}
        with closing(http.client.HTTPConnection(site.netloc, timeout=600)) as server:
            server.request(self.command, site.path + self.path, body, headers)
            answer = server.getresponse()
            said = answer.read()
        # A link to the server itself is one to the site: nobody follows it past the proxy.
        own, there = f"http://{site.netloc}", f"https://{self.headers['Host']}"
        said = said.replace(own.encode(), there.encode())
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in {*skipped, "date", "server"}:
                self.send_header(name, value.replace(own, there))
        self.send_header("Content-Length", str(len(said)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(said)

    def _chunk(self) -> bytes:
        found = self.rfile.read(int(self.rfile.readline().partition(b";")[0], 16))
        self.rfile.readline()
        return found
