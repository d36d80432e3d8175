"""The runs that may hold a deployment's lock, and the proof that the one that holds it is dead.

Before a run lets Terraform lock the state, it leaves a note in the state folder that says on which
machine it is, and in which file of its run folder it holds a lock of the system's (flock). The
tool holds that one, and all that it starts inherits it; the system frees it when the last of them
is dead, however they died. So whoever is on the same machine can find out for sure whether a run
is over; whoever is not can't, and leaves its lock alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import uuid
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from provision.errors import StateError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from provision.state.folder import StateFolder
    from provision.terraform.lock import Lock

_NOTES: Final = "runs/"
_ALIVE: Final = "alive"
_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/mnt")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """Where a run is.

    Attributes:
        host: The name of the machine or container, which Terraform writes into its locks.
        boot: Tells this start of the machine from every other one; "" where there is no such id.
        files: Tells apart containers on one machine, in which one path names different files (the
            mount namespace); "" where there is no such id.
    """

    host: str
    boot: str
    files: str

    @classmethod
    def here(cls) -> Self:
        """Where this process is."""
        return cls(host=socket.gethostname(), boot=_boot(), files=_mount_namespace())


@dataclass(frozen=True, kw_only=True)
class Note:
    """What a run says of itself.

    Attributes:
        machine: Where it is.
        alive: The file that is locked while it lives.
    """

    machine: Machine
    alive: str

    def document(self) -> str:
        """As it is kept."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, text: str) -> Self | None:
        """Read `document`'s text; None when it is something else."""
        try:
            document = json.loads(text)
            return cls(machine=Machine(**document["machine"]), alive=str(document["alive"]))
        except (ValueError, KeyError, TypeError):
            return None

    def is_over(self, here: Machine) -> bool:
        """Whether the run is known to be over, as seen from a machine."""
        if self.machine != here:
            return False
        try:
            with _opened(self.alive, os.O_RDWR) as descriptor:
                return _can_be_locked(descriptor)
        except FileNotFoundError:
            # It is gone for good if this is the place where it was, which only both ids tell.
            return bool(here.boot and here.files)
        except OSError:
            return False


@contextlib.contextmanager
def announced(folder: StateFolder, root: Path) -> Iterator[int]:
    """Leave a note of this run, gone at its end unless it may have left the deployment locked.

    Args:
        folder: The deployment's.
        root: The run folder.

    Yields:
        A descriptor for the run's processes to inherit: while one of them has it, the run counts
        as alive.
    """
    file = root / _ALIVE
    note = Note(machine=Machine.here(), alive=str(file))
    with _opened(file, os.O_RDWR | os.O_CREAT | os.O_EXCL) as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        name = f"{_NOTES}{uuid.uuid4()}.json"
        has_succeeded = False
        try:
            folder.write(name, note.document(), "application/json")
            yield alive
            has_succeeded = True
        finally:
            # A note that stays does no harm, and its removal must not hide how the run ended.
            with contextlib.suppress(StateError):
                if has_succeeded:
                    _forget_dead(folder, note.machine)
                if has_succeeded or not _has_left_lock(folder, note.machine):
                    folder.remove(name)


def is_stale(folder: StateFolder, lock: Lock) -> bool:
    """Whether the run that holds a lock is known to be dead.

    Whoever holds the lock had left a note before it took it, so the notes are read after the lock
    was. What runs on another host than the lock names is not its holder.
    """
    here = Machine.here()
    if lock.host != here.host:
        return False
    notes = [Note.parse(text) for text in folder.texts(_NOTES).values()]
    holders = [note for note in notes if note is None or note.machine.host == lock.host]
    return bool(holders) and all(note is not None and note.is_over(here) for note in holders)


def _has_left_lock(folder: StateFolder, here: Machine) -> bool:
    lock = folder.lock()
    return lock is not None and lock.host == here.host


def _forget_dead(folder: StateFolder, here: Machine) -> None:
    for name, text in folder.texts(_NOTES).items():
        note = Note.parse(text)
        if note is not None and note.is_over(here):
            folder.remove(name)


@contextlib.contextmanager
def _opened(file: Path | str, flags: int) -> Iterator[int]:
    descriptor = os.open(file, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _can_be_locked(descriptor: int) -> bool:
    try:
        # Shared: several who look at the same time must not take each other for the run.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _boot() -> str:
    try:
        return _BOOT.read_text().strip()
    except OSError:
        return ""


def _mount_namespace() -> str:
    try:
        return str(_NAMESPACE.readlink())
    except OSError:
        return ""
