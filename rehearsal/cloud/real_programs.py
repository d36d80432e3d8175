"""Programs of jobs that are really run, on this machine: the scenario `run-programs`.

One process a node, each in a folder of its own below the one that keeps the cloud, with the
variables that a VM's program gets and none of the caller's. All nodes are this machine, so they
meet at 127.0.0.1. No GPU is seen. It is no sandbox against a program that means harm: that is the
user's own, with the user's own rights, disk and network.

What runs is known to the process that began it alone, and ends with it. Others leave its jobs
alone as long as it lives, which a file says that it has locked.
"""

import contextlib
import fcntl
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import uuid
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

SCENARIO: Final = "run-programs"
PLACE: Final = "jobs"  # beside the cloud's memory: where the folders are
MOST: Final = 4  # nodes of a job, each a process of this machine
LONGEST: Final = 600.0  # seconds of ours that a program may run
TOO_LONG: Final = "a rehearsal runs a program for 10 minutes at most"
HINT: Final = f"a rehearsal runs no program, but --rehearse={SCENARIO} does"
GONE: Final = "the command that rehearsed has ended, and with it what it ran"
OTHERS: Final = "a rehearsal runs programs on VMs alone, and none of Ray"
_GRACE: Final = 5.0
_FIRST_PORT: Final = 30_000
_PORTS: Final = 2_000
_SETUP: Final = "aiinfra-setup"
"""The name of a shell that installs the packages of the program behind it."""
_LOOPBACK: Final = "lo0" if sys.platform == "darwin" else "lo"


@dataclass(frozen=True)
class Wanted:
    """What is to be run."""

    job: str
    attempt: int
    command: Sequence[str]
    nodes: int
    env: Mapping[str, str]  # what the job adds to its environment
    archive: bytes | None  # its folder, as it travelled


@dataclass
class _Node:
    process: subprocess.Popen[bytes]
    said: list[bytes]  # pieces
    code: int | None = None  # once it has ended and all that it said is read


class Attempt:
    """The programs of all nodes of one attempt at a job; they end together."""

    def __init__(self, wanted: Wanted, folder: Path) -> None:
        self.why = ""  # why they were told to end; "" for nothing
        self.failed: int | None = None  # the rank that failed first
        self.seconds = 0.0  # for how long they have run, in time of ours
        self._began = time.monotonic()
        self._guard = threading.Lock()
        has_packages = list(wanted.command[3:4]) == [_SETUP]
        command = list(wanted.command[6:] if has_packages else wanted.command)
        line = f"This is a rehearsal: {shlex.join(command)} runs on this machine, without GPUs"
        line += ", and with the packages of this machine" * has_packages
        is_task = "JOB_INDEX" in wanted.env
        line += f"; of its tasks {MOST} at a time, whatever has room\n" if is_task else "\n"
        self._timer = threading.Timer(LONGEST, self.stop, [TOO_LONG])
        self._timer.daemon = True
        places = [_made(folder / str(rank), wanted.archive) for rank in range(wanted.nodes)]
        self._nodes = [
            _Node(_begin(wanted, command, rank, place), [line.encode()])
            for rank, place in enumerate(places)
        ]
        self._timer.start()
        for rank, node in enumerate(self._nodes):
            threading.Thread(target=self._follow, args=(rank, node), daemon=True).start()

    @property
    def is_over(self) -> bool:
        """Whether all have ended."""
        return all(node.code is not None for node in self._nodes)

    @property
    def said(self) -> list[bytes]:
        """What each has said so far."""
        return [b"".join(node.said) for node in self._nodes]

    def code(self, rank: int) -> int:
        """The exit code of one that has ended, as a shell has it."""
        code = self._nodes[rank].code or 0
        return 128 - code if code < 0 else code

    def stop(self, why: str) -> None:
        """SIGTERM to all; what goes on for five seconds is killed."""
        with self._guard:
            if self.why or self.is_over:
                return
            self.why = why
            for node in self._nodes:
                if node.code is None:
                    node.said.append(f"=== aiinfra: SIGTERM: {why} ===\n".encode())
        self._send(signal.SIGTERM)
        killing = threading.Timer(_GRACE, self._send, [signal.SIGKILL])
        killing.daemon = True
        killing.start()

    def kill(self) -> None:
        """SIGKILL to all: nobody will hear of them any more."""
        self._timer.cancel()
        self._send(signal.SIGKILL)

    def _follow(self, rank: int, node: _Node) -> None:
        """Read what a program says to its end; the first that fails ends the others."""
        with node.process.stdout or io.BytesIO() as output:
            while piece := os.read(output.fileno(), 65536):
                node.said.append(piece)
        code = node.process.wait()
        with self._guard:
            is_first = code != 0 and self.failed is None and not self.why
            if is_first:
                self.failed = rank
            node.code = code
            self.seconds = time.monotonic() - self._began
        if is_first:
            self.stop("another node of the job failed")
        if self.is_over:
            self._timer.cancel()

    def _send(self, signum: int) -> None:
        for node in (it for it in self._nodes if it.code is None):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(node.process.pid, signum)


