from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

_GRAIN = 256 * 1024
_BEGIN = "b/loom/o?uploadType=resumable&name=big"


def _begin(api: Api, query: str = "") -> str:
    """The target of a new session's chunks."""
    reply = api(
        "upload", "POST", _BEGIN + query, {"contentType": None}, {"x-upload-content-type": "a/b"}
    )
    assert (reply.status, reply.body) == (200, b"")
    parts = urlsplit(reply.headers["Location"])
    return f"{parts.path.removeprefix('/upload/storage/v1/')}?{parts.query}"


def test_chunks_make_one_object(api: Api) -> None:
    api.bucket()
    target = _begin(api)
    first = api(
        "upload", "PUT", target, bytes(_GRAIN), {"content-range": f"bytes 0-{_GRAIN - 1}/*"}
    )
    assert (first.status, first.headers["Range"]) == (308, f"bytes=0-{_GRAIN - 1}")
    span = f"bytes {_GRAIN}-{_GRAIN + 2}/{_GRAIN + 3}"
    last = api("upload", "PUT", target, b"end", {"content-range": span})
    assert isinstance(last.body, dict)
    assert last.body["size"] == str(_GRAIN + 3)
    assert api("media", "GET", "loom/big").body == bytes(_GRAIN) + b"end"


def test_a_session_tells_how_far_it_is(api: Api) -> None:
    api.bucket()
    target = _begin(api)
    nothing = api("upload", "PUT", target, None, {"content-range": "bytes */*"})
    assert nothing.status == 308
    assert "Range" not in nothing.headers
    api("upload", "PUT", target, bytes(_GRAIN), {"content-range": f"bytes 0-{_GRAIN - 1}/*"})
    some = api("upload", "PUT", target, None, {"content-range": f"bytes */{_GRAIN + 1}"})
    assert (some.status, some.headers["Range"]) == (308, f"bytes=0-{_GRAIN - 1}")


def test_a_client_that_can_not_take_308_is_told_in_a_header(api: Api) -> None:
    api.bucket()
    headers = {"content-range": f"bytes 0-{_GRAIN - 1}/*", "x-guploader-no-308": "yes"}
    reply = api("upload", "POST", _begin(api), bytes(_GRAIN), headers)
    assert (reply.status, reply.headers["X-HTTP-Status-Code-Override"]) == (200, "308")


def test_a_chunk_sent_twice_counts_once(api: Api) -> None:
    api.bucket()
    target = _begin(api)
    for _ in range(2):
        api("upload", "PUT", target, bytes(_GRAIN), {"content-range": f"bytes 0-{_GRAIN - 1}/*"})
    span = {"content-range": f"bytes {_GRAIN}-{_GRAIN}/{_GRAIN + 1}"}
    for _ in range(2):
        last = api("upload", "PUT", target, b"x", span)
        assert isinstance(last.body, dict)
        assert last.body["size"] == str(_GRAIN + 1)


@pytest.mark.parametrize(
    ("span", "size", "code"),
    [("bytes 5-9/*", 5, 503), ("bytes 0-4/*", 5, 400), ("lines 0-4/5", 5, 400)],
)
def test_a_chunk_that_does_not_fit_is_refused(api: Api, span: str, size: int, code: int) -> None:
    api.bucket()
    reply = api("upload", "PUT", _begin(api), bytes(size), {"content-range": span})
    assert reply.status == code


def test_the_condition_is_checked_at_both_ends_of_a_session(api: Api) -> None:
    api.bucket()
    target = _begin(api, "&ifGenerationMatch=0")
    api.put("big")
    assert api("upload", "PUT", target, b"late").status == 412
    assert api("upload", "POST", f"{_BEGIN}&ifGenerationMatch=0", {}).status == 412


@pytest.mark.parametrize(
    ("target", "code"),
    [
        ("b/loom/o?uploadType=carrier-pigeon&name=x", 400),
        ("b/loom/o?uploadType=resumable&upload_id=none", 404),
        ("b/loom/o?uploadType=multipart", 400),
        ("b/loom/o?uploadType=media", 400),
        ("b/none-here/o?uploadType=resumable&name=x", 404),
    ],
)
def test_an_upload_that_is_none_is_refused(api: Api, target: str, code: int) -> None:
    api.bucket()
    assert api.refused("upload", "POST", target)[0] == code


def test_line_ends_of_content_are_kept(api: Api) -> None:
    api.bucket()
    content = b"a\r\nb\n\r\n\r\n--\r\n"
    body = (
        b'--B\r\n\r\n{"name":"x"}\r\n--B\r\ncontent-type: t/x\r\n\r\n' + content + b"\r\n--B--\r\n"
    )
    headers = {"content-type": 'multipart/related; boundary="B"'}
    reply = api("upload", "POST", "b/loom/o?uploadType=multipart", body, headers)
    assert isinstance(reply.body, dict)
    assert reply.body["contentType"] == "t/x"
    assert api("media", "GET", "loom/x").body == content
