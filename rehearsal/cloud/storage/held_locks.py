"""`lock-held`: the locks of Terraform states that somebody else seems to hold.

Such a lock is an object like any other while the scenario is on, so that every way to read, list
and delete it works. It comes into being when it is first looked for (a refused request is undone as
a whole: then with the next one), stays away for good once somebody deletes it, and is not there
while the scenario is off.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple
from urllib.parse import unquote

from rehearsal.cloud.storage import buckets, objects
from rehearsal.cloud.store import Store
from rehearsal.cloud.wire import Reply, Request, Service, rfc3339

_COLLECTION = "scenarios/locks"
_HOLDER = "ann@laptop"
_AGE = 12 * 60.0  # seconds since the holder took it
_ADDRESSED = re.compile(r"b/(?P<bucket>[^/]+)/o(?:/(?P<name>[^/]+))?|(?P<xml>[^/]+)/(?P<key>.+)")
_UPLOADED = re.compile(rb'"name": *"(?P<name>[^"]+\.tflock)"')
"""In the body of an upload that names its object there, beside the content."""
_LOCK = ".tflock"
# What shows that there is a state -> its lock: our record beside it, or the state itself.
_SIGNS = (
    (re.compile(r"(?P<folder>.+)/deployment\.json"), r"\g<folder>/terraform/state/default.tflock"),
    (re.compile(r"(?P<state>.+)\.tfstate"), r"\g<state>.tflock"),
)


class _Key(NamedTuple):
    bucket: str
    name: str

    def __str__(self) -> str:
        return f"{self.bucket}\n{self.name}"


def among(service: Service) -> Service:
    """A service of Cloud Storage, to which the held locks are objects among others."""

    def answer(request: Request, store: Store) -> Reply:
        if "lock-held" not in request.scenarios:
            _withdraw(request, store)
            return service(request, store)
        asked = [key for key in _asked(request, store) if _hold(request, store, key)]
        reply = service(request, store)
        if request.method == "DELETE":
            for key in asked:
                store.put(_COLLECTION, str(key), {"freed": True})
        return reply

    return answer


def _asked(request: Request, store: Store) -> Iterator[_Key]:
    """The locks that a request is about: the one that it names, or all that its list may show."""
    match = _ADDRESSED.fullmatch(request.path)
    if match is None:
        return
    bucket = unquote(match["bucket"] or match["xml"])
    if store.get(buckets.COLLECTION, bucket) is None:
        return
    name = unquote(match["name"] or match["key"] or request.query.get("name", ""))
    if not name and request.method == "POST" and (uploaded := _UPLOADED.search(request.body)):
        name = uploaded["name"].decode()
    if name.endswith(_LOCK):
        yield _Key(bucket, name)
    elif not name and request.method == "GET":
        for found in list(objects.of_bucket(store, bucket, "", versions=False)):
            for sign, lock in _SIGNS:
                if match := sign.fullmatch(found["name"]):
                    yield _Key(bucket, match.expand(lock))


def _hold(request: Request, store: Store, key: _Key) -> bool:
    """Make the lock, unless there is one or it was freed; whether it is one of ours."""
    known = store.get(_COLLECTION, str(key))
    if known is not None:
        return not known["freed"]
    if objects.live(store, key.bucket, key.name) is not None:
        return False
    unconditional = replace(request, query={})
    metadata = {"name": key.name, "contentType": "application/json"}
    content = json.dumps(_information(request, key)).encode()
    made = objects.create(unconditional, store, key.bucket, metadata, content)
    store.put(_COLLECTION, str(key), {"freed": False, "generation": made["generation"]})
    return True


def _information(request: Request, key: _Key) -> dict[str, str]:
    return {
        "ID": "5d2f1c9e-7a44-4b0e-9c55-3f1f7f0a8e21",
        "Operation": "OperationTypeApply",
        "Info": "",
        "Who": _HOLDER,
        "Version": "1.11.4",
        "Created": rfc3339(request.now - _AGE),
        "Path": f"gs://{key.bucket}/{key.name}",
    }


def _withdraw(request: Request, store: Store) -> None:
    """Take away the locks that nobody has freed; a later scenario holds them again."""
    for text, known in list(store.list(_COLLECTION)):
        if known["freed"]:
            continue
        bucket, name = text.split("\n")
        if store.get(buckets.COLLECTION, bucket) is not None:
            this_one = replace(request, query={"generation": known["generation"]})
            objects.delete(this_one, store, bucket, name)
        store.delete(_COLLECTION, text)
