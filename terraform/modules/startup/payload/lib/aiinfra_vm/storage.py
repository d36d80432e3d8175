"""Objects in one folder of Cloud Storage, read and written as the VM's own account.

Each method raises OSError where Cloud Storage refuses or does not answer. None repeats a request:
whoever asks does so again at its next turn.
"""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any, BinaryIO, Iterator, NamedTuple
from urllib.parse import quote, urlencode

from aiinfra_vm import configuration, metadata
from aiinfra_vm.report import now

_TIMEOUT = 20  # seconds
_BLOCK = 2**20  # bytes
_UNCHANGED = 304
_FORBIDDEN = 403
_MISSING = 404
_OTHERWISE = 412  # a precondition does not hold


class Version(NamedTuple):
    """Which content an object has (generation), and how often its metadata changed since."""

    name: str
    generation: int
    metageneration: int


NOTHING = Version("", 0, 0)
"""Where there is no object."""


class Folder:
    """A folder of a bucket."""

    def __init__(self, bucket: str, path: str) -> None:
        self._host = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
        self._bucket = quote(bucket, safe="")
        self._path = path

    def read(self, name: str, unless: int = 0) -> tuple[bytes, Version] | None:
        """An object's content; None if there is none.

        Raises:
            Unchanged: The object has that generation.
        """
        query = {"alt": "media"}
        if unless:
            query["ifGenerationNotMatch"] = str(unless)
        try:
            headers, body = self.ask("GET", self._object(name), query)
        except urllib.error.HTTPError as error:
            if error.code == _UNCHANGED:
                raise Unchanged from None
            # Forbidden: whoever may not list a bucket is not told that an object isn't there.
            if error.code in (_FORBIDDEN, _MISSING):
                return None
            raise
        generations = headers["x-goog-generation"], headers["x-goog-metageneration"]
        return body, Version(name, int(generations[0]), int(generations[1]))

    def write(self, name: str, document: Any, over: Version | None = None) -> Version | None:
        """Write a document.

        `document`: what becomes its JSON; bytes stay as they are. `over`: what it replaces, which
        may be `NOTHING`; None for whatever is there. What was made; None if something else is
        there.
        """
        path = f"upload/storage/v1/b/{self._bucket}/o"
        query = {"uploadType": "media", "name": f"{self._path}/{name}"}
        if over is not None:
            query["ifGenerationMatch"] = str(over.generation)
        if over is not None and over != NOTHING:
            query["ifMetagenerationMatch"] = str(over.metageneration)
        return self._change("POST", path, query, name, document)

    def fetch(self, name: str, to: BinaryIO) -> str:
        """Write an object's content, of any size, to a file; its SHA-256."""
        digest = hashlib.sha256()
        with self._open("GET", self._object(name), {"alt": "media"}) as answer:
            for block in iter(lambda: answer.read(_BLOCK), b""):
                digest.update(block)
                to.write(block)
        return digest.hexdigest()

    def touch(self, version: Version, notes: dict[str, str | None] | None = None) -> Version | None:
        """Change an object's metadata alone, so that the bucket keeps no older version of it.

        `notes`: what to say in it; None for what is to be taken out. What the object is now; None
        if it is gone, or has another content.
        """
        query = {"ifGenerationMatch": str(version.generation)}
        document = {"metadata": {"renewed": now(), **(notes or {})}}
        return self._change("PATCH", self._object(version.name), query, version.name, document)

    def remove(self, version: Version) -> None:
        """Delete an object, unless it has changed since or is gone."""
        query = {
            "ifGenerationMatch": str(version.generation),
            "ifMetagenerationMatch": str(version.metageneration),
        }
        try:
            self.ask("DELETE", self._object(version.name), query)
        except urllib.error.HTTPError as error:
            if error.code not in (_MISSING, _OTHERWISE):
                raise

    def list(self, prefix: str) -> Iterator[Version]:
        """The objects whose names begin so; the prefix ends with a slash, as the grant's does."""
        query = {
            "prefix": f"{self._path}/{prefix}",
            "fields": "items(name,generation,metageneration),nextPageToken",
        }
        while True:
            _, body = self.ask("GET", f"storage/v1/b/{self._bucket}/o", query)
            answer = json.loads(body)
            for item in answer.get("items", []):
                yield _version(item["name"][len(self._path) + 1 :], item)
            if "nextPageToken" not in answer:
                return
            query["pageToken"] = answer["nextPageToken"]

    def ask(
        self, method: str, path: str, query: dict[str, str], body: bytes | None = None
    ) -> tuple[Any, bytes]:
        """Send one request; the answer's headers and body."""
        with self._open(method, path, query, body) as answer:
            return answer.headers, answer.read()

    @contextlib.contextmanager
    def _open(
        self, method: str, path: str, query: dict[str, str], body: bytes | None = None
    ) -> Iterator[Any]:
        headers = {"Authorization": f"Bearer {metadata.token()}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(  # noqa: S310 - Cloud Storage, or its emulator
            f"{self._host}/{path}?{urlencode(query)}", data=body, headers=headers, method=method
        )
        try:
            with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
                yield answer
        except http.client.HTTPException as error:
            raise OSError(f"Cloud Storage did not answer in full: {error!r}") from error

    def _object(self, name: str) -> str:
        return f"storage/v1/b/{self._bucket}/o/{quote(f'{self._path}/{name}', safe='')}"

    def _change(
        self, method: str, path: str, query: dict[str, str], name: str, document: Any
    ) -> Version | None:
        try:
            content = document if isinstance(document, bytes) else encoded(document)
            _, body = self.ask(method, path, query, content)
        except urllib.error.HTTPError as error:
            if error.code in (_MISSING, _OTHERWISE):
                return None
            raise
        return _version(name, json.loads(body))


