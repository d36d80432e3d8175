"""A room of VMs: network namespaces on one bridge, with the simulated Google Cloud on it.

`enter` starts this again inside network, mount and process namespaces of its own, where it may make
bridges as root and leaves nothing behind. Each VM has its own address, users, /tmp, /dev/shm and
processes: to kill a VM is to kill the first of its processes. /srv is one for all, in place of a
bucket's mount.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote
from urllib.request import Request, urlopen

from rehearsal.cloud.server import Cloud
from tests.running import ran
from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import PAYLOAD, configuration

if TYPE_CHECKING:
    from tests.startup.environments import Environment

_BRIDGE = "10.77.0.1"
# Users other than root take a range of ids: root of this machine has all, others those that
# newuidmap gives them.
_USERS = () if os.geteuid() == 0 else ("--user", "--map-root-user", "--map-auto")
_ENTER = (
    "unshare", *_USERS, "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
)  # fmt: skip
_VM = (
    "unshare", "--uts", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc",
    "bash", "-c",
)  # fmt: skip
# $1 is the VM's disk, $2 its address, $3 the folder that has Ray's Python, $4 where the venv is
# below it; the rest is what the VM does.
# What belongs to whoever tests is covered: it's neither the VM's nor for its users.
_BOOT = r"""
set -o errexit -o nounset
cd /
mount --bind "$1" /mnt
mount --bind "$1/../shared" /srv
mkdir -p /mnt/environment
mount --bind "$3" /mnt/environment
for folder in /home /opt /root /run /var/lib; do mount -t tmpfs -o mode=755 vm "$folder"; done
for folder in /dev/shm /tmp; do mount -t tmpfs -o mode=1777 vm "$folder"; done
mkdir -p "$3" /opt/aiinfra
mount --bind /mnt/environment "$3"
mount --bind /mnt/opt /opt/aiinfra
mount --bind "$3/$4" /opt/aiinfra/ray
for file in group hosts passwd profile.d; do mount --bind "/mnt/etc/$file" "/etc/$file"; done
install -d -o aiinfra-ray -g aiinfra-ray /run/aiinfra-ray /var/lib/aiinfra-ray
install -d -o ana -g ana /home/ana
# Tokens of other clusters, as a local ray.init() leaves behind.
for home in /home/ana /var/lib/aiinfra-ray; do
  install -d "$home/.ray" && echo stray >"$home/.ray/auth_token"
done
cat /mnt/name >/proc/sys/kernel/hostname
ip link set lo up
until ip link show eth0 >/dev/null 2>&1; do sleep 0.05; done
ip address add "$2/24" dev eth0
ip link set eth0 up
ip route add default via 10.77.0.1
shift 4
exec "$@"
"""
_AT_SAMPLES = "cd /opt/aiinfra/samples\n"
# As systemd does by the unit's User=, CapabilityBoundingSet= and NoNewPrivileges=.
_AS_SERVICE = (
    "setpriv", "--reuid=aiinfra-ray", "--regid=aiinfra-ray", "--clear-groups",
    "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs",
)  # fmt: skip
_UNIT = "aiinfra-ray"


def of_unit(unit: str, setting: str) -> list[str]:
    """The values that a service's unit gives to a setting."""
    text = (PAYLOAD / "systemd" / f"{unit}.service").read_text("utf-8")
    return re.findall(rf"^{setting}=(.*)$", text, re.MULTILINE)


def environment_of(unit: str) -> dict[str, str]:
    """The variables that a service's unit sets."""
    pairs = (pair for line in of_unit(unit, "Environment") for pair in line.split())
    return dict(pair.split("=", 1) for pair in pairs)


def enter(scenario: str, *arguments: str, seconds: float) -> list[dict[str, Any]]:
    """Run a scenario, a module with `main`, in a room; what it printed, a document a line."""
    command = [*_ENTER, sys.executable, "-m", scenario, *arguments]
    done = ran(command, timeout=seconds)
    assert done.returncode == 0, done.stderr[-6000:] + done.stdout[-2000:]
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


