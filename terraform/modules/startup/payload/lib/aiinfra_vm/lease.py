"""Who is the head of the Ray cluster: an object in Cloud Storage that one VM at a time holds.

Its generation says who holds it: the object is made where there is none (`ifGenerationMatch=0`)
and replaced where it is the one that was seen (`ifGenerationMatch=<generation>`), so of several
VMs that try, one succeeds. Its metageneration says that the holder lives: to renew is to change
the object's metadata, which leaves no old versions behind in a bucket that keeps them.
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


class Head(NamedTuple):
    """The VM that holds the lease, and which life of the lease this is."""

    vm: str
    address: str
    instance_id: str
    generation: int
    metageneration: int


class Lease:
    """The object that names the head.

    Args:
        bucket: Its bucket.
        name: Its name.

    All methods raise OSError where Cloud Storage does not answer or refuses.
    """

    def __init__(self, bucket: str, name: str) -> None:
        self._host = os.environ.get("STORAGE_EMULATOR_HOST") or "https://storage.googleapis.com"
        self._bucket = quote(bucket, safe="")
        self._name = name

    def read(self) -> Head | None:
        """Who holds the lease; None if nobody does."""
        try:
            headers, body = self._ask("GET", self._object, {"alt": "media"})
        except urllib.error.HTTPError as error:
            # Forbidden: whoever may not list a bucket is not told that an object isn't there.
            if error.code in (_FORBIDDEN, _MISSING):
                return None
            raise
        document = json.loads(body)
        return Head(
            document["vm"],
            document["address"],
            document["instance_id"],
            int(headers["x-goog-generation"]),
            int(headers["x-goog-metageneration"]),
        )

    def take(self, vm: str, address: str, instance_id: str, over: Head | None) -> Head | None:
        """Take the lease, from nobody or from the holder that was seen.

        Returns:
            This VM as the head; None if another was faster, or the holder renewed it meanwhile.
        """
        document = {"vm": vm, "address": address, "instance_id": instance_id, "at": now()}
        conditions = {"ifGenerationMatch": over.generation if over else 0}
        if over:
            conditions["ifMetagenerationMatch"] = over.metageneration
        path = f"upload/storage/v1/b/{self._bucket}/o"
        query = {"uploadType": "media", "name": self._name, **conditions}
        made = self._change("POST", path, query, document)
        return None if made is None else _head(document, made)

    def renew(self, head: Head) -> Head | None:
        """Say that the head lives; None if the lease is another's by now."""
        query = {"ifGenerationMatch": head.generation}
        made = self._change("PATCH", self._object, query, {"metadata": {"renewed": now()}})
        return None if made is None else _head(head._asdict(), made)

    def release(self, head: Head) -> None:
        """Give the lease up, if it is still this head's."""
        try:
            self._ask("DELETE", self._object, {"ifGenerationMatch": head.generation})
        except urllib.error.HTTPError as error:
            if error.code not in (_MISSING, _OTHERWISE):
                raise

    @property
    def _object(self) -> str:
        return f"storage/v1/b/{self._bucket}/o/{quote(self._name, safe='')}"

    def _change(
        self, method: str, path: str, query: dict[str, Any], document: dict[str, Any]
    ) -> dict[str, Any] | None:
        try:
            _, body = self._ask(method, path, query, json.dumps(document).encode())
        except urllib.error.HTTPError as error:
            if error.code in (_MISSING, _OTHERWISE):
                return None
            raise
        answer: dict[str, Any] = json.loads(body)
        return answer

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


def _head(document: dict[str, Any], made: dict[str, Any]) -> Head:
    return Head(
        document["vm"],
        document["address"],
        document["instance_id"],
        int(made["generation"]),
        int(made["metageneration"]),
    )
