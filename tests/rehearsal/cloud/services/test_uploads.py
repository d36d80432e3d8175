from typing import Any
from urllib.parse import urlsplit

from tests.rehearsal.cloud.services.conftest import Api

_GRAIN = 256 * 1024
_BEGIN = "b/loom/o?uploadType=resumable&name=big"


def _begin(api: Api, query: str = "") -> str:
    """The target of a new session's chunks."""
    kind = {"x-upload-content-type": "a/b"}
    reply = api("upload", "POST", _BEGIN + query, {"contentType": None}, kind)
    assert (reply.status, reply.body) == (200, b"")
    parts = urlsplit(reply.headers["Location"])
    return f"{parts.path.removeprefix('/upload/storage/v1/')}?{parts.query}"


def _put(api: Api, target: str, content: bytes | None, span: str) -> Any:
    return api("upload", "PUT", target, content, {"content-range": span})


def test_chunks_make_one_object_and_one_sent_twice_counts_once(api: Api) -> None:
    api.bucket()
    target = _begin(api)
    nothing = _put(api, target, None, "bytes */*")
    assert nothing.status == 308
    assert "Range" not in nothing.headers
    for _ in range(2):
        first = _put(api, target, bytes(_GRAIN), f"bytes 0-{_GRAIN - 1}/*")
        assert (first.status, first.headers["Range"]) == (308, f"bytes=0-{_GRAIN - 1}")
    some = _put(api, target, None, f"bytes */{_GRAIN + 1}")
    assert (some.status, some.headers["Range"]) == (308, f"bytes=0-{_GRAIN - 1}")
    for _ in range(2):
        last = _put(api, target, b"end", f"bytes {_GRAIN}-{_GRAIN + 2}/{_GRAIN + 3}")
        assert last.body["size"] == str(_GRAIN + 3)
    assert api("media", "GET", "loom/big").body == bytes(_GRAIN) + b"end"


def test_a_client_that_can_not_take_308_is_told_in_a_header(api: Api) -> None:
    api.bucket()
    headers = {"content-range": f"bytes 0-{_GRAIN - 1}/*", "x-guploader-no-308": "yes"}
    reply = api("upload", "POST", _begin(api), bytes(_GRAIN), headers)
    assert (reply.status, reply.headers["X-HTTP-Status-Code-Override"]) == (200, "308")


def test_a_chunk_that_does_not_fit_is_refused(api: Api) -> None:
    api.bucket()
    for span, code in (("bytes 5-9/*", 503), ("bytes 0-4/*", 400), ("lines 0-4/5", 400)):
        assert _put(api, _begin(api), bytes(5), span).status == code


def test_the_condition_is_checked_at_both_ends_of_a_session(api: Api) -> None:
    api.bucket()
    target = _begin(api, "&ifGenerationMatch=0")
    api.put("big")
    assert api("upload", "PUT", target, b"late").status == 412
    assert api("upload", "POST", f"{_BEGIN}&ifGenerationMatch=0", {}).status == 412


def test_an_upload_that_is_none_is_refused(api: Api) -> None:
    api.bucket()
    for target, code in (
        ("b/loom/o?uploadType=carrier-pigeon&name=x", 400),
        ("b/loom/o?uploadType=resumable&upload_id=none", 404),
        ("b/loom/o?uploadType=multipart", 400),
        ("b/loom/o?uploadType=media", 400),
        ("b/none-here/o?uploadType=resumable&name=x", 404),
    ):
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