_ATTEMPTS: Final[dict[str, Attempt]] = {}
_LOCKS: Final[dict[Path, IO[bytes]]] = {}
"""By the folder that keeps a cloud, what says there that this process lives."""


def refusal(wanted: int, image: str, *, on_ray: bool) -> str:
    """Why a job can't be run here, in words behind "would run here:"; "" if it can."""
    if on_ray:
        return OTHERS
    if image:
        return "a rehearsal runs no container"
    return "" if wanted <= MOST else f"a rehearsal runs programs on {MOST} nodes at most"


def begin(wanted: Wanted, folder: Path) -> str:
    """Begin an attempt; the key by which it is found. Folders that are there are kept.

    Raises:
        OSError: This machine can't.
        tarfile.TarError: The folder can't be unpacked.
    """
    key = uuid.uuid4().hex
    _ATTEMPTS[key] = Attempt(wanted, folder)
    return key


def find(key: str) -> Attempt | None:
    """An attempt that this process has begun."""
    return _ATTEMPTS.get(key)


def owner(cloud: Path) -> str:
    """What tells other processes of this one, in the folder that keeps a cloud."""
    if cloud not in _LOCKS:
        path = cloud / PLACE / f"owner-{uuid.uuid4().hex}"
        path.parent.mkdir(exist_ok=True)
        _LOCKS[cloud] = path.open("wb")
        fcntl.flock(_LOCKS[cloud], fcntl.LOCK_EX)
    return Path(_LOCKS[cloud].name).name


def is_anothers(cloud: Path, name: str) -> bool:
    """Whether an `owner` is another process, and lives; a lock ends with who has it."""
    if not name or (cloud in _LOCKS and owner(cloud) == name):
        return False
    try:
        with (cloud / PLACE / name).open("rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except FileNotFoundError:
        return False
    return False


def are_running() -> bool:
    """Whether any program runs."""
    return any(not it.is_over for it in list(_ATTEMPTS.values()))


def end() -> None:
    """End all that runs: nobody serves the cloud any more."""
    for key in list(_ATTEMPTS):
        _ATTEMPTS.pop(key).kill()
    for cloud in list(_LOCKS):
        with _LOCKS.pop(cloud) as file:
            Path(file.name).unlink(missing_ok=True)


def _made(place: Path, archive: bytes | None) -> Path:
    """Where one node has its folder and its home, which are made unless they are there."""
    work = place / "folder"
    if not work.exists():
        work.mkdir(parents=True)
        (place / "home").mkdir()
        if archive is not None:
            with tarfile.open(fileobj=io.BytesIO(archive)) as packed:
                packed.extractall(work, filter="data")
    return place


def _begin(
    wanted: Wanted, command: Sequence[str], rank: int, place: Path
) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - whoever asked for the scenario asked for this
        # As on a VM: bash itself says what can't be found.
        ["/bin/bash", "-c", '"$@"; exit', wanted.job, *command],
        cwd=place / "folder",
        env={**surroundings(place / "home"), **ranks(wanted, rank), **wanted.env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )


def surroundings(home: Path) -> dict[str, str]:
    """The environment of any program: nothing of the caller's but where programs are found.

    Where there is a python3 and no python, as on VMs there is, it is called so, too.
    """
    path = os.environ.get("PATH", os.defpath)
    python = shutil.which("python3")
    if python and not shutil.which("python"):
        programs = home / "bin"
        programs.mkdir(exist_ok=True)
        with contextlib.suppress(FileExistsError):
            (programs / "python").symlink_to(python)
        path = f"{path}{os.pathsep}{programs}"
    return {
        "PATH": path,
        "HOME": str(home),
        "LANG": "C.UTF-8",
        "CUDA_VISIBLE_DEVICES": "",
        "GLOO_SOCKET_IFNAME": _LOOPBACK,
    }


def ranks(wanted: Wanted, rank: int) -> dict[str, Any]:
    """The variables by which programs find each other, as VMs set them; one process a node."""
    address = "127.0.0.1"
    number = zlib.crc32(f"{wanted.job} {wanted.attempt} {os.getpid()}".encode()) % _PORTS
    port = str(_FIRST_PORT + number)
    usual = {
        "NNODES": str(wanted.nodes),
        "NODE_RANK": str(rank),
        "NPROC_PER_NODE": "1",
        "MASTER_ADDR": address,
        "MASTER_PORT": port,
    }
    return {
        **usual,
        **{f"PET_{name}": text for name, text in usual.items()},
        "JAX_COORDINATOR_ADDRESS": f"{address}:{port}",
        "JAX_COORDINATOR_IP": address,
        "JAX_COORDINATOR_PORT": port,
        "JAX_NUM_PROCESSES": usual["NNODES"],
        "JAX_PROCESS_ID": usual["NODE_RANK"],
        "GPUS_PER_NODE": "1",
        "JOB_NAME": wanted.job,
        "JOB_ATTEMPT": str(wanted.attempt),
    }
