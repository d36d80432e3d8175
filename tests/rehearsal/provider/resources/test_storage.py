import base64
import hashlib
from pathlib import Path
from typing import Any

import pytest

from rehearsal.provider.api import Api
from rehearsal.provider.resource import UNKNOWN
from rehearsal.provider.resources import RESOURCES, storage
from tests.rehearsal.provider.resources.conftest import Google

OBJECT = RESOURCES["google_storage_bucket_object"]
B = "/storage/v1/b"
UPLOAD = "POST /upload/storage/v1/b/x/o"


def thing(**more: Any) -> dict[str, Any]:
    return {"bucket": "x", "name": "a/b.txt", "content": "hi", "source": None, **more}


def test_a_large_object_goes_in_parts(
    google: Google, api: Api, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage, "_CHUNK", 4)
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
