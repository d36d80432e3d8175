"""`lock-held`: a lock that is an object among others, until somebody deletes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from rehearsal.cloud import storage
from rehearsal.cloud.store import Database
from rehearsal.cloud.wire import GoogleError, Reply, Request

if TYPE_CHECKING:
    from pathlib import Path

    from rehearsal.cloud.wire import Service

BUCKET = "states"
STATE = "np-deployment/terraform/state/default.tfstate"
LOCK = "np-deployment/terraform/state/default.tflock"
NOW = 1_800_000_000.0


class Bucket:
    """A bucket of states, under `lock-held` unless `held` is turned off."""

    def __init__(self, database: Database) -> None:
        self.database = database
        self.held = True

    def call(
        self, service: Service, method: str, path: str, body: bytes = b"", **query: str
    ) -> Reply:
        request = Request(
            method=method,
            path=path,
            query=query,
            body=body,
            now=NOW,
            scenarios=frozenset({"lock-held"} if self.held else ()),
        )
        try:
            with self.database.transaction() as store:
                return service(request, store)
        except GoogleError as error:
            return error.reply()

    def read(self, name: str = LOCK) -> Reply:
        path = f"b/{BUCKET}/o/{quote(name, safe='')}"
        return self.call(storage.json_api, "GET", path, alt="media")

    def delete(self, name: str = LOCK) -> int:
        return self.call(storage.json_api, "DELETE", f"b/{BUCKET}/o/{quote(name, safe='')}").status

    def write(self, name: str = LOCK, **query: str) -> int:
        options = {"uploadType": "media", "name": name} | query
        return self.call(storage.upload, "POST", f"b/{BUCKET}/o", b"x", **options).status

    def take(self) -> int:
        """Ask for the lock as Terraform does."""
        return self.write(ifGenerationMatch="0")

    def names(self) -> list[str]:
        listed = self.call(storage.json_api, "GET", f"b/{BUCKET}/o").body
        assert isinstance(listed, dict)
        items: list[dict[str, Any]] = listed.get("items", [])
        return [item["name"] for item in items]


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    made = Bucket(Database(tmp_path / "cloud.sqlite"))
    body = json.dumps({"name": BUCKET}).encode()
    made.call(storage.json_api, "POST", "b", body, project="proj-a1")
    return made


def test_whoever_asks_for_the_lock_finds_it_held(bucket: Bucket) -> None:
    assert bucket.take() == 412


def test_the_lock_says_who_holds_it_and_since_when(bucket: Bucket) -> None:
    content = bucket.read().body
    assert isinstance(content, bytes)
    lock = json.loads(content)
    assert lock["Who"] == "ann@laptop"
    assert lock["Created"] == "2027-01-15T07:48:00.000Z"
    assert lock["Path"] == f"gs://{BUCKET}/{LOCK}"


def test_the_xml_api_shows_the_lock_too(bucket: Bucket) -> None:
    assert bucket.call(storage.media, "GET", f"{BUCKET}/{LOCK}").status == 200


@pytest.mark.parametrize("sign", [STATE, "np-deployment/deployment.json"])
def test_a_list_shows_the_lock_of_every_deployment(bucket: Bucket, sign: str) -> None:
    assert bucket.names() == []
    bucket.write(sign)
    assert bucket.names() == sorted([sign, LOCK])


def test_there_is_no_lock_without_a_bucket(bucket: Bucket) -> None:
    path = f"b/another/o/{quote(LOCK, safe='')}"
    assert bucket.call(storage.json_api, "GET", path).status == 404


def test_a_deleted_lock_is_free_for_good(bucket: Bucket) -> None:
    assert bucket.read().status == 200
    assert bucket.delete() == 204
    assert bucket.take() == 200
    assert bucket.delete() == 204
    assert bucket.take() == 200
    bucket.held = False
    assert bucket.read().body == b"x"


def test_a_lock_that_was_never_looked_at_can_be_deleted(bucket: Bucket) -> None:
    assert bucket.delete() == 204
    assert bucket.take() == 200


def test_nobody_holds_a_lock_once_the_scenario_is_over(bucket: Bucket) -> None:
    assert bucket.read().status == 200
    bucket.held = False
    assert bucket.names() == []
    assert bucket.take() == 200
    assert bucket.delete() == 204
    bucket.held = True
    assert bucket.take() == 412


def test_a_lock_that_somebody_truly_holds_stays_as_it_is(bucket: Bucket) -> None:
    bucket.held = False
    assert bucket.take() == 200
    bucket.held = True
    assert bucket.read().body == b"x"
    bucket.held = False
    assert bucket.read().body == b"x"
