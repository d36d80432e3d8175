"""A VM to run the real start-up script in: namespaces and a root of its own.

The script sees the paths that it would see on a VM (/etc/fstab, /opt, /var/lib, /home), and the
host's are out of its reach. It needs no root: a user namespace makes one. Where the kernel or its
configuration refuses that, the tests fail; they don't skip.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import shlex
import subprocess
import sys
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.startup.stubs import SETTLE, STUBS
from tests.waiting import until

if TYPE_CHECKING:
    from tests.startup.metadata_server import MetadataServer

MODULE = Path(__file__).parents[2] / "terraform" / "modules" / "startup"
SCRIPT = MODULE / "startup.sh"
_SYSTEMD = Path(__file__).with_name("systemd.py")
PAYLOAD = MODULE / "payload"

_FOLDERS = (
    "dev", "etc/apt/sources.list.d", "etc/profile.d", "etc/security/limits.d",
    "etc/systemd/system", "home", "opt", "proc", "root", "run",
    "simulated/local", "simulated/src", "stubs", "sys/class/net/lo", "tmp", "usr",
    "usr/share/keyrings", "var/lib",
)  # fmt: skip
_RUN = "/root/startup-script"
_ENVIRONMENT = {"PATH": "/stubs:/usr/sbin:/usr/bin:/sbin:/bin"}

# Runs inside the namespaces: $1 is the VM's root, the rest the command in it.
_ENTER = """
set -o errexit -o nounset
root=$1
shift
mount --bind "$root" "$root"
mount --rbind /usr "$root/usr"
for folder in bin lib lib64 sbin; do
  if [ -L "/$folder" ]; then
    [ -e "$root/$folder" ] || ln -s "$(readlink "/$folder")" "$root/$folder"
  elif [ -d "/$folder" ]; then
    mkdir -p "$root/$folder"
    mount --rbind "/$folder" "$root/$folder"
  fi
