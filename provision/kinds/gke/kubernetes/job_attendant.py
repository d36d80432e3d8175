"""What goes with a job in its pod: it fetches the job's folder, and keeps what the job says.

Pods run this file as it stands, in the image of gcloud: Python 3.9, its standard library alone.

    python3 -c FILE fetch BUCKET OBJECT    unpack an object into the pod's folder
    python3 -c FILE keep BUCKET PREFIX     until SIGTERM, which comes when the program has ended

Of a job that is begun again on other nodes, the log goes on where the last pod left it. A pod of
JobSet is told which attempt it is; on Ray each head takes the next number, but for that of a head
that was told to end.
"""

from __future__ import annotations

import ctypes
import hashlib
import http
import json
import os
import re
import signal
import sys
import tarfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")

SHARED = Path(os.environ.get("AIINFRA_SHARED", "/run/aiinfra-job"))
SECRETS = Path(os.environ.get("AIINFRA_SECRETS", "/run/aiinfra-secrets"))
_METADATA = os.environ.get("GCE_METADATA_HOST", "metadata.google.internal")
_STORAGE = os.environ.get(
    "CLOUDSDK_API_ENDPOINT_OVERRIDES_STORAGE", "https://storage.googleapis.com/"
)
_EVERY = float(os.environ.get("AIINFRA_EVERY", "5"))  # seconds between two pieces
_PAUSE = 3.0  # seconds between two requests, where Google does not answer
_PIECE = 4 << 20
_MOST = 256 << 20  # bytes of a log; of what is beyond, the last piece is kept
_LAST = 64 << 10
_LINE = 64 << 10  # a longer line is kept in parts
_TAIL = 20  # lines
_SHORTEST = 4  # bytes of a secret value that is masked, as on VMs
_TRIES = 100
# What NCCL says where it does not use the plugin of the GPUs' network, as on VMs (job_guard.py).
_WITHOUT_FABRIC = re.compile(
    rb"NCCL INFO (?:Using network (?:Socket|IB)\b|NET/Socket : Using "
    rb"|NET/Plugin ?: (?:No plugin found|Could not find: libnccl-net\.so))"
)
_PUNCH = 3  # FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE


class Bucket:
    """A bucket, as the pod's account."""

    def __init__(self, name: str) -> None:
        self._path = f"b/{urllib.parse.quote(name, safe='')}/o"
        self._token, self._until = "", 0.0

    def get(self, name: str) -> bytes:
        """The content of an object."""
        return self._ask(f"storage/v1/{self._path}/{urllib.parse.quote(name, safe='')}?alt=media")

    def put(self, name: str, content: bytes, *, only_new: bool = False) -> None:
        """Write an object; nothing if there is one and it is to be new."""
        query = {"uploadType": "media", "name": name}
        if only_new:
            query["ifGenerationMatch"] = "0"
        try:
            self._ask(f"upload/storage/v1/{self._path}?{urllib.parse.urlencode(query)}", content)
        except urllib.error.HTTPError as error:
            if error.code != http.HTTPStatus.PRECONDITION_FAILED:  # it is there already
                raise

    def sizes(self, prefix: str) -> dict[str, int]:
        """What follows a prefix in the names of objects -> their sizes."""
        sizes: dict[str, int] = {}
        page = ""
        while True:
            query = urllib.parse.urlencode({"prefix": prefix, "pageToken": page})
            answer = json.loads(self._ask(f"storage/v1/{self._path}?{query}"))
            for found in answer.get("items", []):
                sizes[found["name"][len(prefix) :]] = int(found["size"])
            page = answer.get("nextPageToken", "")
            if not page:
                return sizes

    def _ask(self, path: str, content: bytes | None = None) -> bytes:
        headers = {"Authorization": f"Bearer {self._bearer()}"}
        return _read(urllib.request.Request(f"{_STORAGE}{path}", content, headers))  # noqa: S310 - Google's, or a test's

    def _bearer(self) -> str:
        if time.time() > self._until:
            path = "computeMetadata/v1/instance/service-accounts/default/token"
            url, headers = f"http://{_METADATA}/{path}", {"Metadata-Flavor": "Google"}
            found = json.loads(_read(urllib.request.Request(url, headers=headers)))
            self._token = found["access_token"]
            self._until = time.time() + found["expires_in"] - 60
        return self._token


