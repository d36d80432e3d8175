"""The jobs and nodes of a Slurm cluster, copied to where a VM that becomes its head finds them.

Every program on a VM may read and write there: the copy is encrypted and sealed with the cluster's
key, as it has the environments of people's jobs, and who writes it says what root runs. What a
seal does not hold for is dropped.

Each time that a VM becomes the head is a life. It has a number, from which the numbers of its jobs
begin: a copy may be older than the newest job, and no number must be given twice.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import hmac
import json
import os
import secrets
import shutil
import time
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any, NamedTuple

from aiinfra_vm import slurm_conf, storage

OBJECT = "state.json"
"""In the folder of Slurm's lease."""
_LIFE = "aiinfra-life"
"""The file beside slurmctld's which says of which life they are, all of them: it is written when
the copy of that life is in the bucket, where no other VM's is of the same one.
"""
_EVERY = 10.0  # seconds between copies, at least
_CLAIMED = 10**6
"""Below which a number is believed that nothing seals."""
_NONCE = 16


class Copy(NamedTuple):
    """A copy as it lies in the bucket: what it claims."""

    life: int
    sealed: bytes
    version: storage.Version

    def opened(self, key: bytes) -> dict[str, bytes] | None:
        """What is in it; None if it was not sealed with this key."""
        return opened(key, self.life, self.sealed)


class Lost(Exception):  # noqa: N818 - a fact, as the lease is
    """A later head has written its copy: this VM's is that of no head any longer."""


def seal(key: bytes, life: int, files: dict[str, bytes]) -> bytes:
    """Pack files, so that only who has the key can read or make it."""
    text = json.dumps({name: b64encode(it).decode() for name, it in sorted(files.items())})
    nonce = secrets.token_bytes(_NONCE)
    hidden = nonce + _masked(key, nonce, gzip.compress(text.encode()))
    return _tag(key, life, hidden) + hidden


def opened(key: bytes, life: int, sealed: bytes) -> dict[str, bytes] | None:
    """What was sealed as that life's; None if it was not so with this key."""
    size = hashlib.sha256().digest_size
    tag, hidden = sealed[:size], sealed[size:]
    if not key or not hmac.compare_digest(tag, _tag(key, life, hidden)):
        return None
    nonce, text = hidden[:_NONCE], hidden[_NONCE:]
    files = json.loads(gzip.decompress(_masked(key, nonce, text)))
    return {name: b64decode(it) for name, it in files.items()}


def _masked(key: bytes, nonce: bytes, text: bytes) -> bytes:
    """A text with the stream of a key and a number used once; twice, it is as it was.

    SHAKE-256 of a secret first is a pseudo-random function (FIPS 202, A.2), so no program of the
    system's is wanted.
    """
    stream = hashlib.shake_256(b"aiinfra state" + key + nonce).digest(len(text))
    mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")
    return mixed.to_bytes(len(text), "big")


def _tag(key: bytes, life: int, hidden: bytes) -> bytes:
    purpose = hmac.new(key, b"aiinfra seal", "sha256").digest()
    return hmac.new(purpose, b"%d " % life + hidden, "sha256").digest()


class State:
    """What slurmctld keeps on this VM's disk, and the copy of it.

    All methods raise OSError where the disk or Cloud Storage refuses.
    """

    def __init__(
        self, folder: storage.Folder, place: Path = slurm_conf.STATE, owner: str | None = "slurm"
    ) -> None:
        self._folder = folder
        self._place = place
        self._owner = owner
        self._key = b""
        self._life = 0
        self._over = storage.NOTHING
        self._copied: dict[str, bytes] | None = None
        self._at = float("-inf")

    def look(self) -> Copy | None:
        """The copy in the bucket; None for none."""
        found = self._folder.read(OBJECT)
        if found is None:
            return None
        try:
            document = storage.decoded(found[0])
            life, sealed = int(document["life"]), b64decode(document["sealed"])
        except (ValueError, KeyError, TypeError, OverflowError):
            life, sealed = 0, b""
        return Copy(max(life, 0), sealed, found[1])

    def begin(self, key: bytes, copy: Copy | None) -> int:
        """Begin a life of a head: with this VM's own files, or the copy if that is later's.

        Its number, which is above that of every earlier one.

        Raises:
            Lost: Another VM has begun the same life.
        """
        own, theirs = self._own_life(), 0
        self._key, self._over = key, copy.version if copy else storage.NOTHING
        if copy is not None:
            files = copy.opened(key)
            # What a seal does not hold for is nobody's, but its number may have been used.
            theirs = copy.life % _CLAIMED if files is None else copy.life
            if files is not None and theirs > own:
                self._replace(files)
        self._life = 1 + max(own, theirs)
        self._place.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._give(self._place)
        # Whoever is the head after this one numbers its jobs above it.
        self._copied = None
        self.copy(now=True)
        if self._copied is None:
            raise OSError("the copy of Slurm's state is written by somebody else")
        (self._place / _LIFE).write_text(str(self._life), "ascii")
        return self._life

    def copy(self, *, now: bool = False) -> None:
        """Copy what has changed since the last time, every ten seconds at most unless `now`.

        Raises:
            Lost: A later head has written there.
        """
        if not now and time.monotonic() - self._at < _EVERY:
            return
        files = self._files()
        if files == self._copied:
            return
        self._at = time.monotonic()
        sealed = b64encode(seal(self._key, self._life, files)).decode()
        document: dict[str, Any] = {"life": self._life, "sealed": sealed}
        made = self._folder.write(OBJECT, document, over=self._over)
        if made is None:
            found = self.look()
            # What is of this life already, before this VM's first copy of it, is another's.
            last = self._life - (self._copied is None)
            if found and found.life > last and found.opened(self._key) is not None:
                raise Lost
            # The answer to an earlier write was lost, or a program has written there.
            self._over = found.version if found else storage.NOTHING
            made = self._folder.write(OBJECT, document, over=self._over)
        if made is not None:
            self._over, self._copied = made, files

    def _files(self) -> dict[str, bytes]:
        """What slurmctld has written: each is put in its place whole."""
        found = {}
        for path in sorted(self._place.rglob("*")):
            if path.name == _LIFE or path.suffix in {".old", ".new"} or not path.is_file():
                continue
            try:
                found[path.relative_to(self._place).as_posix()] = path.read_bytes()
            except FileNotFoundError:
                continue  # of a job that is over
        return found

    def _replace(self, files: dict[str, bytes]) -> None:
        with contextlib.suppress(FileNotFoundError):
            (self._place / _LIFE).unlink()  # first, as what is half removed is of no life
        shutil.rmtree(self._place, ignore_errors=True)
        for name, content in files.items():
            path = self._place / name
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            path.touch(0o600)
            path.write_bytes(content)
        for folder, _, names in os.walk(self._place):
            self._give(Path(folder))
            for name in names:
                self._give(Path(folder, name))

    def _own_life(self) -> int:
        try:
            return int((self._place / _LIFE).read_text("ascii"))
        except (OSError, ValueError):
            return 0

    def _give(self, path: Path) -> None:
        if self._owner is not None:
            shutil.chown(path, self._owner, self._owner)
