"""What a job that wastes its machines looks like from outside, seen by each VM of it.

A launcher that reads other variables trains on each machine alone, a PyTorch that sees no GPU
trains on processors, an NCCL that has lost its plugin goes by sockets: all of them end with 0,
hours later. What is seen is told, and ends nothing. So is how busy its GPUs are.
"""

from __future__ import annotations

import os
import re
import socket
import struct
import subprocess
import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Collection, Iterator, Mapping

from aiinfra_vm import configuration, job_course, programs
from aiinfra_vm.jobs import Doubt

if TYPE_CHECKING:
    from aiinfra_vm.jobs import Course, Node

VARIABLE = "AIINFRA_GUARD"
"""The variable of a job that says "no" where all of this is as it should be."""
_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"
_MAPPED = "0000000000000000FFFF0000"  # the beginning of an IPv4 address among those of IPv6
_AGAIN = 60.0  # seconds between two questions to the driver, which cost about one of a processor
_MINUTES = 10  # of which the use of GPUs is told
_STEP = 5  # percent of it that are told, as each change is written for all VMs to see
_SECONDS = 10.0  # that nvidia-smi may take: where the driver hangs, other looks say so
# NCCL 2.21 to 2.32 says the first where NCCL_DEBUG is INFO (init.cc; read 2026-11-29); with a
# plugin it names that: "gIB", "FasTrak". The others are of those that log the subsystem NET alone.
_WITHOUT_FABRIC = re.compile(
    rb"NCCL INFO (?:Using network (?:Socket|IB)\b|NET/Socket : Using "
    rb"|NET/Plugin ?: (?:No plugin found|Could not find: libnccl-net\.so))"
)
_FABRICS = ("tcpxo", "gib")
"""Those whose plugin NCCL uses on VMs."""
# What a command that brings packages says before it and after it (spec/packages.py).
_INSTALLS = b"=== aiinfra: packages are installed, once"
_INSTALLED = b"=== aiinfra: packages are installed ==="
_LONGEST = 4096  # bytes of a line that is looked at


class Guard:
    """Looks at one attempt on this VM.

    `others`: the addresses of its other VMs. `uid`: who its program runs as, in containers too.
    """

    def __init__(
        self, others: Collection[str], uid: int, *, has_gpus: bool, has_fabric: bool, pace: float
    ) -> None:
        self._others = frozenset(others)
        self._uid = uid
        self._pace = pace
        self._watched = {
            *([Doubt.ALONE] if others else []),
            *([Doubt.NO_GPU] if has_gpus else []),
        }
        self._has_fabric = bool(others) and has_fabric
        self._rest = b""
        self._installs = False
        self._since = time.monotonic()
        self._asked = self._asked_use = float("-inf")
        self._found: set[Doubt] = set()
        self._has_gpus = has_gpus
        self._used: deque[float] = deque(maxlen=_MINUTES)
        self.gpu_use: int | None = None
        self.gpus: int | None = None  # how many it has of a VM that it shares; None for all

    @classmethod
    def of(
        cls,
        course: Course,
        node: Node,
        env: Mapping[str, str],
        uid: int | None,
        pace: float,
    ) -> Guard:
        """What looks at a job; at nothing where it said no, or where Ray places its work."""
        config = configuration.load()
        if env.get(VARIABLE) == "no" or config.get("ray"):
            course, config = course._replace(nodes=()), {}
        return cls(
            [it.address for it in course.nodes if it != node],
            os.getuid() if uid is None else uid,
            has_gpus=bool(config.get("gpus")),
            has_fabric=(config.get("fabric") or {}).get("kind") in _FABRICS,
            pace=pace,
        )

    def hear(self, said: bytes) -> None:
        """Take note of what the program says, in pieces."""
        text = self._rest + said
        self._rest = text[text.rfind(b"\n") + 1 :][-_LONGEST:]
        if self._has_fabric and _WITHOUT_FABRIC.search(text):
            self._found.add(Doubt.SOCKETS)
        if _INSTALLS in text:
            self._installs = True
        if _INSTALLED in text:
            self._installs, self._since = False, time.monotonic()

    def look(self) -> tuple[Doubt, ...]:
        """What there is to tell, by now."""
        ran = 0.0 if self._installs else (time.monotonic() - self._since) / self._pace
        if Doubt.ALONE in self._watched:
            # From the beginning on: a connection may be over when its time has come.
            if self._has_met():
                self._settled(Doubt.ALONE)
            elif ran >= job_course.ALONE:
                self._found.add(Doubt.ALONE)
        if Doubt.NO_GPU in self._watched and ran >= max(job_course.NO_GPU, self._asked + _AGAIN):
            self._asked = ran
            used = self._is_gpu_used()
            if used:
                self._settled(Doubt.NO_GPU)
            elif used is False:
                self._found.add(Doubt.NO_GPU)
        if self._has_gpus and ran >= self._asked_use + _AGAIN:
            self._asked_use = ran
            self._measure()
        return tuple(it for it in Doubt if it in self._found)

    def _measure(self) -> None:
        """Ask the driver for the share of the last second in which GPUs had work, and keep it."""
        command = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        try:
            done = programs.ask(command, _SECONDS)
        except (OSError, subprocess.SubprocessError):
            return
        each = [int(it) for it in done.stdout.split() if it.isdigit()]
        if done.returncode or not each:  # of one that is divided it says none
            return
        if self.gpus not in {None, len(each)}:  # some that others use
            return
        self._used.append(sum(each) / len(each))
        mean = round(sum(self._used) / len(self._used))
        if self.gpu_use is None or abs(mean - self.gpu_use) >= _STEP:
            self.gpu_use = mean

    def _settled(self, what: Doubt) -> None:
        self._watched.discard(what)
        self._found.discard(what)

    def _has_met(self) -> bool:
        """Whether a process of the job's user has a connection with another VM of the job."""
        return any(
            uid == self._uid and _address(remote) in self._others
            for table in _TABLES
            for uid, remote in _connections(Path(table))
        )

    @staticmethod
    def _is_gpu_used() -> bool | None:
        """Whether a process computes on a GPU of this VM; None where the driver does not say.

        The driver knows those in containers, too; an open /dev/nvidia0 may be one that watches.
        TCPXO's daemon, which has all of them in use all the time, does not count.
        """
        command = ["nvidia-smi", "--query-compute-apps=pid", "--format=csv,noheader"]
        daemon = ["docker", "top", "aiinfra-rxdm", "-eo", "pid"]
        has_daemon = (configuration.value("fabric") or {}).get("kind") == "tcpxo"
        try:
            done = programs.ask(command, _SECONDS)
            own = programs.ask(daemon, _SECONDS).stdout.split() if has_daemon else []
        except (OSError, subprocess.SubprocessError):
            return None
        return None if done.returncode else bool(set(done.stdout.split()) - set(own))


def _connections(table: Path) -> Iterator[tuple[int, str]]:
    """Whose each connection is, and with whom, of those that stand."""
    try:
        lines = table.read_text("ascii").splitlines()[1:]
    except OSError:  # a kernel without IPv6
        return
    for line in lines:
        fields = line.split()
        if fields[3] == _ESTABLISHED:
            yield int(fields[7]), fields[2].partition(":")[0]


def _address(found: str) -> str:
    """An IPv4 address as the kernel writes it, also among those of IPv6; "" for another."""
    if len(found) > 8:  # noqa: PLR2004 - digits of four bytes
        if not found.startswith(_MAPPED):
            return ""
        found = found[-8:]
    return socket.inet_ntoa(struct.pack("=I", int(found, 16)))