class Unchanged(Exception):  # noqa: N818 - what was asked for, and no error
    """An object has the content that is known."""


class Watched:
    """An object that is looked at again and again; what has not changed is not sent.

    `text`: Its content at the last look; None if there was none. `generation`: That of this
    content; 0 for none.
    """

    def __init__(self, folder: Folder, name: str) -> None:
        self.text: bytes | None = None
        self.generation = 0
        self._folder = folder
        self._name = name

    def look(self) -> bool:
        """Look again; whether the content is another than at the look before."""
        try:
            found = self._folder.read(self._name, unless=self.generation)
        except Unchanged:
            return False
        before = self.generation
        self.text = found[0] if found else None
        self.generation = found[1].generation if found else 0
        return self.generation != before


def encoded(document: Any) -> bytes:
    """A document as its object has it."""
    return json.dumps(document).encode()


def decoded(text: bytes) -> Any:
    """What an object holds, which any program on a VM may have written.

    Raises:
        ValueError: It is no JSON, or too deep to be read.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("it is too deep") from error


def shared() -> Folder:
    """The folder that the VMs of this cluster share, and nobody else writes but the tool."""
    return part("vms")


def wanted() -> Folder:
    """The folder with the jobs that the tool asks for, which VMs can't write."""
    return part("jobs")


def part(name: str) -> Folder:
    """A part of the deployment's folder."""
    state = configuration.load()["state"]
    return Folder(state["bucket"], f"{state['folder']}/{name}")


def _version(name: str, item: dict[str, Any]) -> Version:
    return Version(name, int(item["generation"]), int(item["metageneration"]))


def main() -> None:
    """`BUCKET OBJECT FILE`: fetch an object, for a step of the start-up."""
    bucket, name, file = sys.argv[1:]
    folder, _, name = name.rpartition("/")
    with open(file, "wb") as to:  # noqa: PTH123 - a word of the command line
        try:
            Folder(bucket, folder).fetch(name, to)
        except OSError as error:
            sys.exit(f"gs://{bucket}/{folder}/{name} can't be read: {error}")


if __name__ == "__main__":
    main()
