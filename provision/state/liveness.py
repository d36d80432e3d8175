"""The runs that may hold a deployment's lock, and how to prove that the holder is dead.

Before a run takes the lock, it writes a note to the state folder. The note says which lock the run
is about to take, which machine it is on, and which file of its run folder it has locked with flock.
This process holds that flock and its child processes inherit it; the kernel releases it once the
last of them is dead, no matter how they died. So a process on the same machine can tell for certain
whether the run that holds a lock is over. A process on another machine can't, and nobody can of a
lock that no note names: such a lock is left alone.
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
from typing import TYPE_CHECKING, Annotated, Final, Self

from pydantic import Field, TypeAdapter

from provision.documents import json_object
from provision.errors import StateError
from provision.files import private
from provision.state.objects import Stored, Writer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from provision.state.folder import StateFolder
    from provision.terraform.lock import Lock

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE: Final = Path("/proc/self/ns/mnt")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine that a run is on."""

    host: str  # the host name of the machine or container, which Terraform writes into its locks
    boot: str  # the kernel's boot ID, which changes with every reboot; "" if there is none
    # the mount namespace, which differs between containers on one machine, where one path can name
    # different files; "" if there is none
    files: str

    @classmethod
    def here(cls) -> Self:
        """The machine of this process."""
        return cls(
            host=socket.gethostname(),
            boot=_known(_BOOT.read_text),
            files=_known(_NAMESPACE.readlink),
        )


@dataclass(frozen=True, kw_only=True)
class Note:
    """A run's note in the state folder."""

    machine: Machine
    # A note may be anybody's, and the file is opened.
    # the file that is locked while the run is alive
    alive: Annotated[str, Field(pattern=rf"^/[^\x00]*/{private.ALIVE}$")]
    lock_id: str  # the ID of the lock that the run takes

    def document(self) -> str:
        """The note as JSON."""
        return json.dumps(asdict(self)) + "\n"

    @classmethod
    def parse(cls, text: str | bytes) -> Self | None:
        """Read what `document` wrote; None if the text is not a note."""
        try:
            return TypeAdapter(cls).validate_python(json_object.read(text))
        except ValueError:
            return None

    def is_over(self, here: Machine) -> bool:
        """Whether the run is known to be over, as far as a process on `here` can tell."""
        if self.machine != here:
            return False
        try:
            with _opened(self.alive, os.O_RDWR) as descriptor:
                return _can_be_locked(descriptor)
        except FileNotFoundError:
            # The file was deleted with its run, if this is the same machine and mount namespace:
            # only when both IDs are known is that certain.
            return bool(here.boot and here.files)
        except OSError:
            return False


_NOTE: Final = Stored("runs/{}.json", Writer.PROGRAM, Note.parse, largest=2**14)


@dataclass
class Presence:
    """A run that has announced itself."""

    # a file descriptor for child processes to inherit: the run counts as alive as long as one of
    # them has it open
    alive: int
    lock_id: str  # the ID of the lock that it may take
    # whether an earlier run of this machine died before it could tidy up
    follows_dead: bool = False
    # whether Terraform died, or could not save its state: the note then stays, for the next run to
    # know
    has_lost_track: bool = False


@contextlib.contextmanager
def announced(folder: StateFolder, root: Path) -> Iterator[Presence]:
    """Write a note of this run; delete it at the end unless the next run needs it."""
    file = root / private.ALIVE
    own = str(uuid.uuid4())
    note = Note(machine=Machine.here(), alive=str(file), lock_id=own)
    with _opened(file, os.O_RDWR | os.O_CREAT | os.O_EXCL) as alive:
        fcntl.flock(alive, fcntl.LOCK_EX)
        name = _NOTE.at(own)
        before = _dead(folder, note.machine)
        run = Presence(alive, own, follows_dead=bool(before))
        has_succeeded = False
        try:
            folder.write(name, note.document(), "application/json")
            yield run
            has_succeeded = True
        finally:
            # A note that stays does no harm; a failed deletion must not hide how the run ended.
            with contextlib.suppress(StateError):
                if has_succeeded:
                    for dead in before:
                        folder.remove(dead)
                if has_succeeded or not (run.has_lost_track or _holds(folder, own)):
                    folder.remove(name)


def is_stale(folder: StateFolder, lock: Lock) -> bool:
    """Whether the run that holds a lock is known to be dead.

    A run writes its note before it takes the lock, so the notes must be read after the lock was.
    """
    here = Machine.here()
    holders = [it for it in folder.all(_NOTE).values() if it.lock_id == lock.id]
    return bool(holders) and all(note.is_over(here) for note in holders)


def has_notes(folder: StateFolder) -> bool:
    """Whether a run is at work here, or one that was killed has left its note."""
    return bool(folder.names(_NOTE))


def _holds(folder: StateFolder, lock_id: str) -> bool:
    lock = folder.lock()
    return lock is not None and lock.id == lock_id


def _dead(folder: StateFolder, here: Machine) -> list[str]:
    notes = folder.all(_NOTE).items()
    return [_NOTE.at(own) for own, note in notes if note.is_over(here)]


@contextlib.contextmanager
def _opened(file: Path | str, flags: int) -> Iterator[int]:
    descriptor = os.open(file, flags | os.O_CLOEXEC, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _can_be_locked(descriptor: int) -> bool:
    try:
        # Shared: processes that check at the same time must not mistake each other for the run.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _known(read: Callable[[], object]) -> str:
    try:
        return str(read()).strip()
    except OSError:
        return ""
