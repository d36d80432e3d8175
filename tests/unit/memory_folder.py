"""A state folder in memory, which is read and written as one in Cloud Storage is."""

import datetime as dt
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

from google.api_core import exceptions

from provision.deployment.kind import Stranded
from provision.state.folder import StateFolder
from provision.state.location import StateLocation

LOCATION = StateLocation("b", "np-deployment", is_default=False)
PREFIX = f"{LOCATION.folder}/"


class _Blob:
    """An object of Google's client, as far as a folder uses it."""

    def __init__(self, folder: "MemoryFolder", name: str) -> None:
        self.name, self._folder, self._own = name, folder, name.removeprefix(PREFIX)
        self.generation = folder.generations.get(self._own, 0)

    @property
    def updated(self) -> dt.datetime:
        at = self._folder.times.get(self._own, self._folder.now)
        return dt.datetime.fromtimestamp(at, dt.UTC)

    time_created = updated

    @property
    def metadata(self) -> dict[str, str] | None:
        return self._folder.notes.get(self._own)

    def download_as_bytes(self, end: int, if_generation_match: int | None = None) -> bytes:
        self._require(if_generation_match)
        self._folder.looked.append(self._own)
        if self._own not in self._folder.files:
            raise exceptions.NotFound("no such object")
        found = self._folder.files[self._own]
        if not found:
            raise exceptions.RequestRangeNotSatisfiable("empty")
        return (found.encode() if isinstance(found, str) else found)[: end + 1]

    def upload_from_string(
        self, content: str, content_type: str = "", if_generation_match: int | None = None
    ) -> None:
        del content_type
        self._require(if_generation_match)
        self._folder.files[self._own] = content
        self._folder.written.append(content)
        self._folder.generations[self._own] = self._folder.generations.get(self._own, 0) + 1
        self.generation = self._folder.generations[self._own]

    def delete(self, if_generation_match: int | None = None) -> None:
        self._require(if_generation_match)
        if self._folder.files.pop(self._own, None) is None:
            raise exceptions.NotFound("no such object")

    def _require(self, generation: int | None) -> None:
        if generation not in {None, self._folder.generations.get(self._own, 0)}:
            raise exceptions.PreconditionFailed("another generation")


def watching(deaf: str = "", stranded: Stranded | None = None) -> Any:
    """What is seen of the VMs of jobs: why they hear of none, and what of them is lost."""
    return SimpleNamespace(look=lambda: (deaf, stranded))


class MemoryFolder(StateFolder):
    """`files`: name -> content; `times`: name -> when it was written, else `now`.

    `notes`: name -> its metadata, if it has some.
    """

    def __init__(self, files: dict[str, str | bytes] | None = None, now: float = 0.0) -> None:
        self.files = files if files is not None else {}
        self.generations = dict.fromkeys(self.files, 1)
        self.times: dict[str, float] = {}
        self.notes: dict[str, dict[str, str]] = {}
        self.now = now
        self.written: list[str] = []
        self.looked: list[str] = []
        self.location = LOCATION
        self._errors = exceptions
        self._known = {}
        bucket = SimpleNamespace(blob=lambda name: _Blob(self, name), get_blob=self._found)
        self._client: Any = SimpleNamespace(bucket=lambda _: bucket, list_blobs=self._blobs)

    def _found(self, name: str) -> _Blob | None:
        return _Blob(self, name) if name.removeprefix(PREFIX) in self.files else None

    def _blobs(
        self, _bucket: str, *, prefix: str, start_offset: str | None = None, match_glob: str = ""
    ) -> Iterator[_Blob]:
        del match_glob  # who lists looks at each name
        self.looked.append(prefix.removeprefix(PREFIX))
        names = sorted(f"{PREFIX}{name}" for name in self.files)
        yield from (
            _Blob(self, it) for it in names if it.startswith(prefix) and it >= (start_offset or "")
        )
