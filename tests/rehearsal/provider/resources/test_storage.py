"""Buckets and objects."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING, Any

import pytest

from rehearsal.provider.failures import GoogleApiError, ProviderError
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import RESOURCES, media

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from rehearsal.provider.api import Api
    from tests.rehearsal.provider.resources.conftest import Google

pytestmark = pytest.mark.loopback

BUCKET = RESOURCES["google_storage_bucket"]
OBJECT = RESOURCES["google_storage_bucket_object"]
MARK = {"goog-terraform-provisioned": "true"}
THERE = {"id": "x", "name": "x", "projectNumber": "12"}
B = "/storage/v1/b"
UPLOAD = "POST /upload/storage/v1/b/x/o"

PLAN: dict[str, Any] = {
    "name": "x",
    "location": "US",
    "storage_class": "STANDARD",
    "project": UNKNOWN,
    "lifecycle_rule": [],
    "versioning": UNKNOWN,
    "uniform_bucket_level_access": UNKNOWN,
    "public_access_prevention": UNKNOWN,
    "effective_labels": MARK,
}


def test_the_smallest_bucket_is_sent_as_recorded(google: Google, api: Api) -> None:
    google.on("GET /compute.*", {"name": "p-by-number"}).on(".*", THERE)
    state = BUCKET.create(api, PLAN)
    assert google.body(f"POST {B}") == {
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": False}},
        "labels": MARK,
        "lifecycle": {"rule": []},
        "location": "US",
        "name": "x",
        "storageClass": "STANDARD",
    }
    assert google.asked[0].query["project"] == "p"
    assert google.lines[1:] == [f"GET {B}/x", f"GET {B}/x", "GET /compute/v1/projects/12"]
    assert (state["project"], state["project_number"]) == ("p-by-number", 12)


def test_a_buckets_project_is_looked_up_only_if_nobody_says_it(google: Google, api: Api) -> None:
    google.on(".*", THERE)
    found = BUCKET.read(api, {**PLAN, "project": "mine"})
    assert found is not None
    assert found["project"] == "mine"
    assert google.lines == [f"GET {B}/x"]


def rule(**condition: Any) -> dict[str, Any]:
    return {"action": [{"type": "Delete", "storage_class": None}], "condition": [condition]}


@pytest.mark.parametrize(
    ("condition", "wire"),
    [
        ({"age": 30, "with_state": UNKNOWN}, {"age": 30}),
        ({"age": 0}, {}),
        ({"age": 0, "send_age_if_zero": True}, {"age": 0}),
        (
            {"num_newer_versions": 3, "with_state": "ARCHIVED"},
            {"numNewerVersions": 3, "isLive": False},
        ),
        (
            {"with_state": "LIVE", "matches_prefix": ["a/"]},
            {"isLive": True, "matchesPrefix": ["a/"]},
        ),
    ],
)
def test_a_lifecycle_rule_is_sent_in_googles_words(
    condition: dict[str, Any], wire: dict[str, Any], google: Google, api: Api
) -> None:
    google.on(".*", THERE)
    BUCKET.create(api, {**PLAN, "project": "p", "lifecycle_rule": [rule(**condition)]})
    sent = google.body(f"POST {B}")["lifecycle"]["rule"]
    assert sent == [{"action": {"type": "Delete"}, "condition": wire}]


def test_soft_delete_can_be_switched_off(google: Google, api: Api) -> None:
    google.on(".*", THERE)
    policy = [{"retention_duration_seconds": 0, "effective_time": UNKNOWN}]
    BUCKET.create(api, {**PLAN, "project": "p", "soft_delete_policy": policy})
    assert google.body(f"POST {B}")["softDeletePolicy"] == {"retentionDurationSeconds": "0"}


def test_an_update_sends_what_changed_and_null_for_what_went(google: Google, api: Api) -> None:
    google.on(".*", THERE)
    prior = {
        **PLAN,
        "project": "p",
        "effective_labels": {"a": "1", **MARK},
        "cors": [{"origin": ["*"]}],
    }
    prior |= {"logging": [{"log_bucket": "l"}], "uniform_bucket_level_access": False}
    plan = {**prior, "effective_labels": MARK, "logging": [], "uniform_bucket_level_access": True}
    BUCKET.update(api, prior, plan)
    assert google.body(f"PATCH {B}/x") == {
        "iamConfiguration": {"uniformBucketLevelAccess": {"enabled": True}},
        "labels": {"a": None, **MARK},
        "logging": None,
    }


def test_a_bucket_with_something_in_it_is_kept(google: Google, api: Api) -> None:
    google.on("GET .*/anywhereCaches/", {}).on("GET .*/o", {"items": [{"name": "k"}]})
    with pytest.raises(ProviderError, match="containing objects without `force_destroy` set"):
        BUCKET.delete(api, {**PLAN, "force_destroy": False})
    assert not any(line.startswith("DELETE") for line in google.lines)


def test_a_forced_delete_empties_the_bucket_with_its_old_versions(google: Google, api: Api) -> None:
    items = [{"name": "a/b", "generation": "1"}, {"name": "a/b", "generation": "2"}]
    google.on("GET .*/anywhereCaches/", {}).on("GET .*/o", {"items": items}, {})
    google.on("DELETE .*", (204, None))
    BUCKET.delete(api, {**PLAN, "force_destroy": True})
    deleted = [it for it in google.asked if it.method == "DELETE"]
    assert [it.query.get("generation") for it in deleted] == ["1", "2", None]
    assert deleted[0].path == f"{B}/x/o/a%2Fb"
    assert google.asked[1].query["versions"] == "true"


def test_a_bucket_that_somebody_owns_is_googles_error(
    google: Google, api: Api, refuse: Callable[..., Any]
) -> None:
    google.on("POST .*", refuse(409, "you already own it", "conflict"))
    with pytest.raises(GoogleApiError, match="googleapi: Error 409: you already own it, conflict"):
        BUCKET.create(api, PLAN)


def test_a_location_is_planned_in_capitals(api: Api) -> None:
    plan = BUCKET.customize(api, None, {"location": "us-central1", "labels": {}})
    assert plan["location"] == "US-CENTRAL1"
    assert plan["effective_labels"] == MARK
    assert BUCKET.suppress["location"]("US", "us", {})


def thing(**more: Any) -> dict[str, Any]:
    return {"bucket": "x", "name": "a/b.txt", "content": "hi", "source": None, **more}


def test_a_small_object_goes_in_one_request(google: Google, api: Api) -> None:
    google.on(".*", {"name": "a/b.txt", "bucket": "x", "generation": "5"})
    state = OBJECT.create(api, thing(content_type=UNKNOWN, storage_class=UNKNOWN))
    sent = google.asked[0]
    assert sent.line == UPLOAD
    assert sent.query == {
        "alt": "json",
        "name": "a/b.txt",
        "prettyPrint": "false",
        "uploadType": "multipart",
    }
    assert b'Content-Type: application/json\r\n\r\n{"bucket": "x"}\r\n' in sent.body
    assert b"Content-Type: text/plain; charset=utf-8\r\n\r\nhi\r\n--" in sent.body
    assert google.lines[1] == f"GET {B}/x/o/a%2Fb.txt"
    assert (state["id"], state["generation"], state["content"]) == ("x-a/b.txt", 5, "hi")


def test_a_large_object_goes_in_parts(
    google: Google, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(media, "_CHUNK", 4)
    place = f"{google.base_url}/upload/storage/v1/b/x/o?uploadType=resumable&upload_id=u"
    google.on(UPLOAD, (200, {}, {"Location": place}), (200, None), {"name": "a/b.txt"})
    google.on("GET .*", {"name": "a/b.txt", "bucket": "x"})
    OBJECT.create(api, thing(content="123456"))
    opened, first, last = google.asked[:3]
    assert (opened.query["uploadType"], opened.body) == ("resumable", {"bucket": "x"})
    assert opened.headers["x-upload-content-type"] == "text/plain; charset=utf-8"
    assert (first.headers["content-range"], first.body) == ("bytes 0-3/*", b"1234")
    assert (last.headers["content-range"], last.body) == ("bytes 4-5/6", b"56")
    assert last.query == {"uploadType": "resumable", "upload_id": "u"}


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"#!/bin/sh\n", "text/plain; charset=utf-8"),
        (b"", "text/plain; charset=utf-8"),
        (b"\x1f\x8b\x08rest", "application/x-gzip"),
        (b"  <html>", "text/html; charset=utf-8"),
        (bytes(8), "application/octet-stream"),
    ],
)
def test_content_that_nobody_names_is_judged_by_its_beginning(content: bytes, kind: str) -> None:
    assert media.kind(content) == kind


def test_a_changed_file_is_a_change_and_an_unchanged_one_is_none(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"one")
    md5 = base64.b64encode(hashlib.md5(b"one", usedforsecurity=False).digest()).decode()
    same = OBJECT.suppress["detect_md5hash"]
    assert same(md5, "different hash", {"source": str(file)})
    file.write_bytes(b"two")
    assert not same(md5, "different hash", {"source": str(file)})


def test_new_content_means_new_hashes(api: Api) -> None:
    prior = {"content": "a", "md5hash": "m", "generation": 1}
    plan = OBJECT.customize(api, prior, {**prior, "content": "b"})
    assert (plan["md5hash"], plan["generation"]) == (UNKNOWN, UNKNOWN)


def test_a_hold_is_changed_without_an_upload(google: Google, api: Api) -> None:
    google.on(".*", {"name": "a/b.txt", "bucket": "x"})
    OBJECT.update(api, thing(temporary_hold=False), thing(temporary_hold=True))
    path = f"{B}/x/o/a%2Fb.txt"
    assert google.lines == [f"GET {path}", f"PUT {path}", f"GET {path}"]
    assert google.asked[1].body["temporaryHold"] is True
