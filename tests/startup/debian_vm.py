"""A VM with the real system of a Debian release: its systemd, apt, Python, bash and sshd.

Only what a VM of this machine can't have is a stand-in: the GPU's and Google's programs, and the
servers on the internet. Google's guest agent is a unit that runs the start-up script at each boot.
"""

from __future__ import annotations

import subprocess
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.running import ran
from tests.startup import namespaces
from tests.startup.metadata_server import MetadataServer
from tests.startup.sandbox import SCRIPT, VM
from tests.startup.stubs import STUBS

if TYPE_CHECKING:
    from tests.startup.internet import Internet
    from tests.startup.roots import Root

# What an image of Google's has in its place; all else is the release's.
STAND_INS = {name: STUBS[name] for name in ("dmesg", "nvidia-smi")}

_UNIT = """\
[Unit]
Description=The start-up script of the VM's metadata
Wants=network-online.target
After=network-online.target
[Service]
Type=oneshot
KillMode=process
ExecStart=/bin/bash /root/startup-script
[Install]
WantedBy=multi-user.target
"""
_WANTED = "etc/systemd/system/multi-user.target.wants"
_SERVICE = "google-startup-scripts.service"
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
_SECONDS = 240  # for a boot, or for a shutdown

# $1 is the VM's folder, $2 its layers, $3 the package sources, $4 what it shares with others, $5
# the number of its GPUs: loop devices, as they are of the kind that Slurm looks for.
_BOOT = """
set -o errexit -o nounset
root=$1/root
mount -t overlay overlay "$root" \
  -o "lowerdir=$2,upperdir=$1/disk,workdir=$1/work,userxattr"
mount -t proc proc "$root/proc"
mount -t sysfs sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 dev "$root/dev"
for device in full null random tty urandom zero; do
  touch "$root/dev/$device" && mount --bind "/dev/$device" "$root/dev/$device"
done
for ((gpu = 0; gpu < $5; gpu++)); do
  touch "$root/dev/nvidia$gpu" && mount --bind "/dev/loop$gpu" "$root/dev/nvidia$gpu"
done
mkdir "$root/dev/pts" "$root/dev/shm"
mount -t devpts -o newinstance,ptmxmode=0666,mode=620 devpts "$root/dev/pts"
ln -s pts/ptmx "$root/dev/ptmx" && ln -s /proc/self/fd "$root/dev/fd"
mount -t tmpfs -o mode=1777 shm "$root/dev/shm"
mount -t tmpfs -o mode=755 run "$root/run"
mount -t tmpfs -o mode=1777 tmp "$root/tmp"
mkdir -p "$root/srv/sources" && mount --bind "$3" "$root/srv/sources"
mkdir -p "$root/srv/shared" && mount --bind "$4" "$root/srv/shared"
# Virtual interfaces have no device: those of the VM are described.
mount --bind "$1/disk/sys/class/net" "$root/sys/class/net"
mount --bind "$1/boot-id" "$root/proc/sys/kernel/random/boot_id"
cd "$root" && mkdir -p before && pivot_root . before && umount --lazy before
exec env -i container=test /sbin/init --log-target=journal --show-status=no
"""