class Machine:
    """One VM of the room."""

    def __init__(self, number: int, folder: Path, environment: Environment) -> None:
        self.name = f"train-vm-{number}"
        self.address = f"10.77.0.{number + 10}"
        self._number = number
        self._folder = folder / self.name
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    def boot(
        self, servers: dict[str, str], *, ray: bool = True, config: dict[str, Any] | None = None
    ) -> None:
        """Start the VM, which goes on until it is killed, with Ray's service or with nothing.

        `servers`: the variables that lead to the servers which are Google's elsewhere.
        """
        programs = self._folder / "opt"
        if not programs.exists():
            shutil.copytree(PAYLOAD, programs, ignore=shutil.ignore_patterns("__pycache__"))
            (programs / "ray").mkdir()
            self._install()
        (programs / "config.json").write_text(json.dumps(configuration(**config or {})))
        self.variables = servers | self._environment.variables
        given = {
            **environment_of(_UNIT),
            "HOME": "/var/lib/aiinfra-ray",
            "USER": "aiinfra-ray",
            "LOGNAME": "aiinfra-ray",
            **self.variables,
        }
        (start,) = of_unit(_UNIT, "ExecStart")
        service = [*_AS_SERVICE, "env", "--ignore-environment"]
        service += [f"{name}={value}" for name, value in given.items()]
        service += [*shlex.split(start), "--renew=1", "--expiry=5"]
        venv = self._environment.python.parent.parent
        home = venv.parent
        places = [str(self._folder), self.address, str(home), str(venv.relative_to(home))]
        with (self._folder / "journal").open("ab") as journal:
            self._process = subprocess.Popen(
                [*_VM, _BOOT, self.name, *places, *(service if ray else ("sleep", "infinity"))],
                stdout=journal,
                stderr=subprocess.STDOUT,
            )
        self._plug_in(self._inside())

    def run(self, command: str, *, user: str = "ana", seconds: float = 240) -> str:
        """Run a command in the shell that a user gets by ssh; what it printed.

        Raises:
            RuntimeError: It failed.
        """
        done = self._run(self._shell(user, command), seconds)
        if done.returncode:
            raise RuntimeError(f"{command}: {done.stdout[-2000:]}{done.stderr[-3000:]}")
        return done.stdout

    def fails(self, command: str, *, user: str, seconds: float = 240) -> str:
        """Run a command that is to fail; what it said.

        Raises:
            RuntimeError: It did not.
        """
        done = self._run(self._shell(user, command), seconds)
        if done.returncode == 0:
            raise RuntimeError(f"{command} was let in: {done.stdout[-2000:]}")
        return done.stderr + done.stdout

    def _shell(self, user: str, command: str) -> list[str]:
        about = pwd.getpwnam("nobody") if user == "nobody" else None
        home = about.pw_dir if about else f"/home/{user}"
        gid = str(about.pw_gid) if about else user
        who = ["setpriv", f"--reuid={user}", f"--regid={gid}", "--clear-groups"]
        clean = ["env", "--ignore-environment", f"HOME={home}", f"USER={user}", f"LOGNAME={user}"]
        return [*who, *clean, "bash", "--login", "-c", _AT_SAMPLES + command]

    def _run(self, command: Sequence[str], seconds: float) -> subprocess.CompletedProcess[str]:
        target = f"--target={self._inside()}"
        enter = ["nsenter", target, "--uts", "--net", "--mount", "--pid", "--wd=/"]
        return ran([*enter, *command], timeout=seconds)

    def _install(self) -> None:
        """Make what the step `ray` makes beside the venv, and what an image has."""
        etc = self._folder / "etc"
        shutil.copytree(PAYLOAD / "profile.d", etc / "profile.d")
        given = (f"export {name}={value}\n" for name, value in self._environment.variables.items())
        (etc / "profile.d/environment.sh").write_text("".join(given))
        users = {"aiinfra-ray": 880, "aiinfra-job": 881, "ana": 1500}
        for file in ("passwd", "group"):
            lines = [
                f"{name}:x:{number}:"
                + (f"{number}::/home/{name}:/bin/bash" if file == "passwd" else "")
                for name, number in users.items()
            ]
            before = Path("/etc", file).read_text()
            (etc / file).write_text(before + "\n".join(lines) + "\n")
        # As on Google Cloud, a VM's own name leads to its address, not to loopback.
        (self._folder / "name").write_text(self.name)
        (etc / "hosts").write_text(f"127.0.0.1 localhost\n{self.address} {self.name}\n")

    def kill(self) -> None:
        """End all of the VM's processes at once, as when its host dies."""
        assert self._process is not None
        # Its first process changes its user, and so does not end with its parent.
        with suppress(FileNotFoundError, ProcessLookupError):
            os.kill(self._inside(), signal.SIGKILL)
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
    """The bridge, the cloud on it, and the VMs' metadata servers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        (self.folder / "shared").mkdir()
        (self.folder / "shared").chmod(0o777)
        _ip("link", "set", "lo", "up")
        _ip("link", "add", "br0", "type", "bridge")
        _ip("address", "add", f"{_BRIDGE}/24", "dev", "br0")
        _ip("link", "set", "br0", "up")
        cloud = self._stack.enter_context(Cloud(database=self.folder / "cloud.sqlite"))
        self.wire = Wire(int(cloud.base_url.rpartition(":")[2]))
        self.cloud = f"http://{_BRIDGE}:{self.wire.port}"
        self._base_url = cloud.base_url
        self._make_bucket()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def boot(
        self,
        machine: Machine,
        *,
        ray: bool = True,
        values: dict[str, bytes] | None = None,
        config: dict[str, Any] | None = None,
    ) -> None:
        """Boot a VM; a VM that was killed has another instance id, as one that was re-created.

        `values`: version -> value, as Secret Manager has them.
        """
        server = MetadataServer(
            {
                "name": machine.name,
                "id": str(time.time_ns()),
                "network-interfaces/0/ip": machine.address,
                "service-accounts/default/token": self._token,
            },
            address=_BRIDGE,
            secrets=values or {},
        )
        self._stack.enter_context(server)
        (self.folder / machine.name).mkdir(exist_ok=True)
        servers = {
            "GCE_METADATA_HOST": server.host,
            "STORAGE_EMULATOR_HOST": self.cloud,
            "CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER": f"http://{server.host}/",
        }
        machine.boot(servers, ray=ray, config=config)

    def object(self, name: str, method: str = "GET") -> bytes:
        """Read or delete an object of the state folder, as its owner may."""
        content = "?alt=media" if method == "GET" else ""
        return self._ask(f"storage/v1/b/{{}}/o/{{}}{content}", name, method=method)

    def write(self, name: str, content: bytes) -> None:
        """Write an object of the state folder, as its owner may."""
        self._ask("upload/storage/v1/b/{}/o?uploadType=media&name={}", name, data=content)

    def names(self, prefix: str) -> list[str]:
        """The names of the objects of the state folder that begin so."""
        answer = json.loads(self._ask("storage/v1/b/{}/o?prefix={}", prefix))
        folder = configuration()["state"]["folder"]
        return [it["name"].removeprefix(f"{folder}/") for it in answer.get("items", [])]

    def _ask(self, path: str, name: str, **how: Any) -> bytes:
        state = configuration()["state"]
        url = path.format(state["bucket"], quote(f"{state['folder']}/{name}", safe=""))
        with urlopen(self._request(f"{self._base_url}/{url}", **how)) as answer:  # noqa: S310 - loopback
            return bytes(answer.read())

    def _make_bucket(self) -> None:
        host = {"Metadata-Flavor": "Google"}
        token = f"{self._base_url}/computeMetadata/v1/instance/service-accounts/default/token"
        with urlopen(Request(token, headers=host)) as answer:  # noqa: S310 - loopback
            self._token = answer.read().decode()
        url = f"{self._base_url}/storage/v1/b?project=rehearsal-host"
        body = json.dumps({"name": configuration()["state"]["bucket"]}).encode()
        with urlopen(self._request(url, data=body)):  # noqa: S310 - loopback
            pass

    def _request(self, url: str, **options: Any) -> Request:
        headers = {
            "Content-Type": "application/json",
            "Authorization": f"Bearer {json.loads(self._token)['access_token']}",
        }
        return Request(url, headers=headers, **options)  # noqa: S310 - loopback


class Wire:
    """Passes connections on to a port of loopback.

    `address`: where it listens, at any port: the bridge, unless told otherwise. `port`: The port
    where it listens. `is_down`: Whether each request is answered with 503 instead.
    """

    def __init__(self, to: int, address: str = _BRIDGE) -> None:
        self.is_down = False
        self._to = to
        self._listener = socket.create_server((address, 0))
        self.port: int = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Listen no longer."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                caller, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller: socket.socket) -> None:
        with caller:
            if self.is_down:
                caller.recv(65536)
                caller.sendall(b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n")
                return
            with socket.create_connection(("127.0.0.1", self._to)) as called:
                back = threading.Thread(target=_copy, args=(called, caller), daemon=True)
                back.start()
                _copy(caller, called)
                back.join()


def _copy(source: socket.socket, target: socket.socket) -> None:
    try:
        while received := source.recv(65536):
            target.sendall(received)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        return


def _ip(*arguments: str) -> None:
    _run(["ip", *arguments])


def _run(command: Sequence[str]) -> None:
    subprocess.run(command, check=True)
