from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.rehearsal.cloud.services.conftest import Api

_WAYS = [
    ("media", "loom/a%2Fb"),
    ("media", "b/loom/o/a%2Fb"),
    ("storage", "b/loom/o/a%2Fb?alt=media"),
]


@pytest.mark.parametrize(("service", "target"), _WAYS)
def test_every_way_leads_to_the_same_content(api: Api, service: str, target: str) -> None:
    api.bucket()
    api.put("a%2Fb", b"content")
    reply = api(service, "GET", target)
    assert (reply.status, reply.body) == (200, b"content")
    assert reply.headers["X-Goog-Generation"].isdecimal()
    assert reply.headers["X-Goog-Hash"].startswith("crc32c=")
    assert reply.headers["X-Goog-Stored-Content-Length"] == "7"


@pytest.mark.parametrize(
    ("span", "status", "content", "where"),
    [
        ("bytes=0-3", 206, b"0123", "bytes 0-3/10"),
        ("bytes=7-", 206, b"789", "bytes 7-9/10"),
        ("bytes=-2", 206, b"89", "bytes 8-9/10"),
        ("bytes=8-99", 206, b"89", "bytes 8-9/10"),
        ("bytes=10-", 416, b"", "bytes */10"),
        ("bytes=-", 200, b"0123456789", None),
        ("chapters=1-2", 200, b"0123456789", None),
    ],
)
def test_a_range_is_answered_as_http_has_it(
    api: Api, span: str, status: int, content: bytes, where: str | None
) -> None:
    api.bucket()
    api.put("x", b"0123456789")
    reply = api("media", "GET", "loom/x", headers={"range": span})
    assert (reply.status, reply.body) == (status, content)
    assert reply.headers.get("Content-Range") == where


@pytest.mark.parametrize(
    ("target", "status", "code"),
    [
        ("loom/none", 404, b"<Code>NoSuchKey</Code>"),
        ("none-here/x", 404, b"<Code>NoSuchBucket</Code>"),
        ("loom", 405, b"<Code>MethodNotAllowed</Code>"),
        ("loom/x?ifGenerationMatch=1", 412, b"<Code>PreconditionFailed</Code>"),
        ("theirs/x", 403, b"<Code>AccessDenied</Code>"),
    ],
)
def test_errors_of_the_xml_api_are_xml(api: Api, target: str, status: int, code: bytes) -> None:
    api.bucket()
    api("storage", "POST", "b?project=foreign-corp", {"name": "theirs"})
    api.put("x")
    reply = api("media", "GET", target)
    assert isinstance(reply.body, bytes)
    assert reply.status == status
    assert code in reply.body


@pytest.mark.parametrize(
    ("service", "target"), [("media", "b/loom/o/none"), ("storage", "b/loom/o/none?alt=media")]
)
def test_the_content_of_no_object_is_a_line_of_text_that_calls_itself_html(
    api: Api, service: str, target: str
) -> None:
    api.bucket()
    reply = api(service, "GET", target)
    assert (reply.status, reply.body) == (404, b"No such object: loom/none")
    assert reply.headers["Content-Type"] == "text/html; charset=UTF-8"