done
case $PYTHON_PREFIX in
  /usr | /usr/*) ;;
  *) mkdir -p "$root$PYTHON_PREFIX" && mount --rbind "$PYTHON_PREFIX" "$root$PYTHON_PREFIX" ;;
esac
# A VM has devices, and a /usr/local and /usr/src, of its own.
mount -t tmpfs dev "$root/dev"
for node in null zero full random urandom tty; do
  touch "$root/dev/$node" && mount --bind "/dev/$node" "$root/dev/$node"
done
ln -s /proc/self/fd "$root/dev/fd"
mkdir -p "$root/dev/disk/by-id" "$root/dev/md"
for disk in "$root"/simulated/disks/*; do
  [ ! -e "$disk" ] || ln -s "/simulated/disks/${disk##*/}" "$root/dev/disk/by-id/${disk##*/}"
done
mount --bind "$root/simulated/src" "$root/usr/src"
for folder in /usr/local/*/; do
  own=$root/simulated/local/$(basename "$folder")
  mkdir -p "$own" && mount --rbind "$folder" "$own"
done
mount --rbind "$root/simulated/local" "$root/usr/local"
mount -t proc proc "$root/proc"
mount --bind "$root/simulated/boot-id" "$root/proc/sys/kernel/random/boot_id"
mount --bind "$root/simulated/uptime" "$root/proc/uptime"
mount -t tmpfs run "$root/run"
mkdir "$root/run/aiinfra"
cp "$root/simulated/peers.json" "$root/run/aiinfra"
mount -t tmpfs keyrings "$root/usr/share/keyrings"
exec chroot "$root" /usr/bin/env -i "$@"
"""
_NAMESPACES = ("unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "--kill-child")


def payload(*parts: str) -> dict[str, str]:
    """What the module puts into the metadata key `aiinfra-payload`, before it is packed.

    `parts`: which of ray and slurm a VM has; both, where none is named.
    """
    away = "|".join({"ray", "slurm"} - set(parts)) if parts else "$."
    alone = re.compile(rf"(^|/)({away})[-_]|-({away})[.]")
    kinds = {".json", ".md", ".py", ".service", ".sh", ".txt", ".yaml"}
    files = sorted(path for path in PAYLOAD.rglob("*") if path.suffix in kinds)
    texts = {file.relative_to(PAYLOAD).as_posix(): file.read_text("utf-8") for file in files}
    return {
        name: bare(it) if name.startswith("lib/") else it
        for name, it in texts.items()
        if not alone.search(name)
    }


def bare(program: str) -> str:
    """A program without its comments, but for those at the margin, and with empty docstrings."""
    text = re.sub(r"(?m)^ +# .*\n|  # .*$", "", program)
    docstring = r'(?m)(= r?f?"""[\s\S]*?""")|^( *)"""[\s\S]*?"""$'
    return re.sub(docstring, r'\1\2""', text)


def configuration(**changes: Any) -> dict[str, Any]:
    """What the metadata key `aiinfra-config` holds, for a VM on which little is set up."""
    return {
        "cluster_id": "3f9c2a71",
        "name_prefix": "train",
        "state": {"bucket": "my-bucket", "folder": "train-deployment"},
        "mounts": [],
        "files": None,
        "gpus": {"count": 2, "accelerator": "nvidia-tesla-a100"},
        "interfaces": 1,
        "local_ssds": 0,
        "fabric": None,
        "ops_agent": False,
        "node_ssh": False,
        "notebook": False,
        "ray": None,
        "slurm": None,
        "secrets": None,
        "has_command": False,
        "restart": "never",
        "max_run_seconds": None,
        "stop_notice": None,
        "os_updates": True,
        "outbound": None,
    } | changes


IMAGE: Final[dict[str, Any]] = json.loads(Path(__file__).with_name("image.json").read_text())
"""What Google's Deep Learning VM images bring, the default of most machines."""

AGREED = {
    "name": "train-vm-1",
    "rank": 0,
    "complete": True,
    "nnodes": 1,
    "generation": 1,
    "members": [
        {
            "rank": 0,
            "present": True,
            "name": "train-vm-1",
            "instance_id": "1",
            "address": "10.0.0.2",
            "boot": "5a1c",
            "key": "",
            "host_keys": [],
        }
    ],
}
"""What the agent of a group's only VM has on its disk; none runs here."""


def _outside() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "PYTHON_PREFIX": sys.base_prefix}


@dataclass
class VM:
    """One simulated VM: its disk outlives its boots."""

    disk: Path  # its root folder on the host
    server: MetadataServer
    # programs in place of the image's, by name
    stubs: dict[str, str] = field(default_factory=lambda: dict(STUBS))
    # constants of the payload's programs that would take real time -> other values
    quicker: dict[str, str] = field(default_factory=lambda: {"_GAP = 12.0": "_GAP = 0.0"})
    # its network interfaces, by name, as iproute2 shows them
    links: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._running: subprocess.Popen[str] | None = None
        for folder in _FOLDERS:
            (self.disk / folder).mkdir(parents=True)
        (self.disk / "etc/fstab").write_text("UUID=1 / ext4 defaults 0 1\n")
        for name, lines in IMAGE["files"].items():
            file = self.disk / name.replace("usr/", "simulated/", 1)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{line}\n" for line in lines))
        (self.disk / "etc/os-release").write_text(
            'ID=ubuntu\nVERSION_ID="22.04"\nVERSION_CODENAME=jammy\n'
        )
        (self.disk / "simulated/peers.json").write_text(json.dumps(AGREED))
        self.add_interface("ens4", "10.0.0.2")
        self.server.values["network-interfaces/0/ip"] = "10.0.0.2"
        answer = '{"access_token": "token-of-the-vm"}'
        self.server.values.setdefault("service-accounts/default/token", answer)

    def add_interface(self, name: str, *addresses: str, mtu: int = 1460, state: str = "UP") -> None:
        """Give the VM a network interface with a device."""
        (self.disk / "sys/class/net" / name / "device").mkdir(parents=True, exist_ok=True)
        inet = [{"family": "inet", "local": address} for address in addresses]
        self.links[name] = {"ifname": name, "operstate": state, "mtu": mtu, "addr_info": inet}
        loopback = {"ifname": "lo", "operstate": "UNKNOWN", "mtu": 65536, "addr_info": []}
        shown = json.dumps([loopback, *self.links.values()])
        (self.disk / "simulated/links.json").write_text(shown)

    def configure(self, command: str | None = None, **changes: Any) -> None:
        """Set the VM's metadata: a start-up command, and changes to the configuration."""
        config = configuration(**changes, has_command=command is not None)
        metadata = {
            "aiinfra-config": json.dumps(config),
            "aiinfra-payload": base64.b64encode(
                gzip.compress(json.dumps(self._payload()).encode())
            ).decode(),
        }
        if command is not None:
            metadata["aiinfra-startup-command"] = command
        self.server.set_metadata(metadata)

    def boot(self) -> subprocess.CompletedProcess[str]:
        """Start the VM, and wait until its start-up script and what that started have ended."""
        running = self.start()
        stdout, stderr = running.communicate(timeout=250)
        return subprocess.CompletedProcess(running.args, running.returncode, stdout, stderr)

    def start(self) -> subprocess.Popen[str]:
        """Start the VM, and leave it running; to kill the process is to cut its power."""
        script = self.disk / _RUN.lstrip("/")
        script.write_bytes(SCRIPT.read_bytes())
        self._write_stubs()
        (self.disk / "simulated/uptime").write_text("40.00 0.00\n")
        self.server.uptime = self._uptime
        (self.disk / "simulated/boot-id").write_text(f"{uuid.uuid4()}\n")
        (self.disk / "calls").write_text("")
        variables = {**_ENVIRONMENT, "GCE_METADATA_HOST": self.server.host}
        secret_manager = f"http://{self.server.host}/"
        variables["CLOUDSDK_API_ENDPOINT_OVERRIDES_SECRETMANAGER"] = secret_manager
        variables["STORAGE_EMULATOR_HOST"] = f"http://{self.server.host}"
        run = f"bash {_RUN}; code=$?; {SETTLE}; exit $code"
        self._running = subprocess.Popen(
            self._entered(variables, "bash", "-c", run),
            env=_outside(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        return self._running

    def said(self, *command: str, **variables: str) -> str:
        """What a program says on its disk while nothing else runs."""
        return subprocess.run(
            self._entered(_ENVIRONMENT | {"HOME": "/root"} | variables, *command),
            env=_outside(),
            capture_output=True,
            text=True,
            check=True,
        ).stdout

    def _entered(self, variables: Mapping[str, str], *command: str) -> list[str]:
        """A command in the VM's namespaces."""
        inside = [f"{name}={value}" for name, value in variables.items()]
        enter = [*_NAMESPACES, "bash", "-c", _ENTER, "enter", str(self.disk)]
        return [*enter, *inside, *command]

    def end(self) -> None:
        """End it, if it runs."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()

    def shut_down(self, running: subprocess.Popen[str]) -> None:
        """Shut a running VM down as its own `poweroff` does, and wait for the end."""
        (self.disk / "simulated/power-off").touch()
        running.communicate(timeout=120)

    def cut_power(self, running: subprocess.Popen[str]) -> None:
        """End a running VM at once, as a host that fails does."""
        running.kill()
        running.communicate(timeout=60)

    def await_text(self, path: str, text: str, *, seconds: float = 150) -> None:
        """Wait until a file of the VM has a text."""

        def said() -> str:
            return self.read(path) if self.exists(path) else ""

        until(lambda: text in said(), said, seconds=seconds, pace=0.02)

    def calls(self, program: str = "") -> list[str]:
        """The command lines of stubs during the last boot, in order, of one program or all."""
        lines = (self.disk / "calls").read_text().splitlines()
        return [line for line in lines if line.startswith(program)]

    def read(self, path: str) -> str:
        """The text of a file of the VM."""
        return (self.disk / path.lstrip("/")).read_text()

    def exists(self, path: str) -> bool:
        """Whether a file of the VM is there."""
        return (self.disk / path.lstrip("/")).exists()

    @property
    def told(self) -> dict[str, Any]:
        """What the VM has told of its start-up, as it is now."""
        told = self.server.attributes["startup"]
        assert isinstance(told, dict)
        return told

    def states(self) -> dict[str, str]:
        """The state of the whole and of each step, as the guest attributes say it."""
        told = self.told
        return {
            "startup": told["state"],
            **{name: step["state"] for name, step in told["steps"].items()},
        }

    def detail(self, step: str) -> str:
        """What the last lines of a step's output are told to be."""
        detail = self.told["steps"][step]["detail"]
        assert isinstance(detail, str)
        return detail

    def _payload(self) -> dict[str, str]:
        files = payload()
        for line, quick in self.quicker.items():
            (name,) = [name for name, text in files.items() if f"\n{line}" in text]
            files[name] = files[name].replace(f"\n{line}", f"\n{quick}")
        return files

    def _uptime(self) -> float:
        while True:
            # The stand-in of sleep writes it anew, and not at once.
            if said := (self.disk / "simulated/uptime").read_text().split():
                return float(said[0])

    def _write_stubs(self) -> None:
        (self.disk / "stubs/systemd.py").write_bytes(_SYSTEMD.read_bytes())
        for name, body in self.stubs.items():
            file = self.disk / "stubs" / name
            log = f'printf "%s\\n" "{shlex.quote(name)} $*" >>/calls\n'
            file.write_text(f"#!/bin/bash\n{log}{body}\n")
            file.chmod(0o755)
