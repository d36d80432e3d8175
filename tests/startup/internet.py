"""The internet of a simulated VM: servers of https that stand in for those that start-up asks.

Their names lead to them by the VM's /etc/hosts, and the VM trusts their certificate: programs on
it run as they are, with TLS, and need no setting.
"""

import functools
import shutil
import ssl
import threading
from collections.abc import Mapping
from pathlib import Path
from socket import socket

from tests import debian
from tests.intercepting import Answers
from tests.startup import namespaces
from tests.startup.metadata_server import Nameless

# A certificate that signs itself, for all the names. Python 3.13 wants to see what it is for.
_CERTIFICATE = """
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 \
  -subj '/CN=The internet of tests' -addext subjectAltName={names} \
  -addext keyUsage=critical,digitalSignature,keyCertSign \
  -keyout /mnt/key.pem -out /mnt/certificate.pem 2>/mnt/said
openssl x509 -hash -noout -in /mnt/certificate.pem >/mnt/hash
"""

# What Google's installer leaves, as far as start-up meets it.
_OPS_AGENT = """
echo "installer $*" >>/calls
cat >/etc/systemd/system/google-cloud-ops-agent.service <<'UNIT'
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
UNIT
systemctl daemon-reload && systemctl enable --now google-cloud-ops-agent.service
"""


def sites(folder: Path, sources: Path, release: int) -> dict[str, Path]:
    """The sites that start-up downloads from, by their names."""
    google, nvidia, downloads = (folder / name for name in ("google", "nvidia", "downloads"))
    shutil.copytree(sources / "google", google / "apt")
    (google / "apt/doc").mkdir()
    shutil.copy(sources / "key.asc", google / "apt/doc/apt-key.gpg")
    cuda = nvidia / f"compute/cuda/repos/debian{release}/x86_64"
    shutil.copytree(sources / "nvidia", cuda)
    shutil.copy(sources / "key.asc", cuda / "3bf863cc.pub")
    (downloads / "cloudagents").mkdir(parents=True)
    installer = downloads / "cloudagents/add-google-cloud-ops-agent-repo.sh"
    installer.write_text(_OPS_AGENT)
    return {
        "packages.cloud.google.com": google,
        "developer.download.nvidia.com": nvidia,
        "dl.google.com": downloads,
    }


class Internet:
    """Names, and what answers to each.

    `sites`: host name -> a folder of files, or the URL of a server on this machine's loopback.
    """

    def __init__(self, sites: Mapping[str, Path | str], folder: Path, root: Path) -> None:
        self.sites = dict(sites)
        folder.mkdir()
        names = ",".join(f"DNS:{name}" for name in self.sites)
        debian.run_in(root, _CERTIFICATE.format(names=names), folder)
        self.certificate = (folder / "certificate.pem").read_text()
        self.hash = (folder / "hash").read_text().strip()
        self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._tls.load_cert_chain(folder / "certificate.pem", folder / "key.pem")
        self._servers: list[tuple[_Server, threading.Thread]] = []

    def reach(self, network: namespaces.Network) -> None:
        """Answer in the network of a VM."""
        with network.entered():
            server = _Server(self)
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        self._servers.append((server, thread))

    def close(self) -> None:
        """Answer no more."""
        for server, thread in self._servers:
            server.shutdown()
            thread.join()
            server.server_close()

    def wrap(self, connection: socket) -> ssl.SSLSocket:
        """The connection with TLS; its thread shakes hands, when it first reads."""
        return self._tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)


class _Server(Nameless):
    daemon_threads = True

    def __init__(self, internet: Internet) -> None:
        super().__init__((namespaces.INTERNET, 443), functools.partial(Answers, internet.sites))
        self._internet = internet

    def get_request(self) -> tuple[socket, str]:
        connection, caller = super().get_request()
        return self._internet.wrap(connection), caller

    def handle_error(self, request: object, client_address: object) -> None:
        """Say nothing: a VM may be killed while it reads."""
