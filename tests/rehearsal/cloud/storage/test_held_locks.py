"""`lock-held`: a lock that is an object among others, until somebody deletes it."""

import json
from pathlib import Path
from urllib.parse import quote

import pytest

from rehearsal.cloud.store import Database
from tests.rehearsal.cloud.sending import States

STATE = "np-deployment/terraform/state/default.tfstate"
LOCK = "np-deployment/terraform/state/default.tflock"


class Bucket(States):
    """A bucket of states, under `lock-held` unless that is turned off."""

    def hold(self, *, held: bool) -> None:
        self.scenarios = frozenset({"lock-held"} if held else ())

    def lock(self) -> bytes:
        content = self.read(LOCK).body
        assert isinstance(content, bytes)
        return content

    def take(self) -> int:
        """Ask for the lock as Terraform does."""
        return self.write(LOCK, ifGenerationMatch="0")

    def take_by_multipart(self) -> int:
        """Ask for it as Google's Python client does, which names it in the body."""
        parts = (json.dumps({"name": LOCK}), "{}")
        body = "".join(f"--x\r\ncontent-type: application/json\r\n\r\n{it}\r\n" for it in parts)
        target = "b/states/o?uploadType=multipart&ifGenerationMatch=0"
        headers = {"content-type": "multipart/related; boundary=x"}
        return self("upload", "POST", target, f"{body}--x--".encode(), headers).status

    def names(self) -> list[str]:
        return [item["name"] for item in self.listed()]


@pytest.fixture
def bucket(tmp_path: Path) -> Bucket:
    made = Bucket(Database(tmp_path / "cloud.sqlite"), "proj-a1")
    made.hold(held=True)
    return made


def test_whoever_asks_for_the_lock_finds_it_held(bucket: Bucket) -> None:
    assert bucket.take() == 412
    assert bucket.take_by_multipart() == 412
    assert json.loads(bucket.lock())["Who"] == "ann@laptop"


def test_the_lock_says_who_holds_it_and_since_when(bucket: Bucket) -> None:
    lock = json.loads(bucket.lock())
    assert lock["Who"] == "ann@laptop"
    assert lock["Created"] == "2027-01-15T07:48:00.000Z"
    assert lock["Path"] == f"gs://states/{LOCK}"
    # The XML API shows it too; where there is no bucket, there is none.
    assert bucket("media", "GET", f"states/{LOCK}").status == 200
    assert bucket("storage", "GET", f"b/another/o/{quote(LOCK, safe='')}").status == 404


@pytest.mark.parametrize("sign", [STATE, "np-deployment/deployment.json"])
def test_a_list_shows_the_lock_of_every_deployment(bucket: Bucket, sign: str) -> None:
    assert bucket.names() == []
    bucket.write(sign)
    assert bucket.names() == sorted([sign, LOCK])


@pytest.mark.parametrize("seen", [True, False])
def test_a_deleted_lock_is_free_for_good(bucket: Bucket, *, seen: bool) -> None:
    assert not seen or bucket.read(LOCK).status == 200
    for _ in range(2):
        assert bucket.delete(LOCK) == 204
        assert bucket.take() == 200
    bucket.hold(held=False)
    assert bucket.lock() == b"x"


def test_nobody_holds_a_lock_once_the_scenario_is_over(bucket: Bucket) -> None:
    assert bucket.read(LOCK).status == 200
    bucket.hold(held=False)
    assert bucket.names() == []
    assert bucket.take() == 200
    assert bucket.delete(LOCK) == 204
    bucket.hold(held=True)
    assert bucket.take() == 412


def test_a_lock_that_somebody_truly_holds_stays_as_it_is(bucket: Bucket) -> None:
    bucket.hold(held=False)
    assert bucket.take() == 200
    for held in (True, False):
        bucket.hold(held=held)
        assert bucket.lock() == b"x"