def _read(request: urllib.request.Request) -> bytes:
    with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - as above
        return bytes(answer.read())


def fetch(bucket: Bucket, name: str) -> None:
    """Unpack an archive that is named by its SHA-256 into the folder of the job."""
    content = _patiently(lambda: bucket.get(name))
    if hashlib.sha256(content).hexdigest() not in name:
        raise ValueError(f"{name} has not the checksum of its name")
    archive = SHARED / "archive"
    archive.write_bytes(content)
    with tarfile.open(archive) as packed:
        packed.extractall(SHARED / "folder")  # noqa: S202 - the caller's own, by its checksum
    archive.unlink()
    # The job's image may have any user.
    for base, _, _ in os.walk(SHARED / "folder"):
        Path(base).chmod(0o777)


class Keeper:
    """Keeps what the program of the pod says, and how it ended."""

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self._bucket, self._prefix = bucket, prefix
        first, before = map(int, os.environ.get("AIINFRA_ARRAY", "0 0").split())
        number = int(os.environ["NODE_RANK"]) - before + first
        self._rank = str(number)
        self.has_task = number >= first
        self._attempt, self._pieces, self._began = 0, "", time.time()
        self._secrets = _secret_values()
        self._read = 0  # bytes of the pod's log
        self._begins = 0  # where the next piece begins
        self._held = b""  # what is read, and in no piece yet
        self._pending: tuple[int, bytes] | None = None  # a piece that may not be written yet
        self._tail: list[bytes] = []
        self._is_watched = self._rank == "0" and "AIINFRA_FABRIC" in os.environ

    def begin(self) -> None:
        """Find where an earlier pod left the log, and say when the job began."""
        self._attempt = self._number()
        self._pieces = f"{self._prefix}logs/{self._attempt}/{self._rank}/"
        sizes = self._bucket.sizes(self._pieces)
        self._begins = max((int(it) + size for it, size in sizes.items()), default=0)
        if (SHARED / "read").exists():  # this program has died here
            self._read = int((SHARED / "read").read_text())
        if self._rank == "0" or "AIINFRA_ARRAY" in os.environ:
            moment = json.dumps({"began": time.time()}).encode()
            self._bucket.put(f"{self._prefix}began.json", moment, only_new=True)

    def _number(self) -> int:
        """Which attempt this is, which the program on the head of Ray waits to know."""
        if "JOB_RESTART" in os.environ:
            return int(os.environ["JOB_RESTART"]) + 1
        own = SHARED / "attempt"
        if not own.exists():
            attempts = f"{self._prefix}attempts/"
            number = len(self._bucket.sizes(attempts))
            end = f"{self._prefix}ends/{number}/{self._rank}.json"
            ended = self._bucket.sizes(end) and json.loads(self._bucket.get(end))
            # An eviction is no attempt: it goes on with the log.
            if not (ended and ended["told"]):
                number += 1
                self._bucket.put(f"{attempts}{number}", b"", only_new=True)
            own.write_text(str(number))
        return int(own.read_text())

    def keep(self, *, is_over: bool) -> None:
        """Keep what is new, in whole lines; all of it when the program is over."""
        more = True
        while more:
            self._send()
            more = self._look()
            text = self._held = _masked(self._held, self._secrets)
            whole = max(text.rfind(b"\n"), text.rfind(b"\r")) + 1
            if is_over and not more:
                whole = len(text)
            elif len(text) > whole + _LINE:
                # Of a value that is masked, a part may be there.
                whole = len(text) - max(map(len, self._secrets), default=0)
            self._held = text[whole:]
            self._take(text[:whole], is_last=is_over and not more)
            self._send()
            if self._is_watched and _WITHOUT_FABRIC.search(text[:whole]):
                self._tell_sockets()

    def end(self) -> None:
        """Say how the program ended."""
        try:
            words = (SHARED / "code").read_text().split()
        except OSError:
            words = []  # it was killed, with the shell that it ran in
        said = {
            "code": int(words[0]) if words else None,
            "told": "told" in words,
            "began": self._began,
            "ended": time.time(),
            "tail": b"\n".join(self._tail).decode("utf-8", "replace"),
            "vm": os.environ.get("NODE_NAME", ""),
            "rank": int(self._rank),
        }
        name = f"{self._prefix}ends/{self._attempt}/{self._rank}.json"
        self._bucket.put(name, json.dumps(said).encode())

    def _tell_sockets(self) -> None:
        """Say in which attempt NCCL first went by sockets."""
        name = f"{self._prefix}began.json"
        told = json.loads(self._bucket.get(name))
        self._bucket.put(name, json.dumps({"sockets": self._attempt, **told}).encode())
        self._is_watched = False

    def _look(self) -> bool:
        """Read a part of the pod's log; whether there is more."""
        try:
            with (SHARED / "log").open("r+b") as file:
                file.seek(self._read)
                part = file.read(_PIECE)
                self._read += len(part)
                # The disk gets it back: a program may say more than there is room for.
                ends = ctypes.c_long(self._read)
                ctypes.CDLL(None).fallocate(file.fileno(), _PUNCH, ctypes.c_long(0), ends)
        except FileNotFoundError:
            return False
        self._held += part
        return len(part) == _PIECE

    def _take(self, text: bytes, *, is_last: bool) -> None:
        """Make a piece of a text; none of what is too much, but for the end."""
        self._tail = [*self._tail, *text.splitlines()][-_TAIL:]
        begins = self._begins
        self._begins += len(text)
        if begins > _MOST:
            begins, text = self._begins - len(text[-_LAST:]), text[-_LAST:]
        if text and (begins <= _MOST or is_last):
            self._pending = begins, text

    def _send(self) -> None:
        """Write the piece that is pending; the same one again where no answer came."""
        if self._pending is not None:
            begins, text = self._pending
            self._bucket.put(f"{self._pieces}{begins:015d}", text, only_new=True)
            self._pending = None
            (SHARED / "read").write_text(str(self._read - len(self._held)))


