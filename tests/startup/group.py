"""VMs with real systems on one network, the simulated Cloud Storage, and the sites they ask."""

from __future__ import annotations

import base64
import itertools
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.request import Request, urlopen

from rehearsal.cloud.server import Cloud
from tests.startup import internet
from tests.startup.debian_vm import DebianVM, metadata_server
from tests.startup.namespaces import Space
from tests.startup.sandbox import configuration

if TYPE_CHECKING:
    from tests.startup.roots import Root

_TOKEN = "/computeMetadata/v1/instance/service-accounts/default/token"  # noqa: S105 - its place
ACCOUNT = "103271949540120710052"
_SUB = base64.urlsafe_b64encode(json.dumps({"sub": ACCOUNT}).encode()).decode().rstrip("=")
_IDENTITY = f"e30.{_SUB}.signature"
_BUCKET: str = configuration()["state"]["bucket"]
_NUMBERS = itertools.count(1)
# The agent's times are those of groups of thousands; here all goes ten times as fast.
_FAST = """\
[Service]
ExecStart=
ExecStart=/usr/bin/python3 -S -m aiinfra_vm.agent --pace=0.1
"""


class Site:
    """What the VMs of all groups have in common: network, bucket, and internet."""

    def __init__(self, folder: Path, root: Root) -> None:
        self._folder = folder
        self._root = root
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.space = Space()
        self._stack.callback(self.space.close)
        self.bridge = self.space.network()
        self.bridge.make_bridge()
        cloud = self._stack.enter_context(Cloud(database=self._folder / "cloud.sqlite"))
        self._url = cloud.base_url
        flavor = {"Metadata-Flavor": "Google"}
        with urlopen(Request(f"{self._url}{_TOKEN}", headers=flavor)) as answer:  # noqa: S310
            self.token: str = answer.read().decode()
        self.post("/storage/v1/b?project=rehearsal-host", {"name": _BUCKET})
        sites = internet.sites(self._folder, self._root.sources, self._root.release.number)
        self.internet = internet.Internet(
            {**sites, "storage.googleapis.com": self._url},
            self._folder / "tls",
            self._root.layers[0],
        )
        self._stack.callback(self.internet.close)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def post(self, path: str, document: Mapping[str, Any]) -> None:
        """Ask Cloud Storage for something."""
        self.ask(path, json.dumps(document).encode())

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        """What Cloud Storage answers; a question with a body is a POST."""
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {json.loads(self.token)['access_token']}",
        }
        request = Request(f"{self._url}{path}", body, headers)  # noqa: S310 - loopback
        with urlopen(request) as answer:  # noqa: S310 - as above
            return bytes(answer.read())


class Group:
    """The VMs of a cluster; all end with the block.

    `folder`: for their disks, and for all else that is kept; below `shared` is /srv/shared of each
    VM, in place of a file system that they share.
    """

    def __init__(self, site: Site, folder: Path, root: Root) -> None:
        self.shared = folder / "shared"
        self.shared.mkdir()
        self._site = site
        self._folder = folder
        self._root = root
        self._state = {"bucket": _BUCKET, "folder": f"cluster-{next(_NUMBERS)}"}
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def set_size(self, number: int) -> None:
        """Say how many VMs there are to be, as Create does."""
        self.write("vms/group.json", json.dumps({"instance_count": number}).encode())

    def write(self, name: str, content: bytes) -> None:
        """Write an object of the state folder, as the tool does."""
        path = quote(f"{self._state['folder']}/{name}", safe="")
        self._site.ask(f"/upload/storage/v1/b/{_BUCKET}/o?uploadType=media&name={path}", content)

    def read(self, name: str) -> bytes | None:
        """Read an object of the state folder; None where there is none."""
        path = quote(f"{self._state['folder']}/{name}", safe="")
        try:
            return self._site.ask(f"/storage/v1/b/{_BUCKET}/o/{path}?alt=media")
        except HTTPError:
            return None

    def log(self, job: str, attempt: int = 1) -> str:
        """What rank 0 of a job has said in an attempt; its pieces must fit together."""
        folder = self._state["folder"]
        prefix = quote(f"{folder}/vms/jobs/{job}/logs/{attempt}/0/", safe="")
        listed = json.loads(self._site.ask(f"/storage/v1/b/{_BUCKET}/o?prefix={prefix}"))
        said = b""
        for item in listed.get("items", ()):
            assert int(item["name"].rpartition("/")[2]) == len(said), "a piece is missing"
            said += self.read(item["name"][len(folder) + 1 :]) or b""
        return said.decode()

    def vm(self, name: str) -> DebianVM:
        """A new VM, which is off; of a name that there was, it is one that its group made again."""
        number = next(_NUMBERS)
        address = f"10.0.{number // 250}.{number % 250 + 2}"
        network = self._site.space.network()
        network.join(self._site.bridge, f"{address}/16")
        with network.entered():
            server = self._stack.enter_context(metadata_server())
        vm = DebianVM(
            self._folder / f"{name}-{number}/disk",
            server,
            root=self._root,
            network=network,
            name=name,
            shared=self.shared,
            own={"state": self._state},
        )
        self._stack.callback(vm.kill)
        # As on Google Cloud, a VM's own name leads to its address, not to loopback.
        vm.write("etc/hosts", vm.read("etc/hosts") + f"{address} {name}\n")
        vm.reach(self._site.internet)
        vm.write("etc/systemd/system/aiinfra-agent.service.d/fast.conf", _FAST)
        server.values |= {
            "name": name,
            "id": str(4_000_000_000 + number),
            "network-interfaces/0/ip": address,
            "network-interfaces/0/subnetmask": "255.255.0.0",
            "service-accounts/default/token": self._site.token,
            "service-accounts/default/identity": _IDENTITY,
        }
        return vm