@dataclass
class DebianVM(VM):
    """One VM; `disk` has what it has written, above the layers that it shares with others."""

    root: Root = field(kw_only=True)  # the root file system below
    network: namespaces.Network = field(kw_only=True)
    name: str = field(kw_only=True, default="train-vm-1")
    shared: Path = field(kw_only=True)  # a folder of this machine that is /srv/shared of the VM
    # what differs in its configuration from that of a VM of `sandbox`
    own: dict[str, Any] = field(kw_only=True, default_factory=dict)
    gpus: int = field(kw_only=True, default=0)  # how many devices of GPUs it has
    stubs: dict[str, str] = field(default_factory=lambda: dict(STAND_INS))

    def __post_init__(self) -> None:
        for folder in ("disk", "root", "work"):
            (self.disk.parent / folder).mkdir(parents=True)
        self._process: subprocess.Popen[bytes] | None = None
        self._group: namespaces.ControlGroup | None = None
        for folder in ("etc/apt/sources.list.d", "root", "simulated", "usr/bin"):
            (self.disk / folder).mkdir(parents=True)
        (self.disk / "root").chmod(0o700)
        (self.disk / "simulated").chmod(0o777)
        self.add_interface("ens4")
        self.write("etc/hostname", f"{self.name}\n")
        self.write(
            "etc/hosts", f"127.0.0.1 localhost\n{namespaces.METADATA} metadata.google.internal\n"
        )
        self.write(
            "etc/apt/sources.list.d/debian.list",
            "deb [signed-by=/srv/sources/key.asc] file:/srv/sources/debian ./\n",
        )
        self.write(f"etc/systemd/system/{_SERVICE}", _UNIT)
        self.enable(_SERVICE)

    def configure(self, command: str | None = None, **changes: Any) -> None:
        """Set the VM's metadata, as `sandbox.VM` does."""
        super().configure(command, **self.own, **changes)

    def write(self, path: str, text: str, mode: int = 0o644) -> None:
        """Write a file of the VM, while it is off."""
        file = self.disk / path.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        file.chmod(mode)

    def enable(self, unit: str) -> None:
        """Have a unit of the VM started at each boot, while it is off."""
        (self.disk / _WANTED).mkdir(exist_ok=True)
        (self.disk / _WANTED / unit).symlink_to(f"/etc/systemd/system/{unit}")

    def reach(self, internet: Internet) -> None:
        """Lead the names of the internet there, and trust its certificate."""
        names = "".join(f"{namespaces.INTERNET} {name}\n" for name in internet.sites)
        self.write("etc/hosts", self.read("etc/hosts") + names)
        bundle = "etc/ssl/certs/ca-certificates.crt"
        trusted = (self.root.layers[0] / bundle).read_text()
        self.write(bundle, trusted + internet.certificate)
        # OpenSSL looks there by what it calls the hash of the name.
        self.write(f"etc/ssl/certs/{internet.hash}.0", internet.certificate)
        internet.reach(self.network)

    def boot(self) -> subprocess.CompletedProcess[str]:
        """Start the VM, and wait until its boot is over; how its start-up script has ended."""
        self.turn_on()
        self.settle()
        code = self.run(f"systemctl show --value --property ExecMainStatus {_SERVICE}")
        said = self.run(f"journalctl --unit {_SERVICE} --output cat --boot --no-pager")
        return subprocess.CompletedProcess([_SERVICE], int(code), "", said)

    def turn_on(self) -> None:
        """Start the VM."""
        assert self._process is None, "it runs"
        (self.disk / "root/startup-script").write_bytes(SCRIPT.read_bytes())
        self._write_stubs()
        (self.disk / "calls").write_text("")
        (self.disk / "calls").chmod(0o666)
        folder = self.disk.parent
        (folder / "boot-id").write_text(f"{uuid.uuid4()}\n")
        self._group = namespaces.ControlGroup()
        lower = ":".join(map(str, reversed(self.root.layers)))
        join = f'echo $$ >"{self._group.folder}/cgroup.procs" && exec "$@"'
        with (folder / "console").open("ab") as console:
            self._process = subprocess.Popen(
                [
                    *("bash", "-c", join, "join", *self.network.inside),
                    # The VM ends with this process, whatever happens to that.
                    *("setpriv", "--pdeathsig", "KILL"),
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--uts", "--ipc"),
                    *("--cgroup", "bash", "-c", _BOOT, "boot"),
                    *(str(folder), lower, str(self.root.sources), str(self.shared), str(self.gpus)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=console,
            )

    def settle(self) -> None:
        """Wait until systemd has nothing more to start."""
        deadline = time.monotonic() + _SECONDS
        while not self._answers():
            said = (self.disk.parent / "console").read_text()
            assert time.monotonic() < deadline, said
            assert self._process is not None
            assert self._process.poll() is None, said
            time.sleep(0.05)
        self.run("systemctl is-system-running --wait || true", seconds=_SECONDS)

    def run(self, command: str, user: str = "root", seconds: float = 60) -> str:
        """Run a command in a login shell of the VM; what it printed.

        Raises:
            RuntimeError: It failed; with all that it said.
        """
        login = ["runuser", "--login", user, "--command", command]
        done = ran(
            self._inside(*login), env=_ENVIRONMENT, stdin=subprocess.DEVNULL, timeout=seconds
        )
        if done.returncode:
            raise RuntimeError(
                f"{command}: exit code {done.returncode}\n{done.stdout}{done.stderr}"
            )
        return done.stdout

    def begin(self, command: str) -> subprocess.Popen[bytes]:
        """Begin a command of root in the VM, which ends with it at the latest."""
        return subprocess.Popen(
            self._inside("bash", "-c", command),
            env=_ENVIRONMENT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def turn_off(self) -> None:
        """Shut the VM down as its owner does, or Google; its units are stopped."""
        assert self._process is not None
        subprocess.run(
            self._inside("systemctl", "poweroff"),
            env=_ENVIRONMENT,
            capture_output=True,
            check=False,
        )
        self._process.wait(timeout=_SECONDS)
        self._ended()

    def kill(self) -> None:
        """End all of the VM's processes at once, as when its host dies; off it may be already."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._ended()

    def _ended(self) -> None:
        assert self._group is not None
        deadline = time.monotonic() + 10
        # The kernel lets go of the last processes a moment later.
        while True:
            try:
                self._group.remove()
                break
            except OSError:
                assert time.monotonic() < deadline, "processes of the VM are left"
                time.sleep(0.02)
        self._process = self._group = None

    def _inside(self, *command: str) -> list[str]:
        return ["nsenter", f"--target={self._first()}", "--all", *command]

    def _answers(self) -> bool:
        try:
            return (Path(f"/proc/{self._first()}/root/run/systemd/private")).exists()
        except (IndexError, OSError):
            return False

    def _first(self) -> int:
        """The VM's systemd, by its number outside."""
        assert self._process is not None
        children = Path(f"/proc/{self._process.pid}/task/{self._process.pid}/children")
        return int(children.read_text().split()[0])

    def _write_stubs(self) -> None:
        for name, body in self.stubs.items():
            log = f'printf "%s\\n" "{name} $*" >>/calls\n'
            self.write(f"usr/bin/{name}", f"#!/bin/bash\n{log}{body}\n", 0o755)


def metadata_server() -> MetadataServer:
    """A VM's metadata server, where the VM expects it; to be started in the VM's network."""
    return MetadataServer({}, address=namespaces.METADATA, port=80)
