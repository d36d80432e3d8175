"""User, network and control-group namespaces that outlive the boots of VMs.

Unlike the namespaces of `sandbox`, these have all the ids that the files of a root file system
have, for which it takes root of the machine. Root of a VM is nobody outside: what is not the VM's
own is out of its reach.
"""

from __future__ import annotations

import ctypes
import itertools
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

METADATA = "169.254.169.254"
"""Where a VM reaches its metadata server, as on Google Cloud."""
INTERNET = "169.254.169.1"
"""Where a VM reaches all of the internet that there is for it."""

_NETWORK_NAMESPACE = 0x40000000  # CLONE_NEWNET, linux/sched.h
_NETWORK = f"""
ip link set lo up && ip address add {METADATA}/32 dev lo && ip address add {INTERNET}/32 dev lo
echo ready && exec cat
"""
_NUMBERS = itertools.count(1)


class Space:
    """A user namespace with the ids 0 to 65535 as they are outside, and networks in it.

    All ends with `close`, and with the process that made it.
    """

    def __init__(self) -> None:
        self._holders: list[subprocess.Popen[str]] = []
        holder = self._hold(["unshare", "--user"], "echo ready && exec cat")
        for ids in ("uid_map", "gid_map"):
            Path(f"/proc/{holder}/{ids}").write_text("0 0 65536\n")
        self.inside = ("nsenter", f"--target={holder}", "--user")

    def network(self) -> Network:
        """A new network namespace, with nothing but loopback."""
        return Network(self, self._hold([*self.inside, "unshare", "--net"], _NETWORK))

    def close(self) -> None:
        """End all of it; VMs must have ended."""
        for holder in self._holders:
            holder.communicate()

    def _hold(self, command: Sequence[str], script: str) -> int:
        """A process that keeps namespaces until its standard input ends."""
        holder = subprocess.Popen(
            [*command, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._holders.append(holder)
        assert holder.stdout is not None
        assert holder.stdout.readline() == "ready\n", f"{command}: this takes root"
        return holder.pid


class Network:
    """The network namespace of a VM."""

    def __init__(self, space: Space, holder: int) -> None:
        self._holder = holder
        self.inside = (*space.inside, f"--net=/proc/{holder}/ns/net")

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Sockets that this thread makes in the block belong to the VM's network for ever."""
        with Path(f"/proc/self/task/{threading.get_native_id()}/ns/net").open() as before:
            with Path(f"/proc/{self._holder}/ns/net").open() as network:
                _enter(network.fileno())
            try:
                yield
            finally:
                _enter(before.fileno())

    def join(self, other: Network, address: str) -> None:
        """Plug this VM into the bridge of another network, and give it an address."""
        name = f"vm{next(_NUMBERS)}"
        to = ("type", "veth", "peer", "name", "ens4", "netns", str(self._holder))
        other.run("ip", "link", "add", name, *to)
        other.run("ip", "link", "set", name, "master", "br0", "up")
        self.run("ip", "address", "add", address, "dev", "ens4")
        self.run("ip", "link", "set", "ens4", "up")
        # Ray asks the kernel by which address it would leave.
        self.run("ip", "route", "add", "default", "dev", "ens4")

    def make_bridge(self) -> None:
        """Make the bridge into which VMs are plugged."""
        self.run("ip", "link", "add", "br0", "type", "bridge")
        self.run("ip", "link", "set", "br0", "up")

    def run(self, *command: str) -> None:
        """Run a command of this machine in the network."""
        subprocess.run([*self.inside, *command], check=True)


class ControlGroup:
    """A control group for the processes of one boot, beside those of this process."""

    def __init__(self) -> None:
        mounts = Path("/proc/self/mountinfo").read_text().splitlines()
        mount = next(line.split()[4] for line in mounts if " - cgroup2 " in line)
        own = Path("/proc/self/cgroup").read_text().splitlines()
        path = next(line[len("0::/") :] for line in own if line.startswith("0::/"))
        for left in Path(mount, path).glob("aiinfra-test-*-*"):
            if not Path("/proc", left.name.split("-")[2]).exists():
                with suppress(OSError):  # of a run that was killed, like all its processes
                    _remove(left)
        self.folder = Path(mount, path, f"aiinfra-test-{os.getpid()}-{next(_NUMBERS)}")
        self.folder.mkdir()

    def remove(self) -> None:
        """Remove it.

        Raises:
            OSError: Some of its processes are left.
        """
        _remove(self.folder)


def _remove(group: Path) -> None:
    for folder, _, _ in os.walk(group, topdown=False):
        Path(folder).rmdir()


def _enter(namespace: int) -> None:
    # os.setns is there from Python 3.12.
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.setns(namespace, _NETWORK_NAMESPACE) != 0:
        raise OSError(ctypes.get_errno(), "setns")
