"""What the VMs of a Ray cluster agree on by objects in Cloud Storage: who the head is, the token.

An object's generation says which content it has: it is made where there is none
(`ifGenerationMatch=0`) and replaced where it is the one that was seen
(`ifGenerationMatch=<generation>`), so of several VMs that try, one succeeds. The metageneration of
the lease says that its holder lives: to renew is to change the object's metadata, which leaves no
old versions behind in a bucket that keeps them.
"""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from aiinfra_vm import metadata
from aiinfra_vm.report import now

_TIMEOUT = 20  # seconds
_FORBIDDEN = 403
_MISSING = 404
_OTHERWISE = 412  # a precondition does not hold


class Version(NamedTuple):
    """Which content an object has, and how often its metadata changed since."""

    generation: int
    metageneration: int


class Claim(NamedTuple):
    """One life of a Ray head: a VM, and the time from one `ray start` to its end."""

    vm: str
    address: str
    instance_id: str
    life: str


class Head(NamedTuple):
    """The life of a head that holds the lease, and the lease as it was seen."""

    claim: Claim
    version: Version


class Object:
    """One object of Cloud Storage, as the VM's own account.

    Args:
        bucket: Its bucket.
        name: Its name.

    All methods raise OSError where Cloud Storage does not answer or refuses.
    """

    def __init__(self, bucket: str, name: str) -> None:
        self._host = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
        self._bucket = quote(bucket, safe="")
        self._name = name

    def read(self) -> tuple[bytes, Version] | None:
        """Its content; None if it is not there."""
        try:
            headers, body = self._ask("GET", self._path, {"alt": "media"})
        except urllib.error.HTTPError as error:
            # Forbidden: whoever may not list a bucket is not told that an object isn't there.
            if error.code in (_FORBIDDEN, _MISSING):
                return None
            raise
        numbers = headers["x-goog-generation"], headers["x-goog-metageneration"]
        return body, Version(int(numbers[0]), int(numbers[1]))

    def write(self, content: bytes, over: Version | None) -> Version | None:
        """Write it in place of what was seen, or where nothing is; None if that has changed."""
        conditions = {"ifGenerationMatch": over.generation if over else 0}
        if over:
            conditions["ifMetagenerationMatch"] = over.metageneration
        path = f"upload/storage/v1/b/{self._bucket}/o"
        query = {"uploadType": "media", "name": self._name, **conditions}
        return self._change("POST", path, query, content)

    def touch(self, seen: Version) -> Version | None:
        """Change its metadata alone; None if it is gone or has another content, or is forbidden."""
        query = {"ifGenerationMatch": seen.generation}
        body = json.dumps({"metadata": {"renewed": now()}}).encode()
        return self._change("PATCH", self._path, query, body)

    def delete(self, seen: Version) -> None:
        """Delete it, if it still has this content."""
        self._change("DELETE", self._path, {"ifGenerationMatch": seen.generation}, None)

    @property
    def _path(self) -> str:
        return f"storage/v1/b/{self._bucket}/o/{quote(self._name, safe='')}"

    def _change(
        self, method: str, path: str, query: dict[str, Any], body: bytes | None
    ) -> Version | None:
        try:
            _, answer = self._ask(method, path, query, body)
        except urllib.error.HTTPError as error:
            gone = (_MISSING, _OTHERWISE)
            if error.code in (gone if method == "POST" else (*gone, _FORBIDDEN)):
                return None
            raise
        if not answer:
            return None
        made = json.loads(answer)
        return Version(int(made["generation"]), int(made["metageneration"]))

    def _ask(
        self, method: str, path: str, query: dict[str, Any], body: bytes | None = None
    ) -> tuple[Any, bytes]:
        headers = {"Authorization": f"Bearer {metadata.token()}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        request = urllib.request.Request(  # noqa: S310 - Cloud Storage, or its emulator
            f"{self._host}/{path}?{urlencode(query)}", data=body, headers=headers, method=method
        )
        with urllib.request.urlopen(request, timeout=_TIMEOUT) as answer:  # noqa: S310 - as above
            return answer.headers, answer.read()


class Lease:
    """The object that names the head.

    Args:
        folder: The bucket, and the folder's path in it.

    All methods raise OSError where Cloud Storage does not answer or refuses.
    """

    def __init__(self, folder: tuple[str, str]) -> None:
        bucket, path = folder
        self._object = Object(bucket, f"{path}/head.json")

    def read(self) -> Head | None:
        """Who holds the lease; None if nobody does."""
        found = self._object.read()
        if found is None:
            return None
        document = json.loads(found[0])
        # A head of an earlier version of this program says no life of its own.
        claim = Claim(*(str(document.get(field, "")) for field in Claim._fields))
        return Head(claim, found[1])

    def take(self, claim: Claim, over: Head | None) -> Head | None:
        """Take the lease, from nobody or from the holder that was seen.

        Returns:
            The head with the lease; None if another was faster, or the holder renewed it meanwhile.
        """
        content = json.dumps({**claim._asdict(), "at": now()}).encode()
        made = self._object.write(content, over.version if over else None)
        return None if made is None else Head(claim, made)

    def hold(self, head: Head) -> Head | None:
        """Renew the lease, and take it again if it was deleted; None if another head has it."""
        renewed = self._object.touch(head.version)
        if renewed is not None:
            return Head(head.claim, renewed)
        current = self.read()
        if current is None:
            # Of two that take it now, the other one shows at the next turn.
            return self.take(head.claim, over=None) or head
        # The answer to a request that took it may have been lost.
        return current if current.claim == head.claim else None

    def release(self, head: Head) -> None:
        """Give the lease up, if it is still this head's."""
        self._object.delete(head.version)