def _secret_values() -> list[bytes]:
    """What is masked, as on VMs: the values, but for short ones, and the long lines of each."""
    values = [it.read_bytes() for it in SECRETS.glob("*")]
    known = [it for it in values if len(it) >= _SHORTEST]
    lines = [it for value in known for it in value.split(b"\n") if len(it) >= 2 * _SHORTEST]
    return sorted({*known, *lines}, key=len, reverse=True)


def _masked(text: bytes, values: list[bytes]) -> bytes:
    for value in values:
        text = text.replace(value, b"***")
    return text


def _patiently(act: Callable[[], T]) -> T:
    """Do something, and again while Google does not answer, for some minutes."""
    for _ in range(_TRIES):
        try:
            return act()
        except OSError as error:
            sys.stdout.write(f"asked again: {error}\n")
            sys.stdout.flush()
            time.sleep(_PAUSE)
    return act()


def main(what: str, bucket_name: str, path: str) -> None:
    """Do what the arguments say."""
    bucket = Bucket(bucket_name)
    if what == "fetch":
        fetch(bucket, path)
        return
    over = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: over.set())
    if (SHARED / "kept").exists():  # the kubelet begins this again until the pod's turn has come
        over.wait()
        return
    while "JOB_RESTART" not in os.environ and not (SHARED / "shell").exists():
        if over.wait(1):  # Ray has not begun the program, and will not
            return
    keeper = Keeper(bucket, path)
    if not keeper.has_task:
        over.wait()
        return
    # GKE's metadata server takes some seconds until it knows a new pod.
    _patiently(keeper.begin)
    # A program may have ended before this could be told so.
    while not over.wait(_EVERY) and not (SHARED / "code").exists():
        _patiently(lambda: keeper.keep(is_over=False))
    _patiently(lambda: keeper.keep(is_over=True))
    _patiently(keeper.end)
    (SHARED / "kept").touch()


if __name__ == "__main__":
    main(*sys.argv[1:])
