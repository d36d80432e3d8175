"""A room of VMs: network namespaces on one bridge, with the simulated Google Cloud on it.

`enter` starts this again inside user, network, mount and process namespaces of its own, where it
may make bridges as root and leaves nothing behind. Each VM has its own address, /tmp, /dev/shm and
processes: to kill a VM is to kill the first of its processes.
"""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.request import Request, urlopen

from rehearsal.cloud.server import Cloud
from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD, configuration

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_BRIDGE = "10.77.0.1"
_ENTER = (
    "unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork",
    "--kill-child", "--mount-proc",
)  # fmt: skip
_VM = (
    "unshare", "--uts", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
    "bash", "-c",
)  # fmt: skip
# Its disk is at /mnt. Waits for its network card, then is the service that systemd would start,
# in the folder that systemd would start it in: the test's own may lie under the /tmp of before.
_BOOT = """
cd / && mount --bind "$1" /mnt && shift || exit
cat /mnt/name >/proc/sys/kernel/hostname && mount --bind /mnt/hosts /etc/hosts || exit
mount -t tmpfs shm /dev/shm && mount -t tmpfs tmp /tmp && ip link set lo up || exit
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip address add "$1/24" dev eth0 && ip link set eth0 up && ip route add default via 10.77.0.1
shift
exec "$@"
"""


def enter(scenario: str, *arguments: str, seconds: float) -> list[dict[str, Any]]:
    """Run a scenario, a module with `main`, in a room; what it printed, a document a line."""
    command = [*_ENTER, sys.executable, "-m", scenario, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds, check=False)
    assert done.returncode == 0, done.stderr[-6000:] + done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Machine:
    """One VM of the room, running Ray's service.

    Args:
        number: 1 and so on; its address ends with it plus 10.
        folder: For what it has on its disk.
        python: The Python that has Ray.
        variables: What that needs in its environment.
    """

    def __init__(
        self, number: int, folder: Path, python: Path, variables: Mapping[str, str]
    ) -> None:
        self.name = f"train-vm-{number}"
        self.address = f"10.77.0.{number + 10}"
        self._number = number
        self._folder = folder / self.name
        self._python = python
        self._variables = dict(variables)
        self._process: subprocess.Popen[bytes] | None = None

    def boot(self, cloud: str, metadata_host: str) -> None:
        """Start the VM; its service goes on until the VM is killed."""
        programs = self._folder / "opt"
        if not programs.exists():
            shutil.copytree(PAYLOAD, programs, ignore=shutil.ignore_patterns("__pycache__"))
        # As on Google Cloud, a VM's own name leads to its address, not to loopback.
        (self._folder / "name").write_text(self.name)
        (self._folder / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")
        (programs / "config.json").write_text(json.dumps(configuration()))
        environment = {
            "PATH": f"{self._python.parent}:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/mnt",
            "GCE_METADATA_HOST": metadata_host,
            "STORAGE_EMULATOR_HOST": cloud,
            **self._variables,
            "PYTHONPATH": "/mnt/opt/lib",
        }
        service = [str(self._python), "-m", "aiinfra_vm.ray_node", "--renew=1", "--expiry=5"]
        with (self._folder / "journal").open("ab") as journal:
            self._process = subprocess.Popen(
                [*_VM, _BOOT, self.name, str(self._folder), self.address, *service],
                env=environment,
                stdout=journal,
                stderr=subprocess.STDOUT,
            )
        self._plug_in(self._inside())

    def run(self, *command: str, seconds: float = 90) -> str:
        """Run Python on the VM; what it printed."""
        target = f"--target={self._inside()}"
        enter = ["nsenter", target, "--uts", "--net", "--mount", "--pid"]
        path = f"{self._python.parent}:/usr/bin:/bin"
        done = subprocess.run(
            [*enter, "--wd=/", str(self._python), *command],
            env={"PATH": path, "HOME": "/mnt", **self._variables},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stderr[-3000:])
        return done.stdout

    def kill(self) -> None:
        """End all of the VM's processes at once, as when its host dies."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    def journal(self) -> str:
        """What the service has said."""
        return (self._folder / "journal").read_text(errors="replace")

    def _inside(self) -> int:
        """The first process in the VM's namespaces."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline:
            found = children.read_text().split()
            if found:
                return int(found[0])
            time.sleep(0.02)
        raise AssertionError(f"{self.name} did not start: {self.journal()}")

    def _plug_in(self, inside: int) -> None:
        card = f"v{self._number}-{inside}"
        _ip("link", "add", card, "type", "veth", "peer", "name", "eth0", "netns", str(inside))
        _ip("link", "set", card, "master", "br0", "up")


class Room:
    """The bridge, the cloud on it, and the VMs' metadata servers.

    Args:
        folder: For the cloud's database and the VMs' disks.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "br0", "type", "bridge")
        _ip("address", "add", f"{_BRIDGE}/24", "dev", "br0")
        _ip("link", "set", "br0", "up")
        cloud = self._stack.enter_context(Cloud(database=self.folder / "cloud.sqlite"))
        self.cloud = f"http://{_BRIDGE}:{_relay(int(cloud.base_url.rpartition(':')[2]))}"
        self._make_bucket(cloud.base_url)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def boot(self, machine: Machine) -> None:
        """Boot a VM; a VM that was killed has another instance id, as one that was re-created."""
        server = MetadataServer(
            {
                "name": machine.name,
                "id": str(time.time_ns()),
                "network-interfaces/0/ip": machine.address,
                "service-accounts/default/token": self._token,
            },
            address=_BRIDGE,
        )
        self._stack.enter_context(server)
        (self.folder / machine.name).mkdir(exist_ok=True)
        machine.boot(self.cloud, server.host)

    def _make_bucket(self, base_url: str) -> None:
        host = {"Metadata-Flavor": "Google"}
        token = f"{base_url}/computeMetadata/v1/instance/service-accounts/default/token"
        with urlopen(Request(token, headers=host)) as answer:  # noqa: S310 - loopback
            self._token = answer.read().decode()
        request = Request(  # noqa: S310 - loopback
            f"{base_url}/storage/v1/b?project=rehearsal-host",
            data=json.dumps({"name": configuration()["state"]["bucket"]}).encode(),
            headers={
                "Content-Type": "application/json",
                "Authorization": f"Bearer {json.loads(self._token)['access_token']}",
            },
        )
        with urlopen(request):  # noqa: S310 - loopback
            pass


def _relay(port: int) -> int:
    """Pass connections to the bridge on to a port of loopback; the port on the bridge."""
    listener = socket.create_server((_BRIDGE, 0))
    threading.Thread(target=_accept, args=(listener, port), daemon=True).start()
    bound: int = listener.getsockname()[1]
    return bound


def _accept(listener: socket.socket, port: int) -> None:
    while True:
        caller, _ = listener.accept()
        called = socket.create_connection(("127.0.0.1", port))
        for source, target in ((caller, called), (called, caller)):
            threading.Thread(target=_copy, args=(source, target), daemon=True).start()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while received := source.recv(65536):
            target.sendall(received)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        target.close()


def _ip(*arguments: str) -> None:
    _run(["ip", *arguments])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)
