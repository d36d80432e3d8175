import pytest

from tests.rehearsal.cloud.services.conftest import Api


def test_every_way_leads_to_the_same_content(api: Api) -> None:
    api.bucket()
    api.put("a%2Fb", b"content")
    for service, target in (
        ("media", "loom/a%2Fb"),
        ("media", "b/loom/o/a%2Fb"),
        ("storage", "b/loom/o/a%2Fb?alt=media"),
    ):
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


def test_what_the_caller_has_already_is_not_sent(api: Api) -> None:
    api.bucket()
    made = api.put("x").body
    assert isinstance(made, dict)
    reply = api("storage", "GET", f"b/loom/o/x?alt=media&ifGenerationNotMatch={made['generation']}")
    assert (reply.status, reply.body) == (304, None)


def test_errors_of_the_xml_api_are_xml(api: Api) -> None:
    api.bucket()
    api("storage", "POST", "b?project=foreign-corp", {"name": "theirs"})
    api.put("x")
    for target, status, code in (
        ("loom/none", 404, "NoSuchKey"),
        ("none-here/x", 404, "NoSuchBucket"),
        ("loom", 405, "MethodNotAllowed"),
        ("loom/x?ifGenerationMatch=1", 412, "PreconditionFailed"),
        ("theirs/x", 403, "AccessDenied"),
    ):
        reply = api("media", "GET", target)
        assert isinstance(reply.body, bytes)
        assert reply.status == status
        assert f"<Code>{code}</Code>".encode() in reply.body


def test_the_content_of_no_object_is_a_line_of_text_that_calls_itself_html(api: Api) -> None:
    api.bucket()
    for service, target in (("media", "b/loom/o/none"), ("storage", "b/loom/o/none?alt=media")):
        reply = api(service, "GET", target)
        assert (reply.status, reply.body) == (404, b"No such object: loom/none")
        assert reply.headers["Content-Type"] == "text/html; charset=UTF-8"
